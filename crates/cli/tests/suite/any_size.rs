//! Tables of keys and values of any size, `delete`, and keys from stdin.

use std::fs;
use std::io::Write;

use crate::common::{Folder, Outcome, json};
use serde_json::Value;

#[track_caller]
fn ok(outcome: Outcome) -> Outcome {
    assert_eq!(outcome.code, 0, "{outcome:?}");
    outcome
}

/// Creates a folder with a table of words of any size.
fn with_words() -> Folder {
    let folder = Folder::new();
    ok(folder.run("create t.nandex --entries 1e4"));
    fs::write(folder.path("in.csv"), "apple,a fruit\n,no key\npear,\n").expect("it is writable");
    ok(folder.run("load t.nandex in.csv --format csv"));
    folder
}

/// Runs a command with this stdin.
fn piped(folder: &Folder, words: &str, stdin: &[u8]) -> Outcome {
    let mut child = folder.start_piped(words);
    child.stdin.take().expect("it is piped").write_all(stdin).expect("it reads");
    child.wait_with_output().expect("it ends").into()
}

#[test]
fn keys_and_values_have_any_size_unless_widths_are_given() {
    let folder = with_words();
    let got = ok(folder.run("get t.nandex apple pear"));
    assert_eq!(got.stdout, "apple\ta fruit\npear\t\n");
    let info = json(&ok(folder.run("info t.nandex --json")));
    let tables = info["tables"].as_array().expect("a list");
    assert_eq!((tables.len(), &tables[0]["name"]), (1, &"main".into()), "{info}");
    assert_eq!((&tables[0]["entries"], &tables[0]["key_bytes"]), (&3.into(), &Value::Null));
    assert!(tables[0]["value_log"]["live_bytes"].as_u64() > Some(0), "{info}");
    assert!(folder.run("info t.nandex").stdout.contains("keys and values of any size"));
    ok(folder.run("check t.nandex"));
    let fixed = json(&folder.run("create f.nandex --entries 1e4 --value-bytes 4 --json"));
    assert_eq!((&fixed["key_bytes"], &fixed["value_bytes"]), (&8.into(), &4.into()));
}

#[test]
fn a_large_value_is_loaded_and_dumped_and_loaded_again() {
    for structure in ["bufferhash", "slicehash"] {
        let folder = Folder::new();
        let create = format!("--entries 1e4 --bytes 64MiB --structure {structure}");
        ok(folder.run(&format!("create t.nandex {create}")));
        let large = "x\"y,".repeat(1 << 19);
        let mut lines = format!("{}\n", serde_json::json!({"key": "large", "value": large}));
        for key in 0..2000 {
            lines.push_str(&format!("{{\"key\": \"key {key}\", \"value\": {key}}}\n"));
        }
        fs::write(folder.path("in"), &lines).expect("the folder is writable");
        ok(folder.run("load t.nandex in --format ndjson"));
        let value = ok(folder.run("get t.nandex large")).stdout;
        assert!(value == format!("large\t{large}\n"), "{structure}: the value differs");
        for format in ["csv", "ndjson"] {
            let dumped = folder.run_bytes(&format!("dump t.nandex --format {format}"));
            fs::write(folder.path("copy"), dumped).expect("the folder is writable");
            let _ = fs::remove_file(folder.path("c.nandex"));
            ok(folder.run(&format!("create c.nandex {create}")));
            let loaded =
                json(&ok(folder.run(&format!("load c.nandex copy --format {format} --json"))));
            assert_eq!(loaded["records"], 2001, "{structure}");
            assert!(folder.run("get c.nandex large").stdout == value, "{structure}");
            assert_eq!(folder.run("get c.nandex key_1").code, 1);
        }
    }
}

#[test]
fn get_reads_keys_from_stdin() {
    let folder = with_words();
    let got = piped(&folder, "get t.nandex -", b"pear\nplum\n\napple\n");
    assert_eq!((got.code, got.stdout.as_str()), (1, "pear\t\n\tno key\napple\ta fruit\n"));
    assert_eq!(got.stderr, "plum: not there\n");
    let bad = piped(&folder, "get t.nandex -", b"pear\n\xff\n");
    assert_eq!((bad.code, bad.stdout.as_str()), (1, "pear\t\n"));
    assert!(bad.stderr.contains("line 2: it is not UTF-8"), "{bad:?}");
}

