//! What is peculiar to SliceHash; the contract itself is tested by the conformance suite.

mod moves;

use std::collections::HashMap;
use std::sync::Arc;

use nandex_device::{Device, MemoryDevice};

use super::*;
use crate::api::{Table, TableStats};
use crate::write::Layout;
use crate::{Durability, Error, OpenOptions, Threads, VolumeOptions};

fn volume(device: &MemoryDevice) -> Volume {
    let options = VolumeOptions { log_bytes: 1 << 20, ..VolumeOptions::tiny() };
    Volume::create(Arc::new(device.clone()), options).unwrap()
}

fn inline() -> RuntimeOptions {
    RuntimeOptions { flush_threads: 0, io_chunk_pages: 5, ..RuntimeOptions::default() }
}

fn fill(table: &SliceHash, keys: std::ops::Range<u64>) {
    for key in keys {
        table.insert_u64(key, key * 3).unwrap();
    }
}

fn lookups(table: &SliceHash, keys: std::ops::Range<u64>) -> (usize, TableStats) {
    let before = table.stats();
    let keys: Vec<_> = keys.map(u64::to_le_bytes).collect();
    let keys: Vec<&[u8]> = keys.iter().map(|key| &key[..]).collect();
    let found = table.get_many(&keys).unwrap().iter().flatten().count();
    let mut stats = table.stats();
    for (reads, earlier) in stats.reads_histogram.iter_mut().zip(before.reads_histogram) {
        *reads -= earlier;
    }
    (found, stats)
}

#[test]
fn every_lookup_that_ram_cannot_answer_reads_one_page_found_or_not() {
    let volume = volume(&MemoryDevice::new());
    let table = SliceHash::create(&volume, "t", Config::tiny()).unwrap();
    fill(&table, 0..8000);
    let (found, stats) = lookups(&table, 0..8000);
    assert_eq!(found, 8000);
    assert_eq!(stats.reads_histogram[2..], [0; 7]);
    assert!(stats.reads_histogram[1] > 5000, "{stats:?}");
    let (found, stats) = lookups(&table, 8000..12_000);
    assert_eq!((found, stats.reads_histogram[1]), (0, 4000));
    assert_eq!(stats.entries, 8000);
    assert!(stats.flush_fill > 0.85, "{stats:?}");
    for key in (0..12_000).step_by(7) {
        assert_eq!(table.get_u64(key).unwrap(), (key < 8000).then_some(key * 3), "key {key}");
    }
}

#[test]
fn slices_of_several_parts_are_read_at_once_and_agree() {
    let volume = volume(&MemoryDevice::new());
    let config = Config { slices: 5, slice_parts: 3, group_slices: 2, ..Config::tiny() };
    let table = SliceHash::create(&volume, "t", config).unwrap();
    fill(&table, 0..8000);
    fill(&table, 2000..4000);
    let (found, stats) = lookups(&table, 0..8000);
    assert_eq!(found, 8000);
    assert_eq!(stats.reads_histogram[1..3], [0; 2]);
    assert!(stats.reads_histogram[3] > 5000);
    for key in (0..9000).step_by(11) {
        assert_eq!(table.get_u64(key).unwrap(), (key < 8000).then_some(key * 3), "key {key}");
    }
}

#[test]
fn what_is_updated_or_removed_takes_no_room_on_flash() {
    let volume = volume(&MemoryDevice::new());
    let table = SliceHash::create(&volume, "t", Config::tiny()).unwrap();
    for round in 0..20 {
        for key in 0..3000 {
            table.insert_u64(key, key + round).unwrap();
        }
    }
    for key in 0..1000u64 {
        table.remove(&key.to_le_bytes()).unwrap();
    }
    fill(&table, 10_000..14_000);
    let stats = table.stats();
    assert_eq!(stats.evicted, 0, "{stats:?}");
    for key in 0..3000 {
        let expected = (key >= 1000).then_some(key + 19);
        assert_eq!(table.get_u64(key).unwrap(), expected, "key {key}");
    }
}

#[test]
fn the_oldest_go_first_and_only_from_slices_that_are_full() {
    let volume = volume(&MemoryDevice::new());
    let table = SliceHash::create(&volume, "t", Config::tiny()).unwrap();
    fill(&table, 0..60_000);
    let found: Vec<_> = (0..60_000).filter(|&key| table.get_u64(key).unwrap().is_some()).collect();
    let room = 4 * 12 * 253;
    assert!(found.len() >= room, "{}", found.len());
    assert!(found[0] > 40_000, "{}", found[0]);
    assert_eq!(*found.last().unwrap(), 59_999);
    assert_eq!(table.stats().evicted, 60_000 - found.len() as u64);
}

