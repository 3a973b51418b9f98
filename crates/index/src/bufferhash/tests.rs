//! What is peculiar to BufferHash; the contract itself is tested by the conformance suite.

use std::sync::Arc;

use nandex_device::{Device, MemoryDevice};

use super::*;
use crate::api::Table;
use crate::{Durability, Error, OpenOptions, Threads, VolumeOptions};

fn volume(device: &MemoryDevice) -> Volume {
    let options = VolumeOptions { log_bytes: 1 << 20, ..VolumeOptions::tiny() };
    Volume::create(Arc::new(device.clone()), options).unwrap()
}

fn fill(table: &BufferHash, keys: std::ops::Range<u64>) {
    for key in keys {
        table.insert_u64(key, key * 3).unwrap();
    }
}

#[test]
fn entries_on_flash_are_found_with_one_read_each() {
    let device = MemoryDevice::new();
    let volume = volume(&device);
    let table = BufferHash::create(&volume, "t", Config::tiny()).unwrap();
    fill(&table, 0..8000);
    for key in 0..8000 {
        assert_eq!(table.get_u64(key).unwrap(), Some(key * 3), "key {key}");
    }
    let stats = table.stats();
    assert!(stats.flushes > 8, "{stats:?}");
    assert!(stats.reads_per_hit() < 1.02, "{stats:?}");
    assert!(stats.flush_fill > 0.85, "{stats:?}");
    for key in 8000..16_000 {
        assert_eq!(table.get_u64(key).unwrap(), None);
    }
    assert!(table.stats().reads_per_miss() < 0.05, "{:?}", table.stats());
}

#[test]
fn a_table_closed_and_opened_again_holds_everything() {
    let device = MemoryDevice::new();
    {
        let volume = volume(&device);
        let table = BufferHash::create(&volume, "t", Config::tiny()).unwrap();
        fill(&table, 0..5000);
        table.remove(&7u64.to_le_bytes()).unwrap();
        table.close().unwrap();
    }
    let volume = Volume::open(Arc::new(device.clone()), OpenOptions::default()).unwrap();
    let table = BufferHash::open(&volume, "t").unwrap();
    for key in 0..5000 {
        let expected = (key != 7).then_some(key * 3);
        assert_eq!(table.get_u64(key).unwrap(), expected, "key {key}");
    }
    assert!(device.page_count() > 0);
}

#[test]
fn the_oldest_go_first_and_only_when_the_ring_is_full() {
    let device = MemoryDevice::new();
    let volume = volume(&device);
    let table = BufferHash::create(&volume, "t", Config::tiny()).unwrap();
    fill(&table, 0..60_000);
    let found: Vec<_> = (0..60_000).filter(|&key| table.get_u64(key).unwrap().is_some()).collect();
    assert!(found.len() > 8000, "{}", found.len());
    assert!(found[0] > 40_000, "{}", found[0]);
    assert_eq!(*found.last().unwrap(), 59_999);
    assert!(table.stats().evicted > 40_000);
}

#[test]
fn a_full_table_that_may_not_evict_says_so_and_keeps_everything() {
    let device = MemoryDevice::new();
    let volume = volume(&device);
    let config = Config { policy: Policy::Reject, ..Config::tiny() };
    let table = BufferHash::create(&volume, "t", config).unwrap();
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
}

#[test]
fn without_a_log_what_was_flushed_survives() {
    let device = MemoryDevice::new();
    let options = VolumeOptions {
        log_bytes: 1 << 20,
        durability: Durability::Never,
        ..VolumeOptions::tiny()
    };
    let volume = Volume::create(Arc::new(device.clone()), options).unwrap();
    let table = BufferHash::create(&volume, "t", Config::tiny()).unwrap();
    fill(&table, 0..1000);
    table.flush().unwrap();
    let image = MemoryDevice::from_image(device.image());
    drop(table);
    let volume = Volume::open(Arc::new(image), OpenOptions::default()).unwrap();
    let table = BufferHash::open(&volume, "t").unwrap();
    for key in 0..1000 {
        assert_eq!(table.get_u64(key).unwrap(), Some(key * 3), "key {key}");
    }
}

#[test]
fn iteration_gives_each_key_once_with_its_newest_value() {
    let device = MemoryDevice::new();
    let volume = volume(&device);
    let table = BufferHash::create(&volume, "t", Config::tiny()).unwrap();
    fill(&table, 0..6000);
    for key in (0..6000).step_by(3) {
        table.insert_u64(key, 1).unwrap();
    }
    for key in (0..6000u64).step_by(5) {
        table.remove(&key.to_le_bytes()).unwrap();
    }
    let mut pairs: Vec<_> = table
        .iter()
        .map(|pair| pair.unwrap())
        .map(|(key, value)| {
            (u64::from_le_bytes(key.try_into().unwrap()), nandex_store::bytes::get_u64(&value, 0))
        })
        .collect();
    pairs.sort_unstable();
    let expected: Vec<_> = (0..6000)
        .filter(|key| key % 5 != 0)
        .map(|key| (key, if key % 3 == 0 { 1 } else { key * 3 }))
        .collect();
    assert_eq!(pairs, expected);
}

