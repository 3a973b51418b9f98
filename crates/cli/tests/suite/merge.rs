//! Runs `nandex merge` as a child process, against maps that cannot be wrong.

use std::collections::BTreeMap;
use std::fs;
use std::ops::Range;

use serde_json::Value;

use crate::common::{Folder, Outcome, json};

type Map = BTreeMap<u64, u64>;

fn ok(outcome: Outcome) -> Outcome {
    assert_eq!(outcome.code, 0, "{outcome:?}");
    outcome
}

/// Creates a volume with a table of these keys, each with its number times `factor`.
fn make(folder: &Folder, name: &str, how: &str, keys: Range<u64>, factor: u64) -> Map {
    ok(folder.run(&format!("create {name} --key-bytes 8 --value-bytes 8 {how}")));
    let map: Map = keys.map(|key| (key, key * factor)).collect();
    let records: String = map.iter().map(|(key, value)| format!("{key},{value}\n")).collect();
    let load = format!("load {name} --format csv --key-format u64");
    ok(folder.run_with(&load, records.as_bytes()));
    map
}

fn dumped(folder: &Folder, name: &str) -> Map {
    let outcome = ok(folder.run(&format!("dump {name} --format csv --key-format u64")));
    let pair = |line: &str| {
        let (key, value) = line.split_once(',').expect("two fields");
        (key.parse().expect("a key"), value.parse().expect("a value"))
    };
    outcome.stdout.lines().skip(1).map(pair).collect()
}

fn merge(folder: &Folder, words: &str) -> Value {
    json(&ok(folder.run(&format!("merge {words} --json"))))
}

/// Creates two volumes that share 4,000 of their keys, each of 10,000, a third of them with equal values.
fn two(folder: &Folder, first: &str, second: &str) -> (Map, Map) {
    let one = make(folder, "a.nandex", first, 0..10_000, 3);
    let mut other = make(folder, "b.nandex", second, 6000..16_000, 5);
    let equal: String =
        (6000..10_000).step_by(3).map(|key| format!("{key},{}\n", key * 3)).collect();
    ok(folder.run_with("load b.nandex --format csv --key-format u64", equal.as_bytes()));
    other.extend((6000..10_000).step_by(3).map(|key| (key, key * 3)));
    (one, other)
}

#[test]
fn two_tables_become_one_by_the_rule_and_the_report_says_what_both_have() {
    let kinds = ["bufferhash", "slicehash", "growing", "growing-slicehash"];
    for (number, kind) in kinds.iter().enumerate() {
        let folder = Folder::new();
        let how = |kind: &str| format!("--structure {kind} --entries 20k");
        let (one, other) = two(&folder, &how(kind), &how(kinds[(number + 1) % 4]));
        for (prefer, words) in [("first", ""), ("second", "--prefer second")] {
            let found = merge(&folder, &format!("a.nandex b.nandex -o {prefer}.nandex {words}"));
            let (mut winner, loser) =
                if prefer == "first" { (one.clone(), &other) } else { (other.clone(), &one) };
            loser.iter().for_each(|(key, value)| {
                winner.entry(*key).or_insert(*value);
            });
            assert_eq!(dumped(&folder, &format!("{prefer}.nandex")), winner, "{kind}");
            let counts = ["keys", "shared", "differing", "entries", "evicted", "passes"];
            let counts = counts.map(|name| found[name].as_u64().expect("a number"));
            assert_eq!(counts, [16_000, 4000, 2666, 16_000, 0, 1], "{found}");
            assert_eq!(
                (&found["first"]["entries"], &found["second"]["entries"]),
                (&10_000.into(), &10_000.into())
            );
            assert_eq!(
                (&found["first"]["path"], &found["prefer"]),
                (&"a.nandex".into(), &prefer.into())
            );
            let merges_into = if kind.contains("slicehash") { "slicehash" } else { "bufferhash" };
            assert_eq!(found["structure"], merges_into);
            ok(folder.run(&format!("check {prefer}.nandex")));
        }
        let counted = merge(&folder, "a.nandex b.nandex --count");
        assert_eq!((&counted["shared"], &counted["keys"]), (&4000.into(), &16_000.into()));
        assert_eq!(
            fs::read_dir(folder.path(".")).expect("it is there").count(),
            4,
            "nothing is left"
        );
    }
}

#[test]
fn text_says_the_same_and_keys_of_one_table_are_merged_in_few_passes() {
    let folder = Folder::new();
    let how = "--structure slicehash --entries 20k --hash-key shared";
    two(&folder, how, "--structure slicehash --entries 20k");
    let Outcome { stdout: text, stderr: said, .. } = ok(folder
        .run("merge a.nandex b.nandex -o c.nandex --structure bufferhash --merge-ram 5000KiB"));
    assert!(said.contains("pages are read up to 2 times, fewer with more --merge-ram"), "{said}");
    for line in [
        "volume     c.nandex",
        "structure  bufferhash",
        "first      10,000 entries in main of a.nandex",
        "second     10,000 entries in main of b.nandex",
        "both have  4,000 keys, 2,666 of them with other values",
        "together   16,000 keys",
        "kept       values of the first one",
        "holds      16,000 entries",
    ] {
        assert!(text.contains(line), "{line}: {text}");
    }
    assert!(text.contains("passes     2"), "{text}");
    assert_eq!(dumped(&folder, "c.nandex").len(), 16_000);
}