#[test]
fn a_table_closed_and_opened_again_holds_everything() {
    let device = MemoryDevice::new();
    {
        let volume = volume(&device);
        let table = SliceHash::create(&volume, "t", Config::tiny()).unwrap();
        fill(&table, 0..5000);
        table.remove(&7u64.to_le_bytes()).unwrap();
        table.close().unwrap();
    }
    let volume = Volume::open(Arc::new(device.clone()), OpenOptions::default()).unwrap();
    let table = SliceHash::open(&volume, "t").unwrap();
    for key in 0..5000 {
        let expected = (key != 7).then_some(key * 3);
        assert_eq!(table.get_u64(key).unwrap(), expected, "key {key}");
    }
    assert!(device.page_count() > 0);
}

#[test]
fn a_full_table_that_may_not_evict_says_so_and_takes_more_once_enough_is_removed() {
    let volume = volume(&MemoryDevice::new());
    let config = Config { policy: Policy::Reject, ..Config::tiny() };
    let table = SliceHash::create_with(&volume, "t", config, inline()).unwrap();
    let mut taken = 0;
    let error = loop {
        match table.insert_u64(taken, taken * 3) {
            Ok(()) => taken += 1,
            Err(error) => break error,
        }
    };
    assert!(matches!(error, Error::Full { .. }), "{error}");
    assert!(taken > 8000, "{taken}");
    for key in 0..taken {
        assert_eq!(table.get_u64(key).unwrap(), Some(key * 3), "key {key} of {taken}");
    }
    for key in 0..taken / 2 {
        table.remove(&key.to_le_bytes()).unwrap();
    }
    for key in 0..taken / 4 {
        table.insert_u64(1_000_000 + key, key).unwrap();
    }
    for key in 0..taken {
        let expected = (key >= taken / 2).then_some(key * 3);
        assert_eq!(table.get_u64(key).unwrap(), expected, "key {key} of {taken}");
    }
    assert_eq!(table.stats().evicted, 0);
}

#[test]
fn iteration_gives_each_key_once_with_its_newest_value() {
    let volume = volume(&MemoryDevice::new());
    let config = Config { front_runs: 8, ..Config::tiny() };
    let table = SliceHash::create(&volume, "t", config).unwrap();
    fill(&table, 0..6000);
    for key in (0..6000).step_by(3) {
        table.insert_u64(key, 1).unwrap();
    }
    for key in (0..6000u64).step_by(5) {
        table.remove(&key.to_le_bytes()).unwrap();
    }
    let number = |bytes: &[u8]| u64::from_le_bytes(bytes.try_into().unwrap());
    let pairs: Vec<_> = table.iter().map(|pair| pair.unwrap()).collect();
    let found: HashMap<u64, u64> =
        pairs.iter().map(|(key, value)| (number(key), number(value))).collect();
    assert_eq!(found.len(), pairs.len(), "a key came twice");
    let expected: HashMap<u64, u64> = (0..6000)
        .filter(|key| key % 5 != 0)
        .map(|key| (key, if key % 3 == 0 { 1 } else { key * 3 }))
        .collect();
    assert_eq!(found, expected);
}

#[test]
fn without_durability_what_was_flushed_survives_a_crash_by_the_moves_in_the_log() {
    let device = MemoryDevice::new();
    let options = VolumeOptions {
        log_bytes: 1 << 20,
        durability: Durability::Never,
        threads: Threads::Inline,
        ..VolumeOptions::tiny()
    };
    let volume = Volume::create(Arc::new(device.clone()), options).unwrap();
    let table = SliceHash::create_with(&volume, "t", Config::tiny(), inline()).unwrap();
    fill(&table, 0..1000);
    table.flush().unwrap();
    let image = MemoryDevice::from_image(device.image());
    drop(table);
    let volume = Volume::open(Arc::new(image), OpenOptions::default()).unwrap();
    let table = SliceHash::open(&volume, "t").unwrap();
    for key in 0..1000 {
        assert_eq!(table.get_u64(key).unwrap(), Some(key * 3), "key {key}");
    }
}

