//! Full tables, and counts and sizes that are ambiguous.
#![forbid(unsafe_code)]

#[expect(dead_code, reason = "shared with the tests of other verbs, which use more of it")]
mod common;

use std::sync::Arc;

use common::Folder;
use nandex::device::MemoryDevice;
use nandex::{AnyTable, Error, Policy, Requirements, Table, Volume, VolumeOptions};

#[test]
fn a_full_table_says_as_many_entries_as_its_figures() {
    for kind in ["bufferhash", "slicehash"] {
        let volume = Volume::create(Arc::new(MemoryDevice::new()), VolumeOptions::default());
        let required = Requirements { policy: Policy::Reject, ..Requirements::new(5000, 8, 8) };
        let plan = required.advise_one(kind).expect("it can be made");
        let table = AnyTable::create(&volume.expect("memory takes it"), "t", &plan.config);
        let table = table.expect("memory takes it");
        let full = (0..1_000_000).find_map(|key| table.insert_u64(key, key).err());
        let Some(Error::Full { entries, .. }) = full else { panic!("{kind}: {full:?}") };
        assert_eq!(entries, table.stats().entries, "{kind}");
    }
}

/// Exit codes, commands, and what they say.
const AMBIGUOUS: &str = r#"
2 | create t.nandex --key-bytes 8 --entries 1B | `B` is a unit of bytes, and this is a count; use K, M, G, T
2 | create t.nandex --key-bytes 8 --entries 64KiB | `KiB` is a unit of bytes
2 | create t.nandex --key-bytes 8 --entries 1e5 --policy priority:1KB | `KB` is a unit of bytes
2 | filter build t.nandex in --keys 1B | `B` is a unit of bytes
2 | advise --entries 1B | `B` is a unit of bytes
2 | create t.nandex --key-bytes 8 --entries 1e5 --ram 64Mo | `Mo` is no unit; use K, M, G, T
"#;

#[test]
fn a_count_with_a_unit_of_bytes_is_refused() {
    Folder::new().assert_refused(AMBIGUOUS);
}
