//! All fingerprints in order.

use nandex_store::IoChunks;
use std::collections::VecDeque;
use std::sync::Arc;

use nandex_device::Device;
use nandex_store::run::{Merge, MergeOptions, Run, RunReader, Source};

use super::{Entry, Inner};
use crate::Result;

/// The fingerprints of a filter with their counts, in ascending order, as [`Cascade::iter`](super::Cascade::iter)
/// found them.
pub struct Fingerprints {
    device: Arc<dyn Device>,
    strokes: IoChunks,
    /// The first fingerprint of each part that is not begun, and its runs, whose pages are not used again
    /// while they are here.
    parts: VecDeque<(u64, Vec<Arc<Run>>)>,
    current: Option<Current>,
    batch: std::vec::IntoIter<Entry>,
    failed: bool,
}

/// The part that is read.
struct Current {
    first: u64,
    merge: Merge<'static>,
    _runs: Vec<Arc<Run>>,
}

impl Inner {
    pub(super) fn iterate(&self) -> Result<Fingerprints> {
        self.save()?;
        let runs =
            self.parts.iter().map(|part| (part.first, part.levels().all().cloned().collect()));
        Ok(Fingerprints {
            device: Arc::clone(&self.device),
            strokes: self.io_chunks(),
            parts: runs.collect(),
            current: None,
            batch: Vec::new().into_iter(),
            failed: false,
        })
    }
}

impl Fingerprints {
    /// The next entries, of the part that is read or of the next one.
    fn next_batch(&mut self) -> Result<Option<Vec<Entry>>> {
        loop {
            let Some(current) = &mut self.current else {
                let Some((first, runs)) = self.parts.pop_front() else { return Ok(None) };
                self.current = Some(self.begin(first, runs)?);
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

    fn begin(&self, first: u64, runs: Vec<Arc<Run>>) -> Result<Current> {
        let mut sources: Vec<Box<dyn Source>> = Vec::with_capacity(runs.len());
        for run in &runs {
            sources.push(Box::new(RunReader::new(&*self.device, run, self.strokes)?));
        }
        let merge = Merge::new(sources, MergeOptions { drop_negative: true });
        Ok(Current { first, merge, _runs: runs })
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
