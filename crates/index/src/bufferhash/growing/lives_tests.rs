//! Growing tables with a long history: endless updates, removals and new keys.

use std::collections::HashSet;
use std::sync::Arc;
use std::sync::atomic::Ordering::SeqCst;
use std::sync::atomic::{AtomicBool, AtomicU64};

use nandex_device::{Access, MemoryDevice};
use nandex_store::{Volume, VolumeOpenOptions, VolumeOptions};

use super::{Config, Growing};
use crate::bufferhash;
use crate::grow::Parts;
use crate::{OpenOptions, Requirements, Table};

const KEYS: u64 = 6000;

/// Buffers of two pages, and super tables of several incarnations.
fn config() -> Config {
    let tiny = Config::tiny();
    let one = bufferhash::Config { incarnations_max: 12, ..tiny.first.clone() };
    Config { first: super::sizes::of_super_tables(&one, 1), incarnations_max: 12, ..tiny }
}

/// Buffers of one size, and of several; without threads and with two.
fn setups() -> [(Config, usize); 3] {
    [(config(), 0), (config(), 2), (sizes(), 0)]
}

/// Returns a configuration whose later generations have larger buffers.
fn sizes() -> Config {
    Config { buffer_pages_max: 8, ..config() }
}

fn options(flush_threads: usize) -> OpenOptions {
    OpenOptions { flush_threads: Some(flush_threads), ..OpenOptions::default() }
}

fn create(config: Config, flush_threads: usize) -> (MemoryDevice, Growing) {
    let device = MemoryDevice::new();
    let own = VolumeOptions { log_bytes: 4 << 20, ..VolumeOptions::tiny() };
    let volume = Volume::create(Arc::new(device.clone()), own).unwrap();
    let table = Growing::create_with(&volume, "t", config, options(flush_threads)).unwrap();
    (device, table)
}

fn open(device: MemoryDevice, flush_threads: usize) -> Growing {
    let volume = Volume::open(Arc::new(device), VolumeOpenOptions::default()).unwrap();
    Growing::open_with(&volume, "t", options(flush_threads)).unwrap()
}

fn key(number: u64) -> [u8; 8] {
    number.wrapping_mul(0x9E37_79B9_7F4A_7C15).to_le_bytes()
}

fn put(table: &Growing, number: u64, value: u64) {
    table.insert(&key(number), &value.to_le_bytes()).unwrap();
}

fn value(table: &Growing, number: u64) -> Option<u64> {
    let value = table.get(&key(number)).unwrap();
    value.map(|value| u64::from_le_bytes(value[..].try_into().unwrap()))
}

/// Waits until nothing runs in the background.
fn settle(table: &Growing) {
    table.flush().unwrap();
    let parts = &table.owner.parts;
    drop(parts.tables());
    parts.cores().for_each(|core| core.work.wait_quiet());
}

#[test]
fn updates_take_no_more_space_and_count_no_more_keys() {
    for (config, threads) in setups() {
        let (device, table) = create(config, threads);
        let mut least = u64::MAX;
        for round in 0..30 {
            (0..KEYS).for_each(|number| put(&table, number, round));
            settle(&table);
            let stats = table.stats();
            let entries = stats.entries;
            assert!(entries.abs_diff(KEYS) <= KEYS / 20, "round {round}: {entries} entries");
            least = least.min(stats.flash_bytes);
            if round >= 10 {
                assert!(stats.flash_bytes <= 3 * least, "round {round}: {}", stats.flash_bytes);
            }
        }
        for number in 0..KEYS {
            assert_eq!(value(&table, number), Some(29), "key {number}, {threads} threads");
        }
        assert_eq!(table.iter().map(Result::unwrap).count() as u64, KEYS);
        assert_eq!(table.generations(), 1, "{threads} threads");
        table.close().unwrap();
        let found = crate::check(Arc::new(device.clone()), None, &mut |_| {}).unwrap();
        assert!(found.ok(), "{found:?}");
        let again = open(device, threads);
        assert!(again.stats().entries.abs_diff(KEYS) <= KEYS / 20, "{}", again.stats().entries);
        for number in 0..KEYS {
            assert_eq!(value(&again, number), Some(29), "key {number}, {threads} threads");
        }
    }
}

