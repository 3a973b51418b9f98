//! Files that `dedup` cannot read, and holes.

use std::fs;

use crate::common::{Folder, Outcome, json};

/// Creates a file in the folder whose path is too long to open, for any user.
fn add_unreadable(folder: &Folder) {
    let deep =
        |name: &str| folder.path(&format!("tree/{name}")).join(vec!["d".repeat(250); 9].join("/"));
    for name in ["a", "b"] {
        fs::create_dir_all(deep(name)).expect("the folder is writable");
    }
    fs::write(deep("b").join("file"), "unread").expect("the folder is writable");
    fs::rename(folder.path("tree/b"), deep("a").join("b")).expect("the folder is writable");
}

#[test]
fn what_cannot_be_read_is_told_in_text_in_json_and_by_the_exit_code() {
    let folder = Folder::new();
    fs::create_dir(folder.path("tree")).expect("the folder is writable");
    fs::write(folder.path("tree/good"), "read").expect("the folder is writable");
    assert_eq!(folder.run("dedup tree --ram 8MiB").code, 0);
    add_unreadable(&folder);
    let text = folder.run("dedup tree --ram 8MiB");
    assert_eq!(text.code, 4, "{text:?}");
    assert!(text.stdout.contains("\nUnreadable   1 files and directories"), "{text:?}");
    assert!(text.stderr.contains("1 files and directories could not be read"), "{text:?}");
    let summary = folder.run("dedup tree --ram 8MiB --json");
    assert_eq!((summary.code, &json(&summary)["unreadable_count"]), (4, &1.into()));
    assert_eq!(json(&summary)["total_bytes"], 4);
}

#[test]
fn an_index_keeps_what_it_was_made_with_and_refuses_other_settings() {
    let folder = Folder::new();
    fs::write(folder.path("data"), noise(1 << 20)).expect("the folder is writable");
    let made = "dedup data --index i.nandex --chunker rabin --avg 1KiB --hash sha1 --json";
    assert_eq!(folder.run(made).code, 0);
    // It used to be cut by the default chunker, and nothing was found.
    let again = folder.run("dedup data --index i.nandex --json");
    let summary = json(&again);
    assert_eq!((&summary["chunker"], &summary["hash"]), (&"rabin".into(), &"sha1".into()));
    assert_eq!(
        (&summary["average_bytes"], &summary["duplicate_fraction"]),
        (&1024.into(), &1.0.into())
    );
    folder.assert_refused(
        "2 | dedup data --index i.nandex --avg 2KiB | it was made with --avg 1KiB, and --avg 2KiB is asked for\n\
         2 | dedup data --index i.nandex --chunker fastcdc | it was made with --chunker rabin\n\
         2 | dedup data --index i.nandex --hash blake3 | leave --hash out, or name another file",
    );
    assert_eq!(json(&folder.run(made))["unique_chunks"], 0);
}

/// Returns bytes without duplicate chunks.
fn noise(bytes: usize) -> Vec<u8> {
    let mut state = 1_u64;
    let mut next = || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        (state >> 56) as u8
    };
    (0..bytes).map(|_| next()).collect()
}

#[test]
fn an_index_that_forgets_never_does_so_silently() {
    let folder = Folder::new();
    fs::write(folder.path("small"), "a few bytes").expect("the folder is writable");
    fs::write(folder.path("big"), noise(48 << 20)).expect("the folder is writable");
    let made = "dedup small --index i.nandex --avg 256 --structure bufferhash --json";
    let small = json(&folder.run(made));
    assert_eq!(
        (&small["forgotten_entries"], &small["forgotten_entries_life"]),
        (&0.into(), &0.into())
    );
    let life = |outcome: &Outcome| {
        let summary = json(outcome);
        let count = |name: &str| summary[name].as_u64().expect("a count");
        (count("forgotten_entries"), count("forgotten_entries_life"))
    };
    let first = folder.run("dedup big --index i.nandex --json");
    let (run, in_life) = life(&first);
    assert!(run > 10_000 && in_life == run, "{first:?}");
    assert!(first.stderr.contains("the index was made for"), "{first:?}");
    assert!(first.stderr.contains("the index is full: it forgot"), "{first:?}");
    let second = folder.run("dedup big --index i.nandex --json");
    assert!(life(&second).0 > 10_000 && life(&second).1 >= life(&second).0 + in_life, "{second:?}");
    // Nothing is forgotten in this run, and its figures are still too low.
    let third = folder.run("dedup small --index i.nandex");
    assert!(third.stdout.contains("at least: "), "{third:?}");
    assert!(third.stdout.contains("\nForgotten    0 entries in this run, "), "{third:?}");
    assert!(third.stderr.contains("fingerprints in this run and "), "{third:?}");
}

