//! Full tables that may not evict.

use std::sync::Arc;

use nandex::device::MemoryDevice;
use nandex::testing::{Retention, TableRequest};
use nandex::{AnyTable, Error, Table, Volume, VolumeOptions};
use nandex_baseline::registry;

/// Fills tables without space for more than a few buffers, each variant that refuses.
#[test]
fn a_full_table_that_may_not_evict_says_so_and_keeps_everything() {
    let mut refusing = 0;
    for (_, row) in registry::tables() {
        for variant in 0..row.testing.variants {
            let request = TableRequest { variant, keys: None, ..TableRequest::default() };
            let made = (row.testing.config)(&request);
            if made.retention != Retention::Refuses {
                continue;
            }
            refusing += 1;
            let device = Arc::new(MemoryDevice::new());
            let volume = Volume::create(device, VolumeOptions::tiny()).unwrap();
            let table = AnyTable::create_with(&volume, "t", &made.config, &made.options).unwrap();
            let mut keys = 0..;
            let told = keys.find_map(|key| Some((key, table.insert_u64(key, key * 3).err()?)));
            let (taken, error) = told.unwrap();
            assert!(matches!(error, Error::Full { .. }), "{}: {error}", made.label);
            // Another partition may have space yet.
            let insert = |key: u64| table.get_or_insert(&key.to_le_bytes(), &[7; 8]).err();
            let told_again = (taken + 1..).find_map(insert).unwrap();
            let entries = table.stats().entries;
            let is_full =
                matches!(told_again, Error::Full { entries: told, .. } if told == entries);
            assert!(is_full, "{}: {entries} entries, {told_again}", made.label);
            assert!(taken >= made.buffer_entries, "{}: {taken}", made.label);
            for key in 0..taken {
                let found = table.get_u64(key).unwrap();
                assert_eq!(found, Some(key * 3), "{}: key {key} of {taken}", made.label);
            }
            assert_eq!(table.stats().evicted, 0, "{}", made.label);
        }
    }
    assert!(refusing > 6, "{refusing}");
}
