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

#[test]
fn info_says_how_full_a_table_is_of_what_it_was_made_for() {
    for words in ["--key-bytes 8 --structure bufferhash", "--key-bytes 8 --structure slicehash", ""]
    {
        let folder = Folder::new();
        let made = folder.run(&format!("create t.nandex --entries 1e5 {words} --json"));
        let records: String = (0..50_000).map(|key| format!("{key},{key}\n")).collect();
        std::fs::write(folder.path("in.csv"), records).expect("the folder is writable");
        let load = folder.run("load t.nandex in.csv --format csv --key-format u64");
        assert_eq!(load.code, 0, "{load:?}");
        let [made, info] = [made, folder.run("info t.nandex --json")].map(|outcome| {
            let json: serde_json::Value = serde_json::from_str(&outcome.stdout).expect("an object");
            json
        });
        let table = &info["tables"][0];
        let [planned, found] =
            [&made, table].map(|it| it["entries_capacity"].as_f64().expect("it"));
        assert!((found - planned).abs() < planned * 0.02, "{words}: {planned} {found}");
        let fullness = table["fullness"].as_f64().expect("a number");
        assert!((fullness - 5e4 / found).abs() < 1e-6, "{words}: {fullness}");
        let text = folder.run("info t.nandex").stdout;
        assert!(text.contains("  space for  ") && text.contains(" % full\n"), "{text}");
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
