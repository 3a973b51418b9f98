//! Large batches of lookups: all runs are read once, from front to back, instead of a page for each key.

use std::sync::Arc;

use nandex_store::run::{Run, Source};

use super::Inner;
use super::read::clamped;
use crate::Result;
use crate::lookup::counts::LookupCounts;

/// A key of a batch: its fingerprint in its part, and its position in the batch.
#[derive(Clone, Copy)]
struct BatchKey {
    part: usize,
    fingerprint: u64,
    index: usize,
}

impl Inner {
    /// Returns the counts of all `keys`, in their order.
    pub(super) fn sweep(&self, keys: &[&[u8]]) -> Result<Vec<u64>> {
        let place = |(index, key): (usize, &&[u8])| {
            let (part, fingerprint) = self.place(key);
            BatchKey { part, fingerprint, index }
        };
        let mut asked: Vec<_> = keys.iter().enumerate().map(place).collect();
        asked.sort_unstable_by_key(|asked| (asked.part, asked.fingerprint));
        let mut sums = vec![0; keys.len()];
        for group in asked.chunk_by(|one, next| one.part == next.part) {
            self.sweep_part(group, &mut sums)?;
        }
        let mut lookups = LookupCounts::default();
        sums.iter().for_each(|sum| lookups.count(*sum > 0, 0));
        self.lookups.counters.add(&lookups);
        Ok(sums.into_iter().map(clamped).collect())
    }

    /// Adds up the counts of a part's buffers and runs for its keys, in ascending order.
    fn sweep_part(&self, asked: &[BatchKey], sums: &mut [i64]) -> Result<()> {
        let levels = {
            let state = self.partitions[asked[0].part].read();
            for it in asked {
                sums[it.index] = state.buffered(it.fingerprint)?;
            }
            Arc::clone(&state.level)
        };
        levels.readable().try_for_each(|run| self.sweep_run(run, asked, sums))
    }

    fn sweep_run(&self, run: &Run, mut asked: &[BatchKey], sums: &mut [i64]) -> Result<()> {
        let mut reader = self.layout.runs.reader(run)?;
        let mut batch = Vec::new();
        while !asked.is_empty() && reader.next_batch(&mut batch)? {
            for entry in &batch {
                while let [first, rest @ ..] = asked
                    && first.fingerprint <= entry.fingerprint
                {
                    if first.fingerprint == entry.fingerprint {
                        sums[first.index] = sums[first.index].saturating_add(entry.count);
                    }
                    asked = rest;
                }
            }
            batch.clear();
        }
        Ok(())
    }
}
