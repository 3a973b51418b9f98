//! Tests of the multi-level index alone; the harnesses that walk over the registry test the rest.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering::Relaxed;

use nandex::OpenOptions;
use nandex::raw::GroupConfig;
use nandex::testing::{agrees, key, update};
use nandex::{Durability, Error, Table, Threads};
use nandex_device::{Counted, Device, MemoryDevice, PAGE_BYTES, PageBuf, PageId};
use nandex_sim::{Fault, FaultKind, FaultOn, FaultSpan, SimDevice};
use nandex_store::hash::HashKind;
use nandex_store::page::{PAGE_HEADER_BYTES, seal};
use nandex_store::{Volume, VolumeOpenOptions, VolumeOptions};

use super::levels::LevelPage;
use super::*;

/// One partition without a cache of pages.
const ONE: Config = Config { partitions: 1, page_cache_bytes: 0, ..Config::tiny() };

fn volume() -> (Arc<MemoryDevice>, Volume) {
    let device = Arc::new(MemoryDevice::new());
    let volume = Volume::create(Arc::clone(&device) as _, VolumeOptions::tiny()).unwrap();
    (device, volume)
}

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

fn insert(table: &Multilevel, numbers: std::ops::Range<u64>) {
    numbers.for_each(|number| table.insert_u64(number, number).unwrap());
}

/// Counts at the device: a level is read only if the levels before do not have the key, and only present
/// levels are read.
#[test]
fn a_lookup_reads_a_page_for_each_level_up_to_its_keys_own() {
    let device = Arc::new(Counted::new(MemoryDevice::new()));
    let volume = volume_on(Arc::clone(&device) as _);
    let table = Multilevel::create_with(&volume, "t", ONE, options_of(0)).unwrap();
    assert_eq!((table.group_stats().pages, table.get_u64(1).unwrap()), (0, None));
    let (mut from, mut levels) = (0, 0);
    for until in [600, 2000, 8000, 30_000] {
        insert(&table, from..until);
        let stats = table.group_stats();
        assert!(stats.levels > levels, "{stats:?}");
        let mut by_reads = [0; 12];
        for number in 0..until {
            let before = device.snapshot();
            assert_eq!(table.get_u64(number).unwrap(), Some(number));
            let counts = device.snapshot() - before;
            assert_eq!((counts.reads, counts.writes), (counts.pages_read, 0));
            by_reads[counts.pages_read as usize] += 1;
        }
        let level_entries = table.maps()[0].entries_by_level();
        // Each key in a level is read there, and buffers answer for the rest.
        assert_eq!(by_reads[1..=level_entries.len()], level_entries);
        assert_eq!(by_reads[stats.levels as usize + 1..].iter().sum::<u64>(), 0);
        assert!(level_entries[0] > 200, "the first page is full first: {level_entries:?}");
        let before = device.snapshot();
        (0..500).for_each(|it| assert_eq!(table.get_u64(1 << 40 | it).unwrap(), None));
        let absent = (device.snapshot() - before).pages_read;
        let full = (stats.levels - 1) * 500;
        assert!((full * 3 / 4..=stats.levels * 500).contains(&absent), "{absent} of {stats:?}");
        (from, levels) = (until, stats.levels);
    }
    assert!(levels >= 7, "{levels}");
}

