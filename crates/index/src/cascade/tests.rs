//! Tests of the internals: levels, power cuts, and pages that are kept.

use std::collections::HashSet;
use std::sync::Arc;
use std::time::Duration;

use nandex_device::{Access, Device, MemoryDevice};
use nandex_sim::SimDevice;
use nandex_store::{Durability, Threads, Volume, VolumeOpenOptions, VolumeOptions};

use super::*;
use crate::OpenOptions;
use crate::api::{Counter, Filter};
use crate::write::capture_holds;

const PAGE: usize = nandex_device::PAGE_BYTES;

fn inline() -> OpenOptions {
    OpenOptions {
        flush_threads: Some(0),
        read_depth: Some(4),
        io_chunk_pages: Some(4),
        ..OpenOptions::default()
    }
}

fn volume_on(device: &Arc<MemoryDevice>) -> Volume {
    volume_with(device, Durability::Every(Duration::from_secs(3600)))
}

fn volume_with(device: &Arc<MemoryDevice>, durability: Durability) -> Volume {
    let options = VolumeOptions {
        // A full log forces buffers to be saved before they are full.
        log_bytes: 1 << 20,
        durability,
        threads: Threads::Inline,
        ..VolumeOptions::tiny()
    };
    Volume::create(Arc::clone(device) as Arc<dyn Device>, options).unwrap()
}

fn reopened(device: &Arc<MemoryDevice>) -> Volume {
    let options = VolumeOpenOptions { threads: Threads::Inline, ..VolumeOpenOptions::default() };
    Volume::open(Arc::clone(device) as Arc<dyn Device>, options).unwrap()
}

fn key(number: u64) -> [u8; 8] {
    number.to_le_bytes()
}

fn keys(numbers: std::ops::Range<u64>) -> Vec<[u8; 8]> {
    numbers.map(key).collect()
}

fn insert(filter: &Cascade, numbers: std::ops::Range<u64>) {
    let keys = keys(numbers);
    filter.insert_many(&keys.iter().map(|key| &key[..]).collect::<Vec<_>>()).unwrap();
    filter.sync().unwrap();
}

fn all_there(filter: &Cascade, numbers: std::ops::Range<u64>) -> bool {
    let keys = keys(numbers);
    let found = filter.contains_many(&keys.iter().map(|key| &key[..]).collect::<Vec<_>>()).unwrap();
    found.iter().all(|found| *found)
}

fn level_entries(filter: &Cascade) -> Vec<u64> {
    let levels = filter.core.levels(0);
    levels.runs.iter().map(|run| run.as_ref().map_or(0, |run| run.entries())).collect()
}

/// Returns a configuration with a universe so wide that no two keys share a fingerprint.
fn spread() -> Config {
    Config { rate: 1e-9, ..Config::tiny() }
}

#[test]
fn full_buffers_go_to_the_smallest_level_with_space() {
    let device = Arc::new(MemoryDevice::new());
    let filter = Cascade::create_with(&volume_on(&device), "f", spread(), inline()).unwrap();
    // Levels hold 400, 800 and 1,600; a buffer 200, and is merged by the insert that finds it full.
    let mut seen = Vec::new();
    for number in 0..2001 {
        filter.insert(&key(number)).unwrap();
        if number % 200 == 0 {
            seen.push(level_entries(&filter));
        }
    }
    let expected: [&[u64]; 11] = [
        &[],
        &[200],
        &[400],
        &[0, 600],
        &[200, 600],
        &[400, 600],
        &[0, 0, 1200],
        &[200, 0, 1200],
        &[400, 0, 1200],
        &[0, 600, 1200],
        &[200, 600, 1200],
    ];
    assert_eq!(seen, expected);
    assert!(all_there(&filter, 0..2001));
    assert!(!filter.contains(&key(5000)).unwrap());
}

#[test]
fn one_wide_level_takes_every_buffer() {
    let device = Arc::new(MemoryDevice::new());
    let config = Config { fan_out: None, ..spread() };
    let filter = Cascade::create_with(&volume_on(&device), "f", config, inline()).unwrap();
    insert(&filter, 0..3000);
    assert_eq!(level_entries(&filter), [2800]);
    assert!(all_there(&filter, 0..3000));
    let stats = filter.stats();
    assert_eq!((stats.merges, stats.buffered, stats.entries), (14, 200, 3000));
    // A key on flash takes one read, one in the buffer none.
    assert_eq!(stats.reads_histogram[..3], [200, 2800, 0]);
}