#[test]
fn deleted_keys_are_gone_from_tables_of_either_sort() {
    for widths in
        ["", "--key-bytes 8 --structure bufferhash", "--key-bytes 8 --structure slicehash"]
    {
        let folder = Folder::new();
        ok(folder.run(&format!("create t.nandex --entries 1e5 {widths}")));
        let records: String = (0..20_000).map(|key| format!("{key},{key}\n")).collect();
        fs::write(folder.path("in.csv"), records).expect("the folder is writable");
        ok(folder.run("load t.nandex in.csv --format csv --key-format u64"));
        let deleted = ok(folder.run("delete t.nandex 7 99999 --key-format u64 --json"));
        let expected = serde_json::json!({"table": "main", "deleted": 1, "absent": 1});
        assert_eq!(json(&deleted), expected, "{widths}");
        let even: String = (0..20_000).step_by(2).map(|key| format!("{key}\n")).collect();
        let deleted = piped(&folder, "delete t.nandex - --key-format u64", even.as_bytes());
        assert_eq!(deleted.stdout, "10,000 deleted from main, 0 were not there\n", "{deleted:?}");
        assert_eq!(folder.run("get t.nandex 7 --key-format u64").code, 1);
        assert_eq!(folder.run("get t.nandex 8 --key-format u64").code, 1);
        assert_eq!(folder.run("get t.nandex 9 --key-format u64").stdout, "9\t9\n");
        let dumped = folder.run("dump t.nandex --format csv --key-format u64");
        assert_eq!(dumped.stdout.lines().count(), 10_000, "{widths}");
        ok(folder.run("check t.nandex"));
    }
}

#[test]
fn a_full_table_of_any_size_refuses_or_evicts() {
    let folder = Folder::new();
    let records: String =
        (0..30_000).map(|key| format!("key_{key},{}\n", "x".repeat(400))).collect();
    fs::write(folder.path("in.csv"), records).expect("the folder is writable");
    ok(folder.run("create r.nandex --entries 1e5 --bytes 4MiB --policy reject"));
    let refused = folder.run("load r.nandex in.csv --format csv");
    assert_eq!(refused.code, 1, "{refused:?}");
    assert!(refused.stderr.contains("full"), "{refused:?}");
    ok(folder.run("create f.nandex --entries 1e5 --bytes 4MiB --policy fifo"));
    let loaded = json(&ok(folder.run("load f.nandex in.csv --format csv --json")));
    assert_eq!(folder.run("get f.nandex key_0").code, 1);
    let info = json(&ok(folder.run("info f.nandex --json")));
    let log = &info["tables"][0]["value_log"];
    let overwritten = log["overwritten_records_life"].as_u64().expect("a count");
    assert_eq!(loaded["overwritten"].as_u64(), Some(overwritten), "{loaded}");
    assert!(overwritten > 10_000 && log["overwritten_segments_life"].as_u64() > Some(10), "{log}");
    let dumped = ok(folder.run("dump f.nandex --format csv")).stdout.lines().skip(1).count();
    assert_eq!(dumped as u64 + overwritten, 30_000);
    let shown = folder.run("info f.nandex").stdout;
    assert!(shown.contains("segments of values in its life, with"), "{shown}");
}

/// 300,000 records of varied length in a table without any size option.
#[test]
fn a_table_of_which_no_size_is_stated_takes_everything() {
    let folder = Folder::new();
    let created = json(&ok(folder.run("create t.nandex --json")));
    assert_eq!((&created["policy"], &created["key_bytes"]), (&"grow".into(), &Value::Null));
    assert!(created["structure"].as_str().is_some_and(|it| it.starts_with("growing")), "{created}");
    let value = |key: usize| {
        "v".repeat(key * 7919 % 401 + usize::from(key.is_multiple_of(10_000)) * 300_000)
    };
    let records: String = (0..300_000).map(|key| format!("key_{key},{}\n", value(key))).collect();
    fs::write(folder.path("in.csv"), &records).expect("the folder is writable");
    let loaded = json(&ok(folder.run("load t.nandex in.csv --format csv --json")));
    assert_eq!((&loaded["records"], &loaded["evicted"]), (&300_000.into(), &0.into()));
    let info = json(&ok(folder.run("info t.nandex --json")));
    let table = &info["tables"][0];
    // Filters know how many of the entries are keys.
    let entries = table["entries"].as_u64().expect("a number of entries");
    assert!(entries.abs_diff(300_000) <= 3000, "{info}");
    assert!(table["value_log"]["growths"].as_u64() > Some(3), "{info}");
    let shown = ok(folder.run("info t.nandex")).stdout;
    assert!(shown.contains("it grows with the device") && shown.contains("grown "), "{shown}");
    let mut dumped: Vec<_> = ok(folder.run("dump t.nandex --format csv"))
        .stdout
        .lines()
        .skip(1)
        .map(str::to_owned)
        .collect();
    let mut expected: Vec<_> = records.lines().map(str::to_owned).collect();
    dumped.sort_unstable();
    expected.sort_unstable();
    assert!(dumped == expected, "{} of {} records", dumped.len(), expected.len());
    let got = ok(folder.run("get t.nandex key_0 key_299999"));
    assert!(got.stdout == format!("key_0\t{}\nkey_299999\t{}\n", value(0), value(299_999)));
    ok(folder.run("check t.nandex"));
}

