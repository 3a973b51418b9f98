//! Runs each verb of `nandex neardup` as a child process, over texts whose duplicates are known.

use std::collections::BTreeSet;
use std::fs;

use crate::common::{Folder, Outcome, json};
use serde_json::{Value, json as value};

/// The least RAM, and a small index.
const SMALL: &str = "--ram 64MiB --documents 10k";
const RAM: &str = "--ram 64MiB";

#[track_caller]
fn ok(outcome: Outcome) -> Outcome {
    assert_eq!(outcome.code, 0, "{outcome:?}");
    outcome
}

fn write(folder: &Folder, name: &str, text: &str) {
    fs::write(folder.path(name), text).expect("the folder is writable");
}

fn objects(text: &str) -> Vec<Value> {
    text.lines().map(|line| serde_json::from_str(line).expect("an object in each line")).collect()
}

fn written(folder: &Folder, name: &str) -> Vec<Value> {
    objects(&fs::read_to_string(folder.path(name)).expect("the file is there"))
}

fn sentence(number: u32) -> String {
    let word = |n: u32| format!("word{}", (number * 7919 + n * n * 31) % 10_007);
    (0..40).map(word).collect::<Vec<_>>().join(" ")
}

/// Creates texts: lines 1 and 2 are new, 3 is 1, 4 is near 1, 5 is near 2, 6 is new.
fn with_texts() -> Folder {
    let folder = Folder::new();
    let near = sentence(1).replace(' ', ", ");
    let other = format!("{} and more", sentence(2));
    let lines = [sentence(1), sentence(2), sentence(1), near, other, sentence(3)];
    write(&folder, "t.txt", &(lines.join("\n") + "\n"));
    folder
}

#[test]
fn dedup_writes_what_is_new_and_why_the_others_are_not() {
    let folder = with_texts();
    let dedup =
        format!("neardup dedup t.nandex t.txt --kept k.jsonl --audit a.jsonl {SMALL} --json");
    let done = json(&ok(folder.run(&dedup)));
    for (name, expected) in [("added", 6), ("kept", 3), ("exact", 1), ("near", 2), ("broken", 0)] {
        assert_eq!(done[name], value!(expected), "{name}");
    }
    let ids: Vec<Value> = written(&folder, "k.jsonl").iter().map(|it| it["id"].clone()).collect();
    assert_eq!(ids, ["t.txt:1", "t.txt:2", "t.txt:6"]);
    assert_eq!(written(&folder, "k.jsonl")[2]["text"], value!(sentence(3)));
    let audit = written(&folder, "a.jsonl");
    let pairs: Vec<_> =
        audit.iter().map(|it| (it["removed"].clone(), it["kept"].clone())).collect();
    let pair = |removed: &str, kept: &str| (value!(removed), value!(kept));
    let expected =
        [pair("t.txt:3", "t.txt:1"), pair("t.txt:4", "t.txt:1"), pair("t.txt:5", "t.txt:2")];
    assert_eq!(pairs, expected);
    assert_eq!((&audit[0]["estimate"], &audit[0]["exact"]), (&value!(1.0), &value!(true)));
    assert_eq!((&audit[1]["estimate"], &audit[1]["exact"]), (&value!(1.0), &value!(false)));
    let estimate = audit[2]["estimate"].as_f64().expect("a number");
    assert!((0.8..1.0).contains(&estimate), "{estimate}");
    // The same run again fails, or gives the same files.
    let again = folder.run(&dedup);
    assert!(
        again.code == 1 && again.stderr.contains("t.txt:1 is in the index already"),
        "{again:?}"
    );
    assert!(again.stderr.contains("--skip-repeats"), "{again:?}");
    fs::remove_file(folder.path("k.jsonl")).expect("it is there");
    let done = json(&ok(folder.run(&format!("{dedup} --skip-repeats"))));
    assert_eq!((&done["added"], &done["repeated"]), (&value!(0), &value!(6)));
    assert_eq!(written(&folder, "a.jsonl"), audit);
    assert_eq!(written(&folder, "k.jsonl").len(), 3);
    let left: Vec<_> = fs::read_dir(folder.path(".")).expect("a folder").collect();
    assert_eq!(left.len(), 4, "no unfinished files: {left:?}");
}