/// In a filter of few pages all of a batch are swept, in one of many pages each key's page is read.
#[test]
fn keys_are_first_absent_once_whether_pages_are_read_or_swept() {
    let config = Config { keys: 40_000, rate: 1e-9, buffer_entries: 2000, ..Config::tiny() };
    for there in [0, 500, 40_000_u64] {
        let device = Arc::new(MemoryDevice::new());
        let filter = Cascade::create_with(&volume_on(&device), "f", config, inline()).unwrap();
        insert(&filter, 0..there);
        let keys = keys(0..there);
        for step in [1, 997] {
            let asked: Vec<_> = (0..60_000_u64)
                .step_by(step)
                .flat_map(|number| [number, number / 2 * 2])
                .map(key)
                .collect();
            let asked: Vec<&[u8]> = asked.iter().map(|key| &key[..]).collect();
            let mut seen: HashSet<&[u8]> = keys.iter().map(|key| &key[..]).collect();
            let expected: Vec<_> = asked.iter().map(|key| seen.insert(key)).collect();
            assert_eq!(filter.first_absent(&asked).unwrap(), expected, "{there} {step}");
        }
        assert_eq!(filter.first_absent(&[]).unwrap(), []);
    }
}

#[test]
fn a_sweep_answers_as_lookups_do_and_reads_each_page_once() {
    let device = Arc::new(MemoryDevice::new());
    let config = Config { parts: 3, counts: true, ..spread() };
    let filter = Cascade::create_with(&volume_on(&device), "f", config, inline()).unwrap();
    insert(&filter, 0..2000);
    insert(&filter, 500..900);
    filter.delete(&key(7)).unwrap();
    // In random order, some of them absent and some twice.
    let asked: Vec<_> = (0..3000u64).map(|number| key(number * 7919 % 2600)).collect();
    let asked: Vec<&[u8]> = asked.iter().map(|key| &key[..]).collect();
    let before = filter.stats();
    let swept = filter.sweep(&asked).unwrap();
    let after = filter.stats();
    assert_eq!(after.lookup_reads, before.lookup_reads);
    assert_eq!(after.positives + after.negatives - before.positives - before.negatives, 3000);
    assert_eq!(swept, filter.count_many(&asked).unwrap());
    assert_eq!(filter.sweep(&[]).unwrap(), []);
}

#[test]
fn pages_of_old_runs_are_used_again_but_not_while_somebody_reads_them() {
    let device = Arc::new(MemoryDevice::new());
    let volume = volume_on(&device);
    let filter =
        Cascade::create_with(&volume, "f", Config { fan_out: None, ..spread() }, inline()).unwrap();
    insert(&filter, 0..1000);
    let mut found = filter.iter();
    assert!(found.next().is_some());
    insert(&filter, 1000..9000);
    filter.compact().unwrap();
    assert_eq!(found.count(), 999, "an iteration goes on over what it began with");
    let before = device.page_count();
    for _ in 0..20 {
        filter.compact().unwrap();
        insert(&filter, 0..200);
        let doomed = keys(0..200);
        filter.delete_many(&doomed.iter().map(|key| &key[..]).collect::<Vec<_>>()).unwrap();
    }
    assert!(device.page_count() <= before + 64, "{} pages, {before} before", device.page_count());
}

#[test]
fn counts_outlive_a_checkpoint_that_was_taken_while_the_filter_was_closed() {
    // That checkpoint drops the filter's part of the log, including its boundary. The replay after the kill must not
    // wait for the boundary.
    let device = Arc::new(MemoryDevice::new());
    let volume = volume_on(&device);
    let config = Config { counts: true, parts: 1, ..spread() };
    let filter = Cascade::create_with(&volume, "f", config, inline()).unwrap();
    insert(&filter, 0..50);
    filter.close().unwrap();
    volume.checkpoint().unwrap();
    let filter = Cascade::open_with(&volume, "f", inline()).unwrap();
    volume.checkpoint().unwrap();
    insert(&filter, 0..30);
    let killed = Arc::new(MemoryDevice::from_image(device.image()));
    let killed = Cascade::open_with(&reopened(&killed), "f", inline()).unwrap();
    for number in 0..50 {
        let count = if number < 30 { 2 } else { 1 };
        assert_eq!(killed.count(&key(number)).unwrap(), count, "key {number}");
    }
}

#[test]
fn a_compaction_makes_deletes_durable_that_left_their_buffer_empty() {
    // Without a log, only the snapshot of the buffer survives a kill.
    let device = Arc::new(MemoryDevice::new());
    let volume = volume_with(&device, Durability::Never);
    let filter =
        Cascade::create_with(&volume, "f", Config { parts: 1, ..spread() }, inline()).unwrap();
    insert(&filter, 0..50);
    let doomed = keys(0..50);
    filter.delete_many(&doomed.iter().map(|key| &key[..]).collect::<Vec<_>>()).unwrap();
    filter.compact().unwrap();
    let killed = Arc::new(MemoryDevice::from_image(device.image()));
    let killed = Cascade::open_with(&reopened(&killed), "f", inline()).unwrap();
    assert_eq!(killed.iter().count(), 0);
}