#[test]
fn a_table_takes_a_new_key_for_each_that_was_removed() {
    for (config, threads) in setups() {
        let (device, table) = create(config, threads);
        let removed = 10 * KEYS;
        (0..KEYS).for_each(|number| put(&table, number, number));
        for number in 0..removed {
            table.remove(&key(number)).unwrap();
            put(&table, number + KEYS, number + KEYS);
        }
        let agrees = |table: &Growing| {
            for number in 0..removed + KEYS {
                let expected = (number >= removed).then_some(number);
                assert_eq!(value(table, number), expected, "key {number}, {threads} threads");
            }
            assert_eq!(table.iter().map(Result::unwrap).count() as u64, KEYS);
        };
        agrees(&table);
        settle(&table);
        assert!(table.generations() <= 3, "{} generations", table.generations());
        let entries = table.stats().entries;
        assert!(entries.abs_diff(KEYS) <= KEYS / 10, "{entries} entries");
        table.sync().unwrap();
        agrees(&open(MemoryDevice::from_image(device.image()), threads));
    }
}

#[test]
fn a_table_whose_keys_are_all_removed_has_none_and_takes_others() {
    for (config, threads) in setups() {
        let (device, table) = create(config, threads);
        for round in 0..8 {
            (0..KEYS).for_each(|number| put(&table, number, round));
            (0..KEYS).for_each(|number| table.remove(&key(number)).unwrap());
        }
        let agrees = |table: &Growing| {
            assert!((0..KEYS).all(|number| value(table, number).is_none()), "{threads} threads");
            assert_eq!(table.iter().count(), 0);
        };
        agrees(&table);
        table.sync().unwrap();
        agrees(&open(MemoryDevice::from_image(device.image()), threads));
        table.close().unwrap();
        agrees(&open(device, threads));
    }
}

/// Returns a table whose newest generation was created to take over from others, and has not begun: in the end every
/// second key of its rounds of updates is removed, or all of them.
fn before_taking_over(config: Config, removes_all: bool) -> (MemoryDevice, Growing) {
    let (device, table) = create(config, 1);
    // Nothing is taken over in the background.
    table.owner.parts.requests().stop();
    let takes_over = || {
        let newest = table.owner.parts.newest().core;
        newest.layout.config.cleans()
    };
    let mut round = 0;
    while !takes_over() {
        (0..KEYS).for_each(|number| put(&table, number, round));
        for number in 0..KEYS {
            if removes_all || number % 2 == 0 {
                table.remove(&key(number)).unwrap();
            } else {
                put(&table, number, number);
            }
        }
        round += 1;
    }
    table.flush().unwrap();
    // Its buffers become incarnations: removals in a buffer would shadow the entries of older generations.
    let newest = table.owner.parts.newest().core;
    newest.retire();
    newest.work.wait_quiet();
    (device, table)
}

fn agrees_with(table: &Growing, expected: &dyn Fn(u64) -> Option<u64>, story: &str) {
    for number in 0..KEYS {
        let found = value(table, number);
        assert_eq!(found, expected(number), "key {number}, {story}");
    }
    let live = (0..KEYS).filter(|number| expected(*number).is_some()).count();
    assert_eq!(table.iter().map(Result::unwrap).count(), live, "{story}");
    let mut versions = std::collections::HashMap::new();
    let share = crate::write::absorb::Share::WHOLE;
    crate::write::absorb::VersionSource::each_version(&table.owner, share, &mut |entry| {
        let is_live = entry.state == nandex_store::entries::SlotState::Live;
        versions.entry(entry.key.to_vec()).or_insert(is_live);
        Ok(())
    })
    .unwrap();
    assert_eq!(versions.values().filter(|it| **it).count(), live, "{story}: versions");
}

