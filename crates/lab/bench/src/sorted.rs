//! Loads in key order, for engines that would take days to load at random.
//!
//! A B-tree that is many times larger than memory reads and writes a page per entry when keys come at random:
//! 256 million of them are hours of disk time. The same entries in the tree's own order fill page after page.
//! That is the best load an engine can get: its pages are full, its levels compacted, its files contiguous.
//! So a table loaded this way shows the engine at its best, and a comparison with it favours the engine and
//! never nandex.
//!
//! The keys are those of the random load. They are not stored: a slice of the key space is filled by
//! iterating over all indices and keeping those that fall into it, then sorted. A slice takes at most
//! [`SLICE_ENTRIES`] pairs of memory, 128 MiB, whatever the number of entries. A slice of a small table has
//! fewer, because the load runs within the memory limit of the workload unless a process of its own makes it.

use anyhow::{Context, Result, ensure};

use crate::keys::KeySpace;
use crate::order::Order;
use crate::plan::LOAD_BATCH;
use crate::subject::{Bulk, Client, Subject};

/// Pairs in a slice on average, and in the longest call of [`Bulk::append`] nearly.
pub const SLICE_ENTRIES: u64 = 1 << 23;
/// The pairs in a slice of a small table, and the minimum parts of a larger one.
const SLICE_ENTRIES_SMALL: u64 = 1 << 19;
const SLICES_MIN: u64 = 8;

/// Loads entries 0 up to `entries` of `keys` in the order of `subject` and makes them durable.
///
/// # Errors
/// Returns the engine's error.
pub fn load(
    subject: &dyn Subject,
    keys: KeySpace,
    entries: u64,
    progress: &dyn Fn(&str),
) -> Result<()> {
    let mut bulk = match subject.bulk()? {
        Some(bulk) => bulk,
        None => Box::new(Batches { client: subject.client()?, subject }),
    };
    let slice_entries = (entries / SLICES_MIN).clamp(SLICE_ENTRIES_SMALL, SLICE_ENTRIES);
    let slices = entries.div_ceil(slice_entries);
    let loaded = each_slice(keys, entries, subject.order(), slices, |number, pairs| {
        progress(&format!("slice {} of {slices}", number + 1));
        bulk.append(pairs)
    })?;
    ensure!(loaded == entries, "{loaded} keys fell into slices, expected {entries}");
    bulk.finish().context("the end of the load in key order failed")
}

/// Passes the pairs of `entries` in order to `take`, in `slices` parts, and returns their number.
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

/// Returns the part of the key space, among `slices` equal ones, that has `rank`.
fn slice_of(rank: u64, slices: u64) -> u64 {
    let product = u128::from(rank) * u128::from(slices);
    u64::try_from(product >> 64).expect("the high half of a 128-bit word has 64 bits")
}

/// A load in key order through the usual batched call, for engines that have nothing better.
struct Batches<'a> {
    client: Box<dyn Client + 'a>,
    subject: &'a dyn Subject,
}

impl Bulk for Batches<'_> {
    fn append(&mut self, sorted: &[(u64, u64)]) -> Result<()> {
        sorted.chunks(LOAD_BATCH).try_for_each(|pairs| self.client.insert_many(pairs))
    }

    fn finish(mut self: Box<Self>) -> Result<()> {
        self.client.finish()?;
        self.subject.sync()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::structures::map_table;
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
    fn an_engine_without_a_bulk_load_gets_its_entries_in_batches() {
        let subject = map_table(20);
        let keys = KeySpace::new(3);
        load(&subject, keys, 3000, &|_| ()).unwrap();
        assert_eq!(subject.status().entries, Some(3000));
        let mut client = subject.client().unwrap();
        assert_eq!(client.get(keys.key(2999)).unwrap(), Some(keys.value(keys.key(2999), 0)));
    }
}
