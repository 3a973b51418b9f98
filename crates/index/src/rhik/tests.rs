//! Tests that are specific to RHIK; the harnesses over the registry cover the rest.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering::Relaxed;

use nandex_device::{Counted, Device, MemoryDevice, PAGE_BYTES, PageBuf};
use nandex_sim::{Fault, FaultKind, FaultOn, FaultSpan, SimDevice};
use nandex_store::{Volume, VolumeOpenOptions, VolumeOptions};

use super::*;
use crate::groups::GroupConfig;
use crate::grow::tests::{agrees, key, update, volume};
use crate::write::capture_holds;
use crate::{Durability, Error, OpenOptions, Table, Threads};

fn options_of(flush_threads: usize) -> OpenOptions {
    OpenOptions { flush_threads: Some(flush_threads), ..OpenOptions::default() }
}

fn volume_on(device: Arc<dyn Device>) -> Volume {
    let options = VolumeOptions {
        durability: Durability::Never,
        threads: Threads::Inline,
        ..VolumeOptions::tiny()
    };
    Volume::create(device, options).unwrap()
}

fn insert(table: &Rhik, numbers: std::ops::Range<u64>) {
    numbers.for_each(|number| table.insert_u64(number, number).unwrap());
}

/// Returns the number of lookups that read more than one page.
fn too_many(table: &Rhik) -> u64 {
    table.stats().reads_histogram[2..].iter().sum()
}

/// The claim of the paper's title: counted at the device, at each size, for present and absent keys.
#[test]
fn a_lookup_reads_at_most_one_page_at_every_size() {
    let device = Arc::new(Counted::new(MemoryDevice::new()));
    let volume = volume_on(Arc::clone(&device) as _);
    let table = Rhik::create_with(&volume, "t", Config::tiny(), options_of(0)).unwrap();
    assert_eq!((table.rhik_stats().tables, table.get_u64(1).unwrap()), (0, None));
    let (mut from, mut splits) = (0, 0);
    for until in [2000, 5000, 12_000, 30_000] {
        insert(&table, from..until);
        let before = device.snapshot();
        for number in 0..until {
            assert_eq!(table.get_u64(number).unwrap(), Some(number));
            assert_eq!(table.get_u64(number | 1 << 40).unwrap(), None);
        }
        let counts = device.snapshot() - before;
        assert!(counts.pages_read <= 2 * until && counts.reads == counts.pages_read);
        assert_eq!((counts.writes, too_many(&table)), (0, 0));
        let stats = table.rhik_stats();
        assert!(stats.splits > splits, "{stats:?}");
        (from, splits) = (until, stats.splits);
    }
    let stats = table.rhik_stats();
    assert!((0.4..=0.9).contains(&stats.occupancy()), "{stats:?}");
    assert!(stats.doublings >= 4 * 4 && stats.directory_entries >= stats.tables, "{stats:?}");
    assert!(table.stats().miss_reads > 25_000);
}

#[test]
fn lookups_during_splits_and_doublings_read_at_most_one_page() {
    let (_, volume) = volume();
    let table = Rhik::create(&volume, "t", Config::tiny()).unwrap();
    insert(&table, 0..500);
    let is_done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let look = || {
            let keys: Vec<_> = (0..500).chain(1 << 40..(1 << 40) + 500).map(key).collect();
            let keys: Vec<&[u8]> = keys.iter().map(|it| &it[..]).collect();
            let mut rounds = 0;
            while !is_done.load(Relaxed) || rounds < 2 {
                let found = table.get_many(&keys).unwrap();
                assert!(found.iter().enumerate().all(|(at, it)| it.is_some() == (at < 500)));
                rounds += 1;
            }
        };
        let lookers = [scope.spawn(look), scope.spawn(look)];
        insert(&table, 500..40_000);
        is_done.store(true, Relaxed);
        lookers.into_iter().for_each(|it| it.join().unwrap());
    });
    let stats = table.rhik_stats();
    assert!(stats.splits > 100 && stats.doublings > 10, "{stats:?}");
    assert_eq!(too_many(&table), 0);
    let looked_up = table.stats();
    assert!(looked_up.reads_histogram[1] > 500, "{looked_up:?}");
}

