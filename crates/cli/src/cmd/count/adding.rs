//! Adds batches to a table, and merges keys that arrive in the table's own order.
//!
//! `dump` prints keys in the order of their hash, and the slots of a buffer ascend with the hash, too. So keys in that
//! order all belong in the first slots of a buffer that grows with them, and each is compared with thousands of others
//! there, instead of a dozen in any other order. A merge needs exactly that order, so these keys go to the table as a
//! sorted stream, bypassing the buffers.

use std::time::Instant;

use anyhow::Result;
use nandex::counting::{Absorbing, Keys};
use nandex::raw::store::hash::KeyHasher;
use nandex::{Counter, Counting, Durability};

use super::input::Amount;
use super::open::OpenedCounts;

/// The number of keys from which on order is no coincidence.
const SORTED_MIN: usize = 256;

/// Adds keys to a table.
pub struct Adding<'t> {
    table: &'t Counting,
    hasher: KeyHasher,
    durability: Durability,
    sorted: Option<Sorted<'t>>,
}

/// A stream in the order of the hash.
struct Sorted<'t> {
    absorbing: Absorbing<'t>,
    /// The last key of the stream.
    last: Vec<u8>,
    since: Instant,
}

impl<'t> Adding<'t> {
    /// Creates an adder with nothing added.
    pub fn new(opened: &'t OpenedCounts) -> Self {
        Self::to(&opened.structure, opened.volume().hasher(), opened.volume().durability())
    }

    fn to(table: &'t Counting, hasher: KeyHasher, durability: Durability) -> Self {
        Self { table, hasher, durability, sorted: None }
    }

    /// Adds a batch.
    ///
    /// # Errors
    /// An error of the table: a count out of range, a failed write, no space.
    pub fn add(&mut self, amounts: &[Amount]) -> Result<()> {
        if self.is_in_order(amounts) {
            return self.add_sorted(amounts);
        }
        self.finish()?;
        let amounts: Vec<(&[u8], i64)> = amounts.iter().map(|it| (&it.0[..], it.1)).collect();
        Ok(self.table.add_many(&amounts)?)
    }

    /// Returns whether these ascend by their hash, and follow the last ones.
    fn is_in_order(&self, amounts: &[Amount]) -> bool {
        let (Keys::Whole(_), Some(_)) = (self.table.config().keys, amounts.first()) else {
            return false;
        };
        let place = |key: &[u8]| self.hasher.hash(key).place;
        let is_after = |one: &[u8], other: &[u8]| (place(one), one) < (place(other), other);
        let goes_on = match &self.sorted {
            None => amounts.len() >= SORTED_MIN,
            Some(sorted) => is_after(&sorted.last, &amounts[0].0),
        };
        goes_on
            && amounts.windows(2).all(|pair| is_after(&pair[0].0, &pair[1].0))
            && amounts.iter().all(|(_, amount)| *amount > i64::MIN)
    }

    fn add_sorted(&mut self, amounts: &[Amount]) -> Result<()> {
        let table = self.table;
        let sorted = self.sorted.get_or_insert_with(|| Sorted {
            absorbing: table.absorb_sorted(),
            last: Vec::new(),
            since: Instant::now(),
        });
        for (key, amount) in amounts {
            sorted.absorbing.push(key, *amount)?;
        }
        sorted.last.clone_from(&amounts[amounts.len() - 1].0);
        let ends = match self.durability {
            Durability::Never => false,
            Durability::Every(longest) => sorted.since.elapsed() >= longest,
            _ => true,
        };
        if ends { self.finish() } else { Ok(()) }
    }

    /// Merges the rest of a sorted stream. What was added before a failure is kept only if this succeeds.
    ///
    /// # Errors
    /// A failed write, no space.
    pub fn finish(&mut self) -> Result<()> {
        match self.sorted.take() {
            Some(sorted) => Ok(sorted.absorbing.finish()?),
            None => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;
    use std::sync::Arc;

    use nandex::counting::Config;
    use nandex::device::MemoryDevice;
    use nandex::{Filter, Threads, Volume, VolumeOptions};

    use super::*;

    fn volume(durability: Durability) -> Volume {
        let log_bytes = 4 << 20;
        let options = VolumeOptions {
            durability,
            threads: Threads::Inline,
            log_bytes,
            ..VolumeOptions::tiny()
        };
        Volume::create(Arc::new(MemoryDevice::new()), options).unwrap()
    }

    fn sorted(volume: &Volume, numbers: std::ops::Range<u64>) -> Vec<Amount> {
        let mut amounts: Vec<Amount> =
            numbers.map(|number| (number.to_le_bytes().to_vec(), number as i64 + 1)).collect();
        amounts.sort_by_key(|(key, _)| (volume.hasher().hash(key).place, key.clone()));
        amounts
    }

    fn counted(table: &Counting) -> BTreeMap<Vec<u8>, i64> {
        table.iter().map(Result::unwrap).collect()
    }

    /// No key goes through a buffer, and so none through the log, which is how the test detects a merge.
    #[test]
    fn batches_in_the_order_of_the_hash_are_merged_and_others_are_buffered() {
        for durability in [Durability::Never, Durability::Always] {
            let volume = volume(durability);
            let table = Counting::create(&volume, "counts", Config::tiny()).unwrap();
            let all = sorted(&volume, 0..3000);
            let mut expected: BTreeMap<_, _> = all.iter().cloned().collect();
            let mut adding = Adding::to(&table, volume.hasher(), durability);
            all.chunks(750).for_each(|batch| adding.add(batch).unwrap());
            adding.finish().unwrap();
            assert_eq!(counted(&table), expected);
            assert_eq!(table.stats().inserts, 0, "{durability:?}");
            // The same keys again, backwards, and then few of them.
            let backwards: Vec<_> = all.iter().rev().cloned().collect();
            adding.add(&backwards).unwrap();
            adding.add(&all[..SORTED_MIN - 1]).unwrap();
            assert_eq!(table.stats().inserts, 3000 + SORTED_MIN as u64 - 1);
            for (key, amount) in all.iter().chain(&all[..SORTED_MIN - 1]) {
                *expected.entry(key.clone()).or_default() += amount;
            }
            assert_eq!(counted(&table), expected);
        }
    }

    #[test]
    fn a_batch_out_of_order_ends_the_stream_before_it() {
        let volume = volume(Durability::Never);
        let table = Counting::create(&volume, "counts", Config::tiny()).unwrap();
        let all = sorted(&volume, 10..1010);
        let mut adding = Adding::to(&table, volume.hasher(), Durability::Never);
        adding.add(&all[500..]).unwrap();
        assert!(adding.sorted.is_some());
        adding.add(&all[..500]).unwrap();
        let twice = [all[7].clone(), all[7].clone()];
        adding.add(&twice).unwrap();
        adding.finish().unwrap();
        let (key, amount) = &all[7];
        assert_eq!(table.sum(key).unwrap(), amount * 3);
        assert_eq!(counted(&table).len(), 1000);
    }
}