#[test]
fn empty_tables_equal_tables_and_removals_merge() {
    let folder = Folder::new();
    let how = "--entries 20k --policy fifo --hash-key 5";
    let one = make(&folder, "a.nandex", how, 0..9000, 2);
    make(&folder, "none.nandex", how, 0..0, 1);
    let found = merge(&folder, "a.nandex none.nandex -o c.nandex");
    assert_eq!((&found["keys"], &found["shared"]), (&9000.into(), &0.into()));
    assert_eq!(dumped(&folder, "c.nandex"), one);
    fs::copy(folder.path("a.nandex"), folder.path("same.nandex")).expect("it can be copied");
    let found = merge(&folder, "a.nandex same.nandex -o d.nandex");
    assert_eq!(
        (&found["keys"], &found["shared"], &found["differing"]),
        (&9000.into(), &9000.into(), &0.into())
    );
    assert_eq!(dumped(&folder, "d.nandex"), one);
    make(&folder, "other.nandex", how, 0..0, 1);
    let found = merge(&folder, "none.nandex other.nandex -o e.nandex");
    assert_eq!((&found["keys"], &found["entries"]), (&0.into(), &0.into()));
    // A removal hides the entry of its own volume alone.
    ok(folder.run("delete a.nandex --key-format u64 7 8"));
    ok(folder.run("delete same.nandex --key-format u64 8 9"));
    let found = merge(&folder, "a.nandex same.nandex -o f.nandex");
    assert_eq!((&found["keys"], &found["shared"]), (&8999.into(), &8997.into()));
    let mut left = one;
    left.remove(&8);
    assert_eq!(dumped(&folder, "f.nandex"), left);
}

#[test]
fn what_cannot_merge_is_refused_and_nothing_is_made() {
    let folder = Folder::new();
    make(&folder, "a.nandex", "--entries 20k", 0..100, 1);
    make(&folder, "b.nandex", "--entries 20k", 50..150, 1);
    ok(folder.run("create wide.nandex --key-bytes 16 --value-bytes 8 --entries 1000"));
    ok(folder.run("create any.nandex"));
    ok(folder.run("create rhik.nandex --key-bytes 8 --structure rhik"));
    ok(folder.run_with("filter build f.nandex", b"7\n"));
    fs::write(folder.path("there"), "text").expect("the folder is writable");
    folder.assert_refused(
        "
2 | merge a.nandex a.nandex -o c.nandex | named twice
2 | merge a.nandex ./a.nandex -o c.nandex | named twice
1 | merge a.nandex none.nandex -o c.nandex | No such file
2 | merge a.nandex wide.nandex -o c.nandex | wide.nandex has keys of 16 bytes and values of 8, a.nandex has keys of 8
2 | merge a.nandex any.nandex -o c.nandex | any size
1 | merge a.nandex rhik.nandex -o c.nandex | cannot be merged
1 | merge a.nandex f.nandex -o c.nandex | is a filter
1 | merge a.nandex there -o c.nandex | there
1 | merge a.nandex b.nandex -o there | it exists
1 | merge a.nandex b.nandex -o a.nandex | it exists
1 | merge a.nandex b.nandex -o c.nandex --table other | other
2 | merge a.nandex b.nandex -o c.nandex --policy grow | fixed size
2 | merge a.nandex b.nandex -o c.nandex --merge-ram 1MiB | --merge-ram is too small: 1.00 MiB
2 | merge a.nandex b.nandex -o c.nandex --ram 1KiB | --ram: 1024 bytes
2 | merge a.nandex b.nandex | --output
2 | merge a.nandex b.nandex --count -o c.nandex | cannot be used
2 | merge a.nandex b.nandex -o c.nandex --structure rhik | bufferhash
2 | merge a.nandex b.nandex -o c.nandex --prefer third | second
",
    );
    assert!(!folder.path("c.nandex").exists() && !folder.path("c.nandex.unfinished").exists());
    assert_eq!(fs::read_to_string(folder.path("there")).expect("it is there"), "text");
}

#[test]
fn a_table_that_is_too_small_is_refused_before_it_is_made_or_evicts_and_says_so() {
    let folder = Folder::new();
    for (name, keys) in [("a.nandex", 0..60_000), ("b.nandex", 30_000..90_000)] {
        make(&folder, name, "--entries 100k --structure slicehash", keys, 1);
    }
    let small = "merge a.nandex b.nandex -o c.nandex --entries 20k";
    let refused = folder.run(small);
    assert_eq!(refused.code, 2, "{refused:?}");
    assert!(refused.stderr.contains("90,000 different keys"), "{refused:?}");
    assert!(!folder.path("c.nandex").exists() && !folder.path("c.nandex.unfinished").exists());
    let evicted = folder.run(&format!("{small} --policy fifo --json"));
    assert_eq!(evicted.code, 4, "{evicted:?}");
    let found = json(&evicted);
    let (gone, left) = (found["evicted"].as_u64(), found["entries"].as_u64());
    let (gone, left) = (gone.expect("a number"), left.expect("a number"));
    assert!(gone > 0 && gone + left == 90_000, "{found}");
    assert_eq!(dumped(&folder, "c.nandex").len() as u64, left);
    // Keys that both have count once, so that this is enough.
    let enough = merge(&folder, "a.nandex b.nandex -o d.nandex --entries 90k");
    assert_eq!(enough["entries"], 90_000);
}

