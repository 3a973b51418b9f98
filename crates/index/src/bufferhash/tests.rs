//! Tests that are specific to BufferHash; the conformance suite tests the interface.

use std::collections::HashSet;
use std::sync::Arc;

use nandex_device::{Counted, MemoryDevice};

use super::filter::FilterShape;
use super::*;
use crate::api::Table;
use crate::{OpenOptions, Threads, VolumeOpenOptions, VolumeOptions};

/// Returns a table that evicts by this policy.
fn table_that(policy: Policy) -> BufferHash {
    table_on(&MemoryDevice::new(), policy)
}

fn table_on(device: &MemoryDevice, policy: Policy) -> BufferHash {
    table_with(device, policy, OpenOptions::default(), Threads::Background)
}

fn table_with(
    device: &MemoryDevice,
    policy: Policy,
    runtime: OpenOptions,
    threads: Threads,
) -> BufferHash {
    let options = VolumeOptions { log_bytes: 1 << 20, threads, ..VolumeOptions::tiny() };
    let volume = Volume::create(Arc::new(device.clone()), options).unwrap();
    let config = Config { policy, ..Config::tiny() };
    BufferHash::create_with(&volume, "t", config, runtime).unwrap()
}

fn fill(table: &BufferHash, keys: std::ops::Range<u64>) {
    for key in keys {
        table.insert_u64(key, key * 3).unwrap();
    }
}

#[test]
fn the_oldest_go_first_and_only_when_the_ring_is_full() {
    let table = table_that(Policy::Fifo);
    fill(&table, 0..60_000);
    let found: Vec<_> = (0..60_000).filter(|&key| table.get_u64(key).unwrap().is_some()).collect();
    assert!(found.len() > 8000, "{}", found.len());
    assert!(found[0] > 40_000, "{}", found[0]);
    assert_eq!(*found.last().unwrap(), 59_999);
    assert!(table.stats().evicted > 40_000);
}

#[test]
fn update_based_eviction_drops_the_stale_and_keeps_the_live() {
    // Without threads, since a late flush may force an eviction.
    let inline = OpenOptions::default().inline();
    let table = table_with(&MemoryDevice::new(), Policy::Update, inline, Threads::Inline);
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
    // Retained entries are in a buffer, and their segment may be written again once the checkpoint is durable. The
    // crash is at the first such checkpoint: a replay that fills many buffers would evict by itself.
    let device = MemoryDevice::new();
    let options =
        VolumeOptions { log_bytes: 1 << 20, threads: Threads::Inline, ..VolumeOptions::tiny() };
    let volume = Volume::create(Arc::new(device.clone()), options).unwrap();
    let config = Config { policy: Policy::Update, ..Config::tiny() };
    let inline = OpenOptions::default().inline();
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
    let crashed = Volume::open(Arc::new(copy), VolumeOpenOptions::default()).unwrap();
    let crashed = BufferHash::open(&crashed, "t").unwrap();
    for key in 0..2000 {
        assert_eq!(crashed.get_u64(key).unwrap(), Some(key * 3), "key {key}");
    }
}

/// Retained entries were logged without regard to reservations. With several threads and batches in a log of 256 KiB, a
/// batch then failed with LogFull.
#[test]
fn what_an_eviction_keeps_takes_no_log_space_that_others_have_reserved() {
    let options =
        VolumeOptions { log_bytes: 1 << 20, threads: Threads::Inline, ..VolumeOptions::tiny() };
    let volume = Volume::create(Arc::new(MemoryDevice::new()), options).unwrap();
    let filter = FilterShape::fuse(1900, 12, 1).unwrap();
    let config = Config { policy: Policy::Update, buffer_pages: 8, filter, ..Config::tiny() };
    let inline = OpenOptions::default().inline();
    let table = BufferHash::create_with(&volume, "t", config, inline).unwrap();
    fill(&table, 0..8000);
    let log = volume.log();
    for round in 0..40 {
        let first = 100_000 + 8000 * (round % 2);
        fill(&table, first..first + 8000);
        let before = log.stats().payload_bytes;
        let unreserved = log.capacity_bytes() / 8 + 2 * log.block_bytes();
        let free = log.capacity_bytes() - log.used_bytes() - unreserved;
        let others = log.try_reserve(free / 2).unwrap().expect("the rest is free");
        volume.checkpoint().unwrap();
        drop(others);
        let appended = log.stats().payload_bytes - before;
        assert!(appended <= unreserved, "{appended} bytes of {unreserved}");
    }
    let stats = table.stats();
    assert!(stats.retained > 8000, "{stats:?}");
}