#[test]
fn pages_in_ram_are_not_read_and_the_upper_levels_stay_there() {
    let device = Arc::new(Counted::new(MemoryDevice::new()));
    let volume = volume_on(Arc::clone(&device) as _);
    let reads = |name: &str, page_cache_bytes| {
        let config = Config { page_cache_bytes, ..ONE };
        let table = Multilevel::create_with(&volume, name, config, options_of(0)).unwrap();
        insert(&table, 0..20_000);
        table.flush().unwrap();
        let look_up = || {
            let before = device.snapshot();
            (0..20_000).for_each(|it| assert_eq!(table.get_u64(it).unwrap(), Some(it)));
            (device.snapshot() - before).pages_read
        };
        look_up();
        let (hits, reads) = (table.group_stats().page_cache_hits, look_up());
        let stats = table.group_stats();
        (reads, stats.page_cache_hits - hits, stats)
    };
    let (none, some, all) = (reads("none", 0), reads("some", 160 << 10), reads("all", 2 << 20));
    assert_eq!((none.1, all.0), (0, 0));
    assert_eq!((some.0 + some.1, all.1), (none.0, none.0), "each page is read or in RAM");
    assert!(some.2.page_cache_pages * 3 < some.2.pages, "{:?}", some.2);
    assert!(some.0 * 5 < none.0 * 2, "a third of the pages saves most reads: {some:?}, {none:?}");
    // A page that is replaced is another one.
    let table = Multilevel::open(&volume, "all");
    assert!(table.is_ok());
    let table = table.unwrap();
    (0..20_000).for_each(|it| table.insert_u64(it, it + 1).unwrap());
    (0..20_000).for_each(|it| assert_eq!(table.get_u64(it).unwrap(), Some(it + 1)));
}

#[test]
fn a_flush_reads_what_it_may_change_and_writes_what_has_changed() {
    let device = Arc::new(Counted::new(MemoryDevice::new()));
    let volume = volume_on(Arc::clone(&device) as _);
    let table = Multilevel::create_with(&volume, "t", ONE, options_of(0)).unwrap();
    insert(&table, 0..20_000);
    let (mut number, mut written) = (20_000, 0);
    for _ in 0..20 {
        let flushes = table.stats().flushes;
        let (before, pages) = (device.snapshot(), table.group_stats().pages);
        let data = table.stats().data_bytes_written;
        while table.stats().flushes == flushes {
            table.insert_u64(number, number).unwrap();
            number += 1;
        }
        let counts = device.snapshot() - before;
        assert!(counts.pages_read <= pages && counts.pages_read * 2 > pages, "{counts:?} {pages}");
        let groups = (table.stats().data_bytes_written - data) / PAGE_BYTES as u64;
        // The rest is the checkpoint that frees the old groups: two pages, and the superblock.
        let rest = counts.pages_written - groups;
        assert!(rest <= 5, "{counts:?}, {groups}");
        written += groups;
        assert!(
            groups <= pages,
            "upper levels, which are full, are not written: {groups}, {pages}"
        );
    }
    assert!(written > 20, "{written}");
}

/// Inserts keys again, which go to an upper level if that has space by then; the older version must not come
/// back.
#[test]
fn a_version_that_moves_up_leaves_none_below() {
    let (device, volume) = volume();
    let table = Multilevel::create_with(&volume, "t", ONE, options_of(0)).unwrap();
    let mut oracle = HashMap::new();
    let all = 12_000;
    (0..all).for_each(|number| update(&table, &mut oracle, number, Some(number)));
    table.flush().unwrap();
    let below = table.maps()[0].entries_by_level();
    // Space in every level, and the later keys put again.
    (0..all / 2).for_each(|number| update(&table, &mut oracle, number, None));
    (all / 2..all).for_each(|number| update(&table, &mut oracle, number, Some(number + 1)));
    table.flush().unwrap();
    let above = table.maps()[0].entries_by_level();
    assert_eq!(above.iter().sum::<u64>(), all / 2);
    assert!(
        above[0] > 200 && above[below.len() - 1] < below[below.len() - 1],
        "{above:?} {below:?}"
    );
    agrees(&table, table.iter(), &oracle, all);
    (all / 2..all).step_by(2).for_each(|number| update(&table, &mut oracle, number, None));
    table.flush().unwrap();
    agrees(&table, table.iter(), &oracle, all);
    table.close().unwrap();
    drop(volume);
    let volume = Volume::open(device, VolumeOpenOptions::default()).unwrap();
    let table = Multilevel::open(&volume, "t").unwrap();
    agrees(&table, table.iter(), &oracle, all);
}