#[test]
fn a_crash_while_some_super_tables_have_taken_over_brings_nothing_back_and_loses_nothing() {
    for (config, removes_all) in
        [(config(), false), (config(), true), (sizes(), false), (sizes(), true)]
    {
        let expected = |number: u64| (!removes_all && number % 2 == 1).then_some(number);
        let (device, table) = before_taking_over(config, removes_all);
        let newest = table.owner.parts.newest().core;
        let count = newest.partitions.len();
        // If all keys are removed, none is left for more than one.
        assert!(count > usize::from(!removes_all), "{count} super tables");
        assert!(table.generations() > 2);
        for done in 0..=count {
            let story = format!("{done} of {count} super tables, {removes_all}");
            let left = std::cell::Cell::new(done);
            let stops = || left.replace(left.get().saturating_sub(1)) == 0;
            newest.take_over_all(&stops).unwrap();
            agrees_with(&table, &expected, &story);
            // Whole super tables are cleaned again while older generations exist.
            let mut lent = newest.scratches.lend();
            let new =
                || <bufferhash::Incarnations as crate::write::Layout>::new_scratch(newest).unwrap();
            let scratch = lent.scratch.get_or_insert_with(new);
            (0..done).for_each(|index| newest.clean(Some(index), scratch).unwrap());
            drop(lent);
            agrees_with(&table, &expected, &format!("{story}, cleaned"));
            table.sync().unwrap();
            table.owner.volume.checkpoint().unwrap();
            for threads in [0, 2] {
                let crashed = open(MemoryDevice::from_image(device.image()), threads);
                agrees_with(&crashed, &expected, &format!("{story}, crashed"));
                crashed.owner.parts.prepare();
                assert_eq!(crashed.generations(), 1, "{story}");
                agrees_with(&crashed, &expected, &format!("{story}, dropped"));
                put(&crashed, 0, 1);
                crashed.remove(&key(0)).unwrap();
                put(&crashed, 1, 1);
                assert_eq!((value(&crashed, 0), value(&crashed, 1)), (None, Some(1)));
            }
        }
    }
}

/// Flushes may take for their filters exactly the RAM that older generations release.
#[test]
fn flushes_wait_for_the_ram_of_what_is_taken_over() {
    for config in [config(), sizes()] {
        for threads in [0, 2] {
            let (device, table) = before_taking_over(config.clone(), false);
            table.close().unwrap();
            let table = open(device, threads);
            let parts = &table.owner.parts;
            let (newest, older) = (parts.newest().core, parts.core(0));
            let columns = &newest.layout.columns;
            let alone = super::ram::columns_alone(&newest.layout.config);
            let held = older.filter_bytes();
            assert!(held > 0);
            // Only the existing ones: a flush that needs more needs a super table that has taken over.
            let opened = columns.now().0;
            columns.limit(0, alone);
            for round in 0..4 {
                (0..KEYS).for_each(|number| put(&table, number, round));
                let (taken, most) = columns.now();
                let most = most.max(opened);
                assert!(taken <= most, "{taken} of {most} columns, {threads} threads");
            }
            settle(&table);
            assert_eq!(table.generations(), 1, "{threads} threads");
            (0..KEYS).for_each(|number| assert_eq!(value(&table, number), Some(3), "{number}"));
        }
    }
}

#[test]
fn older_generations_give_back_the_filters_of_what_was_taken_over() {
    let (device, table) = before_taking_over(config(), false);
    let parts = &table.owner.parts;
    let newest = parts.newest().core;
    let of_older = |table: &Growing| -> u64 {
        let parts = &table.owner.parts;
        parts.cores().take(table.generations() - 1).map(bufferhash::Inner::filter_bytes).sum()
    };
    let before = of_older(&table);
    let mut held = before;
    for whole in 0..=newest.partitions.len() {
        let left = std::cell::Cell::new(whole);
        newest.take_over_all(&|| left.replace(left.get().saturating_sub(1)) == 0).unwrap();
        let now = of_older(&table);
        assert!(now <= held, "{now} after {held} of {before} bytes");
        held = now;
        table.sync().unwrap();
        table.owner.volume.checkpoint().unwrap();
        let again = open(MemoryDevice::from_image(device.image()), 0);
        again.load_filters().unwrap();
        assert!(of_older(&again) <= held, "{} of {held} bytes", of_older(&again));
    }
    assert!(before > 0 && held == 0, "{held} of {before} bytes");
    agrees_with(&table, &|number| (number % 2 == 1).then_some(number), "all are whole");
}