/// Returns images of a table that keeps keys 0 to 1,999, at several moments; none once it had to evict entries that it
/// should keep, which may happen if flushes are late.
fn images_under_partial_discard() -> Vec<Vec<u8>> {
    let device = MemoryDevice::new();
    let table = table_on(&device, Policy::Update);
    fill(&table, 0..2000);
    let mut images = Vec::new();
    for (number, key) in (10_000..14_000).cycle().take(160_000).enumerate() {
        table.insert_u64(key, number as u64).unwrap();
        if number > 100_000 && number % 1500 == 0 {
            images.push(device.image());
        }
        if table.stats().forced_evictions > 0 {
            return Vec::new();
        }
    }
    images
}

#[test]
fn a_recovery_keeps_what_a_partial_discard_keeps() {
    // Segments that were on their way to flash at the crash are written again, into segments that were free for other
    // buffers.
    let mut lives = (0..20).map(|_| images_under_partial_discard());
    let images =
        lives.find(|images| !images.is_empty()).expect("one life without forced evictions");
    for (number, image) in images.into_iter().enumerate() {
        let crashed = MemoryDevice::from_image(image);
        let crashed = Volume::open(Arc::new(crashed), VolumeOpenOptions::default()).unwrap();
        let crashed = BufferHash::open(&crashed, "t").unwrap();
        for key in 0..2000 {
            let (value, stats) = (crashed.get_u64(key).unwrap(), crashed.stats());
            assert_eq!(value, Some(key * 3), "key {key}, image {number}, {stats:?}");
        }
    }
}

#[test]
fn what_an_eviction_keeps_survives_a_close_and_the_checkpoints_after_it() {
    // The checkpoints of a close evict too. The entries that the last one retains are in a buffer that was saved
    // before.
    let device = MemoryDevice::new();
    let options =
        VolumeOptions { log_bytes: 1 << 20, threads: Threads::Inline, ..VolumeOptions::tiny() };
    let volume = Volume::create(Arc::new(device), options).unwrap();
    let config = Config { policy: Policy::Update, ..Config::tiny() };
    let inline = || OpenOptions::default().inline();
    let mut table = BufferHash::create_with(&volume, "t", config, inline()).unwrap();
    fill(&table, 0..2000);
    let mut updates = (10_000..14_000).cycle().zip(0..);
    for life in 0..300 {
        for (key, value) in updates.by_ref().take(1_000) {
            table.insert_u64(key, value).unwrap();
        }
        table.close().unwrap();
        volume.checkpoint().unwrap();
        table = BufferHash::open_with(&volume, "t", inline()).unwrap();
        for key in 0..2000 {
            assert_eq!(table.get_u64(key).unwrap(), Some(key * 3), "key {key}, life {life}");
        }
    }
    assert_eq!(table.stats().forced_evictions, 0, "{:?}", table.stats());
}

#[test]
fn after_a_background_job_only_a_checkpoint_makes_a_close_clean() {
    // A job may move something on flash. Only the log knows that until the next checkpoint.
    let table = table_that(Policy::Fifo);
    fill(&table, 0..1000);
    let core = &table.core;
    core.flush_all().unwrap();
    core.work.wait_quiet();
    core.volume.checkpoint().unwrap();
    assert!(core.is_saved());
    core.work.push(crate::write::pool::Job::Own(super::table::Job::LoadFilters(0)));
    core.work.wait_quiet();
    assert!(!core.is_saved());
    core.volume.checkpoint().unwrap();
    assert!(core.is_saved());
}

