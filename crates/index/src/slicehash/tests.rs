//! Tests that are specific to SliceHash; the conformance suite tests the interface.

mod moves;

use std::sync::Arc;

use nandex_device::MemoryDevice;

use super::*;
use crate::api::Table;
use crate::{Error, OpenOptions, Policy, Requirements, VolumeOptions, WhenFull};

fn volume() -> Volume {
    let options = VolumeOptions { log_bytes: 1 << 20, ..VolumeOptions::tiny() };
    Volume::create(Arc::new(MemoryDevice::new()), options).unwrap()
}

fn inline() -> OpenOptions {
    OpenOptions { flush_threads: Some(0), io_chunk_pages: Some(5), ..OpenOptions::default() }
}

fn fill(table: &SliceHash, keys: std::ops::Range<u64>) {
    for key in keys {
        table.insert_u64(key, key * 3).unwrap();
    }
}

#[test]
fn what_is_updated_or_removed_takes_no_space_on_flash() {
    let volume = volume();
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
    let volume = volume();
    let table = SliceHash::create(&volume, "t", Config::tiny()).unwrap();
    fill(&table, 0..60_000);
    let found: Vec<_> = (0..60_000).filter(|&key| table.get_u64(key).unwrap().is_some()).collect();
    let space = 4 * 12 * 253;
    assert!(found.len() >= space, "{}", found.len());
    assert!(found[0] > 40_000, "{}", found[0]);
    assert_eq!(*found.last().unwrap(), 59_999);
    assert_eq!(table.stats().evicted, 60_000 - found.len() as u64);
}

#[test]
fn a_full_table_that_may_not_evict_says_so_and_takes_more_once_enough_is_removed() {
    let volume = volume();
    let config = Config { policy: WhenFull::Refuse, ..Config::tiny() };
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
fn filters_go_where_lookups_miss_and_spare_them_their_read() {
    let volume = volume();
    let options = OpenOptions { filter_bytes: 12 * 40 * 8 * 3, ..inline() };
    let table = SliceHash::create_with(&volume, "t", Config::tiny(), options).unwrap();
    fill(&table, 0..9000);
    let inner = &table.core;
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
    assert!(miss(0, 1000) < 40, "a merge has built the filter again");
}

#[test]
fn bursts_go_to_the_front_and_are_merged_when_it_is_quiet() {
    let volume = volume();
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
    table.core.work.wait_quiet();
    let runs: usize = table.core.partitions.iter().map(|p| p.read().level.runs.len()).sum();
    assert_eq!(runs, 0, "runs are merged when nothing else is to be done");
    for key in 0..4000 {
        assert_eq!(table.get_u64(key).unwrap(), Some(key + 5), "key {key}");
    }
    let on_flash: u64 = table.core.partitions.iter().map(|p| p.read().level.entries).sum();
    assert!(on_flash <= 4000, "{on_flash}");
}

#[test]
fn what_a_close_saved_outlives_a_checkpoint_without_the_table() {
    // Merges of the front continue while a close saves the buffers. The volume's next checkpoint drops the table's part
    // of the log.
    let volume = volume();
    let config = Config { front_runs: 16, ..Config::tiny() };
    let threads = || OpenOptions { flush_threads: Some(2), ..OpenOptions::default() };
    let mut table = SliceHash::create_with(&volume, "t", config, threads()).unwrap();
    for life in 0..60 {
        for key in 0..6000 {
            table.insert_u64(key, life).unwrap();
        }
        table.close().unwrap();
        volume.checkpoint().unwrap();
        table = SliceHash::open_with(&volume, "t", threads()).unwrap();
        for key in 0..6000 {
            assert_eq!(table.get_u64(key).unwrap(), Some(life), "key {key}, life {life}");
        }
    }
}

/// Returns names for keys that do not reveal their order.
fn key(number: u64) -> u64 {
    number.wrapping_mul(0x9E37_79B9_7F4A_7C15)
}

/// Returns a table for `keys` keys that rejects more, filled with that number.
fn full_table(volume: &Volume, keys: u64, options: OpenOptions) -> SliceHash {
    let asked = Requirements { policy: Policy::Reject, ..Requirements::new(keys, 8, 8) };
    let config = Config::advised(&asked).unwrap();
    assert_eq!(config.policy, WhenFull::Refuse);
    let table = SliceHash::create_with(volume, "t", config, options).unwrap();
    (0..keys).for_each(|number| table.insert_u64(key(number), 0).unwrap());
    table
}

#[test]
fn a_table_with_all_of_its_keys_takes_updates_for_ever() {
    for options in [inline(), OpenOptions::default()] {
        let volume = volume();
        let keys = 30_000;
        let table = full_table(&volume, keys, options);
        for round in 1..20 {
            for number in 0..keys {
                table.insert_u64(key(number), round).unwrap();
            }
        }
        for number in 0..keys {
            assert_eq!(table.get_u64(key(number)).unwrap(), Some(19), "key {number}");
        }
    }
}

#[test]
fn a_table_takes_a_new_key_for_each_that_was_removed() {
    for options in [inline(), OpenOptions::default()] {
        let volume = volume();
        let (keys, removed) = (30_000, 300_000);
        let table = full_table(&volume, keys, options);
        for number in 0..removed {
            table.remove(&key(number).to_le_bytes()).unwrap();
            table.insert_u64(key(number + keys), number).unwrap();
        }
        for number in removed - 1000..removed + keys {
            let expected = (number >= removed).then(|| number - keys);
            assert_eq!(table.get_u64(key(number)).unwrap(), expected, "key {number}");
        }
        let stats = table.stats();
        assert!(stats.entries < keys + keys / 5, "{stats:?}");
    }
}

#[test]
fn a_table_refuses_once_it_has_more_keys_than_it_was_made_for() {
    for options in [inline(), OpenOptions::default()] {
        let volume = volume();
        let keys = 30_000;
        let table = full_table(&volume, keys, options);
        let refused = (keys..2 * keys).find_map(|number| table.insert_u64(key(number), 1).err());
        assert!(matches!(refused, Some(Error::Full { .. })), "{refused:?}");
        let taken = table.stats().inserts;
        // In each partition: a buffer more on flash, one more that was merged into that, and the contents of RAM.
        let buffers = 4 * u64::from(table.core.layout.config.partitions);
        let most = keys + buffers * u64::from(table.core.layout.shape.entries_max);
        assert!(taken < most, "{taken} of {most}");
        for number in 0..taken {
            assert!(table.get_u64(key(number)).unwrap().is_some(), "key {number} of {taken}");
        }
        // All keys that it was made for again, and as many more as it takes now.
        (0..taken).for_each(|number| table.remove(&key(number).to_le_bytes()).unwrap());
        (0..keys).for_each(|number| table.insert_u64(key(number), 2).unwrap());
        for number in 0..taken {
            let expected = (number < keys).then_some(2);
            assert_eq!(table.get_u64(key(number)).unwrap(), expected, "key {number} of {taken}");
        }
    }
}