#[test]
fn query_pairs_clusters_remove_and_stats_say_what_the_index_has() {
    let folder = with_texts();
    ok(folder.run(&format!("neardup index t.nandex t.txt {SMALL}")));
    write(&folder, "q.txt", &format!("{}\nnothing like it\n{}.\n", sentence(3), sentence(2)));
    let found = ok(folder.run(&format!("neardup query t.nandex q.txt {RAM} --json")));
    let found = objects(&found.stdout);
    let ids = |it: &Value| -> Vec<Value> {
        it["matches"].as_array().expect("a list").iter().map(|it| it["id"].clone()).collect()
    };
    assert_eq!(ids(&found[0]), ["t.txt:6"]);
    assert_eq!((found[1]["new"].clone(), ids(&found[1]).len()), (value!(true), 0));
    assert_eq!(ids(&found[2]), ["t.txt:2", "t.txt:5"]);
    write(&folder, "n.txt", "nothing like it\n");
    let none = folder.run(&format!("neardup query t.nandex n.txt {RAM}"));
    assert_eq!((none.code, &none.stdout[..]), (1, "n.txt:1\tnew\n"), "{none:?}");
    let pairs = ok(folder.run(&format!("neardup pairs t.nandex {RAM}"))).stdout;
    let pairs: BTreeSet<String> =
        pairs.lines().map(|line| line.split('\t').skip(2).collect::<Vec<_>>().join(" ")).collect();
    let expected = ["t.txt:3 t.txt:1", "t.txt:4 t.txt:1", "t.txt:5 t.txt:2"];
    assert_eq!(pairs, expected.map(str::to_owned).into());
    let clusters = ok(folder.run(&format!("neardup clusters t.nandex {RAM}"))).stdout;
    assert_eq!(clusters, "0\tt.txt:1\n0\tt.txt:3\n0\tt.txt:4\n1\tt.txt:2\n1\tt.txt:5\n");
    let stats = format!("neardup stats t.nandex t.txt --html t.html {RAM} --json");
    let stats = json(&ok(folder.run(&stats)));
    assert_eq!((&stats["documents"], &stats["clusters"]), (&value!(6), &value!(2)));
    let page = fs::read_to_string(folder.path("t.html")).expect("the page is there");
    assert!(page.contains("3 of 6 documents are new") && page.contains("<ins>and more</ins>"));
    let removed = folder.run(&format!("neardup remove t.nandex t.txt:2 none {RAM} --json"));
    assert_eq!(removed.code, 1, "{removed:?}");
    let removed = json(&removed);
    assert_eq!((&removed["removed"], &removed["unknown"]), (&value!(1), &value!(["none"])));
    let again = ok(folder.run(&format!("neardup query t.nandex q.txt {RAM} --json")));
    assert_eq!(ids(&objects(&again.stdout)[2]), ["t.txt:5"]);
}

#[test]
fn parameters_of_a_new_index_are_stated_and_those_that_it_depends_on_are_not() {
    let folder = with_texts();
    let set = "--set bucket_ids_max=16 --set spare_buffers=3 --set read_depth=8";
    ok(folder.run(&format!("neardup index t.nandex t.txt {SMALL} {set}")));
    let info = json(&ok(folder.run("info t.nandex --json"))).to_string();
    for stated in ["\"bucket_ids_max\":\"16\"", "\"spare_buffers\":\"3\""] {
        assert!(info.contains(stated), "no {stated} in {info}");
    }
    folder.assert_refused(
        "2 | neardup index n.nandex t.txt --set colour=red | \"colour\" is not a parameter; the parameters are
2 | neardup index n.nandex t.txt --set policy=fifo | policy, tables and family follow from
2 | neardup index n.nandex t.txt --set family=00ff | policy, tables and family follow from
2 | neardup index n.nandex t.txt --set partitions=3 | no power of two
2 | neardup index n.nandex t.txt --ram 64MiB --set spare_buffers=60k | of seven sixteenths of it, so give
2 | neardup index n.nandex t.txt --set read_depth=0 | it must be 1 to 4,096
2 | neardup index t.nandex t.txt --set spare_buffers=4 | exists with spare_buffers = 3",
    );
    assert!(!folder.path("n.nandex").exists());
}