/// Only fingerprints that `dedup` itself made an index forget were counted.
#[test]
fn an_index_tells_what_another_verb_made_it_forget() {
    let folder = Folder::new();
    fs::write(folder.path("small"), "a few bytes").expect("the folder is writable");
    let dedup = "dedup small --index i.nandex --avg 256 --structure bufferhash --json";
    assert_eq!(json(&folder.run(dedup))["forgotten_entries_life"], 0);
    let info = json(&folder.run("info i.nandex --json"));
    let width = |name: &str| info["tables"][0][name].as_u64().expect("a width");
    let record_bytes = width("key_bytes") + width("value_bytes");
    let records = 200_000 * usize::try_from(record_bytes).expect("a few bytes");
    fs::write(folder.path("in"), noise(records)).expect("the folder is writable");
    let table = info["tables"][0]["name"].as_str().expect("a name");
    let loaded = folder.run(&format!("load i.nandex in --table {table} --format binary --json"));
    let evicted = json(&loaded)["evicted"].as_u64().expect("a count");
    let again = json(&folder.run(dedup));
    assert_eq!(again["forgotten_entries"], 0);
    let life = again["forgotten_entries_life"].as_u64().expect("a count");
    assert!(evicted > 10_000 && life >= evicted, "{evicted}, {again}");
}

#[test]
fn an_index_grows_with_what_comes_and_says_when_its_ram_is_spent() {
    let folder = Folder::new();
    fs::write(folder.path("small"), "a few bytes").expect("the folder is writable");
    fs::write(folder.path("big"), noise(48 << 20)).expect("the folder is writable");
    assert_eq!(folder.run("dedup small --index i --avg 256 --ram 8MiB --json").code, 0);
    // The message used to say that the index "grows to 0 fingerprints".
    let refused = folder.run("dedup big --index i --ram 2MiB --json");
    assert!(refused.stderr.contains("and --ram 2.00 MiB is too little; state more"), "{refused:?}");
    let stopped = folder.run("dedup big --index i --ram 2304KiB --json");
    assert_eq!(stopped.code, 1, "{stopped:?}");
    assert!(stopped.stderr.contains("of RAM the index grows to"), "{stopped:?}");
    assert!(stopped.stderr.contains("the table cannot grow: it holds "), "{stopped:?}");
    let grown = folder.run("dedup big --index i --json");
    assert!(grown.code == 0 && !grown.stderr.contains("fingerprints"), "{grown:?}");
    let again = json(&folder.run("dedup big --index i --json"));
    assert_eq!(
        (&again["duplicate_fraction"], &again["forgotten_entries_life"]),
        (&1.0.into(), &0.into())
    );
    assert!(again["index_entries"].as_u64() > Some(150_000), "{again}");
}

#[test]
fn an_index_made_for_what_is_expected_forgets_nothing() {
    let folder = Folder::new();
    fs::write(folder.path("small"), "a few bytes").expect("the folder is writable");
    fs::write(folder.path("big"), noise(48 << 20)).expect("the folder is writable");
    for (index, expected) in [("a", "300k"), ("b", "76MiB")] {
        let made = format!("dedup small --index {index} --avg 256 --expect {expected} --json");
        assert_eq!(folder.run(&made).code, 0);
        let big = format!("dedup big --index {index} --json");
        for fraction in [0.0, 1.0] {
            let outcome = folder.run(&big);
            let summary = json(&outcome);
            assert_eq!(summary["forgotten_entries_life"], 0, "{outcome:?}");
            assert_eq!(summary["duplicate_fraction"], fraction, "{outcome:?}");
        }
    }
    folder.assert_refused("2 | dedup small --expect much | chunks, such as 10M");
}

#[test]
fn trees_are_compared_in_text_in_json_and_on_the_page() {
    let folder = Folder::new();
    for tree in ["a", "b"] {
        fs::create_dir(folder.path(tree)).expect("the folder is writable");
    }
    let content = noise(1 << 20);
    fs::write(folder.path("a/file"), &content).expect("the folder is writable");
    fs::write(folder.path("b/copy"), &content).expect("the folder is writable");
    fs::write(folder.path("b/other"), vec![7; 1 << 20]).expect("the folder is writable");
    let compared = json(&folder.run("dedup a b --compare --json --report page.html"));
    let trees = &compared["comparison"]["trees"];
    assert_eq!(trees[0]["shared_fraction"], serde_json::json!([1.0, 1.0]));
    assert_eq!(trees[1]["shared_bytes"], serde_json::json!([1 << 20, 2 << 20]));
    let copy = &compared["comparison"]["copies"][0];
    assert_eq!((&copy["path"], &copy["copy_of"]), (&"b/copy".into(), &"a/file".into()));
    let text = folder.run("dedup a b --compare").stdout;
    assert!(text.contains("1.00 MiB  50.0 %") && text.contains("b/copy  from  a/file"), "{text}");
    let page = fs::read_to_string(folder.path("page.html")).expect("it was made");
    assert!(page.contains("What the trees share") && page.contains("Earlier file"), "{page}");
    folder.assert_refused(
        "2 | dedup a --compare | 1 trees to compare: a run compares 2 to 14\n\
         2 | dedup a b --compare --index i | cannot be used with",
    );
}
