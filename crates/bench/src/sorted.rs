//! Loads in key order, for engines that would take days to load at random.
//!
//! A B-tree that is many times larger than memory reads and writes a page per entry when keys come at
//! random: 256 million of them are hours of disk time. The same entries in the tree's own order fill
//! page after page. That is the kindest load an engine can get: its pages are full, its levels settled,
//! its files in one piece. So what is measured on such a table is the best the engine can do, and a
//! comparison with it favours the engine and never nandex.
//!
//! The keys are those of the random load. They are not stored: a slice of the key space is filled by
//! going over all indices and keeping what falls into it, then sorted. A slice takes [`SLICE_ENTRIES`]
//! pairs of memory, 128 MiB, whatever the number of entries.

use anyhow::{Context, Result, ensure};

use crate::plan::LOAD_BATCH;
use crate::subject::{Bulk, Lane, Subject};
use crate::workload::KeySpace;

/// Pairs in a slice on average, and in the longest call of [`Bulk::append`] nearly.
pub const SLICE_ENTRIES: u64 = 1 << 23;

/// The order in which an engine keeps its keys.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Order {
    /// As numbers.
    Number,
    /// As strings of their little-endian bytes.
    Bytes,
    /// By the low bits of the FNV-1 hash of those bytes that begins at zero: by Berkeley DB's buckets.
    Buckets {
        /// Bits in the number of a bucket, 1 to 32.
        bits: u32,
    },
}

impl Order {
    /// Where `key` stands in this order, in the whole range of 64 bits.
    #[must_use]
    pub const fn rank(self, key: u64) -> u64 {
        match self {
            Self::Number => key,
            Self::Bytes => key.swap_bytes(),
            Self::Buckets { bits } => (fnv(key) as u64) << (u64::BITS - bits),
        }
    }
}

const fn fnv(key: u64) -> u32 {
    let (bytes, mut hash, mut place) = (key.to_le_bytes(), 0u32, 0);
    while place < bytes.len() {
        hash = hash.wrapping_mul(16_777_619) ^ bytes[place] as u32;
        place += 1;
    }
    hash
}

/// Loads entries 0 up to `entries` of `keys` in the order of `subject` and makes them durable.
///
/// # Errors
/// The engine's.
pub fn load(
    subject: &dyn Subject,
    keys: KeySpace,
    entries: u64,
    progress: &dyn Fn(&str),
) -> Result<()> {
    let mut bulk = subject.bulk()?;
    let slices = entries.div_ceil(SLICE_ENTRIES);
    let loaded = each_slice(keys, entries, subject.order(), slices, |number, pairs| {
        progress(&format!("slice {} of {slices}", number + 1));
        bulk.append(pairs)
    })?;
    ensure!(loaded == entries, "{loaded} keys fell into slices, expected {entries}");
    bulk.finish().context("the end of the load in key order failed")
}

/// Hands `take` the pairs of `entries` in order, in `slices` parts, and returns how many there were.
fn each_slice(
    keys: KeySpace,
    entries: u64,
    order: Order,
    slices: u64,
    mut take: impl FnMut(u64, &[(u64, u64)]) -> Result<()>,
) -> Result<u64> {
    let mut loaded = 0;
    let mut pairs = Vec::new();
    for slice in 0..slices {
        pairs.clear();
        let all = (0..entries).map(|index| keys.key(index));
        let inside = all.filter(|&key| slice_of(order.rank(key), slices) == slice);
        pairs.extend(inside.map(|key| (key, keys.value(key, 0))));
        pairs.sort_unstable_by_key(|pair: &(u64, u64)| order.rank(pair.0));
        take(slice, &pairs)?;
        loaded += pairs.len() as u64;
    }
    Ok(loaded)
}

/// Which of `slices` equal parts of the key space has `rank`.
fn slice_of(rank: u64, slices: u64) -> u64 {
    let product = u128::from(rank) * u128::from(slices);
    u64::try_from(product >> 64).expect("the high half of a 128-bit word has 64 bits")
}

/// A load in key order through the usual batched call, for engines that have nothing better.
pub struct Batches<'a> {
    /// The one thread's view that loads.
    pub lane: Box<dyn Lane + 'a>,
    /// The engine, for the sync at the end.
    pub subject: &'a dyn Subject,
}

impl Bulk for Batches<'_> {
    fn append(&mut self, sorted: &[(u64, u64)]) -> Result<()> {
        sorted.chunks(LOAD_BATCH).try_for_each(|pairs| self.lane.insert_many(pairs))
    }

    fn finish(mut self: Box<Self>) -> Result<()> {
        self.lane.finish()?;
        self.subject.sync()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::subject::TableSubject;
    use nandex::oracle::MapTable;
    use std::collections::BTreeMap;

    #[test]
    fn slices_hold_every_entry_once_in_the_order_asked_for() {
        let keys = KeySpace::new(5);
        for order in [Order::Number, Order::Bytes] {
            for slices in [1, 2, 7] {
                let mut all = Vec::new();
                let take = |_, pairs: &[(u64, u64)]| {
                    all.extend_from_slice(pairs);
                    Ok(())
                };
                assert_eq!(each_slice(keys, 5000, order, slices, take).unwrap(), 5000);
                let entries = (0..5000).map(|index| keys.key(index));
                let expected: BTreeMap<_, _> =
                    entries.map(|key| (order.rank(key), (key, keys.value(key, 0)))).collect();
                assert_eq!(all, expected.into_values().collect::<Vec<_>>(), "{order:?} {slices}");
            }
        }
    }

    #[test]
    fn the_bytes_of_keys_in_byte_order_ascend() {
        let mut keys: Vec<u64> = (0..1000).map(|index| KeySpace::new(9).key(index)).collect();
        keys.sort_unstable_by_key(|&key| Order::Bytes.rank(key));
        assert!(keys.is_sorted_by_key(|key| key.to_le_bytes()));
    }

    #[test]
    fn keys_in_the_order_of_buckets_come_bucket_by_bucket() {
        let mut keys: Vec<u64> = (0..1000).map(|index| KeySpace::new(9).key(index)).collect();
        keys.sort_unstable_by_key(|&key| Order::Buckets { bits: 4 }.rank(key));
        assert!(keys.is_sorted_by_key(|&key| fnv(key) % 16));
        assert_eq!(fnv(1), 1u32.wrapping_mul(16_777_619u32.wrapping_pow(7)));
    }

    #[test]
    fn an_engine_without_a_bulk_load_gets_its_entries_in_batches() {
        let subject = TableSubject(MapTable::new(8, 8));
        let keys = KeySpace::new(3);
        load(&subject, keys, 3000, &|_| ()).unwrap();
        assert_eq!(subject.stats().unwrap().entries, 3000);
        let mut lane = subject.lane().unwrap();
        assert_eq!(lane.get(keys.key(2999)).unwrap(), Some(keys.value(keys.key(2999), 0)));
    }
}
