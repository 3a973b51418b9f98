//! Backups of volumes during writes.

use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::{Acquire, Release};
use std::thread;

use nandex::device::{Device, MemoryDevice};
use nandex::raw::store::VolumeDevices;
use nandex::{AnyTable, Cascade, Filter, Requirements, Volume, VolumeOpenOptions};
use nandex::{VolumeOptions, cascade};
use nandex_baseline::registry;

/// The keys that a writer puts.
const KEYS: u64 = 250_000;
/// The number of backups meanwhile.
const BACKUPS: u64 = 6;

fn backup(volume: &Volume) -> Volume {
    let copy: Arc<dyn Device> = Arc::new(MemoryDevice::new());
    volume.backup(&VolumeDevices { volume: Arc::clone(&copy), log: None }).unwrap();
    let report = nandex::check(Arc::clone(&copy), None, &mut |_| {}).unwrap();
    assert!(report.ok(), "{:?}", report.findings);
    Volume::open(copy, VolumeOpenOptions::default()).unwrap()
}

fn volume(log_bytes: u64) -> Volume {
    let options = VolumeOptions { log_bytes, hash_key: Some(42), ..VolumeOptions::default() };
    Volume::create(Arc::new(MemoryDevice::new()), options).unwrap()
}

/// Calls `insert` with all keys in order, on a thread, and meanwhile `look` with the number of acknowledged keys.
fn while_written(insert: impl Fn(u64) + Sync, look: impl Fn(u64)) {
    let acknowledged = AtomicU64::new(0);
    thread::scope(|scope| {
        scope.spawn(|| {
            (0..KEYS).for_each(|key| {
                insert(key);
                acknowledged.store(key + 1, Release);
            });
        });
        for round in 0..BACKUPS {
            while acknowledged.load(Acquire) < round * KEYS / BACKUPS {
                thread::yield_now();
            }
            look(acknowledged.load(Acquire));
        }
    });
}

#[test]
fn a_backup_has_every_acknowledged_entry_of_a_table_that_is_written() {
    for (row, _) in registry::tables() {
        let required = Requirements::new(300_000, 8, 8);
        let Ok(prediction) = required.advise_one(row.kind) else { continue };
        let volume = volume(prediction.config.log_bytes_best());
        let (config, options) = (&prediction.config, &prediction.options);
        let table = AnyTable::create_with(&volume, "t", config, options).unwrap();
        while_written(
            |key| table.insert_u64(key, key + 1).unwrap(),
            |acknowledged| {
                let copy = backup(&volume);
                let copied = AnyTable::open(&copy, "t").unwrap();
                for key in (0..acknowledged).step_by(7).chain(acknowledged.checked_sub(1)) {
                    assert_eq!(copied.get_u64(key).unwrap(), Some(key + 1), "{}", row.kind);
                }
                copied.insert_u64(u64::MAX, 0).unwrap();
                copied.close().unwrap();
            },
        );
        table.close().unwrap();
    }
}

#[test]
fn a_backup_has_every_acknowledged_key_of_a_filter_that_is_written() {
    let config = cascade::Config::for_budget(KEYS, 0.01, 2 << 20).unwrap();
    let volume = volume(config.log_bytes_best());
    let filter = Cascade::create(&volume, "f", config).unwrap();
    while_written(
        |key| filter.insert(&key.to_le_bytes()).unwrap(),
        |acknowledged| {
            let copy = backup(&volume);
            let copied = Cascade::open(&copy, "f").unwrap();
            let keys: Vec<_> = (0..acknowledged).step_by(7).map(u64::to_le_bytes).collect();
            let keys: Vec<&[u8]> = keys.iter().map(|key| &key[..]).collect();
            assert!(copied.contains_many(&keys).unwrap().into_iter().all(|it| it));
            copied.close().unwrap();
        },
    );
    filter.close().unwrap();
}