#[test]
fn a_table_whose_lock_was_held_by_a_panic_is_dropped_and_says_why_it_saves_nothing() {
    for closes in [true, false] {
        let table = table_that(Policy::Fifo);
        fill(&table, 0..100);
        let core = Arc::clone(&table.core);
        let panicked = std::thread::spawn(move || {
            let _state = core.partitions[0].write();
            panic!("a bug under the lock");
        });
        assert!(panicked.join().is_err());
        if closes {
            let error = table.close().unwrap_err().to_string();
            assert!(error.contains("a thread has panicked"), "{error}");
        } else {
            // A second panic while this thread unwinds would abort the process.
            let unwinds = std::thread::spawn(move || {
                let _table = table;
                panic!("another bug");
            });
            assert!(unwinds.join().is_err());
        }
    }
}

#[test]
fn when_everything_is_live_the_cascade_ends_and_the_oldest_are_dropped() {
    let table = table_that(Policy::Update);
    fill(&table, 0..40_000);
    let stats = table.stats();
    assert!(stats.forced_evictions > 0, "{stats:?}");
    assert_eq!(table.get_u64(39_999).unwrap(), Some(39_999 * 3));
}

#[test]
fn priorities_decide_who_stays() {
    let table = table_that(Policy::Threshold(1000));
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
    let table = table_that(Policy::Top(100));
    for key in 0..40_000u64 {
        table.insert_u64(key, if key % 40 == 0 { 5000 } else { 1 }).unwrap();
    }
    let kept = (0..40_000).step_by(40).filter(|&key| table.get_u64(key).unwrap().is_some()).count();
    assert!(kept > 900, "{kept} of 1000");
}

#[test]
fn under_lru_what_is_used_stays() {
    let table = table_that(Policy::Lru);
    fill(&table, 0..200);
    for key in 200..60_000 {
        table.insert_u64(key, key * 3).unwrap();
        if key % 10 == 0 {
            // Each of the first 200 keys is used every 2,000 inserts, while 10,000 fit.
            table.get_u64(key / 10 % 200).unwrap();
            table.core.work.wait_quiet();
        }
    }
    let kept = (0..200).filter(|&key| table.get_u64(key).unwrap().is_some()).count();
    assert!(kept > 150, "{kept} of 200");
    assert_eq!(table.get_u64(1000).unwrap(), None);
}

#[test]
fn filters_take_ram_for_the_incarnations_that_have_come() {
    let volume = Volume::create(
        Arc::new(MemoryDevice::new()),
        VolumeOptions { log_bytes: 1 << 20, ..VolumeOptions::tiny() },
    );
    let volume = volume.unwrap();
    let config =
        Config { segments: 240, incarnations_max: 50, policy: Policy::Reject, ..Config::tiny() };
    let all = config.filter.ram_bytes();
    let own = OpenOptions::default().inline();
    let mut table = BufferHash::create_with(&volume, "t", config, own.clone()).unwrap();
    let each = |table: &BufferHash| -> Vec<_> {
        let of = |it: &table::SuperTable| {
            let level = &it.read().level;
            (level.window.len(), level.slices.ram_bytes())
        };
        table.core.partitions.iter().map(of).collect()
    };
    // Its 12 rows of a slot are whole quads.
    let expected = |incarnations: usize| all * filter::Slices::width_of(incarnations) / 64;
    let mut seen = std::collections::BTreeSet::new();
    for last in (0..70_000).step_by(1000) {
        fill(&table, last..last + 1000);
        for (incarnations, ram_bytes) in each(&table) {
            assert_eq!(ram_bytes, expected(incarnations), "{incarnations} incarnations");
            seen.insert(ram_bytes);
        }
        if last % 10_000 == 0 {
            table.close().unwrap();
            table = BufferHash::open_with(&volume, "t", own.clone()).unwrap();
            assert!((0..last + 1000).all(|key| table.get_u64(key).unwrap() == Some(key * 3)));
        }
    }
    let widths = [8, 16, 24, 32, 48].map(|columns| all * columns / 64);
    assert_eq!(seen.into_iter().collect::<Vec<_>>(), widths);
    assert!((0..70_000).all(|key| table.get_u64(key).unwrap() == Some(key * 3)));
}