/// Returns a filter with keys that were inserted once and deleted, and another filter that has each of them once.
fn deleted_and_absorbed(delete: impl Fn(&Cascade, &[&[u8]])) {
    let device = SimDevice::instant();
    let options = VolumeOptions {
        durability: Durability::Never,
        threads: Threads::Inline,
        log_bytes: 1 << 20,
        ..VolumeOptions::tiny()
    };
    let volume = Volume::create(Arc::new(device.clone()), options).unwrap();
    let config = Config { parts: 1, counts: true, ..spread() };
    let filter = Cascade::create_with(&volume, "f", config, inline()).unwrap();
    insert(&filter, 0..50);
    filter.flush().unwrap();
    let doomed = keys(0..50);
    delete(&filter, &doomed.iter().map(|key| &key[..]).collect::<Vec<_>>());
    let theirs = volume_with(&Arc::new(MemoryDevice::new()), Durability::Never);
    let other = Cascade::create_with(&theirs, "f", config, inline()).unwrap();
    insert(&other, 0..50);
    device.record_cuts();
    filter.absorb(&other).unwrap();
    let cuts = device.take_cuts();
    assert!(cuts.len() > 3, "{} cuts", cuts.len());
    let images = cuts.iter().flat_map(|cut| [0, 1, 7].map(|seed| cut.survivors(seed)));
    for image in images.chain([device.survivors(0)]) {
        let device = Arc::new(SimDevice::instant().with_image(image));
        let options =
            VolumeOpenOptions { threads: Threads::Inline, ..VolumeOpenOptions::default() };
        let volume = Volume::open(device, options).unwrap();
        let left = Cascade::open_with(&volume, "f", inline()).unwrap();
        let counts = doomed.iter().map(|key| left.count(key).unwrap());
        assert!(counts.max() < Some(2), "absorbed next to what was deleted before");
    }
    assert!(doomed.iter().all(|key| filter.count(key).unwrap() == 1));
}

/// Without a log, a crash within an absorption lost deletes of a buffer that was left out, but kept what was absorbed:
/// keys were there twice.
#[test]
fn deletes_of_all_buffers_come_before_what_is_absorbed() {
    deleted_and_absorbed(|filter, doomed| {
        let core = &filter.core;
        filter.insert(&key(99)).unwrap();
        assert!(core.try_freeze(0, &mut core.partitions[0].write(), 0).unwrap());
        filter.delete_many(doomed).unwrap();
    });
}

#[test]
fn deletes_that_left_their_buffer_empty_come_before_what_is_absorbed() {
    deleted_and_absorbed(|filter, doomed| filter.delete_many(doomed).unwrap());
}

fn check_of(image: Vec<u8>) -> nandex_store::check::Report {
    crate::check(Arc::new(MemoryDevice::from_image(image)), None, &mut |_| {}).unwrap()
}

#[test]
fn a_check_proves_every_page_of_every_run_and_the_log_and_names_what_is_damaged() {
    let device = Arc::new(MemoryDevice::new());
    let filter = Cascade::create_with(&volume_on(&device), "f", spread(), inline()).unwrap();
    insert(&filter, 0..1300);
    filter.delete(&key(3)).unwrap();
    filter.flush().unwrap();
    filter.add_many(&[(&key(1), 5), (&key(2), 1)]).unwrap();
    filter.sync().unwrap();
    // The state after a power cut: levels, an image, and a log behind it.
    std::mem::forget(filter);
    let image = device.image();
    let whole = check_of(image.clone());
    assert_eq!(whole.findings, []);
    // 1,300 inserts and one tombstone.
    assert_eq!(whole.structures[0].entries, 1301);
    assert!(whole.log_entries >= 2);
    let volume = reopened(&Arc::new(MemoryDevice::from_image(image.clone())));
    let filter = Cascade::open_with(&volume, "f", inline()).unwrap();
    let runs: Vec<_> = filter.core.partitions[0].read().extents().collect();
    assert!(runs.len() > 1 && runs.iter().any(|it| it.pages > 1), "{runs:?}");
    for page in runs.iter().flat_map(|it| it.start.0..it.end().0) {
        let mut bad = image.clone();
        bad[page as usize * PAGE + 500] ^= 4;
        let report = check_of(bad);
        let found: Vec<_> = report.findings.iter().map(|it| it.page.0).collect();
        assert_eq!(found, [page]);
        assert_eq!(report.findings[0].structure.as_deref(), Some("f"));
    }
}