#[test]
fn broken_lines_stop_or_are_left_out_and_counted() {
    let folder = Folder::new();
    let good =
        |id: &str, number: u32| format!("{{\"id\":\"{id}\",\"text\":\"{}\"}}", sentence(number));
    let lines = [&good("a", 1)[..], "{\"id\":\"b\"}", "no json", "{\"text\":\"x\"}", &good("c", 2)];
    write(&folder, "t.jsonl", &(lines.join("\n") + "\n"));
    let index = |name: &str, how: &str| {
        folder.run(&format!("neardup index {name} t.jsonl --id id {SMALL} {how} --json"))
    };
    let stopped = index("s.nandex", "");
    assert!(
        stopped.code == 1 && stopped.stderr.contains("t.jsonl:2: expected a string"),
        "{stopped:?}"
    );
    assert!(stopped.stderr.contains("1 documents count, in s.nandex.unfinished"), "{stopped:?}");
    let skipped = index("k.nandex", "--broken skip");
    assert_eq!((skipped.code, &json(&skipped)["broken"]), (4, &value!(3)), "{skipped:?}");
    assert!(skipped.stderr.contains("3 broken documents are left out: document t.jsonl:2"));
    let ignored = ok(index("i.nandex", "--broken ignore"));
    assert_eq!(json(&ignored)["added"], value!(2));
    // A stopped run continues where it was.
    let resumed = index("s.nandex", "--resume --broken skip");
    assert_eq!(resumed.code, 4, "{resumed:?}");
    let done = json(&resumed);
    assert_eq!(
        (&done["added"], &done["repeated"], &done["documents"]),
        (&value!(1), &value!(1), &value!(2))
    );
    assert!(folder.path("s.nandex").exists() && !folder.path("s.nandex.unfinished").exists());
}

#[test]
fn other_options_and_files_that_are_no_index_are_refused_with_the_remedy() {
    let folder = with_texts();
    ok(folder.run(&format!("neardup index t.nandex t.txt {SMALL} --shingle 5c --bands 16x8")));
    ok(folder.run("create plain.nandex --entries 1k --key-bytes 8 --value-bytes 8"));
    folder.assert_refused(
        "\
        2 | neardup index t.nandex t.txt --ram 64MiB --shingle 3w | the index has other signatures
2 | neardup index t.nandex t.txt --ram 64MiB --scheme rensa | give the options that it was made with
        1 | neardup pairs plain.nandex --ram 64MiB | as an index of near-duplicates
        1 | neardup pairs none.nandex --ram 64MiB | none.nandex
        2 | neardup index n.nandex t.txt --ram 1MiB | --ram: 1048576 bytes; give 67108864 (64 MiB) or more
        2 | neardup index n.nandex t.txt --threshold 2 | '--threshold <SHARE>': expected a similarity
2 | neardup index n.nandex t.txt --bands 100x2 | bands: 100
2 | neardup index n.nandex t.txt --scheme datasketch --seed 4294967296 | numpy takes 0 to
        2 | neardup index n.nandex t.txt --shingle 3 | give 3w for words
        2 | neardup dedup n.nandex t.txt | --kept
        2 | create n.nandex --structure slicelsh | a slicelsh is not a table; `nandex neardup index` creates one",
    );
    assert!(!folder.path("n.nandex").exists() && !folder.path("n.nandex.unfinished").exists());
    // The same options are accepted, and so are none.
    let again = "neardup index t.nandex t.txt --ram 64MiB --skip-repeats";
    ok(folder.run(again));
    ok(folder.run(&format!("{again} --shingle 5c --bands 16x8")));
}