#[test]
fn a_rewrite_reads_and_writes_each_table_of_its_partition_once() {
    let device = Arc::new(Counted::new(MemoryDevice::new()));
    let volume = volume_on(Arc::clone(&device) as _);
    let config = Config { partitions: 1, ..Config::tiny() };
    let table = Rhik::create_with(&volume, "t", config, options_of(0)).unwrap();
    insert(&table, 0..20_000);
    let mut number = 20_000;
    for _ in 0..20 {
        let flushes = table.stats().flushes;
        let (before, tables) = (device.snapshot(), table.rhik_stats());
        while table.stats().flushes == flushes {
            table.insert_u64(number, number).unwrap();
            number += 1;
        }
        let (counts, after) = (device.snapshot() - before, table.rhik_stats());
        assert_eq!((counts.pages_read, counts.reads), (tables.tables, tables.groups));
        // The rest is the checkpoint that frees the old tables: two pages, and the superblock.
        let rest = counts.pages_written - after.tables;
        assert!(rest <= 4, "{counts:?} {after:?}");
        assert_eq!(after.groups, after.tables.div_ceil(4));
    }
}

#[test]
fn a_table_goes_back_when_most_of_its_keys_are_removed() {
    let (device, volume) = volume();
    let table = Rhik::create_with(&volume, "t", Config::tiny(), options_of(0)).unwrap();
    insert(&table, 0..30_000);
    let full = table.rhik_stats();
    for number in 0..29_900 {
        table.remove(&key(number)).unwrap();
    }
    let empty = table.rhik_stats();
    assert!(empty.joins > 50 && empty.halvings > 4, "{empty:?}");
    assert!(empty.tables * 8 < full.tables, "{full:?} {empty:?}");
    assert!(empty.directory_entries * 8 <= full.directory_entries, "{full:?} {empty:?}");
    let oracle: HashMap<_, _> = (29_900..30_000).map(|number| (number, number)).collect();
    agrees(&table, table.iter(), &oracle, 30_000);
    table.close().unwrap();
    drop(volume);
    let volume = Volume::open(device, VolumeOpenOptions::default()).unwrap();
    let table = Rhik::open(&volume, "t").unwrap();
    agrees(&table, table.iter(), &oracle, 30_000);
}

/// The image is the state after a power cut that keeps everything written, at various moments: before and after the
/// checkpoints that follow splits and doublings.
#[test]
fn updates_and_removals_outlive_power_cuts_between_splits() {
    for durability in [Durability::Always, Durability::Every(std::time::Duration::from_secs(3600))]
    {
        let device = Arc::new(MemoryDevice::new());
        let options =
            VolumeOptions { durability, threads: Threads::Inline, ..VolumeOptions::tiny() };
        let volume = Volume::create(Arc::clone(&device) as _, options).unwrap();
        let table = Rhik::create_with(&volume, "t", Config::tiny(), options_of(0)).unwrap();
        let mut oracle = HashMap::new();
        for step in 0..20_000u64 {
            let number = step.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 33;
            let number = number % (1 + step.min(9_999));
            update(&table, &mut oracle, number, (step % 5 != 3).then_some(step));
            if step % 1_000 == 999 {
                table.sync().unwrap();
                let copy = Arc::new(MemoryDevice::from_image(device.image()));
                let volume = Volume::open(copy, VolumeOpenOptions::default()).unwrap();
                let cut = Rhik::open_with(&volume, "t", options_of(0)).unwrap();
                agrees(&cut, cut.iter(), &oracle, 10_000);
            }
        }
        assert!(table.rhik_stats().doublings > 10);
    }
}