#[test]
fn levels_go_with_their_last_keys_and_come_back() {
    let (_, volume) = volume();
    let table = Multilevel::create_with(&volume, "t", Config::tiny(), options_of(0)).unwrap();
    insert(&table, 0..30_000);
    let full = table.group_stats();
    (0..30_000).for_each(|number| table.remove(&key(number)).unwrap());
    // Further keys, so that the last removals leave their buffers.
    insert(&table, 100_000..104_000);
    let few = table.group_stats();
    assert!(full.levels > 5 && full.pages > 100 && full.occupancy() > 0.3, "{full:?}");
    assert!(few.levels < 5 && few.pages * 3 < full.pages, "{few:?} {full:?}");
    insert(&table, 0..30_000);
    (0..30_000).for_each(|number| assert_eq!(table.get_u64(number).unwrap(), Some(number)));
}

/// The keys are not inserted again: they move up while others are removed, and with flushes that follow.
#[test]
fn a_table_that_has_shrunk_loses_its_last_levels_and_no_key() {
    for group_pages in [4, 1] {
        let device = Arc::new(MemoryDevice::new());
        let volume = volume_on(Arc::clone(&device) as _);
        let config = Config { group_pages, ..ONE };
        let table = Multilevel::create_with(&volume, "t", config, options_of(0)).unwrap();
        let mut oracle = HashMap::new();
        let all = 20_000;
        (0..all).for_each(|number| update(&table, &mut oracle, number, Some(number)));
        let full = table.group_stats();
        for number in (0..all).filter(|number| number % 16 != 5) {
            update(&table, &mut oracle, number, None);
            if number % 2_500 == 2_499 {
                table.sync().unwrap();
                let copy = Arc::new(MemoryDevice::from_image(device.image()));
                let volume = Volume::open(copy, VolumeOpenOptions::default()).unwrap();
                let cut = Multilevel::open_with(&volume, "t", options_of(0)).unwrap();
                agrees(&cut, cut.iter(), &oracle, all);
            }
        }
        // Inserts and removes other keys, so that buffers fill: more often than there are groups.
        let others = all..all + 1_000;
        for step in 0..40 {
            others.clone().for_each(|it| update(&table, &mut oracle, it, Some(step)));
            others.clone().for_each(|it| update(&table, &mut oracle, it, None));
        }
        let few = table.group_stats();
        assert!(full.levels >= 7 && few.levels <= 5, "{few:?} of {full:?}");
        assert!(few.pages * 3 < full.pages, "{few:?} of {full:?}");
        agrees(&table, table.iter(), &oracle, others.end);
        table.close().unwrap();
        drop(volume);
        crate::register();
        let report = nandex::check(device, None, &mut |_| {}).unwrap();
        assert!(report.ok(), "{:#?}", report.findings);
        assert!(report.structures[0].entries >= oracle.len() as u64, "{report:?}");
    }
}

#[test]
fn lookups_while_levels_are_added_find_every_key() {
    let (_, volume) = volume();
    let table = Multilevel::create(&volume, "t", Config::tiny()).unwrap();
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
    let stats = table.group_stats();
    assert!(stats.levels_added >= 4 * 5 && stats.page_cache_hits > 0, "{stats:?}");
}

/// Cuts the power at many moments, with everything written kept: before and after the checkpoints that follow
/// new levels.
#[test]
fn updates_and_removals_outlive_power_cuts_between_levels() {
    for durability in [Durability::Always, Durability::Every(std::time::Duration::from_secs(3600))]
    {
        let device = Arc::new(MemoryDevice::new());
        let options =
            VolumeOptions { durability, threads: Threads::Inline, ..VolumeOptions::tiny() };
        let volume = Volume::create(Arc::clone(&device) as _, options).unwrap();
        let table = Multilevel::create_with(&volume, "t", Config::tiny(), options_of(0)).unwrap();
        let mut oracle = HashMap::new();
        for step in 0..20_000u64 {
            let number = step.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 33;
            let number = number % (1 + step.min(9_999));
            update(&table, &mut oracle, number, (step % 5 != 3).then_some(step));
            if step % 1_000 == 999 {
                table.sync().unwrap();
                let copy = Arc::new(MemoryDevice::from_image(device.image()));
                let volume = Volume::open(copy, VolumeOpenOptions::default()).unwrap();
                let cut = Multilevel::open_with(&volume, "t", options_of(0)).unwrap();
                agrees(&cut, cut.iter(), &oracle, 10_000);
            }
        }
        assert!(table.group_stats().levels_added > 10);
    }
}