#[test]
fn a_table_of_any_size_grows_as_far_as_its_ram_and_further_with_more() {
    let folder = Folder::new();
    let records: String = (0..700_000).map(|key| format!("key_{key},{key}\n")).collect();
    fs::write(folder.path("in.csv"), records).expect("the folder is writable");
    ok(folder.run("create t.nandex --ram 5MiB"));
    let refused = folder.run("load t.nandex in.csv --format csv");
    assert_eq!(refused.code, 1, "{refused:?}");
    assert!(refused.stderr.contains("open it with more RAM"), "{refused:?}");
    let shown = ok(folder.run("info t.nandex")).stdout;
    assert!(shown.contains("all within"), "{shown}");
    let refused = folder.run("load t.nandex in.csv --format csv --ram 3MiB");
    assert!(refused.code == 2 && refused.stderr.contains("--ram 3"), "{refused:?}");
    let more: String = (690_000..700_000).map(|key| format!("key_{key},{key}\n")).collect();
    fs::write(folder.path("more.csv"), more).expect("the folder is writable");
    ok(folder.run("load t.nandex more.csv --format csv --ram 32MiB"));
    assert_eq!(folder.run("get t.nandex key_699999").stdout, "key_699999\t699999\n");
}

/// Each key is once in the index, however often it is loaded.
#[test]
fn a_table_of_any_size_grows_over_slices_too() {
    let folder = Folder::new();
    ok(folder.run("create t.nandex --structure growing-slicehash"));
    for round in 0..3 {
        let records: String = (0..20_000).map(|key| format!("key_{key},{round} {key}\n")).collect();
        fs::write(folder.path("in.csv"), records).expect("the folder is writable");
        ok(folder.run("load t.nandex in.csv --format csv"));
    }
    let table = &json(&ok(folder.run("info t.nandex --json")))["tables"][0];
    assert_eq!((&table["kind"], &table["policy"]), (&"growing-slicehash".into(), &"grow".into()));
    assert_eq!(folder.run("get t.nandex key_777").stdout, "key_777\t2 777\n");
    assert_eq!(ok(folder.run("dump t.nandex --format csv")).stdout.lines().skip(1).count(), 20_000);
    ok(folder.run("check t.nandex"));
}

/// Exit codes, commands, and their messages.
const WRONG: &str = r#"
2 | create n.nandex --entries 1e4 --policy lru | --policy: give widths with --key-bytes and --value-bytes for this one
2 | create n.nandex --policy reject | give the number of entries
2 | create n.nandex --ram 2MiB | of --ram, the log of keys and values takes
2 | create n.nandex --entries 1e4 --bytes 1MiB --key-bytes 8 | cannot be used with
1 | dump t.nandex --format binary | the binary format is for fixed widths
1 | load t.nandex in.csv --format binary | the binary format is for fixed widths
1 | get t.nandex apple --value-format u64 | the value 61206672756974 has 7 bytes
1 | delete gone.nandex apple | cannot open gone.nandex
1 | dedup in.csv --index t.nandex | no structure named "fingerprints"
"#;

#[test]
fn what_any_size_cannot_do_is_refused() {
    let folder = with_words();
    folder.assert_refused(WRONG);
    assert!(!folder.path("n.nandex").exists());
}

/// Only a new file got rid of a structure.
#[test]
fn a_dropped_structure_frees_its_pages() {
    let folder = Folder::new();
    ok(folder.run("create t.nandex --entries 1e5"));
    let records: String = (0..20_000).map(|key| format!("{key},{}\n", "x".repeat(100))).collect();
    fs::write(folder.path("in.csv"), records).expect("the folder is writable");
    ok(folder.run("load t.nandex in.csv --format csv"));
    let free =
        |folder: &Folder| json(&ok(folder.run("info t.nandex --json")))["free_bytes"].as_u64();
    let before = free(&folder).expect("a number");
    folder.assert_refused("1 | drop t.nandex absent | it holds \"main\"");
    folder.assert_refused("1 | drop t.nandex main-keys | it holds \"main\"");
    let dropped = json(&ok(folder.run("drop t.nandex main --json")));
    let bytes = dropped["dropped"][0]["flash_bytes"].as_u64().expect("a number");
    assert!(bytes > 2_000_000, "{dropped}");
    assert_eq!(dropped["dropped"][0]["name"], "main");
    assert!(free(&folder).expect("a number") >= before + bytes);
    let info = json(&ok(folder.run("info t.nandex --json")));
    assert_eq!(info["tables"], serde_json::json!([]));
}