#[test]
fn a_table_that_evicts_has_columns_for_the_incarnations_that_it_keeps_however_long_it_runs() {
    for filter in [FilterShape::fuse(470, 12, 1), FilterShape::bloom(470, 10.0, 1)] {
        let volume = Volume::create(
            Arc::new(MemoryDevice::new()),
            VolumeOptions { log_bytes: 1 << 20, ..VolumeOptions::tiny() },
        );
        let volume = volume.unwrap();
        let (segments, incarnations_max, filter) = (4 * 15 + 4, 60, filter.unwrap());
        let config = Config { segments, incarnations_max, filter, ..Config::tiny() };
        let own = OpenOptions::default().inline();
        let mut table = BufferHash::create_with(&volume, "t", config, own.clone()).unwrap();
        let mut most = 0;
        for last in (0..200_000).step_by(2000) {
            fill(&table, last..last + 2000);
            for super_table in &table.core.partitions {
                let state = super_table.read();
                most = most.max(state.level.window.len());
                let columns = state.level.slices.columns();
                assert!(columns <= 24, "{columns} columns, and up to {most} incarnations");
                assert_eq!(columns, state.level.window.columns());
            }
            // The latest are present, whatever has been widened or reused.
            let kept = last.saturating_sub(18_000)..last + 2000;
            assert!(kept.into_iter().all(|key| table.get_u64(key).unwrap() == Some(key * 3)));
            if last % 50_000 == 0 {
                table.close().unwrap();
                table = BufferHash::open_with(&volume, "t", own.clone()).unwrap();
            }
        }
        assert!(most >= 15, "{most}");
    }
}

#[test]
fn an_iteration_gives_a_key_once_whatever_is_evicted_meanwhile() {
    let inline = OpenOptions::default().inline();
    for policy in [Policy::Update, Policy::Fifo] {
        let options = VolumeOptions { threads: Threads::Inline, ..VolumeOptions::tiny() };
        let volume = Volume::create(Arc::new(MemoryDevice::new()), options).unwrap();
        let config = Config { policy, super_tables: 1, ..Config::tiny() };
        let table = BufferHash::create_with(&volume, "t", config, inline.clone()).unwrap();
        let mut state = 1_u64;
        let mut insert = |count: u64| {
            for value in 0..count {
                state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
                table.insert_u64((state >> 33) % 2000, value).unwrap();
            }
        };
        insert(10_000);
        for round in 0..100 {
            let (mut given, mut keys) = (HashSet::new(), table.iter());
            for place in 0.. {
                // Some of the oldest incarnations are evicted, and their pages still exist.
                if place == round * 20 {
                    insert(500 + round % 7 * 200);
                }
                let Some(pair) = keys.next() else { break };
                let (key, _) = pair.unwrap();
                assert!(given.insert(key.clone()), "{policy:?}, {round}: {key:?} again");
            }
        }
    }
}

#[test]
fn an_iteration_reads_each_page_of_entries_once_and_no_filter() {
    let device = Arc::new(Counted::new(MemoryDevice::new()));
    let options = VolumeOptions { threads: Threads::Inline, ..VolumeOptions::tiny() };
    let volume = Volume::create(Arc::clone(&device) as _, options).unwrap();
    let config = Config { policy: Policy::Reject, ..Config::tiny() };
    let runtime = OpenOptions::default().inline();
    let table = BufferHash::create_with(&volume, "t", config, runtime.clone()).unwrap();
    // Most versions are shadowed by newer ones, which were once searched one page at a time.
    (0..3).for_each(|_| fill(&table, 0..3000));
    table.close().unwrap();
    let table = BufferHash::open_with(&volume, "t", runtime).unwrap();
    let of =
        |table: &crate::write::Partition<Incarnations>| table.read().level.newest_first().len();
    let incarnations: usize = table.core.partitions.iter().map(of).sum();
    let pages = incarnations as u64 * u64::from(Config::tiny().buffer_pages);
    assert!(pages > 8, "{pages}");
    let before = device.snapshot();
    assert_eq!(table.iter().map(Result::unwrap).count(), 3000);
    assert_eq!((device.snapshot() - before).pages_read, pages);
}

