//! The sizes of volumes' files, and the verbs that report them.

use std::fs;
use std::os::unix::fs::MetadataExt;

use crate::common::{Folder, Outcome, json};
use serde_json::Value;

const MIB: u64 = 1 << 20;

/// Returns the length of a file and the bytes that the file system has allocated.
fn taken(folder: &Folder, name: &str) -> (u64, u64) {
    let found = fs::metadata(folder.path(name)).expect("the verb has made it");
    (found.len(), found.blocks() * 512)
}

fn told(outcome: &Outcome) -> (u64, u64) {
    let (told, count) = (json(outcome), |value: &Value| value.as_u64().expect("a count"));
    (count(&told["file_bytes"]), count(&told["allocated_bytes"]))
}

fn write_keys(folder: &Folder, count: u32) {
    let lines: String = (0..count).map(|key| format!("{key}\n")).collect();
    fs::write(folder.path("keys"), lines).expect("the folder is writable");
}

#[test]
fn a_small_filter_and_a_small_table_are_in_small_files() {
    let folder = Folder::new();
    write_keys(&folder, 200_000);
    let built = folder.run("filter build f keys --json");
    // The filter has about 350 KiB. A log of 8 MiB used to be before it.
    assert_eq!(told(&built), taken(&folder, "f"), "{built:?}");
    assert!(taken(&folder, "f").0 < 3 * MIB, "{built:?}");
    assert_eq!(folder.run("check f").code, 0);
    let made = folder.run("create t --entries 1e4 --key-bytes 8 --policy reject --json");
    assert_eq!(told(&made), taken(&folder, "t"), "{made:?}");
    assert!(taken(&folder, "t").0 < 8 * MIB, "{made:?}");
}

#[test]
fn verbs_that_make_and_fill_say_what_the_file_takes() {
    let folder = Folder::new();
    write_keys(&folder, 1000);
    let made = folder.run("create t --entries 1e4 --key-bytes 8 --value-bytes 8");
    assert!(made.stdout.contains("\nfile       ") && made.stdout.contains(" MiB\n"), "{made:?}");
    fs::write(folder.path("in.csv"), "7,42\n").expect("the folder is writable");
    let load = "load t in.csv --format csv --key-format u64";
    assert!(folder.run(load).stdout.contains("; the file is "));
    assert_eq!(told(&folder.run(&format!("{load} --json"))), taken(&folder, "t"));
    assert!(folder.run("filter build f keys").stdout.contains("\nfile       "));
    let dedup = folder.run("dedup keys --index i");
    assert!(dedup.stderr.contains("index: i, ") && dedup.stderr.contains(" MiB"), "{dedup:?}");
}

#[test]
fn a_sparse_file_is_as_long_and_takes_what_is_in_it() {
    let folder = Folder::new();
    write_keys(&folder, 1000);
    for (verb, name) in [
        ("create t --entries 1e6 --key-bytes 8 --value-bytes 8", "t"),
        ("filter build f keys --keys 1e7", "f"),
    ] {
        let made = folder.run(&format!("{verb} --sparse --json"));
        let (length, allocated) = taken(&folder, name);
        assert_eq!(told(&made), (length, allocated), "{made:?}");
        assert!(allocated < length / 2, "{made:?}");
        assert_eq!(folder.run(&format!("check {name}")).code, 0);
    }
    let made = folder.run("create u --entries 1e6 --key-bytes 8 --value-bytes 8 --sparse");
    assert!(made.stdout.contains(" long, of which "), "{made:?}");
    fs::write(folder.path("in.csv"), "7,42\n").expect("the folder is writable");
    assert_eq!(folder.run("load u in.csv --format csv --key-format u64").code, 0);
    assert_eq!(folder.run("check u").code, 0);
}