#[test]
fn an_iteration_reads_the_tables_that_it_began_with_though_others_replace_them() {
    let (_, volume) = volume();
    let config = Config { partitions: 1, ..Config::tiny() };
    let table = Rhik::create_with(&volume, "t", config, options_of(0)).unwrap();
    insert(&table, 0..5_000);
    let mut entries = table.iter();
    let first: Vec<_> = entries.by_ref().take(2_000).collect();
    // More than enough to overwrite the old tables' pages, if they were free.
    insert(&table, 5_000..30_000);
    let all = first.into_iter().chain(entries).map(|it| it.unwrap().0);
    let all: std::collections::HashSet<_> = all.collect();
    assert!((0..5_000).all(|number| all.contains(&key(number)[..])));
}

#[test]
fn a_table_whose_ram_is_spent_says_so_keeps_everything_and_takes_removals_and_more_ram() {
    let (device, volume) = volume();
    let limited = |entries: f64| {
        let tiny = Config::tiny();
        let bytes = entries * tiny.ram().map_bytes_per_entry(1);
        Config { ram_bytes_max: Some(tiny.ram().empty_bytes(1) + bytes as u64), ..tiny }
    };
    let table = Rhik::create_with(&volume, "t", limited(9_000.0), options_of(1)).unwrap();
    let refused = (0..).find_map(|number| Some((number, table.insert_u64(number, number).err()?)));
    let (taken, error) = refused.unwrap();
    assert!(matches!(error, Error::GrowthStopped { entries, .. } if entries == taken), "{error}");
    assert!(error.to_string().contains("open it with more RAM"), "{error}");
    assert!((9_000..14_000).contains(&taken), "{taken}");
    assert!(table.stats().ram_bytes <= limited(9_000.0).ram_bytes_max.unwrap());
    let mut oracle: HashMap<_, _> = (0..taken).map(|number| (number, number)).collect();
    agrees(&table, table.iter(), &oracle, taken + 10);
    for number in 0..6_000 {
        update(&table, &mut oracle, number, None);
    }
    agrees(&table, table.iter(), &oracle, taken + 10);
    for number in 20_000..21_000 {
        update(&table, &mut oracle, number, Some(number));
    }
    table.close().unwrap();
    drop(volume);
    let volume = Volume::open(device, VolumeOpenOptions::default()).unwrap();
    let more = limited(40_000.0).ram_bytes_max;
    let options = OpenOptions { ram_bytes_max: more, ..options_of(1) };
    let table = Rhik::open_with(&volume, "t", options).unwrap();
    for number in 21_000..40_000 {
        update(&table, &mut oracle, number, Some(number));
    }
    agrees(&table, table.iter(), &oracle, 40_000);
}

#[test]
fn buffers_take_stated_ram_at_once_and_grow_with_the_tables_where_none_is_stated() {
    let (_, volume) = volume();
    let config = Config { partitions: 1, buffer_pages: 16, ..Config::tiny() };
    let buffer_pages = |name: &str, ram_bytes_max| {
        let config = Config { ram_bytes_max, ..config };
        let table = Rhik::create_with(&volume, name, config, options_of(0)).unwrap();
        let pages = || table.core.partitions[0].write().active_mut().page_count();
        let first = pages();
        insert(&table, 0..60_000);
        (first, pages())
    };
    let plenty = Some(config.ram().empty_bytes(0) + (1 << 20));
    assert_eq!(buffer_pages("limited", plenty), (16, 16));
    assert_eq!(buffer_pages("unlimited", None), (1, 16));
}

#[test]
fn a_device_without_space_is_told_and_everything_that_was_taken_is_there() {
    let device = Arc::new(MemoryDevice::with_limit(900));
    let volume = Volume::create(Arc::clone(&device) as _, VolumeOptions::tiny()).unwrap();
    let table = Rhik::create_with(&volume, "t", Config::tiny(), options_of(0)).unwrap();
    let refused = (0..).find_map(|number| Some((number, table.insert_u64(number, number).err()?)));
    let (taken, error) = refused.unwrap();
    assert!(error.to_string().contains("space"), "{error}");
    assert!(taken > 5_000, "{taken}");
    for number in 0..taken {
        assert_eq!(table.get_u64(number).unwrap(), Some(number));
    }
    drop(table);
    drop(volume);
    let copy = Arc::new(MemoryDevice::from_image(device.image()));
    let volume = Volume::open(copy, VolumeOpenOptions::default()).unwrap();
    let table = Rhik::open(&volume, "t").unwrap();
    for number in 0..taken {
        assert_eq!(table.get_u64(number).unwrap(), Some(number));
    }
}