#[test]
fn an_iteration_reads_the_levels_that_it_began_with_though_others_replace_them() {
    let (_, volume) = volume();
    let table = Multilevel::create_with(&volume, "t", ONE, options_of(0)).unwrap();
    insert(&table, 0..5_000);
    let mut entries = table.iter();
    let first: Vec<_> = entries.by_ref().take(2_000).collect();
    // More than enough to write the old groups' pages again, if they were free.
    (0..25_000).for_each(|number| table.insert_u64(number, number + 1).unwrap());
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
    let table = Multilevel::create_with(&volume, "t", limited(9_000.0), options_of(1)).unwrap();
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
    let table = Multilevel::open_with(&volume, "t", options).unwrap();
    for number in 21_000..40_000 {
        update(&table, &mut oracle, number, Some(number));
    }
    agrees(&table, table.iter(), &oracle, 40_000);
}

#[test]
fn a_device_without_space_is_told_and_everything_that_was_taken_is_there() {
    let device = Arc::new(MemoryDevice::with_limit(900));
    let volume = Volume::create(Arc::clone(&device) as _, VolumeOptions::tiny()).unwrap();
    let table = Multilevel::create_with(&volume, "t", Config::tiny(), options_of(0)).unwrap();
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
    let table = Multilevel::open(&volume, "t").unwrap();
    for number in 0..taken {
        assert_eq!(table.get_u64(number).unwrap(), Some(number));
    }
}

#[test]
fn a_damaged_page_is_told_and_not_carried_over() {
    let device = Arc::new(MemoryDevice::new());
    let volume = volume_on(Arc::clone(&device) as _);
    let table = Multilevel::create_with(&volume, "t", ONE, options_of(0)).unwrap();
    insert(&table, 0..8_000);
    let page = table.maps()[0].group(2, 0).unwrap().place.extent.start;
    let mut bytes = device.read(page, PageBuf::zeroed(1)).unwrap();
    bytes[PAGE_BYTES / 2] ^= 4;
    device.write(page, bytes).unwrap();
    for _ in 0..3 {
        let error = (8_000..10_000).find_map(|number| table.insert_u64(number, number).err());
        let error = error.expect("a full buffer meets the damaged page").to_string();
        assert!(error.contains(&format!("page {}", page.0)), "{error}");
    }
    let found = (0..8_000).filter(|number| table.get_u64(*number).is_ok()).count();
    assert!((5_000..8_000).contains(&found), "{found}");
}

/// Puts a key of the third level on its page of the second in place of another one, so that all counts are
/// right.
fn plant_twin(device: &MemoryDevice, volume: &Volume, table: &Multilevel) -> (PageId, PageId) {
    let (plan, records) = (table.config().plan(), table.config().record_layout());
    let (hasher, map) = (volume.hasher(), Arc::clone(&table.maps()[0]));
    let lower = map.group(2, 0).unwrap();
    let entries = device.read(lower.place.extent.start, PageBuf::zeroed(1)).unwrap();
    let entries = &entries[PAGE_HEADER_BYTES..];
    let slot = records.used(entries).next().unwrap();
    let (key, value) = (records.key(entries, slot), records.value(entries, slot));
    let LevelPage { group, index } = plan.page(1, hasher.hash(key));
    let label = map.group(1, group).unwrap().place.label(index as u64);
    let mut upper = device.read(label.page, PageBuf::zeroed(1)).unwrap();
    // The page is full, so it must be an entry whose slot can be the key's.
    let in_place_of = |slot: usize| {
        let mut body = upper[PAGE_HEADER_BYTES..].to_vec();
        let other = records.key(&body, slot).to_vec();
        records.remove(&mut body, hasher.hash(&other), &other);
        records.insert(&mut body, &hasher, (hasher.hash(key), key, value)).ok().map(|()| body)
    };
    let body = records.used(&upper[PAGE_HEADER_BYTES..]).find_map(in_place_of).unwrap();
    upper[PAGE_HEADER_BYTES..].copy_from_slice(&body);
    seal(&mut upper, label);
    device.write(label.page, upper).unwrap();
    (lower.place.extent.start, label.page)
}

