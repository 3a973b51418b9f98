//! All keys with their counts, and the most frequent ones.

use std::sync::Arc;

use super::Inner;
use super::change::Change;
use super::entries::{Entries, Listed, Merge, Source};
use super::segments::PartitionSegments;
use super::top::TopKeys;
use crate::Result;

/// The keys of a table with their counts, in the order of their hash. Each partition is seen as it was when the
/// iteration reached it. See [`Counting::iter`](super::Counting::iter).
///
/// While it exists, it keeps the parts of the table that it reads, and the volume's file, open.
pub struct Counts {
    core: Arc<Inner>,
    /// The next partition.
    partition: usize,
    current: Option<Current>,
    batch: Entries,
    at: usize,
    /// The number of entries of the current partition that were fetched.
    fetched: u64,
    failed: bool,
}

/// The sources of a partition, oldest first.
type Sources = Vec<Box<dyn Source>>;

/// The partition that is being read.
struct Current {
    merge: Merge<'static>,
    /// The maximum number of entries that it can have: a key in several sources counts once for each.
    entries_max: u64,
    /// Its segments, whose pages are not reused while they are referenced here.
    _segments: Arc<PartitionSegments>,
}

impl Counts {
    pub(super) fn new(core: Arc<Inner>) -> Self {
        let batch = Entries::new(core.placing().width());
        Self { core, partition: 0, current: None, batch, at: 0, fetched: 0, failed: false }
    }

    /// Returns the share of the table that was read, 0 to 1, for a progress display.
    #[must_use]
    pub fn share_read(&self) -> f64 {
        let before = self.partition - usize::from(self.current.is_some());
        let within = self.current.as_ref().map_or(0.0, |current| {
            (self.fetched as f64 / current.entries_max.max(1) as f64).min(1.0)
        });
        (before as f64 + within) / self.core.partitions.len() as f64
    }

    /// Fetches the next entries, of the current partition or of the next one; returns false at the end.
    fn next_batch(&mut self) -> Result<bool> {
        loop {
            let Some(current) = &mut self.current else {
                if self.partition == self.core.partitions.len() {
                    return Ok(false);
                }
                self.current = Some(begin(&self.core, self.partition)?);
                self.partition += 1;
                self.fetched = 0;
                continue;
            };
            self.batch.clear();
            self.at = 0;
            if current.merge.next_batch(&mut self.batch)? {
                self.fetched += self.batch.len() as u64;
                return Ok(true);
            }
            self.current = None;
        }
    }
}

/// Begins a merge of all sources of a partition.
fn begin(core: &Inner, index: usize) -> Result<Current> {
    let (sources, segments) = core.sources_of(index)?;
    let entries_max = segments.entries() + core.partitions[index].read().entries_buffered();
    let merge = Merge::new(core.placing().width(), sources, true);
    Ok(Current { merge, entries_max, _segments: segments })
}

impl Inner {
    /// Returns the sources of a partition at one moment, oldest first.
    pub(super) fn sources_of(&self, index: usize) -> Result<(Sources, Arc<PartitionSegments>)> {
        let (buffers, segments) = {
            let state = self.partitions[index].read();
            let buffers: Vec<_> = state.buffers()?.map(|buffer| buffer.sums().clone()).collect();
            (buffers, Arc::clone(&state.level))
        };
        let mut sources = Sources::new();
        for segment in segments.data.iter().chain(&segments.staged) {
            sources.push(Box::new(self.layout.segments.reader(segment)?));
        }
        let buffers = buffers.into_iter().rev();
        sources.extend(buffers.map(|it| Box::new(Listed::new(it.sorted())) as Box<dyn Source>));
        Ok((sources, segments))
    }

    /// Returns the `count` keys with the greatest counts, greatest first; among equal counts the smaller key first.
    pub(super) fn top(core: &Arc<Self>, count: usize) -> Result<Vec<(Vec<u8>, u64)>> {
        let mut top = TopKeys::new(count);
        for entry in Counts::new(Arc::clone(core)) {
            let (key, sum) = entry?;
            top.offer(&key, sum);
        }
        Ok(top.into_sorted())
    }
}

impl Iterator for Counts {
    type Item = Result<(Vec<u8>, i64)>;

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            if self.at < self.batch.len() {
                let Change { amount, .. } = self.batch.changes[self.at];
                let key = self.batch.key(self.at).to_vec();
                self.at += 1;
                return Some(Ok((key, amount)));
            }
            if self.failed {
                return None;
            }
            match self.next_batch() {
                Ok(true) => {}
                Ok(false) => return None,
                Err(error) => {
                    self.failed = true;
                    return Some(Err(error));
                }
            }
        }
    }
}

impl std::fmt::Debug for Counts {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Counts").field("partition", &self.partition).finish_non_exhaustive()
    }
}
