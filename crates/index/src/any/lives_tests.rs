//! Tables with a long history of updates: whatever was written, `entries` is the number of their keys.

use std::sync::Arc;

use nandex_device::{Access, MemoryDevice};
use nandex_store::{Volume, VolumeOpenOptions, VolumeOptions};

use super::{AnyConfig, AnyTable};
use crate::{OpenOptions, Table, registry};

/// The keys of the tables. Their buffers hold at most a tenth of them.
const KEYS: u64 = 20_000;

fn configs() -> [(&'static str, AnyConfig); 5] {
    let tiny = |kind: &str| {
        let (_, table) = registry::tables().find(|(row, _)| row.kind == kind).unwrap();
        (table.tiny)()
    };
    let evicting = tiny("slicehash").with([("slices", "40"), ("entries_max", "10000")]).unwrap();
    [
        ("refusing", evicting.with([("policy", "reject")]).unwrap()),
        ("fronted", evicting.with([("front_runs", "16"), ("spare_buffers", "6")]).unwrap()),
        ("evicting", evicting),
        ("growing", tiny("growing-slicehash")),
        ("rhik", tiny("rhik")),
    ]
}

fn options_of(flush_threads: usize) -> OpenOptions {
    OpenOptions { flush_threads: Some(flush_threads), ..OpenOptions::default() }
}

fn key(number: u64) -> [u8; 8] {
    number.wrapping_mul(0x9E37_79B9_7F4A_7C15).to_le_bytes()
}

fn create(config: &AnyConfig, flush_threads: usize) -> (MemoryDevice, AnyTable) {
    let device = MemoryDevice::new();
    let options = VolumeOptions { log_bytes: 1 << 20, ..VolumeOptions::tiny() };
    let volume = Volume::create(Arc::new(device.clone()), options).unwrap();
    let table = AnyTable::create_with(&volume, "t", config, &options_of(flush_threads)).unwrap();
    (device, table)
}

fn open(device: MemoryDevice, access: Access) -> AnyTable {
    let options = VolumeOpenOptions { access, ..VolumeOpenOptions::default() };
    let volume = Volume::open(Arc::new(device), options).unwrap();
    AnyTable::open_with(&volume, "t", &options_of(0)).unwrap()
}

/// Returns the image after a power cut that loses nothing that was synced.
fn cut(device: &MemoryDevice, table: &AnyTable) -> MemoryDevice {
    table.sync().unwrap();
    MemoryDevice::from_image(device.image())
}

/// Fails unless a table reports this number of keys, give or take `off`.
fn assert_within(table: &AnyTable, (keys, off): (u64, u64), story: &str) {
    let found = table.stats().entries;
    assert!(found.abs_diff(keys) <= off, "{story}: {found} of {keys} keys");
}

/// Fails unless a table reports this number of keys, with a tolerance of one in a hundred.
fn assert_keys(table: &AnyTable, keys: u64, story: &str) {
    assert_within(table, (keys, keys / 100), story);
}

/// Checks the count after reopening the table, once after a close and once after a crash. After a crash the log is
/// replayed from the start of a block, so that some merged entries wait for a merge once more.
fn assert_keys_later((device, table): (MemoryDevice, AnyTable), keys: u64, story: &str) {
    for access in [Access::ReadOnly, Access::ReadWrite] {
        let crashed = open(cut(&device, &table), access);
        let story = format!("{story}, after a crash, {access:?}");
        assert_within(&crashed, (keys, keys / 20), &story);
    }
    table.close().unwrap();
    let closed = open(device, Access::ReadOnly);
    assert_keys(&closed, keys, &format!("{story}, closed"));
}

fn update_all(table: &AnyTable, round: u64) {
    for number in 0..KEYS {
        table.insert(&key(number), &round.to_le_bytes()).unwrap();
    }
}

#[test]
fn a_table_that_is_filled_for_the_first_time_counts_each_key() {
    for (name, config) in configs() {
        for flush_threads in [0, 2] {
            let (_, table) = create(&config, flush_threads);
            for number in 0..KEYS {
                table.insert(&key(number), &[0; 8]).unwrap();
                if number % 997 == 0 && flush_threads == 0 {
                    assert_eq!(table.stats().entries, number + 1, "{name}");
                }
            }
            table.flush().unwrap();
            assert_eq!(table.stats().entries, KEYS, "{name}");
        }
    }
}

#[test]
fn a_key_that_is_written_again_counts_once() {
    for (name, config) in configs() {
        for flush_threads in [0, 2] {
            let (device, table) = create(&config, flush_threads);
            for round in 0..5 {
                update_all(&table, round);
                let story = format!("{name}, {flush_threads} threads, round {round}");
                assert_keys(&table, KEYS, &story);
            }
            assert_keys_later((device, table), KEYS, name);
        }
    }
}

#[test]
fn a_key_that_is_removed_counts_no_more() {
    for (name, config) in configs() {
        let (device, table) = create(&config, 0);
        (0..2).for_each(|round| update_all(&table, round));
        for number in 0..KEYS / 2 {
            table.remove(&key(number)).unwrap();
        }
        assert_keys(&table, KEYS / 2, name);
        assert_keys_later((device, table), KEYS / 2, name);
    }
}

#[test]
fn updates_new_keys_and_removals_together_count_as_what_they_are() {
    for (name, config) in configs() {
        let (device, table) = create(&config, 0);
        (0..KEYS / 2).for_each(|number| table.insert(&key(number), &[0; 8]).unwrap());
        // Of every four updates one removes a key, two insert new keys, and one updates a key.
        let mut keys = KEYS / 2;
        for step in 0..KEYS / 4 {
            table.remove(&key(step)).unwrap();
            table.insert(&key(KEYS / 2 + 2 * step), &[1; 8]).unwrap();
            table.insert(&key(KEYS / 2 + 2 * step + 1), &[1; 8]).unwrap();
            table.insert(&key(KEYS / 4 + step), &[1; 8]).unwrap();
            keys += 1;
        }
        assert_keys(&table, keys, name);
        assert_keys_later((device, table), keys, name);
    }
}