#[test]
fn texts_by_simhash_are_near_by_the_bits_that_differ() {
    let folder = with_texts();
    let dedup = "neardup dedup s.nandex t.txt --kept k.jsonl --audit a.jsonl --family simhash";
    let done = json(&ok(folder.run(&format!("{dedup} --bits 128 --distance 20 {SMALL} --json"))));
    assert_eq!(
        (&done["exact"], &done["near"], &done["kept"]),
        (&value!(1), &value!(2), &value!(3))
    );
    let audit = written(&folder, "a.jsonl");
    assert_eq!((&audit[0]["distance"], &audit[0]["exact"]), (&value!(0.0), &value!(true)));
    assert_eq!((&audit[1]["distance"], &audit[1]["exact"]), (&value!(0.0), &value!(false)));
    let distance = audit[2]["distance"].as_f64().expect("a number");
    assert!((1.0..=20.0).contains(&distance), "{distance}");
    let pairs = ok(folder.run(&format!("neardup pairs s.nandex {RAM}"))).stdout;
    assert!(pairs.contains("0\tnear\tt.txt:4\tt.txt:1\n"), "{pairs}");
    let stats = format!("neardup stats s.nandex --html s.html {RAM}");
    let shown = ok(folder.run(&stats)).stdout;
    assert!(
        shown.contains("SimHash of 128 bits in 21 parts") && shown.contains("20 bits that differ")
    );
    let page = fs::read_to_string(folder.path("s.html")).expect("the page is there");
    assert!(
        page.contains("signatures that differ in 20 bits or fewer"),
        "the page says what is near"
    );
    folder.assert_refused(
        "\
        2 | neardup index s.nandex t.txt --ram 64MiB --family minhash | and --family asks for minhash
2 | neardup index s.nandex t.txt --ram 64MiB --threshold 0.5 | --threshold is for --family minhash
2 | neardup index s.nandex t.txt --ram 64MiB --bits 128 --distance 3 | SimHash of 128 bits in 21 parts
2 | neardup index n.nandex t.txt --bits 64 | --bits is for --family simhash, and this is minhash
2 | neardup index n.nandex t.txt --family simhash --bits 32 | a SimHash has 64 or 128
2 | neardup index n.nandex t.txt --family simhash --distance 1.5 | a whole number of bits, fewer than 64
2 | neardup index n.nandex t.txt --family simhash --bits 128 --distance 64 | give at most 63
2 | neardup index n.nandex t.txt --family p-stable | needs --dimensions",
    );
    assert!(!folder.path("n.nandex").exists() && !folder.path("n.nandex.unfinished").exists());
    // Options that are left out are those of the index.
    ok(folder.run("neardup index s.nandex t.txt --ram 64MiB --skip-repeats --family simhash --bits 128 --distance 20"));
}

