//! The kinds of structures that the command has: those of the library, without those of experiments and tests.

use std::fs;
use std::sync::Arc;

use nandex::device::{Create, FileDevice, FileOptions};
use nandex::{Volume, VolumeOpenOptions, VolumeOptions};
use nandex_baseline::Multilevel;
use nandex_baseline::multilevel::Config;

use crate::common::Folder;

/// `create --help` of a build of all crates listed the artificial structure of tests: the feature that adds it was on
/// for all of them.
#[test]
fn the_structures_of_experiments_and_tests_are_none_of_the_commands() {
    let folder = Folder::new();
    for verb in ["create", "kvssd create", "advise", "dedup"] {
        let help = folder.run(&format!("{verb} --help"));
        assert_eq!(help.code, 0, "{help:?}");
        for row in nandex_baseline::ROWS {
            assert!(!help.stdout.contains(row.kind), "{verb}: {}", help.stdout);
        }
    }
    let help = folder.run("create --help").stdout;
    for (row, _) in nandex::raw::registry::tables() {
        assert!(help.contains(&format!("- {}:", row.kind)), "{}: {help}", row.kind);
    }
    for row in nandex_baseline::ROWS {
        let words = format!("create t.nandex --entries 1000 --structure {}", row.kind);
        folder.assert_refused(&format!("2 | {words} | possible values"));
    }
}

#[test]
fn a_table_of_a_kind_that_the_command_lacks_is_refused_by_the_kinds_name() {
    let folder = Folder::new();
    let options = FileOptions { create: Create::New, ..FileOptions::default() };
    let device = FileDevice::open(folder.path("t.nandex"), &options).unwrap();
    let volume = Volume::create(Arc::new(device), VolumeOptions::tiny()).unwrap();
    let table = Multilevel::create(&volume, "main", Config::tiny()).unwrap();
    table.insert_u64(7, 41).unwrap();
    table.close().unwrap();
    drop(volume);
    fs::write(folder.path("in.csv"), "key,value\n7,42\n").unwrap();
    let lacks = "is of the kind \"multilevel\", which this build of nandex does not have";
    for words in [
        "get t.nandex 7 --key-format u64",
        "load t.nandex in.csv --format csv --key-format u64",
        "delete t.nandex 7 --key-format u64",
        "dump t.nandex",
    ] {
        folder.assert_refused(&format!("1 | {words} | {lacks}"));
    }
    let checked = folder.run("check t.nandex");
    assert_eq!(checked.code, 3, "{checked:?}");
    assert!(checked.stdout.contains("\"multilevel\""), "{checked:?}");
    let info = folder.run("info t.nandex");
    assert!(info.code == 0 && info.stdout.contains("multilevel"), "{info:?}");
    let device = FileDevice::open(folder.path("t.nandex"), &FileOptions::default()).unwrap();
    let volume = Volume::open(Arc::new(device), VolumeOpenOptions::default()).unwrap();
    let table = Multilevel::open(&volume, "main").unwrap();
    assert_eq!(table.get_u64(7).unwrap(), Some(41), "it stays as it is");
}
