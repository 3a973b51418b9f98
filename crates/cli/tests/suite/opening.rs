//! Options of an opening: one flag of all verbs that open a table, a filter, counts or the index of an application.

use std::fs;

use crate::common::{Folder, Outcome, json};

fn ok(outcome: Outcome) -> Outcome {
    assert_eq!(outcome.code, 0, "{outcome:?}");
    outcome
}

fn with_all() -> Folder {
    let folder = Folder::new();
    fs::write(folder.path("in.csv"), "key,value\nk,v\n").expect("the folder is writable");
    fs::write(folder.path("keys"), "a\nb\na\n").expect("the folder is writable");
    ok(folder.run("create t --entries 1000"));
    ok(folder.run("create fixed --entries 1000 --key-bytes 8 --structure bufferhash"));
    ok(folder.run("filter build f keys --keys 1000"));
    ok(folder.run("count build c keys --keys 1000 --set read_depth=8"));
    folder
}

/// Verbs with a structure each; those of one line create what the next ones look up.
const VERBS: [&str; 14] = [
    "load t in.csv --format csv",
    "get t k",
    "dump t --format csv",
    "delete t k",
    "filter add f keys",
    "filter test f keys",
    "filter info f",
    "filter delete f keys",
    "count add c keys",
    "count get c a",
    "count top c 2",
    "count dump c",
    "count remove c b",
    "filter build new keys --keys 1000",
];

/// The same verbs of applications.
const OF_APPLICATIONS: [&str; 36] = [
    "tfidf build w pets --ram 64MiB",
    "tfidf update w more --ram 64MiB",
    "tfidf query w fish --ram 64MiB",
    "tfidf keywords w pets --ram 64MiB",
    "tfidf index w pets --ram 64MiB",
    "tfidf rank w fish pets --ram 64MiB",
    "tfidf export w pets --npz m.npz --ram 64MiB",
    "tfidf report w --ram 64MiB",
    "tfidf remove w more --ram 64MiB",
    "tfidf build v more --ram 64MiB",
    "tfidf merge w v --ram 64MiB",
    "neardup index n pets --documents 1k",
    "neardup index n more --documents 1k",
    "neardup query n pets",
    "neardup pairs n",
    "neardup clusters n",
    "neardup stats n",
    "neardup remove n pets:1",
    "neardup dedup o pets --kept kept --documents 1k",
    "wan store pets -o refs --cache h --size 4MiB",
    "wan store more -o refs --cache h --size 4MiB",
    "wan restore refs --cache h -o copy",
    "wan info h",
    "kvssd create d --capacity 16MiB --pairs 1e4 --value-max 16KiB",
    "kvssd put d key value",
    "kvssd get d key",
    "kvssd exist d key",
    "kvssd list d",
    "kvssd space create d other",
    "kvssd space list d",
    "kvssd space delete d other",
    "kvssd rm d key",
    "kvssd info d",
    "kvssd bench d --count 100 --value-bytes 100",
    "dedup pets --index i --ram 8MiB",
    "dedup more --index i --ram 8MiB",
];

#[test]
fn every_verb_that_opens_takes_options_and_refuses_what_is_none() {
    let folder = with_all();
    fs::write(folder.path("pets"), "red fish blue fish\nthe red cat\n").expect("a file");
    fs::write(folder.path("more"), "the cat sat\n").expect("a file");
    for verb in VERBS.into_iter().chain(OF_APPLICATIONS) {
        let refused = folder.run(&format!("{verb} --set colour=red"));
        let told = "\"colour\" is not a parameter; the parameters are";
        assert!(refused.code != 0 && refused.stderr.contains(told), "{verb}: {refused:?}");
        let listed = "read_depth (1 to 4,096; 32 unless stated)";
        assert!(refused.stderr.contains(listed), "{verb}: {refused:?}");
        let refused = folder.run(&format!("{verb} --set read_depth=0"));
        let told = "read_depth: 0; it must be 1 to 4,096";
        assert!(refused.code != 0 && refused.stderr.contains(told), "{verb}: {refused:?}");
        ok(folder.run(&format!("{verb} --set read_depth=4 --set flush_threads=0")));
    }
    let merged = folder.run("merge fixed fixed -o m --set colour=red");
    assert!(merged.code != 0, "{merged:?}");
}