#[test]
fn a_damaged_table_is_told_and_not_carried_over() {
    let device = Arc::new(MemoryDevice::new());
    let volume = volume_on(Arc::clone(&device) as _);
    let config = Config { partitions: 1, ..Config::tiny() };
    let table = Rhik::create_with(&volume, "t", config, options_of(0)).unwrap();
    insert(&table, 0..8_000);
    let page = {
        let state = table.core.partitions[0].read();
        state.level.group_list()[2].place.extent.start
    };
    let mut bytes = device.read(page, PageBuf::zeroed(1)).unwrap();
    bytes[PAGE_BYTES / 2] ^= 4;
    device.write(page, bytes).unwrap();
    for _ in 0..3 {
        let error = (8_000..10_000).find_map(|number| table.insert_u64(number, number).err());
        let error = error.expect("a full buffer meets the damaged table").to_string();
        assert!(error.contains(&format!("page {}", page.0)), "{error}");
    }
    let found = (0..8_000).filter(|number| table.get_u64(*number).is_ok()).count();
    assert!((7_700..8_000).contains(&found), "{found}");
}

/// Each write of a rewrite fails in turn, including the last one, which nothing follows in its queue.
#[test]
fn a_failed_write_of_a_rewrite_is_heard_and_leaves_the_tables_as_they_were() {
    let mut heard = 0;
    for nth in 1..=8 {
        let device = SimDevice::instant();
        let volume = volume_on(Arc::new(device.clone()));
        let config = Config { partitions: 1, ..Config::tiny() };
        let table = Rhik::create_with(&volume, "t", config, options_of(0)).unwrap();
        insert(&table, 0..3_000);
        table.flush().unwrap();
        let (on, kind, span) = (FaultOn::Write, FaultKind::Io, FaultSpan::Once);
        device.arm(Fault { on, at: device.seen(on) + nth, kind, span });
        let flushes = table.stats().flushes;
        let mut taken = 3_000;
        let failed = loop {
            if table.insert_u64(taken, taken).is_err() {
                break true;
            }
            taken += 1;
            if table.stats().flushes > flushes {
                break false;
            }
        };
        heard += u64::from(failed);
        assert_eq!(failed, volume.poison().is_set());
        for number in 0..3_000 {
            assert_eq!(table.get_u64(number).unwrap(), Some(number), "write {nth}");
        }
    }
    assert!(heard >= 4, "{heard}");
}

#[test]
fn pages_of_replaced_tables_are_used_again() {
    let device = Arc::new(MemoryDevice::new());
    let volume = volume_on(Arc::clone(&device) as _);
    let table = Rhik::create_with(&volume, "t", Config::tiny(), options_of(0)).unwrap();
    insert(&table, 0..40_000);
    let (tables, pages) = (table.rhik_stats().tables, device.page_count());
    for round in 0..5 {
        (0..40_000).for_each(|number| table.insert_u64(number, number + round).unwrap());
    }
    assert_eq!(table.rhik_stats().tables, tables);
    let written = table.stats().data_bytes_written / PAGE_BYTES as u64;
    assert!(written > 40 * tables, "{written} pages");
    let more = device.page_count() - pages;
    assert!(more < tables / 4, "{more} pages more than {pages}, {tables} tables");
}

#[test]
fn while_a_checkpoint_captures_no_directory_changes() {
    // Otherwise its old tables would be freed although the checkpoint names them.
    let (_, volume) = volume();
    let table = Rhik::create_with(&volume, "t", Config::tiny(), options_of(0)).unwrap();
    let core = &table.core;
    assert!(capture_holds(core, &core.layout.maps), "a rewrite could have changed them");
}