#[test]
fn filters_go_where_lookups_miss_and_spare_them_their_read() {
    let volume = volume(&MemoryDevice::new());
    let options = RuntimeOptions { filter_bytes: 12 * 40 * 8 * 3, ..inline() };
    let table = SliceHash::create_with(&volume, "t", Config::tiny(), options).unwrap();
    fill(&table, 0..9000);
    let inner = &table.handle.core;
    let of = |partition: usize| {
        let hash = |key: &u64| inner.hasher.hash(&key.to_le_bytes());
        (1_000_000..).filter(move |key| inner.partition_of(hash(key)) == partition)
    };
    let miss = |partition: usize, count: usize| {
        let before = table.stats().miss_reads;
        for key in of(partition).take(count) {
            assert_eq!(table.get_u64(key).unwrap(), None);
        }
        table.insert_u64(1, 3).unwrap();
        inner.catch_up_now().unwrap();
        table.stats().miss_reads - before
    };
    assert_eq!(miss(2, 1024), 1024);
    let reads = miss(2, 1000);
    assert!(reads < 40, "{reads} reads with a filter");
    assert!(table.stats().ram_bytes > 0);
    // Another partition becomes hot; two filters fit the budget, and later the third takes one over.
    for partition in [1, 0, 0, 0, 0] {
        miss(partition, 1024);
    }
    assert!(miss(0, 1000) < 40);
    let held = inner.partitions.iter().filter(|p| p.read().level.filter.is_some()).count();
    assert_eq!(held, 2);
    fill(&table, 0..9000);
    for key in (0..9000).step_by(7) {
        assert_eq!(table.get_u64(key).unwrap(), Some(key * 3), "key {key}");
    }
    assert!(miss(0, 1000) < 40, "a merge has built the filter anew");
}

#[test]
fn bursts_go_to_the_front_and_are_merged_when_it_is_quiet() {
    let device = MemoryDevice::new();
    let volume = volume(&device);
    let config = Config { front_runs: 16, spare_buffers: 6, ..Config::tiny() };
    let table = SliceHash::create(&volume, "t", config).unwrap();
    for round in 0..6 {
        for key in 0..4000 {
            table.insert_u64(key, key + round).unwrap();
        }
        for key in (0..4000).step_by(13) {
            assert_eq!(table.get_u64(key).unwrap(), Some(key + round), "key {key}");
        }
    }
    table.flush().unwrap();
    table.handle.core.work.wait_quiet();
    let runs: usize = table.handle.core.partitions.iter().map(|p| p.read().level.runs.len()).sum();
    assert_eq!(runs, 0, "runs are merged when nothing else is to be done");
    for key in 0..4000 {
        assert_eq!(table.get_u64(key).unwrap(), Some(key + 5), "key {key}");
    }
    let on_flash: u64 = table.handle.core.partitions.iter().map(|p| p.read().level.entries).sum();
    assert!(on_flash <= 4000, "{on_flash}");
}

#[test]
fn a_run_that_was_merged_out_of_turn_does_not_come_back() {
    let device = MemoryDevice::new();
    let options =
        VolumeOptions { log_bytes: 1 << 20, threads: Threads::Inline, ..VolumeOptions::tiny() };
    let volume = Volume::create(Arc::new(device.clone()), options).unwrap();
    let config = Config { front_runs: 4, spare_buffers: 6, ..Config::tiny() };
    let table = SliceHash::create_with(&volume, "t", config, inline()).unwrap();
    let inner = &table.handle.core;
    let mut scratch = Slicetables::new_scratch(inner).unwrap();
    let keys_of = |partition: usize| -> Vec<u64> {
        let is_of =
            |key: &u64| inner.partition_of(inner.hasher.hash(&key.to_le_bytes())) == partition;
        (0..).filter(is_of).take(200).collect()
    };
    let freeze = |partition: usize, value: u64| {
        keys_of(partition).iter().for_each(|key| table.insert_u64(*key, value).unwrap());
        let mut state = inner.partitions[partition].write();
        assert!(inner.try_freeze(partition, &mut state, 0).unwrap());
    };
    let mut flush = |partition: usize| {
        let frozen = inner.partitions[partition].read().frozen.front().cloned().unwrap();
        Slicetables::flush(inner, partition, frozen, &mut scratch).unwrap();
    };
    freeze(1, 1);
    freeze(0, 1);
    // While flushes wait, these two go to the front.
    flush(1);
    flush(0);
    let runs = |partition: usize| inner.partitions[partition].read().level.runs.len();
    assert_eq!((runs(1), runs(0)), (1, 1));
    freeze(0, 2);
    while inner.work.flushes_waiting() > 0 {
        assert!(inner.work.next_now().is_some(), "the flush that this test does by hand");
        inner.work.done();
    }
    flush(0);
    assert_eq!((runs(1), runs(0)), (1, 0));
    volume.checkpoint().unwrap();
    let image = MemoryDevice::from_image(device.image());
    let volume = Volume::open(Arc::new(image), OpenOptions::default()).unwrap();
    let found = SliceHash::open_with(&volume, "t", inline()).unwrap();
    for key in keys_of(0) {
        assert_eq!(found.get_u64(key).unwrap(), Some(2), "key {key}");
    }
    for key in keys_of(1) {
        assert_eq!(found.get_u64(key).unwrap(), Some(1), "key {key}");
    }
}
