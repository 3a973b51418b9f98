//! Full drives: they refuse more pairs, lose nothing, and are usable again after deletes.

use std::sync::Arc;

use nandex::Durability;
use nandex::device::MemoryDevice;
use nandex_kvssd::{Config, DeleteMissing, Error, ResultCode, RetrieveOptions, StoreOptions};

use crate::common::{INDEXES, add_space, create_on, key, open_on, value};

#[test]
fn a_full_drive_refuses_loses_nothing_and_takes_more_after_deletes() {
    for index in INDEXES {
        for durability in [Durability::Always, Durability::Never] {
            fill(index, durability);
        }
    }
}

fn fill(index: &str, durability: Durability) {
    let device = MemoryDevice::new();
    let drive = create_on(Arc::new(device.clone()), Config::tiny(), index, durability).unwrap();
    let space = add_space(&drive, "main");
    let mut count = 0;
    let error = loop {
        match space.store(&key(count), &value(count, 2000), StoreOptions::default()) {
            Ok(()) => count += 1,
            Err(error) => break error,
        }
    };
    assert!(matches!(error, Error::DriveFull { .. }), "{error}");
    assert_eq!(error.code(), ResultCode::DeviceCapacity);
    assert!(count > 120, "{count} pairs of 2 KiB are nearly 256 KiB");
    // A full drive accepts overwrites of the same length, again and again, though each leaves garbage.
    for round in 1..5 {
        for number in 0..count {
            let value = value(number + round * 1000, 2000);
            space.store(&key(number), &value, StoreOptions::default()).unwrap();
        }
    }
    let longer = space.store(&key(0), &value(7, 4000), StoreOptions::default()).unwrap_err();
    assert!(matches!(longer, Error::DriveFull { .. }), "{longer}");
    let stats = drive.stats().unwrap();
    assert!(stats.utilisation > 9900 && stats.cleaned_segments > 0);
    drop((space, drive));
    let drive = open_on(Arc::new(device), durability).unwrap();
    let space = drive.open_key_space("main").unwrap();
    for number in 0..count {
        let found = space.retrieve(&key(number), RetrieveOptions::default()).unwrap();
        assert_eq!(found.bytes, value(number + 4000, 2000), "{index} {number}");
    }
    for number in 0..count / 2 {
        space.delete(&key(number), DeleteMissing::Refuse).unwrap();
    }
    for number in 0..count / 2 {
        space.store(&key(number + 500), &value(number, 2000), StoreOptions::default()).unwrap();
    }
    for number in 0..count / 2 {
        let found = space.retrieve(&key(number + 500), RetrieveOptions::default()).unwrap();
        assert_eq!(found.bytes, value(number, 2000));
    }
}

#[test]
fn an_index_with_all_its_pairs_refuses_new_keys_and_not_new_values() {
    for index in INDEXES {
        let config = Config { pairs_max: 50, ..Config::tiny() };
        let device = Arc::new(MemoryDevice::new());
        let drive = create_on(device, config, index, Durability::Never).unwrap();
        let space = add_space(&drive, "main");
        for number in 0..50 {
            space.store(&key(number), b"1", StoreOptions::default()).unwrap();
        }
        let error = space.store(&key(50), b"1", StoreOptions::default()).unwrap_err();
        assert!(matches!(error, Error::PairsFull { pairs: 50 }), "{error}");
        assert_eq!(error.code(), ResultCode::DeviceCapacity);
        for number in 0..50 {
            space.store(&key(number), b"22", StoreOptions::default()).unwrap();
        }
        space.delete(&key(7), DeleteMissing::Refuse).unwrap();
        space.store(&key(50), b"1", StoreOptions::default()).unwrap();
        assert_eq!(drive.stats().unwrap().pairs, 50);
    }
}

#[test]
fn a_purge_empties_every_key_space_and_keeps_it() {
    let device = MemoryDevice::new();
    let create = create_on(Arc::new(device), Config::tiny(), INDEXES[0], Durability::Never);
    let drive = create.unwrap();
    let spaces = ["one", "two"].map(|name| add_space(&drive, name));
    for number in 0..100 {
        for space in &spaces {
            space.store(&key(number), &value(number, 500), StoreOptions::default()).unwrap();
        }
    }
    drive.purge().unwrap();
    assert_eq!(drive.stats().unwrap().stored_bytes, 0);
    for space in &spaces {
        assert!(space.retrieve(&key(3), RetrieveOptions::default()).is_err());
        space.store(&key(3), b"again", StoreOptions::default()).unwrap();
    }
    assert_eq!(drive.stats().unwrap().pairs, 2);
}
