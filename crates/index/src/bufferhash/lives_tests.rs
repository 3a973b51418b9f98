//! Tables with a long history: endless updates, removals and new keys.

use std::sync::Arc;

use nandex_device::MemoryDevice;
use nandex_store::{Volume, VolumeOptions};

use super::{BufferHash, Config, Policy};
use crate::model::Requirements;
use crate::{Error, OpenOptions, Table};

/// The number of keys that the table has space for.
const KEYS: u64 = 12_000;

fn config() -> Config {
    Config {
        policy: Policy::Reject,
        segments: 60,
        reserve_segments: 16,
        incarnations_max: 40,
        entries_max: KEYS,
        ..Config::tiny()
    }
}

fn create(flush_threads: usize) -> BufferHash {
    let options = VolumeOptions { log_bytes: 1 << 20, ..VolumeOptions::tiny() };
    let volume = Volume::create(Arc::new(MemoryDevice::new()), options).unwrap();
    let own = OpenOptions { flush_threads: Some(flush_threads), ..OpenOptions::default() };
    BufferHash::create_with(&volume, "t", config(), own).unwrap()
}

fn key(number: u64) -> u64 {
    number.wrapping_mul(0x9E37_79B9_7F4A_7C15)
}

#[test]
fn a_table_with_all_of_its_keys_takes_updates_for_ever() {
    for threads in [0, 2] {
        let table = create(threads);
        for round in 0..20 {
            for number in 0..KEYS {
                table.insert_u64(key(number), round).unwrap();
            }
        }
        for number in 0..KEYS {
            assert_eq!(table.get_u64(key(number)).unwrap(), Some(19), "key {number}");
        }
        assert_eq!(table.iter().map(Result::unwrap).count() as u64, KEYS);
        let stats = table.stats();
        assert!(stats.entries.abs_diff(KEYS) <= KEYS / 50, "{} entries", stats.entries);
        // With 16 bytes an entry, a segment takes 1.7 times as much, plus the log.
        let written = stats.data_bytes_written as f64 / (20 * KEYS * 16) as f64;
        assert!(written < 4.8, "{written} bytes for each byte");
    }
}

/// Buffers of several pages, some of which are read at a time.
#[test]
fn a_table_of_the_advised_shape_takes_updates_for_ever() {
    let entries = 100_000;
    let asked = Requirements { policy: Policy::Reject, ..Requirements::new(entries, 8, 8) };
    let config = Config::advised(&asked).unwrap();
    let options = VolumeOptions { log_bytes: 4 << 20, ..VolumeOptions::tiny() };
    let volume = Volume::create(Arc::new(MemoryDevice::new()), options).unwrap();
    let inline = OpenOptions::default().inline();
    let table = BufferHash::create_with(&volume, "t", config.clone(), inline).unwrap();
    for round in 0..6 {
        (0..entries).for_each(|number| table.insert_u64(key(number), round).unwrap());
        let found = table.stats().entries;
        assert!(found.abs_diff(entries) <= entries / 50, "{found} entries");
    }
    (0..entries).for_each(|number| {
        assert_eq!(table.get_u64(key(number)).unwrap(), Some(5), "key {number}");
    });
    let segment_bytes = f64::from(config.segment_pages()) * 4096.0;
    let per_entry = segment_bytes / f64::from(config.filter.entries_max());
    let written = table.stats().data_bytes_written as f64 / (6 * entries) as f64;
    assert!(written < 2.4 * per_entry, "{} entries for each", written / per_entry);
}

#[test]
fn a_table_takes_a_new_key_for_each_that_was_removed() {
    for threads in [0, 2] {
        let table = create(threads);
        let removed = 10 * KEYS;
        (0..KEYS).for_each(|number| table.insert_u64(key(number), number).unwrap());
        for number in 0..removed {
            table.remove(&key(number).to_le_bytes()).unwrap();
            table.insert_u64(key(number + KEYS), number + KEYS).unwrap();
        }
        for number in removed - 100..removed + KEYS {
            let expected = (number >= removed).then_some(number);
            assert_eq!(table.get_u64(key(number)).unwrap(), expected, "key {number}");
        }
    }
}

#[test]
fn a_table_refuses_once_it_has_more_keys_than_it_was_made_for_until_some_are_removed() {
    for threads in [0, 2] {
        let table = create(threads);
        let mut taken = 0;
        let error = loop {
            match table.insert_u64(key(taken), taken) {
                Ok(()) => taken += 1,
                Err(error) => break error,
            }
        };
        assert!(matches!(error, Error::Full { .. }), "{error}");
        assert!(taken >= KEYS, "{taken}");
        (0..taken).for_each(|number| {
            assert_eq!(
                table.get_u64(key(number)).unwrap(),
                Some(number),
                "key {number} of {taken}"
            );
        });
        (0..taken).for_each(|number| table.remove(&key(number).to_le_bytes()).unwrap());
        (0..KEYS).for_each(|number| table.insert_u64(key(number), 7).unwrap());
        for number in 0..taken {
            let expected = (number < KEYS).then_some(7);
            assert_eq!(table.get_u64(key(number)).unwrap(), expected, "key {number} of {taken}");
        }
    }
}