#[test]
fn a_damaged_page_of_an_older_generation_leaves_it_and_the_table_goes_on() {
    let (device, table) = before_taking_over(config(), false);
    table.close().unwrap();
    let mut image = device.image();
    let table = open(device, 1);
    table.owner.parts.requests().stop();
    let oldest = table.owner.parts.core(0);
    let (id, page) = {
        let id = oldest.partitions[0].read().level.incarnations_newest_first()[0].id;
        (id, oldest.layout.rings.of(0).page(id, 1))
    };
    let at = usize::try_from(page.0).unwrap() * nandex_device::PAGE_BYTES + 100;
    image[at] ^= 1;
    drop(table);
    let damaged = open(MemoryDevice::from_image(image), 0);
    let before = damaged.generations();
    let newest = damaged.owner.parts.newest().core;
    let error = newest.take_over_all(&|| false).unwrap_err();
    assert!(crate::damage::page_of(&error).is_some(), "{error} of {id:?}");
    damaged.owner.parts.prepare();
    assert_eq!(damaged.generations(), before);
    // The error is reported once, and does not stop the table.
    (0..5).for_each(|round| (0..KEYS).for_each(|number| put(&damaged, number, round)));
    (0..KEYS).for_each(|number| assert_eq!(value(&damaged, number), Some(4), "key {number}"));
}

/// The same for tables of earlier versions.
#[test]
fn a_table_whose_first_generation_does_not_count_keys_is_updated_for_ever() {
    let config = config();
    let first = bufferhash::Config { keeps_versions: false, ..config.first };
    let (_, table) = create(Config { first, ..config }, 0);
    for round in 0..30 {
        (0..KEYS).for_each(|number| put(&table, number, round));
    }
    assert_eq!(table.generations(), 1);
    let entries = table.stats().entries;
    assert!(entries.abs_diff(KEYS) <= KEYS / 20, "{entries} entries");
    (0..KEYS).for_each(|number| assert_eq!(value(&table, number), Some(29), "key {number}"));
}

/// Buffers of several pages, and a table that has grown before it is updated.
#[test]
fn a_table_of_the_advised_shape_that_has_grown_is_updated_for_ever() {
    let entries = 60_000;
    let requirements =
        Requirements { policy: crate::Policy::Grow, ..Requirements::new(1000, 8, 8) };
    let (_, table) = create(Config::advised(&requirements).unwrap(), 2);
    let mut fresh = 0;
    for round in 0..12 {
        (0..entries).for_each(|number| put(&table, number, round));
        settle(&table);
        let stats = table.stats();
        assert!(stats.entries.abs_diff(entries) <= entries / 50, "{} entries", stats.entries);
        fresh = if round == 0 { stats.flash_bytes } else { fresh };
    }
    let flash_bytes = table.stats().flash_bytes;
    assert!(flash_bytes <= 2 * fresh, "{flash_bytes} of {fresh} at first");
    (0..entries).for_each(|number| assert_eq!(value(&table, number), Some(11), "key {number}"));
}

/// Cleaning in the background, which rewrites super tables that have just taken over, runs during updates.
#[test]
fn what_threads_remove_while_a_small_table_takes_over_stays_removed() {
    let config = bufferhash_of_few();
    for _ in 0..20 {
        let volume = VolumeOptions { log_bytes: 4 << 20, ..VolumeOptions::default() };
        let volume = Volume::create(Arc::new(MemoryDevice::new()), volume).unwrap();
        let table = Growing::create_with(&volume, "t", config.clone(), options(2)).unwrap();
        let (count, removed) = (3000, 9000);
        (0..count).for_each(|number| put(&table, number, number));
        std::thread::scope(|scope| {
            for thread in 0..2 {
                let table = &table;
                scope.spawn(move || {
                    for number in (thread..removed).step_by(2) {
                        table.remove(&key(number)).unwrap();
                        put(table, number + count, number + count);
                    }
                });
            }
        });
        for number in 0..removed + count {
            let expected = (number >= removed).then_some(number);
            assert_eq!(value(&table, number), expected, "key {number}");
        }
    }
}

