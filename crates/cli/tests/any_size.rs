//! Tables of keys and values of any size, `delete`, and keys from stdin.
#![forbid(unsafe_code)]

#[expect(dead_code, reason = "shared with the tests of other verbs, which use more of it")]
mod common;

use std::fs;
use std::io::Write;

use common::{Folder, Outcome, json};
use serde_json::Value;

#[track_caller]
fn ok(outcome: Outcome) -> Outcome {
    assert_eq!(outcome.code, 0, "{outcome:?}");
    outcome
}

/// A folder with a table of words of any size.
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
        (0..30_000).map(|key| format!("key {key},{}\n", "x".repeat(400))).collect();
    fs::write(folder.path("in.csv"), records).expect("the folder is writable");
    ok(folder.run("create r.nandex --entries 1e5 --bytes 4MiB"));
    let refused = folder.run("load r.nandex in.csv --format csv");
    assert_eq!(refused.code, 1, "{refused:?}");
    assert!(refused.stderr.contains("full"), "{refused:?}");
    ok(folder.run("create f.nandex --entries 1e5 --bytes 4MiB --policy fifo"));
    ok(folder.run("load f.nandex in.csv --format csv"));
    assert_eq!(folder.run("get f.nandex key_0").code, 1);
}

/// Exit codes, commands, and what they say.
const WRONG: &str = r#"
1 | create n.nandex --entries 1e4 --policy lru | policy lru: keys and values of any size take reject or fifo
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