#[test]
fn several_filters_are_absorbed_in_one_pass_and_none_when_one_is_unlike() {
    let device = Arc::new(MemoryDevice::new());
    let volume = volume_on(&device);
    let create = |name, config| Cascade::create_with(&volume, name, config, inline()).unwrap();
    let whole = create("whole", spread());
    let parts = ["a", "b", "c"].map(|name| create(name, spread()));
    for (part, first) in parts.iter().zip([0, 500, 1000]) {
        insert(part, first..first + 700);
    }
    let unlike = create("unlike", Config { keys: 7777, ..spread() });
    let error = whole.absorb_all(&[&parts[0], &unlike]).unwrap_err().to_string();
    assert!(error.starts_with("universe: "), "{error}");
    assert_eq!(whole.stats().entries, 0);
    let before = whole.stats().merges;
    whole.absorb_all(&parts.each_ref()).unwrap();
    let stats = whole.stats();
    assert_eq!((stats.merges - before, stats.entries, stats.levels.len()), (1, 1700, 1));
    assert_eq!([0, 600, 800, 1100].map(|n| whole.count(&key(n)).unwrap()), [1, 2, 1, 2]);
}

#[test]
fn while_a_checkpoint_captures_no_buffer_is_merged() {
    // Otherwise it would be on flash in the levels, and in the log in the buffers: counted twice after a crash.
    let filter = Cascade::create(&volume_on(&Arc::default()), "f", Config::tiny()).unwrap();
    let core = &filter.core;
    assert!(capture_holds(core, &core.layout.maps), "a merge could have changed them");
}

/// A sweep took a part whose snapshot was damaged for an empty one, and reported the part's keys as absent. Other
/// traversals did not.
#[test]
fn every_walk_refuses_a_part_whose_snapshot_is_damaged() {
    let device = Arc::new(MemoryDevice::new());
    let config = Config { parts: 2, ..spread() };
    let filter = Cascade::create_with(&volume_on(&device), "f", config, inline()).unwrap();
    insert(&filter, 0..300);
    filter.flush().unwrap();
    let lost = filter.core.partitions[0].read().snapshot_extent().unwrap().start;
    filter.close().unwrap();
    let mut image = device.image();
    image[lost.0 as usize * PAGE + 500] ^= 4;
    let options = VolumeOpenOptions { access: Access::ReadOnly, ..VolumeOpenOptions::default() };
    let volume = Volume::open(Arc::new(MemoryDevice::from_image(image)), options).unwrap();
    let filter = Cascade::open_with(&volume, "f", inline()).unwrap();
    assert_eq!(filter.stats().lost_pages, [lost]);
    let refuses = |found: Result<()>| found.unwrap_err().to_string().contains(&lost.to_string());
    let mut refused = 0;
    for key in keys(0..300) {
        let is_lost = filter.core.place(&key).0 == 0;
        refused += u64::from(is_lost);
        for found in [
            filter.contains(&key).map(u64::from),
            filter.count(&key),
            filter.sweep(&[&key]).map(|counts| counts[0]),
        ] {
            assert!(if is_lost { refuses(found.map(drop)) } else { found.unwrap() == 1 });
        }
    }
    assert!(refused > 0 && refused < 300, "{refused}");
    assert!(refuses(filter.iter().try_for_each(|entry| entry.map(drop))));
    let other = Cascade::create_with(&volume_on(&Arc::default()), "f", config, inline()).unwrap();
    assert!(refuses(other.absorb(&filter)));
}

/// Consecutive checkpoints, while a full buffer pinned the log, wrote a page of boundaries each, until updates that had
/// reserved their space failed.
#[test]
fn checkpoints_leave_updates_what_they_reserved_of_the_log() {
    let volume = volume_on(&Arc::default());
    let filter = Cascade::create_with(&volume, "f", Config::tiny(), inline()).unwrap();
    insert(&filter, 0..10);
    let log = volume.log();
    let free = log.capacity_bytes() * 7 / 8 - log.used_bytes();
    let bytes = (free - 2 * log.block_bytes()) / 2;
    let reserved = log.try_reserve(bytes).unwrap().expect("what is free, without two blocks");
    for _ in 0..log.capacity_bytes() / PAGE as u64 {
        let state = filter.core.partitions[0].write();
        filter.core.snapshot_boundary(0).unwrap();
        drop(state);
        log.sync().unwrap();
    }
    assert!(log.used_bytes() + 2 * bytes <= log.capacity_bytes() / 16 * 15);
    drop(reserved);
    assert!(filter.core.snapshot_boundary(0).unwrap().is_some());
}