/// Leaves the file as a stopped merge does.
fn unfinish(folder: &Folder, name: &str) {
    let unfinished = folder.path(&format!("{name}.unfinished"));
    fs::rename(folder.path(name), unfinished).expect("it is there");
}

#[test]
fn a_merge_that_was_stopped_is_resumed_or_begins_again_and_counts_the_same() {
    for kind in ["bufferhash", "slicehash"] {
        let folder = Folder::new();
        let how = format!("--entries 20k --structure {kind} --hash-key shared");
        let (one, mut union) = two(&folder, &how, &how);
        union.extend(&one);
        make(&folder, "none.nandex", &how, 0..0, 1);
        // A stopped merge has left this: entries of the first input, and entries of the second one with values that
        // lose.
        ok(folder.run("merge a.nandex none.nandex -o c.nandex --entries 30k"));
        ok(folder.run("merge b.nandex none.nandex -o d.nandex --entries 30k"));
        for name in ["c", "d"] {
            unfinish(&folder, &format!("{name}.nandex"));
            let words = format!("a.nandex b.nandex -o {name}.nandex --entries 30k --resume");
            let found = merge(&folder, &words);
            let counts = ["keys", "shared", "differing", "entries"].map(|it| found[it].as_u64());
            assert_eq!(counts, [16_000, 4000, 2666, 16_000].map(Some), "{found}");
            assert_eq!(found["resumed"], true);
            assert_eq!(dumped(&folder, &format!("{name}.nandex")), union, "{kind}");
            ok(folder.run(&format!("check {name}.nandex")));
        }
        // If nothing is left, or something that is not a volume, the merge begins again.
        fs::write(folder.path("e.nandex.unfinished"), "text").expect("the folder is writable");
        for name in ["e", "f"] {
            let found = merge(&folder, &format!("a.nandex b.nandex -o {name}.nandex --resume"));
            assert_eq!((&found["keys"], &found["resumed"]), (&16_000.into(), &false.into()));
        }
    }
}

#[test]
fn what_was_begun_otherwise_is_not_resumed_and_stays() {
    let folder = Folder::new();
    for (name, keys) in [("a.nandex", 0..100), ("b.nandex", 50..150), ("c.nandex", 500..600)] {
        make(&folder, name, "--entries 20k", keys, 1);
    }
    ok(folder.run("merge a.nandex c.nandex -o d.nandex --entries 20k"));
    unfinish(&folder, "d.nandex");
    folder.assert_refused(
        "
2 | merge a.nandex b.nandex -o d.nandex --resume --entries 40k | was begun for other volumes or with other options
2 | merge a.nandex b.nandex -o d.nandex --resume --entries 20k | 100 keys that neither volume has
2 | merge a.nandex b.nandex -o d.nandex --resume --policy fifo | a table that evicts
2 | merge a.nandex b.nandex -o d.nandex --resume --force | cannot be used
2 | merge a.nandex b.nandex --count --resume | cannot be used
",
    );
    assert!(folder.path("d.nandex.unfinished").exists() && !folder.path("d.nandex").exists());
    let found = merge(&folder, "a.nandex b.nandex -o d.nandex --entries 20k");
    assert_eq!((&found["keys"], &found["resumed"]), (&150.into(), &false.into()));
    assert!(!folder.path("d.nandex.unfinished").exists());
}

#[test]
fn a_damaged_page_of_an_input_leaves_no_output() {
    let folder = Folder::new();
    for (name, keys) in [("a.nandex", 0..60_000), ("b.nandex", 30_000..90_000)] {
        make(&folder, name, "--entries 100k --structure slicehash", keys, 1);
    }
    let mut bytes = fs::read(folder.path("b.nandex")).expect("it is there");
    let is_slice = |page: &[u8]| page[4..8] == *b"ndx1" && page[8] == 6;
    let slices = bytes.chunks_mut(4096).filter(|page| is_slice(page));
    assert!(slices.map(|page| page[2000] ^= 1).count() > 0, "there are slices");
    fs::write(folder.path("b.nandex"), bytes).expect("the folder is writable");
    let outcome = folder.run("merge a.nandex b.nandex -o c.nandex");
    assert_eq!(outcome.code, 3, "{outcome:?}");
    assert!(outcome.stderr.contains("page"), "{outcome:?}");
    assert!(!folder.path("c.nandex").exists() && !folder.path("c.nandex.unfinished").exists());
}
