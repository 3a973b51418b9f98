//! Large batches of lookups: all runs are read once, from front to back, instead of a page for each key.

use std::sync::Arc;

use nandex_store::run::{Run, Source};

use super::Inner;
use super::read::clamped;
use crate::Result;
use crate::lookup::counts::LookupCounts;

/// A key of a batch: its fingerprint, and its position in the batch. They sort by fingerprint, so by part, and then by
/// position.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
struct BatchKey {
    fingerprint: u64,
    index: usize,
}

impl Inner {
    /// Returns the counts of all `keys`, in their order.
    pub(super) fn sweep(&self, keys: &[&[u8]]) -> Result<Vec<u64>> {
        let asked = self.in_order(keys);
        let mut counts = vec![0; keys.len()];
        self.sweep_all(&asked, |index, sum| counts[index] = clamped(sum))?;
        Ok(counts)
    }

    /// Returns of each key whether it is absent and no earlier one of `keys` has its fingerprint.
    pub(super) fn first_absent(&self, keys: &[&[u8]]) -> Result<Vec<bool>> {
        let mut asked = self.in_order(keys);
        asked.dedup_by_key(|it| it.fingerprint);
        let mut is_new = vec![false; keys.len()];
        let pages = self.level_pages();
        if pages == 0 || asked.len() as u64 > pages / 2 {
            self.sweep_all(&asked, |index, sum| is_new[index] = sum <= 0)?;
            return Ok(is_new);
        }
        let some: Vec<&[u8]> = asked.iter().map(|it| keys[it.index]).collect();
        for (it, is_there) in asked.iter().zip(self.contains_many(&some)?) {
            is_new[it.index] = !is_there;
        }
        Ok(is_new)
    }

    fn in_order(&self, keys: &[&[u8]]) -> Vec<BatchKey> {
        let place = |(index, key): (usize, &&[u8])| {
            let fingerprint = self.fingerprint(key);
            BatchKey { fingerprint, index }
        };
        let mut asked: Vec<_> = keys.iter().enumerate().map(place).collect();
        asked.sort_unstable();
        asked
    }

    /// Passes the position of each key, and its sum over buffers and runs.
    fn sweep_all(&self, asked: &[BatchKey], mut pass: impl FnMut(usize, i64)) -> Result<()> {
        let part = |it: &BatchKey| self.layout.split.quotient(it.fingerprint);
        let (mut sums, mut lookups) = (Vec::new(), LookupCounts::default());
        for group in asked.chunk_by(|one, next| part(one) == part(next)) {
            sums.clear();
            self.sweep_part(part(&group[0]) as usize, group, &mut sums)?;
            for (it, sum) in group.iter().zip(&sums) {
                lookups.count(*sum > 0, 0);
                pass(it.index, *sum);
            }
        }
        self.lookups.counters.add(&lookups);
        Ok(())
    }

    /// Adds up the counts of a part's buffers and runs for its keys, in ascending order, one sum for each.
    fn sweep_part(&self, part: usize, asked: &[BatchKey], sums: &mut Vec<i64>) -> Result<()> {
        let first = self.partitions[part].unlocked;
        let levels = {
            let state = self.partitions[part].read();
            for it in asked {
                sums.push(state.buffered(it.fingerprint - first)?);
            }
            Arc::clone(&state.level)
        };
        levels.readable().try_for_each(|run| self.sweep_run(run, (first, asked), sums))
    }

    /// Adds the counts of a run, whose fingerprints count from `first`.
    fn sweep_run(
        &self,
        run: &Run,
        (first, asked): (u64, &[BatchKey]),
        sums: &mut [i64],
    ) -> Result<()> {
        let mut reader = self.layout.runs.reader(run)?;
        let (mut batch, mut at) = (Vec::new(), 0);
        while at < asked.len() && reader.next_batch(&mut batch)? {
            for entry in &batch {
                let fingerprint = first + entry.fingerprint;
                while let Some(it) = asked.get(at)
                    && it.fingerprint <= fingerprint
                {
                    if it.fingerprint == fingerprint {
                        sums[at] = sums[at].saturating_add(entry.count);
                    }
                    at += 1;
                }
            }
            batch.clear();
        }
        Ok(())
    }
}