/// An iteration, and a lookup, continue from one generation to the next while the newest takes over from them.
#[test]
fn lookups_and_iterations_while_super_tables_take_over_find_all_keys_and_no_older_version() {
    for config in [config(), sizes()].iter().cycle().take(20) {
        let (_, table) = create(config.clone(), 2);
        (0..KEYS).for_each(|number| put(&table, number, 0));
        // All keys have a value of that round, or of a later one.
        let (round, is_done) = (AtomicU64::new(0), AtomicBool::new(false));
        std::thread::scope(|scope| {
            for thread in 0..2 {
                let (table, round, is_done) = (&table, &round, &is_done);
                scope.spawn(move || {
                    let mut number = thread;
                    while !is_done.load(SeqCst) {
                        number = (number + 7) % KEYS;
                        let least = round.load(SeqCst);
                        let found = value(table, number);
                        assert!(found >= Some(least), "key {number}: {found:?} after {least}");
                    }
                });
            }
            scope.spawn(|| {
                while !is_done.load(SeqCst) {
                    let keys: Vec<_> =
                        table.iter().map(|entry| entry.unwrap().0.to_vec()).collect();
                    let different: HashSet<_> = keys.iter().collect();
                    assert_eq!((keys.len(), different.len()), (KEYS as usize, KEYS as usize));
                }
            });
            // The thread that takes over may wait for a processor.
            for next in 1..=100 {
                (0..KEYS).for_each(|number| put(&table, number, next));
                round.store(next, SeqCst);
                if next >= 6 && table.owner.parts.first() > 0 {
                    break;
                }
            }
            is_done.store(true, SeqCst);
        });
        assert!(table.owner.parts.first() > 0, "it has taken over");
    }
}

/// The configuration of a table that begins with a few thousand entries.
fn bufferhash_of_few() -> Config {
    let asked = Requirements { policy: crate::Policy::Grow, ..Requirements::new(3000, 8, 8) };
    Config::advised(&asked).unwrap()
}

/// With loaded filters, and after an opening without threads, whose first flushes find them not loaded.
#[test]
fn a_table_that_is_opened_and_emptied_counts_what_is_left() {
    for (config, threads) in setups() {
        let (device, table) = create(config, threads);
        (0..KEYS).for_each(|number| put(&table, number, number));
        table.close().unwrap();
        let table = open(device.clone(), threads);
        if threads > 0 {
            table.load_filters().unwrap();
        }
        (0..KEYS).filter(|it| it % 20 != 0).for_each(|it| table.remove(&key(it)).unwrap());
        let entries = table.stats().entries;
        assert!(entries.abs_diff(KEYS / 20) <= KEYS / 10, "{entries} entries, {threads} threads");
        table.close().unwrap();
        let entries = open(device, threads).stats().entries;
        assert!(entries.abs_diff(KEYS / 20) <= KEYS / 10, "{entries} again, {threads} threads");
    }
}

/// In a read-only volume nothing is flushed: the contents of a long log stay in RAM, however many buffers they fill.
#[test]
fn a_log_of_many_buffers_is_read_without_writing_any() {
    let device = MemoryDevice::new();
    let own = VolumeOptions { log_bytes: 16 << 20, ..VolumeOptions::default() };
    let volume = Volume::create(Arc::new(device.clone()), own).unwrap();
    let table = Growing::create_with(&volume, "t", config(), options(0)).unwrap();
    let mut most = 0;
    for round in 0..30 {
        (0..KEYS).for_each(|number| put(&table, number, round));
        table.sync().unwrap();
        let image = MemoryDevice::from_image(device.image());
        let options =
            VolumeOpenOptions { access: Access::ReadOnly, ..VolumeOpenOptions::default() };
        let volume = Volume::open(Arc::new(image), options).unwrap();
        let read = Growing::open_with(&volume, "t", self::options(0)).unwrap();
        let all = read.owner.parts.cores().flat_map(|core| &core.partitions);
        let kept = all.map(|it| it.read().frozen.len()).max().unwrap();
        assert!(kept < 12, "round {round}: {kept} buffers");
        most = most.max(kept);
        (0..KEYS).for_each(|number| assert_eq!(value(&read, number), Some(round), "{number}"));
        assert_eq!(read.iter().map(Result::unwrap).count() as u64, KEYS);
    }
    assert!(most > 2, "{most} buffers");
}