#[test]
fn what_is_stated_reaches_the_structure_and_is_not_kept() {
    let folder = with_all();
    let ram = |words: &str| {
        json(&ok(folder.run(&format!("filter info f --json {words}"))))["ram_bytes"].as_u64()
    };
    assert!(ram("--set io_chunk_pages=200") > ram("--set io_chunk_pages=4"));
    assert_eq!(ram(""), ram(""));
    let values = json(&ok(folder.run("filter info f --json")))["values"].clone();
    assert!(values.get("io_chunk_pages").is_none(), "{values}");
    let parts = values["parts"].as_str().expect("text");
    ok(folder.run(&format!("filter info f --set parts={parts}")));
    let others = parts.parse::<u32>().expect("a number") * 2;
    let refused = folder.run(&format!("filter info f --set parts={others}"));
    let told = format!("exists with parts = {parts}, and was required with {others}");
    assert!(refused.code != 0 && refused.stderr.contains(&told), "{refused:?}");
}

#[test]
fn parameters_of_an_application_are_stated_once_and_those_that_it_depends_on_are_not() {
    let folder = with_all();
    for (making, opening, stated, other) in [
        ("tfidf build w keys", "tfidf report w", "incarnations_max=31", "incarnations_max=30"),
        ("neardup index n keys", "neardup stats n", "spare_buffers=3", "spare_buffers=4"),
        (
            "wan store keys -o r --cache h --size 4MiB",
            "wan info h",
            "cascade_limit=3",
            "cascade_limit=2",
        ),
        ("kvssd create d --index bufferhash", "kvssd info d", "spare_buffers=3", "spare_buffers=4"),
        (
            "dedup keys --index i",
            "dedup keys --index i",
            "incarnations_max=31",
            "incarnations_max=30",
        ),
    ] {
        ok(folder.run(&format!("{making} --set {stated}")));
        ok(folder.run(&format!("{opening} --set {stated}")));
        let refused = folder.run(&format!("{opening} --set {other}"));
        let told = format!("exists with {}", stated.replace('=', " = "));
        assert!(refused.code != 0 && refused.stderr.contains(&told), "{opening}: {refused:?}");
    }
    folder.assert_refused(
        "2 | tfidf build new keys --set ram_bytes_max=1MiB | RAM and the widths of keys and values follow from
        2 | tfidf build new keys --set first.key_bytes=8 | RAM and the widths of keys and values follow from
        2 | wan store keys -o r --cache new --set policy=lru | policy and the widths of keys and values follow from
        2 | kvssd create new --set value_bytes=8 | it follows from what the index of a drive is
        2 | dedup keys --index new --set key_bytes=8 | it follows from what an index of fingerprints is",
    );
    assert!(!folder.path("new").exists());
}

#[test]
fn all_that_a_kind_can_be_told_is_listed() {
    let folder = Folder::new();
    let kinds = ok(folder.run("parameters")).stdout;
    for kind in ["bufferhash", "slicehash", "cascade", "counting", "slicelsh"] {
        assert!(kinds.contains(kind), "{kinds}");
        let listed = json(&ok(folder.run(&format!("parameters {kind} --json"))));
        let listed = listed.as_array().expect("a list");
        let depth = listed.iter().find(|it| it["name"] == "read_depth").expect("it is listed");
        assert_eq!(
            (depth["kept"].clone(), depth["values"].clone()),
            (false.into(), "1 to 4,096".into())
        );
        assert!(listed.iter().any(|it| it["kept"] == true), "{listed:?}");
    }
    let text = ok(folder.run("parameters bufferhash")).stdout;
    assert!(text.contains("filter.bits: ") && text.contains("of an opening"), "{text}");
    folder.assert_refused("1 | parameters generation | there are bufferhash, slicehash");
}
