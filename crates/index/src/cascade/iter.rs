//! All fingerprints in order.

use std::sync::Arc;

use nandex_store::run::{Merge, MergeOptions, Sorted, Source};

use super::buffer::FingerprintBuffer;
use super::levels::Levels;
use super::{Entry, Inner};
use crate::Result;
use crate::write::WriteBuffer;

/// The fingerprints of a filter with their counts, in ascending order. Each part is seen as it was when the
/// iteration reached it. See [`Cascade::iter`](super::Cascade::iter).
///
/// While it exists, it keeps the parts of the filter that it reads, and the volume's file, open.
pub struct Fingerprints {
    core: Arc<Inner>,
    /// The next part.
    part: usize,
    current: Option<Current>,
    batch: std::vec::IntoIter<Entry>,
    failed: bool,
}

/// The part that is being read.
struct Current {
    first: u64,
    merge: Merge<'static>,
    /// Its runs, whose pages are not reused while they are referenced here.
    _levels: Arc<Levels>,
}

impl Fingerprints {
    pub(super) fn new(core: Arc<Inner>) -> Self {
        Self { core, part: 0, current: None, batch: Vec::new().into_iter(), failed: false }
    }

    /// The next entries, of the current part or of the next one.
    fn next_batch(&mut self) -> Result<Option<Vec<Entry>>> {
        loop {
            let Some(current) = &mut self.current else {
                if self.part == self.core.partitions.len() {
                    return Ok(None);
                }
                self.current = Some(self.begin(self.part)?);
                self.part += 1;
                continue;
            };
            let mut batch = Vec::new();
            if current.merge.next_batch(&mut batch)? {
                batch.iter_mut().for_each(|entry| entry.fingerprint += current.first);
                return Ok(Some(batch));
            }
            self.current = None;
        }
    }

    fn begin(&self, part: usize) -> Result<Current> {
        let mut sources: Vec<Box<dyn Source>> = Vec::new();
        let (buffers, levels) = self.core.contents_of(part)?;
        for buffer in buffers {
            sources.push(Box::new(Sorted::new(buffer)));
        }
        for run in levels.readable() {
            sources.push(Box::new(self.core.layout.runs.reader(run)?));
        }
        let merge = Merge::new(sources, MergeOptions { drop_negative: true });
        Ok(Current { first: self.core.layout.fingerprints(part).start, merge, _levels: levels })
    }
}

impl Inner {
    /// Returns the contents of a part at one moment: its non-empty buffers, sorted, and its levels.
    ///
    /// # Errors
    /// A page of the buffers is lost.
    pub(super) fn contents_of(&self, part: usize) -> Result<(Vec<Vec<Entry>>, Arc<Levels>)> {
        let state = self.partitions[part].read();
        let buffers = state.buffers()?.filter(|buffer| buffer.entries() > 0);
        Ok((buffers.map(FingerprintBuffer::sorted).collect(), Arc::clone(&state.level)))
    }
}

impl Iterator for Fingerprints {
    type Item = Result<Entry>;

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            if let Some(entry) = self.batch.next() {
                return Some(Ok(entry));
            }
            if self.failed {
                return None;
            }
            match self.next_batch() {
                Ok(Some(batch)) => self.batch = batch.into_iter(),
                Ok(None) => return None,
                Err(error) => {
                    self.failed = true;
                    return Some(Err(error));
                }
            }
        }
    }
}

impl std::fmt::Debug for Fingerprints {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Fingerprints").finish_non_exhaustive()
    }
}
