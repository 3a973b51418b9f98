//! Updates that do not read the versions they replace, and cleaning that finds out later which records are
//! dead.

use std::collections::HashMap;
use std::sync::Arc;

use nandex::device::MemoryDevice;
use nandex::large::ValuesConfig;
use nandex::raw::device::Counted;
use nandex::{Durability, WhenFull};
use nandex_sim::workload::SplitMix64;
use nandex_trial::Contract;

use super::support::{DURABILITIES, Setup, key, value};

const KEYS: u64 = 3000;

/// Returns a log for about twice these keys with values of 300 bytes, in many segments, and a table that is
/// cleaned too.
fn setup(durability: Durability) -> Setup {
    let setup = Setup::new(durability, WhenFull::Grow);
    let values =
        ValuesConfig { segment_pages: 16, io_chunk_pages: 8, segments: 48, ..setup.values };
    Setup { values, ..setup }
}

#[test]
fn updates_and_removals_read_nothing_and_count_as_dead() {
    let device = Arc::new(Counted::new(MemoryDevice::new()));
    let table = setup(Durability::Never).roomy().create_on(device.clone()).unwrap();
    (0..KEYS).for_each(|number| table.put(&key(number), &value(number, 100)).unwrap());
    table.flush().unwrap();
    let before = device.snapshot();
    for number in 0..KEYS / 2 {
        table.put(&key(number), &value(number + 1, 100)).unwrap();
    }
    let pairs: Vec<_> = (KEYS / 2..KEYS).map(|it| (key(it), value(it + 1, 100))).collect();
    let borrowed: Vec<_> = pairs.iter().map(|(key, value)| (&key[..], &value[..])).collect();
    borrowed.chunks(64).for_each(|some| table.put_many(some).unwrap());
    for number in (0..KEYS).step_by(4) {
        table.remove(&key(number)).unwrap();
        table.remove(&key(number + KEYS)).unwrap();
    }
    assert_eq!(device.snapshot().reads, before.reads);
    table.flush().unwrap();
    let stats = table.stats();
    let live = KEYS - KEYS / 4;
    let off = stats.values.live_records.abs_diff(live);
    assert!(off <= live / 50, "{} records are said to live of {live}", stats.values.live_records);
    for number in 0..KEYS {
        let expected = (number % 4 != 0).then(|| value(number + 1, 100));
        assert_eq!(table.get(&key(number)).unwrap(), expected, "{number}");
    }
}

/// Counts the reads of cleaning, which looked up each record: a read of a page for each.
#[test]
fn cleaning_reads_the_table_as_a_whole_and_for_many_segments() {
    for durability in DURABILITIES {
        let device = Arc::new(Counted::new(MemoryDevice::new()));
        let table = setup(durability).create_on(device.clone()).unwrap();
        let mut map = HashMap::new();
        let mut rng = SplitMix64::new(9);
        let mut put = |number: u64, step: u64| {
            let value = value(step, 300);
            table.put(&key(number), &value).unwrap();
            map.insert(number, value);
        };
        (0..KEYS).for_each(|number| put(number, number));
        let before = (device.snapshot(), table.stats().values);
        (0..4 * KEYS).for_each(|step| put(rng.below(KEYS), KEYS + step));
        let (after, stats) = (device.snapshot(), table.stats().values);
        let cleaned = stats.cleaned_segments - before.1.cleaned_segments;
        assert!(cleaned > 50, "{durability:?}: {cleaned} segments");
        let reads = after.reads - before.0.reads;
        let records = cleaned * stats.live_records / 48;
        assert!(reads < records / 3, "{durability:?}: {reads} reads for {records} records or more");
        for number in 0..KEYS {
            assert_eq!(table.get(&key(number)).unwrap().as_ref(), map.get(&number), "{number}");
        }
        table.close().unwrap();
        let again = setup(durability).open_on(device).unwrap();
        for number in 0..KEYS {
            assert_eq!(again.get(&key(number)).unwrap().as_ref(), map.get(&number), "{number}");
        }
    }
}

/// Counts the syncs: each segment had a sync of the table and a checkpoint to itself, six syncs in all.
#[test]
fn segments_that_are_cleaned_together_share_what_makes_them_durable() {
    let device = Arc::new(Counted::new(MemoryDevice::new()));
    // A cache that knows all places, so that no pass over the table is due.
    let table = setup(Durability::Never).cached(8 << 20).create_on(device.clone()).unwrap();
    let mut rng = SplitMix64::new(9);
    let put = |number: u64, step: u64| table.put(&key(number), &value(step, 300)).unwrap();
    (0..KEYS).for_each(|number| put(number, number));
    (0..2 * KEYS).for_each(|step| put(rng.below(KEYS), step));
    let before = (device.snapshot(), table.stats().values);
    (0..4 * KEYS).for_each(|step| put(rng.below(KEYS), step));
    let (after, stats) = (device.snapshot(), table.stats().values);
    let cleaned = stats.cleaned_segments - before.1.cleaned_segments;
    assert!(cleaned > 50, "{cleaned} segments");
    // Those of the records' batches are the value log's own.
    let of_batches = stats.syncs - before.1.syncs;
    let others = after.syncs - before.0.syncs - of_batches;
    assert!(others < 3 * cleaned, "{others} syncs for {cleaned} segments");
}

/// Updates from threads: a record that is replaced while its segment is cleaned is not copied over the new
/// one. Returns the number of cleaned segments.
fn update_by_threads(setup: &Setup, keys: u64, value_bytes: usize) -> u64 {
    let table = setup.create_on(Arc::new(MemoryDevice::new())).unwrap();
    (0..keys).for_each(|number| table.put(&key(number), &value(number, value_bytes)).unwrap());
    std::thread::scope(|scope| {
        for thread in 0..3 {
            let table = &table;
            scope.spawn(move || {
                let (mut map, mut rng) = (HashMap::new(), SplitMix64::new(thread));
                for step in 0..6 * keys {
                    let number = rng.below(keys / 3) * 3 + thread;
                    let is_removed = step % 16 == 0;
                    let value = (!is_removed).then(|| value(thread << 32 | step, value_bytes));
                    match &value {
                        Some(value) => table.put(&key(number), value).unwrap(),
                        None => table.remove(&key(number)).unwrap(),
                    }
                    map.insert(number, value);
                }
                for (number, value) in map {
                    assert_eq!(table.get(&key(number)).unwrap(), value, "{number}");
                }
            });
        }
    });
    table.stats().values.cleaned_segments
}

#[test]
fn threads_that_update_while_the_log_is_cleaned_find_what_they_put_last() {
    for durability in [Durability::Never, DURABILITIES[1]] {
        let cleaned = update_by_threads(&setup(durability).threaded(), KEYS, 300);
        assert!(cleaned > 100, "{durability:?}: {cleaned}");
    }
}

/// Cleans with little RAM: a pass knows some of the keys at a time, and cleaning ends if more have changed
/// than it has recorded.
#[test]
fn cleaning_with_little_ram_loses_nothing_that_threads_put() {
    let little = setup(Durability::Never).roomy().threaded().cached(64 << 10);
    let cleaned = update_by_threads(&little, 5 * KEYS, 100);
    assert!(cleaned > 100, "{cleaned}");
}