#[test]
fn a_key_that_is_on_two_levels_is_found_by_a_check() {
    let device = Arc::new(MemoryDevice::new());
    let volume = volume_on(Arc::clone(&device) as _);
    let table = Multilevel::create_with(&volume, "t", ONE, options_of(0)).unwrap();
    insert(&table, 0..8_000);
    table.flush().unwrap();
    let (lower, upper) = plant_twin(&device, &volume, &table);
    table.close().unwrap();
    drop(volume);
    crate::register();
    let report = nandex::check(device, None, &mut |_| {}).unwrap();
    assert_eq!(report.findings.len(), 1, "{:#?}", report.findings);
    let finding = &report.findings[0];
    assert_eq!((finding.page, &finding.what[..]), (lower, "level page of partition 0"));
    let text = format!("a key is on level 2 and, on page {}, on level 1 too", upper.0);
    assert_eq!(finding.message, text);
}

/// Uses a volume whose hash has 16 bytes that all keys share, so they crowd each other out to further levels.
#[test]
fn keys_of_the_same_hash_on_several_levels_are_no_twins() {
    let device = Arc::new(MemoryDevice::new());
    let options = VolumeOptions {
        durability: Durability::Never,
        threads: Threads::Inline,
        hash: HashKind::Identity,
        ..VolumeOptions::tiny()
    };
    let volume = Volume::create(Arc::clone(&device) as _, options).unwrap();
    let config = Config { key_bytes: 24, ..ONE };
    let table = Multilevel::create_with(&volume, "t", config, options_of(0)).unwrap();
    let keys = (0..40_u64).map(|number| [[7; 16].as_slice(), &number.to_le_bytes()].concat());
    keys.clone().for_each(|key| table.insert(&key, &[1; 8]).unwrap());
    // Further keys fill the buffer, and do not share a hash.
    let others = (0..1_000_u64).map(|number| [number.to_le_bytes(); 3].concat());
    others.for_each(|key| table.insert(&key, &[1; 8]).unwrap());
    assert!(table.group_stats().levels > 1, "{:?}", table.group_stats());
    keys.for_each(|key| assert!(table.get(&key).unwrap().is_some()));
    table.close().unwrap();
    drop(volume);
    crate::register();
    let report = nandex::check(device, None, &mut |_| {}).unwrap();
    assert!(report.ok(), "{:#?}", report.findings);
    assert!(report.structures[0].entries >= 40, "{report:?}");
}

/// Fails each write of a flush in turn, including the last one, which nothing follows in its queue.
#[test]
fn a_failed_write_of_a_flush_is_heard_and_leaves_the_levels_as_they_were() {
    let mut heard = 0;
    for nth in 1..=8 {
        let device = SimDevice::instant();
        let volume = volume_on(Arc::new(device.clone()));
        let table = Multilevel::create_with(&volume, "t", ONE, options_of(0)).unwrap();
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
    assert!(heard >= 3, "{heard}");
}

#[test]
fn pages_of_replaced_groups_are_used_again() {
    let device = Arc::new(MemoryDevice::new());
    let volume = volume_on(Arc::clone(&device) as _);
    let table = Multilevel::create_with(&volume, "t", Config::tiny(), options_of(0)).unwrap();
    insert(&table, 0..40_000);
    let (held, pages) = (table.group_stats().pages, device.page_count());
    for round in 0..5 {
        (0..40_000).for_each(|number| table.insert_u64(number, number + round).unwrap());
    }
    assert_eq!(table.group_stats().pages, held);
    let written = table.stats().data_bytes_written / PAGE_BYTES as u64;
    assert!(written > 40 * held, "{written} pages");
    let more = device.page_count() - pages;
    assert!(more < held / 3, "{more} pages more than {pages}, {held} of levels");
}