#[test]
fn update_based_eviction_drops_the_stale_and_keeps_the_live() {
    let device = MemoryDevice::new();
    let volume = volume(&device);
    let config = Config { policy: Policy::Update, ..Config::tiny() };
    let table = BufferHash::create(&volume, "t", config).unwrap();
    // 2,000 keys that are never touched again, then the same 4,000 keys over and over.
    fill(&table, 0..2000);
    for round in 0..40 {
        for key in 10_000..14_000 {
            table.insert_u64(key, round).unwrap();
        }
    }
    for key in 0..2000 {
        let value = table.get_u64(key).unwrap();
        assert_eq!(value, Some(key * 3), "key {key}, {:?}", table.stats());
    }
    for key in 10_000..14_000 {
        assert_eq!(table.get_u64(key).unwrap(), Some(39));
    }
    let stats = table.stats();
    assert!(stats.retained > 0 && stats.evicted > 0, "{stats:?}");
    assert_eq!(stats.forced_evictions, 0, "{stats:?}");
}

#[test]
fn what_an_eviction_keeps_survives_a_crash_after_the_checkpoint_that_evicts() {
    // What is kept is in a buffer, and its segment may be written again once the checkpoint is durable. The crash is
    // at the first such checkpoint: a replay that fills many buffers would evict by itself.
    let device = MemoryDevice::new();
    let options =
        VolumeOptions { log_bytes: 1 << 20, threads: Threads::Inline, ..VolumeOptions::tiny() };
    let volume = Volume::create(Arc::new(device.clone()), options).unwrap();
    let config = Config { policy: Policy::Update, ..Config::tiny() };
    let inline = RuntimeOptions { flush_threads: 0, ..RuntimeOptions::default() };
    let table = BufferHash::create_with(&volume, "t", config, inline).unwrap();
    fill(&table, 0..2000);
    let mut updates = (0..).flat_map(|round| (10_000..14_000).map(move |key| (key, round)));
    while table.stats().retained == 0 {
        for (key, round) in updates.by_ref().take(100) {
            table.insert_u64(key, round).unwrap();
        }
        volume.checkpoint().unwrap();
    }
    let copy = MemoryDevice::from_image(device.image());
    let crashed = Volume::open(Arc::new(copy), OpenOptions::default()).unwrap();
    let crashed = BufferHash::open(&crashed, "t").unwrap();
    for key in 0..2000 {
        assert_eq!(crashed.get_u64(key).unwrap(), Some(key * 3), "key {key}");
    }
}

#[test]
fn when_everything_is_live_the_cascade_ends_and_the_oldest_are_dropped() {
    let device = MemoryDevice::new();
    let volume = volume(&device);
    let config = Config { policy: Policy::Update, ..Config::tiny() };
    let table = BufferHash::create(&volume, "t", config).unwrap();
    fill(&table, 0..40_000);
    let stats = table.stats();
    assert!(stats.forced_evictions > 0, "{stats:?}");
    assert_eq!(table.get_u64(39_999).unwrap(), Some(39_999 * 3));
}

#[test]
fn priorities_decide_who_stays() {
    let device = MemoryDevice::new();
    let volume = volume(&device);
    let config = Config { policy: Policy::Threshold(1000), ..Config::tiny() };
    let table = BufferHash::create(&volume, "t", config).unwrap();
    for key in 0..40_000u64 {
        // One in twenty is above the threshold.
        table.insert_u64(key, if key % 20 == 0 { 2000 } else { 1 }).unwrap();
    }
    for key in (0..40_000).step_by(20) {
        assert_eq!(table.get_u64(key).unwrap(), Some(2000), "key {key}");
    }
    assert_eq!(table.get_u64(1).unwrap(), None);
}

#[test]
fn the_top_of_each_incarnation_stays() {
    let device = MemoryDevice::new();
    let volume = volume(&device);
    let config = Config { policy: Policy::Top(100), ..Config::tiny() };
    let table = BufferHash::create(&volume, "t", config).unwrap();
    for key in 0..40_000u64 {
        table.insert_u64(key, if key % 40 == 0 { 5000 } else { 1 }).unwrap();
    }
    let kept = (0..40_000).step_by(40).filter(|&key| table.get_u64(key).unwrap().is_some()).count();
    assert!(kept > 900, "{kept} of 1000");
}

#[test]
fn under_lru_what_is_used_stays() {
    let device = MemoryDevice::new();
    let volume = volume(&device);
    let config = Config { policy: Policy::Lru, ..Config::tiny() };
    let table = BufferHash::create(&volume, "t", config).unwrap();
    fill(&table, 0..200);
    for key in 200..60_000 {
        table.insert_u64(key, key * 3).unwrap();
        if key % 10 == 0 {
            // Each of the first 200 keys is used every 2,000 inserts, while 10,000 fit.
            table.get_u64(key / 10 % 200).unwrap();
            table.handle.core.work.wait_quiet();
        }
    }
    let kept = (0..200).filter(|&key| table.get_u64(key).unwrap().is_some()).count();
    assert!(kept > 150, "{kept} of 200");
    assert_eq!(table.get_u64(1000).unwrap(), None);
}

#[test]
fn bloom_filters_and_sliding_windows_serve_as_well() {
    let device = MemoryDevice::new();
    let volume = volume(&device);
    let filter = super::filter::FilterShape::bloom(470, 16.0, 1).unwrap();
    let table = BufferHash::create(&volume, "t", Config { filter, ..Config::tiny() }).unwrap();
    fill(&table, 0..60_000);
    for key in 54_000..60_000 {
        assert_eq!(table.get_u64(key).unwrap(), Some(key * 3), "key {key}");
    }
    assert!(table.stats().reads_per_hit() < 1.05, "{:?}", table.stats());
}