/// A flush recorded all entries of its buffer in the cache, and then put back those that its pages or its filter could
/// not take. A removal of such a key left no trace, because no filter had it. If another key's filter gave a false
/// positive the cache answered with its value: one time in five for such a hash key.
#[test]
fn a_key_that_a_flush_put_back_is_absent_once_it_is_removed() {
    const KEYS: u64 = 3000;
    let config =
        crate::Requirements::new(KEYS, 8, 8).ram(16 << 20).advise_one(KIND).unwrap().config;
    let config = config.of::<Config>().unwrap();
    for hash_key in 0..16 {
        let tiny = VolumeOptions { log_bytes: 4 << 20, ..VolumeOptions::tiny() };
        let threads = Threads::Inline;
        let options = VolumeOptions { hash_key: Some(hash_key), threads, ..tiny };
        let volume = Volume::create(Arc::new(MemoryDevice::new()), options).unwrap();
        let runtime = OpenOptions { cache_bytes: 1 << 20, ..OpenOptions::default() };
        let table = BufferHash::create_with(&volume, "t", config.clone(), runtime).unwrap();
        for key in 0..20_000 {
            table.insert_u64(key, key).unwrap();
            let Some(removed) = key.checked_sub(KEYS) else { continue };
            table.remove(&removed.to_le_bytes()).unwrap();
            if key % 500 == 0 {
                let there = (0..removed).filter(|it| table.get_u64(*it).unwrap().is_some());
                assert_eq!(there.collect::<Vec<_>>(), [], "hash key {hash_key}, after key {key}");
            }
        }
    }
}

/// Returns the number of entries in its incarnations and buffers, counting each version of a key.
fn versions(table: &BufferHash) -> u64 {
    let states = table.core.partitions.iter().map(|it| it.read());
    states.map(|state| state.level.entries() + state.entries_buffered()).sum()
}

/// Delays the flushes of a table while keys are put, so that many updates come between a full buffer and the entries
/// that its flush puts back.
fn fill_with_late_flushes(table: &BufferHash, keys: std::ops::Range<u64>) {
    std::thread::scope(|scope| {
        let filling = scope.spawn(|| fill(table, keys));
        while !filling.is_finished() {
            let held: Vec<_> = table.core.partitions.iter().map(|it| it.maintain()).collect();
            std::thread::sleep(std::time::Duration::from_micros(300));
            drop(held);
            std::thread::yield_now();
        }
    });
}

#[test]
fn what_flushes_put_back_is_replayed_once() {
    const KEYS: u64 = 20_000;
    let config = Config { policy: Policy::Reject, segments: 120, ..Config::tiny() };
    for (threads, then) in [(2, 0), (0, 2), (2, 2)] {
        let runtime =
            |threads| OpenOptions { flush_threads: Some(threads), ..OpenOptions::default() };
        let device = MemoryDevice::new();
        // A log in which no checkpoint becomes due.
        let options = VolumeOptions { log_bytes: 8 << 20, ..VolumeOptions::tiny() };
        let volume = Volume::create(Arc::new(device.clone()), options).unwrap();
        let table =
            BufferHash::create_with(&volume, "t", config.clone(), runtime(threads)).unwrap();
        if threads > 0 {
            fill_with_late_flushes(&table, 0..KEYS);
        } else {
            fill(&table, 0..KEYS);
        }
        table.sync().unwrap();
        let mut image = device.image();
        assert_eq!(versions(&table), KEYS);
        // Once more after the checkpoint of the entries that a replay has left.
        for saves in [false, true, false] {
            let device = MemoryDevice::from_image(image);
            let volume =
                Volume::open(Arc::new(device.clone()), VolumeOpenOptions::default()).unwrap();
            let crashed = BufferHash::open_with(&volume, "t", runtime(then)).unwrap();
            assert_eq!(versions(&crashed), KEYS, "{threads} threads, then {then}");
            assert!((0..KEYS).all(|key| crashed.get_u64(key).unwrap() == Some(key * 3)));
            if saves {
                volume.checkpoint().unwrap();
            }
            image = device.image();
        }
    }
}