#[test]
fn vectors_of_json_lines_are_near_by_their_distance() {
    let folder = Folder::new();
    let lines = [
        "{\"id\":\"a\",\"vector\":[1,0,0.5]}",
        "{\"id\":\"b\",\"vector\":[-3,2,9]}",
        "{\"id\":\"c\",\"vector\":[1.0,0.0,0.5]}",
        "{\"id\":\"d\",\"vector\":[1.01,0,0.5]}",
        "{\"id\":\"e\",\"vector\":[1,2]}",
        "{\"id\":\"f\",\"text\":\"no vector\"}",
    ];
    write(&folder, "v.jsonl", &(lines.join("\n") + "\n"));
    let family = "--family p-stable --dimensions 3 --distance 0.1";
    let dedup =
        format!("neardup dedup v.nandex v.jsonl --id id --kept k.jsonl --audit a.jsonl {family}");
    let stopped = folder.run(&format!("{dedup} {SMALL}"));
    assert!(
        stopped.stderr.contains("v.jsonl:5: expected a vector of 3 numbers, found 2"),
        "{stopped:?}"
    );
    let rest = folder.run(&format!("{dedup} {SMALL} --resume --broken skip --json"));
    assert_eq!((rest.code, &json(&rest)["broken"]), (4, &value!(2)), "{rest:?}");
    // The earlier run has added those before the broken line; the files have all decisions.
    assert_eq!((&json(&rest)["documents"], &json(&rest)["repeated"]), (&value!(4), &value!(4)));
    let kept = written(&folder, "k.jsonl");
    assert_eq!(kept[0], value!({"id": "a", "vector": [1.0, 0.0, 0.5]}));
    assert_eq!(kept.len(), 2);
    let audit = written(&folder, "a.jsonl");
    assert_eq!(audit[0], value!({"removed": "c", "kept": "a", "distance": 0.0, "exact": true}));
    assert_eq!((&audit[1]["removed"], &audit[1]["kept"]), (&value!("d"), &value!("a")));
    let distance = audit[1]["distance"].as_f64().expect("a number");
    assert!((0.005..0.02).contains(&distance), "{distance}");
    // Lines of numbers in brackets are vectors too, and so is a field of another name.
    write(&folder, "q.txt", "[1,0,0.5]\n[50,50,50]\n");
    let found = ok(folder.run(&format!("neardup query v.nandex q.txt {RAM} --json")));
    let found = objects(&found.stdout);
    let matches = found[0]["matches"].as_array().expect("a list");
    let ids: Vec<&str> = matches.iter().filter_map(|it| it["id"].as_str()).collect();
    assert_eq!((ids, &found[1]["new"]), (vec!["a", "d"], &value!(true)));
    write(&folder, "w.jsonl", "{\"e\":[-3,2,9.001]}\n");
    let found = ok(folder.run(&format!("neardup query v.nandex w.jsonl --text e {RAM}"))).stdout;
    assert!(found.starts_with("w.jsonl:1\t0.00") && found.ends_with("near\tb\n"), "{found}");
    let stats = format!("neardup stats v.nandex v.jsonl --id id --html v.html {RAM}");
    let stopped = folder.run(&stats);
    assert_eq!(
        stopped.code, 1,
        "a broken vector is told, also where only texts of examples are looked for"
    );
    let shown = ok(folder.run(&format!("neardup stats v.nandex --html v.html {RAM}"))).stdout;
    assert!(
        shown.contains("p-stable hashes of 3 numbers") && shown.contains("with 8 probes"),
        "{shown}"
    );
    let clusters = ok(folder.run(&format!("neardup clusters v.nandex {RAM}"))).stdout;
    assert_eq!(clusters, "0\ta\n0\tc\n0\td\n");
    let removed = folder.run(&format!("neardup remove v.nandex a {RAM} --json"));
    assert_eq!((removed.code, &json(&removed)["documents"]), (0, &value!(3)));
    folder.assert_refused(
        "\
        2 | neardup index v.nandex q.txt --ram 64MiB --family simhash | an index of the family p-stable
2 | neardup index v.nandex q.txt --ram 64MiB --distance 0.2 | near with a distance of 0.2
2 | neardup index n.nandex q.txt --family p-stable --dimensions 3 --distance 0 | give a number above 0
2 | neardup index n.nandex q.txt --family p-stable --dimensions 3 --shingle 3w | --shingle is for",
    );
}

#[test]
fn an_index_on_known_channels_has_each_table_on_its_own() {
    let folder = with_texts();
    write(
        &folder,
        "probe.json",
        r#"{"chunk_bytes":{"value":8192},"channels":{"value":4},"groups":[],
            "mapping":{"value":"lba"},"phase_bytes":0}"#,
    );
    ok(folder.run(&format!("neardup index t.nandex t.txt {SMALL} --geometry probe.json")));
    let shown = ok(folder.run("info t.nandex")).stdout;
    assert!(shown.contains("each on channels of its own, of 4"), "{shown}");
    let stats = json(&ok(folder.run(&format!("neardup stats t.nandex {RAM} --json"))));
    assert_eq!(stats["channels"], value!(4));
    ok(folder.run("check t.nandex"));
    let again = folder.run("neardup index t.nandex t.txt --ram 64MiB --geometry probe.json");
    assert!(
        again.code == 2 && again.stderr.contains("keeps the channels that it was made with"),
        "{again:?}"
    );
}
