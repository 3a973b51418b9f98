//! A table that rejects more holds the entries that it was made for: each of them, whatever their number, widths and
//! RAM.

use std::sync::Arc;

use nandex::device::MemoryDevice;
use nandex::large::{LargeTable, TABLE_KEY_BYTES, TABLE_VALUE_BYTES, ValuesConfig};
use nandex::{
    AnyTable, Durability, Policy, Prediction, Requirements, Table, Volume, VolumeOpenOptions,
    VolumeOptions, WhenFull,
};
use nandex_baseline::registry;

const ENTRIES: [u64; 10] = [1, 100, 1000, 2500, 7777, 10_000, 30_000, 65_536, 123_457, 500_000];

fn volume(device: &MemoryDevice, log_bytes: u64) -> Volume {
    let durability = Durability::Never;
    let options =
        VolumeOptions { log_bytes, durability, hash_key: Some(42), ..VolumeOptions::default() };
    Volume::create(Arc::new(device.clone()), options).unwrap()
}

/// Returns a key that hashing spreads like any other.
fn key(number: u64, bytes: usize) -> Vec<u8> {
    let mut key = number.wrapping_mul(0x9e37_79b9_7f4a_7c15).to_le_bytes().to_vec();
    key.resize(bytes, 7);
    key
}

/// Inserts `entries` keys into a new table, opens it again, and finds all of them.
fn fill(advised: &Prediction, (key_bytes, value_bytes): (usize, usize), entries: u64) {
    let device = MemoryDevice::new();
    let volume = volume(&device, advised.config.log_bytes_best());
    let table = AnyTable::create_with(&volume, "t", &advised.config, &advised.options).unwrap();
    let story = format!("{} for {entries} entries of {key_bytes} + {value_bytes}", table.kind());
    let keys: Vec<_> = (0..entries).map(|number| key(number, key_bytes)).collect();
    let value = vec![1; value_bytes];
    for keys in keys.chunks(1000) {
        let pairs: Vec<_> = keys.iter().map(|key| (&key[..], &value[..])).collect();
        table.insert_many(&pairs).unwrap_or_else(|error| panic!("{story}: {error}"));
    }
    table.close().unwrap_or_else(|error| panic!("{story}, closing: {error}"));
    let table = AnyTable::open(&volume, "t").unwrap();
    for keys in keys.chunks(1000) {
        let keys: Vec<_> = keys.iter().map(|key| &key[..]).collect();
        assert!(table.get_many(&keys).unwrap().iter().all(Option::is_some), "{story}");
    }
}

#[test]
fn a_table_that_refuses_takes_as_many_entries_as_were_asked_for() {
    let mut tables = 0;
    for entries in ENTRIES {
        for (key_bytes, value_bytes) in [(8, 8), (16, 16), (32, 64)] {
            if entries > 100_000 && key_bytes > 8 {
                continue;
            }
            let asked = Requirements {
                policy: Policy::Reject,
                ..Requirements::new(entries, key_bytes, value_bytes)
            };
            for (row, _) in registry::tables() {
                let Ok(advised) = asked.advise_one(row.kind) else { continue };
                tables += 1;
                fill(&advised, (key_bytes as usize, value_bytes as usize), entries);
            }
        }
    }
    assert!(tables >= 2 * 3 * ENTRIES.len() - 12, "{tables}");
}

/// With keys and values of 220 bytes, and so records of 256, for which space was requested.
#[test]
fn a_table_of_any_size_takes_as_many_entries_as_were_asked_for() {
    for entries in ENTRIES.into_iter().filter(|entries| *entries <= 130_000) {
        let (key_bytes, value_bytes) = (TABLE_KEY_BYTES as u32, TABLE_VALUE_BYTES as u32);
        let asked = Requirements::new(entries, key_bytes, value_bytes);
        let advised = Requirements { policy: Policy::Reject, ..asked }.advise().unwrap();
        let device = MemoryDevice::new();
        let chosen = advised.into_chosen();
        let volume = volume(&device, chosen.config.log_bytes_best());
        let index = AnyTable::create_with(&volume, "t-keys", &chosen.config, &chosen.options);
        let values = ValuesConfig::holding(entries * 256, WhenFull::Refuse);
        let table = LargeTable::create(&volume, "t", index.unwrap(), values).unwrap();
        let value = vec![3; 212];
        let keys: Vec<_> = (0..entries).map(u64::to_le_bytes).collect();
        for keys in keys.chunks(500) {
            let pairs: Vec<_> = keys.iter().map(|key| (&key[..], &value[..])).collect();
            table.put_many(&pairs).unwrap_or_else(|error| panic!("{entries}: {error}"));
        }
        table.close().unwrap_or_else(|error| panic!("{entries}, closing: {error}"));
        drop(volume);
        let volume = Volume::open(Arc::new(device), VolumeOpenOptions::default()).unwrap();
        let index = AnyTable::open(&volume, "t-keys").unwrap();
        let table = LargeTable::open(&volume, "t", index).unwrap();
        for keys in keys.chunks(500) {
            let keys: Vec<_> = keys.iter().map(|key| &key[..]).collect();
            assert!(table.get_many(&keys).unwrap().iter().all(Option::is_some), "{entries}");
        }
    }
}
