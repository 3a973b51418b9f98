//! Runs each verb as a child process: its output, its streams, and its exit code.

mod dedup;

use std::fs;
use std::io::{BufRead, BufReader, Read};
use std::os::unix::fs::FileExt;
use std::process::Command;

use crate::common::{Folder, Outcome, json};
use serde_json::Value;

/// The options that create each kind of table.
const STRUCTURES: [(&str, &str); 2] = [
    ("bufferhash", "--structure bufferhash --ram 4MiB"),
    ("slicehash", "--structure slicehash --ram 6MiB"),
];

/// Creates a folder with a volume of one table of numbers in it.
fn with_table() -> Folder {
    with_table_of("--ram 4MiB")
}

/// Creates the same with these options.
fn with_table_of(words: &str) -> Folder {
    let folder = Folder::new();
    let words = format!("create t.nandex --key-bytes 8 --entries 1e5 --durability never {words}");
    let outcome = folder.run(&words);
    assert_eq!(outcome.code, 0, "{outcome:?}");
    folder
}

fn load(folder: &Folder, csv: &str) -> Outcome {
    fs::write(folder.path("in.csv"), csv).expect("the folder is writable");
    folder.run("load t.nandex in.csv --format csv --key-format u64 --json")
}

#[track_caller]
fn assert_keys(object: &Value, keys: &[&str]) {
    for key in keys {
        assert!(object.get(key).is_some(), "no {key} in {object}");
    }
}

#[test]
fn an_absent_key_is_said_on_stderr_and_by_the_exit_code() {
    let folder = with_table();
    let got = folder.run("get t.nandex 9 --key-format u64");
    assert_eq!((got.code, got.stdout.as_str()), (1, ""));
    assert_eq!(got.stderr, "9: not there\n");
    let got = folder.run("get t.nandex 9 --key-format u64 --json");
    assert_eq!((got.code, got.stdout.as_str()), (1, "{\"key\":9,\"value\":null}\n"));
}

#[test]
fn every_structure_of_the_register_is_advised_made_filled_listed_shown_and_proven() {
    for (row, table) in nandex::raw::registry::tables() {
        let (kind, folder) = (row.kind, Folder::new());
        let policy = if table.grows { "grow" } else { "fifo" };
        let advice = json(&folder.run(&format!("advise --entries 1e5 --policy {policy} --json")));
        assert_keys(&advice, &[kind, &format!("{kind}_refused")]);
        // As many as the structure holds.
        let create = |entries: u64| {
            let words = format!(
                "create t.nandex --key-bytes 8 --entries {entries} --structure {kind} --json"
            );
            Some(folder.run(&words)).filter(|made| made.code == 0).map(|made| (entries, made))
        };
        let (entries, made) = create(100_000).or_else(|| create(5000)).expect("it can be made");
        assert_eq!(json(&made)["structure"], kind, "{made:?}");
        let loaded = json(&load(&folder, "key,value\n7,42\n8,43\n"));
        assert_eq!((&loaded["records"], &loaded["interrupted"]), (&2.into(), &false.into()));
        let got = folder.run("get t.nandex 8 7 --key-format u64");
        assert_eq!((got.code, got.stdout.as_str()), (0, "8\t43\n7\t42\n"), "{kind}");
        let dumped = folder.run("dump t.nandex --format csv --key-format u64");
        let mut lines: Vec<&str> = dumped.stdout.lines().collect();
        lines.sort_unstable();
        assert_eq!(lines, ["7,42", "8,43", "key,value"], "{kind}");
        let info = json(&folder.run("info t.nandex --json"));
        let table = &info["tables"][0];
        assert_eq!((&table["kind"], &table["entries"]), (&kind.into(), &2.into()), "{info}");
        assert_keys(table, &["policy", "reads_per_hit", "write_amplification_with_log"]);
        // More than the buffers hold, so that flash has a part of it.
        let count = entries / 5;
        let records: String = (0..count).map(|key| format!("{key},{key}\n")).collect();
        assert_eq!(load(&folder, &records).code, 0, "{kind}");
        let checked = json(&folder.run("check t.nandex --json"));
        let table = &checked["tables"][0];
        assert_eq!((&table["whole"], &table["entries"]), (&true.into(), &count.into()), "{kind}");
    }
}

#[test]
fn a_dump_can_be_loaded_again_in_every_format_and_into_another_structure() {
    for format in ["csv", "ndjson", "binary"] {
        for (source, target) in [(0, 1), (1, 0)] {
            let folder = with_table_of(STRUCTURES[source].1);
            // More than the buffers hold, so that flash has a part of it.
            let records: String = (0..20_000).map(|key| format!("{key},{}\n", key * 2)).collect();
            assert_eq!(load(&folder, &records).code, 0);
            let dumped = folder.run_bytes(&format!("dump t.nandex --format {format}"));
            fs::write(folder.path("copy"), dumped).expect("the folder is writable");
            let words = STRUCTURES[target].1;
            folder.run(&format!(
                "create c.nandex --key-bytes 8 --entries 1e5 --durability never {words}"
            ));
            let loaded = folder.run(&format!("load c.nandex copy --format {format} --json"));
            assert_eq!(json(&loaded)["records"], 20_000, "{format}: {loaded:?}");
            let got = folder.run("get c.nandex 19999 --key-format u64");
            assert_eq!(got.stdout, "19999\t39998\n", "{format}");
        }
    }
}

#[test]
fn a_table_of_either_structure_holds_what_it_was_made_for_and_then_refuses() {
    for (kind, words) in STRUCTURES {
        let folder = with_table_of(words);
        let records: String = (0..100_000).map(|key| format!("{key},{key}\n")).collect();
        assert_eq!(json(&load(&folder, &records))["records"], 100_000, "{kind}");
        let records: String = (100_000..200_000).map(|key| format!("{key},{key}\n")).collect();
        let refused = load(&folder, &records);
        assert_eq!(refused.code, 1, "{kind}: {refused:?}");
        assert!(refused.stderr.contains("full"), "{kind}: {refused:?}");
        assert_eq!(folder.run("get t.nandex 0 99999 --key-format u64").code, 0, "{kind}");
    }
}

#[test]
fn a_table_is_made_as_the_advice_for_the_same_need_says() {
    let needs = [
        "--entries 1e5 --ram 4MiB",
        "--entries 4e6 --lookups 1e4 --misses 0",
        "--entries 4e6 --inserts 1e5",
    ];
    let mut kinds = Vec::new();
    for need in needs {
        let folder = Folder::new();
        let advice = json(&folder.run(&format!("advise {need} --policy reject --json")));
        let made = json(
            &folder.run(&format!("create a.nandex --key-bytes 8 --policy reject {need} --json")),
        );
        assert_eq!(made["structure"], advice["structure"], "{need}");
        assert_eq!(made["reasons"], advice["reasons"], "{need}");
        assert_eq!(made["pages_per_buffer"], advice["pages_per_buffer"], "{need}");
        let info = json(&folder.run("info a.nandex --json"));
        assert_eq!(info["tables"][0]["kind"], advice["structure"], "{need}");
        for figure in ["reads_per_hit", "reads_per_miss", "write_amplification_with_log"] {
            let (advised, shown) = (&advice[figure], &info["tables"][0][figure]);
            let (advised, shown) = (advised.as_f64().unwrap(), shown.as_f64().unwrap());
            assert!((shown - advised).abs() < advised * 0.02, "{need}: {figure} {advised} {shown}");
        }
        kinds.push(advice["structure"].as_str().expect("a word").to_owned());
    }
    assert_eq!(kinds, ["bufferhash", "slicehash", "bufferhash"]);
}

#[test]
fn people_are_told_which_structure_was_taken_and_why() {
    let folder = Folder::new();
    let made = folder.run("create g.nandex --key-bytes 8 --entries 1e5 --ram 4MiB");
    assert!(made.stdout.contains("structure  growing\n"), "{made:?}");
    let made = folder.run("create a.nandex --key-bytes 8 --entries 1e5 --ram 4MiB --policy reject");
    assert!(made.stdout.contains("structure  bufferhash\n"), "{made:?}");
    assert!(made.stdout.contains("because  SliceHash cannot do it: RAM"), "{made:?}");
    let made = folder.run("create b.nandex --key-bytes 8 --entries 1e5 --policy lru");
    assert!(made.stdout.contains("because  SliceHash cannot do it: policy: lru"), "{made:?}");
    let made =
        folder.run("create c.nandex --key-bytes 8 --entries 1e5 --policy fifo --front-runs 4");
    assert!(made.stdout.contains("because  BufferHash cannot do it: front_runs: 4"), "{made:?}");
    let info = folder.run("info c.nandex");
    for line in
        ["kind        slicehash", "when full   fifo", "shape       partitions: ", "written  "]
    {
        assert!(info.stdout.contains(line), "no {line} in {info:?}");
    }
}

#[test]
fn parameters_that_are_stated_are_those_of_the_table_and_others_are_refused() {
    let folder = Folder::new();
    let words = "--key-bytes 8 --entries 1e5 --structure bufferhash --policy fifo";
    let set = "--set filter.kind=bloom --set filter.bits=11 --set spare_buffers=5";
    let made = folder.run(&format!("create t.nandex {words} {set}"));
    assert!(made.stdout.contains("with 100,000 entries by its model"), "{made:?}");
    let info = json(&folder.run("info t.nandex --json"));
    let values = &info["tables"][0]["values"];
    for (name, value) in [("filter.kind", "bloom"), ("filter.bits", "11"), ("spare_buffers", "5")] {
        assert_eq!(values[name], value, "{values}");
    }
    for (set, told) in [
        (
            "colour=red",
            "\"colour\" is not a parameter; the parameters are policy (a policy, such as fifo, lru or reject; \
             fifo unless stated), stagger (",
        ),
        ("super_tables=3", "no power of two"),
        ("policy=random", "is no policy"),
        ("spare_buffers", "write it as NAME=VALUE"),
    ] {
        let refused = folder.run(&format!("create u.nandex {words} --set {set}"));
        assert!(refused.code != 0 && refused.stderr.contains(told), "{refused:?}");
        assert!(!folder.path("u.nandex").exists());
    }
}

#[test]
fn the_ram_of_stated_parameters_is_predicted_and_too_few_entries_are_a_warning() {
    let folder = Folder::new();
    let words = "--key-bytes 8 --entries 1e5 --structure bufferhash --policy fifo --json";
    let plain = json(&folder.run(&format!("create plain.nandex {words}")));
    let ram_of = |made: &serde_json::Value| made["predicted_ram_bytes"].as_u64().unwrap();
    let large = json(&folder.run(&format!("create large.nandex {words} --set buffer_pages=200")));
    assert!(ram_of(&large) > ram_of(&plain) && large.get("warning").is_none(), "{large}");
    let small = folder.run(&format!("create small.nandex {words} --set segments=20"));
    let holds = json(&small);
    assert!(holds["entries_capacity"].as_u64().unwrap() < 100_000, "{small:?}");
    let told = holds["warning"].as_str().unwrap();
    assert!(told.ends_with("entries, fewer than the 100,000 asked for"), "{told}");
    assert!(small.stderr.contains(told), "{small:?}");
    let refused = folder.run("create any.nandex --entries 1000 --set policy=fifo");
    assert!(refused.code != 0 && refused.stderr.contains("--set policy: the index"), "{refused:?}");
}

#[test]
fn a_bad_record_stops_a_load_and_what_came_before_it_stays() {
    let folder = with_table();
    let outcome = load(&folder, "1,10\n2,20\nthree,30\n");
    assert_eq!(outcome.code, 1);
    assert!(outcome.stderr.contains("stopped after 2 records"), "{outcome:?}");
    assert!(
        outcome.stderr.contains("line 3: `three` is not a key in the u64 format"),
        "{outcome:?}"
    );
    assert_eq!(folder.run("get t.nandex 2 --key-format u64").stdout, "2\t20\n");
}

#[test]
fn json_has_the_promised_keys() {
    let folder = with_table();
    let info = json(&folder.run("info t.nandex --json"));
    assert_keys(&info, &["path", "bytes", "free_bytes", "engine", "engine_reason", "log_bytes"]);
    let table = ["name", "kind", "entries", "ram_bytes", "ram_bytes_per_entry", "flash_bytes"];
    let costs = ["policy", "reads_per_hit", "reads_per_miss", "write_amplification_with_log"];
    let buffered = ["incarnations", "pages_per_buffer", "pages_per_segment", "super_tables"];
    [&table[..], &costs, &buffered].iter().for_each(|keys| assert_keys(&info["tables"][0], keys));
    let sliced = with_table_of(STRUCTURES[1].1);
    let info = json(&sliced.run("info t.nandex --json"));
    let shape =
        ["partitions", "incarnations", "pages_per_buffer", "slices", "slice_parts", "devices"];
    [&table[..], &costs, &shape].iter().for_each(|keys| assert_keys(&info["tables"][0], keys));
    let advice = json(&folder.run("advise --entries 1e9 --ram 3GiB --json"));
    let numbers = ["ram_bytes_per_entry", "reads_per_hit", "reads_per_miss", "write_amplification"];
    assert_keys(&advice, &numbers);
    assert_keys(&advice, &["structure", "reasons", "super_tables", "incarnations", "relaxed"]);
    let tight = json(&folder.run("advise --entries 256e6 --ram 160MiB --lookups 1e4 --json"));
    assert_eq!(tight["structure"], "slicehash");
    assert_keys(&tight, &["partitions", "slices", "incarnations", "ops_per_s", "busy_share"]);
    assert_keys(&tight["bufferhash"], &numbers);
    assert_eq!(tight["slicehash"]["reads_per_miss"], 1.0);
    let made =
        folder.run("create j.nandex --key-bytes 8 --entries 1e5 --ram 4MiB --policy fifo --json");
    assert_keys(&json(&made), &["path", "table", "entries_capacity", "ram_bytes", "flash_bytes"]);
    assert_keys(&json(&made), &["structure", "reasons", "filter_bytes", "reads_per_miss"]);
    assert_eq!(json(&made)["policy"], "fifo");
}

#[test]
fn create_says_what_ram_the_table_takes_when_it_has_its_entries() {
    for structure in ["bufferhash", "slicehash", "growing", "growing-slicehash", "rhik"] {
        let folder = Folder::new();
        let widths = "--key-bytes 8 --value-bytes 8 --entries 2e5 --json";
        let made = json(&folder.run(&format!("create t.nandex {widths} --structure {structure}")));
        let (now, later) = (&made["ram_bytes"], &made["predicted_ram_bytes"]);
        assert_eq!(made["entries"], 200_000);
        let records: String = (0..200_000).map(|number| format!("{number},1\n")).collect();
        assert_eq!(load(&folder, &records).code, 0);
        let info = json(&folder.run("info t.nandex --json"));
        let held = &info["tables"][0]["ram_bytes"];
        assert!(now.as_u64() < later.as_u64(), "{structure}: {now} now, {later}");
        assert!(held.as_u64() <= later.as_u64(), "{structure}: {held} of {later}");
    }
}

#[test]
fn verbs_that_read_leave_a_volume_as_it_is_and_run_side_by_side() {
    let folder = with_table();
    load(&folder, "key,value\n7,42\n8,43\n");
    fs::write(folder.path("lines"), "a\nb\n").expect("the folder is writable");
    assert_eq!(folder.run("filter build f.nandex lines").code, 0);
    let names = ["t.nandex", "f.nandex"];
    let bytes = || names.map(|name| fs::read(folder.path(name)).expect("it was made"));
    let before = bytes();
    let readers = names.map(|name| fs::File::open(folder.path(name)).expect("it was made"));
    readers.iter().for_each(|reader| reader.lock_shared().expect("no writer"));
    for words in [
        "get t.nandex 7 --key-format u64",
        "dump t.nandex",
        "info t.nandex",
        "check t.nandex",
        "filter info f.nandex",
        "filter test f.nandex lines",
        "filter merge -o m.nandex f.nandex t.nandex",
    ] {
        let outcome = folder.run(words);
        let expected = i32::from(words.contains("merge"));
        assert_eq!(outcome.code, expected, "{words}: {outcome:?}");
    }
    assert!(bytes() == before, "a verb that reads has written");
    let refused = folder.run("load t.nandex in.csv --format csv --key-format u64");
    let user = format!("in use by process {}", std::process::id());
    assert!(refused.code == 1 && refused.stderr.contains(&user), "{refused:?}");
}

#[test]
fn damage_is_named_and_gives_exit_code_3() {
    let folder = with_table();
    let records: String = (0..80_000).map(|key| format!("{key},{key}\n")).collect();
    assert_eq!(load(&folder, &records).code, 0);
    assert_eq!(folder.run("check t.nandex").code, 0);
    // The tables are at the end of the volume; every page of the last half is damaged.
    let mut bytes = fs::read(folder.path("t.nandex")).expect("the volume is readable");
    let half = bytes.len() / 2 / 4096;
    (half..bytes.len() / 4096).for_each(|page| bytes[page * 4096 + 100] ^= 1);
    fs::write(folder.path("t.nandex"), bytes).expect("the volume is writable");
    let checked = folder.run("check t.nandex");
    assert_eq!(checked.code, 3, "{checked:?}");
    assert!((checked.stdout + &checked.stderr).contains("damage: "));
}

#[test]
fn a_lost_copy_of_the_superblock_is_damage_although_the_volume_opens() {
    let folder = with_table();
    let mut bytes = fs::read(folder.path("t.nandex")).expect("the volume is readable");
    bytes[100] ^= 1;
    fs::write(folder.path("t.nandex"), bytes).expect("the volume is writable");
    let checked = folder.run("check t.nandex");
    assert_eq!(checked.code, 3, "{checked:?}");
    assert!(checked.stdout.contains("superblock at page 0"), "{checked:?}");
}

#[test]
fn a_probe_writes_only_to_a_file_it_made_or_was_given_up() {
    let folder = Folder::new();
    let probed = json(&folder.run("probe new.flash --size 4MiB --json --svg new.svg"));
    assert_keys(&probed, &["place", "engine", "groups", "phase_bytes", "advice", "evidence"]);
    for answer in ["chunk_bytes", "channels", "mapping"] {
        assert_keys(&probed[answer], &["value", "confidence", "reason"]);
    }
    assert!(probed["pages_written"].as_u64() >= Some(1024), "{probed}");
    assert!(!folder.path("new.flash").exists(), "what the probe made it removes");
    let svg = fs::read_to_string(folder.path("new.svg")).expect("a picture was drawn");
    assert!(svg.starts_with("<svg") && svg.matches("<title>").count() > 16);

    let bytes = vec![7; 5 << 20];
    fs::write(folder.path("old"), &bytes).expect("the folder is writable");
    let probed = json(&folder.run("probe old --json"));
    assert_eq!(probed["pages_written"], 0);
    assert_eq!(probed["bytes"], 5 << 20);
    assert!(fs::read(folder.path("old")).expect("it is still there") == bytes);
    let probed = json(&folder.run("probe old --size 4MiB --json --destructive"));
    assert!(probed["pages_written"].as_u64() >= Some(1024), "{probed}");
    let after = fs::read(folder.path("old")).expect("it is still there");
    assert!(after[..4 << 20] != bytes[..4 << 20] && after[4 << 20..] == bytes[4 << 20..]);
}

#[test]
fn a_probe_tells_people_what_cannot_be_seen_and_why() {
    let folder = Folder::new();
    let probed = folder.run("probe kept.flash --size 4MiB --keep");
    assert_eq!(probed.code, 0, "{probed:?}");
    for line in ["probed ", "chunk ", "channels ", "mapping ", "latency ", "Two chunks at once"] {
        assert!(probed.stdout.contains(line), "no {line} in {probed:?}");
    }
    assert!(folder.path("kept.flash").exists());
}

/// Exit codes, commands, and their messages.
const WRONG: &str = r#"
1 | create t.nandex --key-bytes 8 --entries 10 | exists
2 | create n.nandex --key-bytes 8 --entries many | is not a unit; use K, M, G, T
2 | create n.nandex --key-bytes 8 --entries 10 --policy random | choose fifo, lru, update
2 | create n.nandex --key-bytes 8 --entries 10 --durability maybe | choose always, every:MS
2 | create n.nandex --key-bytes 8 --entries 1e9 --ram 1MiB | this table needs
2 | create n.nandex --entries 10 --key-bytes 64 | --key-bytes <SIZE>': keys have 8 to 32 bytes; hash
2 | create n.nandex --key-bytes 1e18 | --key-bytes <SIZE>': keys have 8 to 32 bytes
2 | create n.nandex --value-bytes 1e18 | --value-bytes <SIZE>': values have 0 to 64 bytes
2 | create n.nandex --key-bytes 8 --entries 10 --structure cuckoo | auto, bufferhash, slicehash
2 | create n.nandex --key-bytes 8 --entries 1e5 --structure slicehash --policy lru | policy: lru; a slicehash
2 | create n.nandex --key-bytes 8 --entries 1e5 --structure bufferhash --front-runs 4 | a bufferhash has no front
2 | create n.nandex --key-bytes 8 --entries 9 --structure slicehash --front-runs 4 | a table that refuses
2 | create n.nandex --key-bytes 8 --entries 1e5 --structure slicehash --ram 1MiB | this table needs
2 | create n.nandex --key-bytes 8 --entries 1e5 --misses 2 | --misses <SHARE>': expected a share from 0 to 1
2 | create n.nandex --key-bytes 8 --entries 1e5 --updates nan | --updates <SHARE>': expected a share from 0 to 1
2 | dedup foreign --structure slicehash --ram 1MiB | this table needs
1 | get t.nandex 0x01 | a key of 1 bytes: this table has keys of 8 bytes
1 | get t.nandex word --key-format text | a key of 4 bytes
1 | get t.nandex 1 --table other | no structure named "other"; it holds "main"
1 | get gone.nandex 1 | cannot open gone.nandex: No such file; create it first
1 | info foreign | not a nandex volume
1 | load t.nandex gone.csv --format csv | cannot open gone.csv
1 | dedup gone | cannot look at gone
1 | dedup foreign --avg 1000 | a power of two
2 | dedup foreign --chunker guess | fastcdc, rabin, fixed
2 | advise --entries 1e6 --device floppy | nvme
2 | advise --entries 1e6 --entry-bytes 16 --key-bytes 17 | --entry-bytes: entries of 16 bytes cannot hold keys of 17
2 | advise --entries 1e6 --entry-bytes 1e18 | --entry-bytes <SIZE>': a key and its value have 8 to 96 bytes
2 | advise --entries 256e6 --ram 1MiB | no structure can do it; BufferHash: RAM
2 | advise --entries 1e6 --misses 2 | --misses <SHARE>': expected a share from 0 to 1
2 | advise --entries 1e6 --updates 1.1 | --updates <SHARE>': expected a share from 0 to 1
2 | advise --entries 1e6 --updates=-1 | --updates <SHARE>': expected a share from 0 to 1
2 | advise --entries 1e6 --updates inf | --updates <SHARE>': expected a share from 0 to 1
1 | probe small.flash --size 1MiB | it takes at least 1024; name a larger one
1 | probe gone/new.flash | cannot open gone/new.flash
2 | unknown | unrecognized subcommand
"#;

#[test]
fn wrong_input_is_refused_with_what_would_do() {
    let folder = with_table();
    fs::write(folder.path("foreign"), [1; 10_000]).expect("the folder is writable");
    folder.assert_refused(WRONG);
    for name in ["n.nandex", "small.flash"] {
        assert!(!folder.path(name).exists(), "what fails leaves no {name}");
    }
}

#[test]
fn completions_and_manual_pages_name_every_verb() {
    let folder = Folder::new();
    for shell in ["bash", "zsh", "fish"] {
        assert!(folder.run(&format!("completions {shell}")).stdout.contains("dedup"), "{shell}");
    }
    assert!(folder.run("man").stdout.contains("nandex"));
    assert_eq!(folder.run("man pages").code, 0);
    for page in ["nandex.1", "nandex-dedup.1", "nandex-check.1"] {
        assert!(folder.path("pages").join(page).exists(), "{page}");
    }
}

/// Returns the volume with one byte of these pages changed.
fn damage_pages(folder: &Folder, pages: &[u64]) {
    let file = fs::File::options().read(true).write(true).open(folder.path("t.nandex"));
    let file = file.expect("the volume is writable");
    for page in pages {
        let mut byte = [0];
        file.read_exact_at(&mut byte, page * 4096 + 2000).expect("the page is there");
        file.write_all_at(&[byte[0] ^ 1], page * 4096 + 2000).expect("the page is writable");
    }
}

/// Returns the pages with entries on flash: those that `check` names when all that look like one are damaged.
fn entry_pages(folder: &Folder) -> Vec<u64> {
    let kept = fs::read(folder.path("t.nandex")).expect("the volume is readable");
    let is_entries = |page: &[u8]| page[4..8] == *b"ndx1" && [3, 6].contains(&page[8]);
    let pages = kept.chunks_exact(4096).zip(0..);
    let pages: Vec<u64> =
        pages.filter(|(page, _)| is_entries(page)).map(|(_, number)| number).collect();
    damage_pages(folder, &pages);
    let checked = json(&folder.run("check t.nandex --json"));
    fs::write(folder.path("t.nandex"), kept).expect("the volume is writable");
    let damage = checked["damage"].as_array().expect("a list").iter();
    damage.filter_map(|it| it["page"].as_u64()).collect()
}

#[test]
fn a_dump_leaves_out_damaged_pages_where_it_is_told_to() {
    for (structure, words) in STRUCTURES {
        let folder = with_table_of(words);
        let records: String = (0..80_000).map(|key| format!("{key},{key}\n")).collect();
        assert_eq!(load(&folder, &records).code, 0);
        let pages = entry_pages(&folder);
        assert!(pages.len() > 30, "{structure}: {pages:?}");
        let whole = folder.run("dump t.nandex --format csv --skip-damaged");
        assert_eq!((whole.code, whole.stderr.as_str()), (0, ""), "{structure}");
        assert_eq!(whole.stdout.lines().count(), 80_001, "{structure}");

        damage_pages(&folder, &pages[..1]);
        let stopped = folder.run("dump t.nandex --format csv");
        assert_eq!(stopped.code, 3, "{structure}: {}", stopped.stderr);
        assert!(stopped.stderr.contains("--skip-damaged"), "{structure}: {}", stopped.stderr);
        let dumped = folder.run("dump t.nandex --format csv --skip-damaged");
        assert_eq!(dumped.code, 3, "{structure}: {}", dumped.stderr);
        let lines = dumped.stdout.lines().count();
        assert!((80_001 - 300..80_001).contains(&lines), "{structure}: {lines}");
        let told: Vec<&str> = dumped.stderr.lines().collect();
        let page = format!("damage: table main, page {}: expected checksum ", pages[0]);
        assert!(told.len() == 2 && told[0].starts_with(&page), "{structure}: {told:?}");
        assert!(told[1].contains("1 damaged page left out"), "{structure}: {told:?}");
        assert!(told[1].contains("older versions may stand"), "{structure}: {told:?}");

        damage_pages(&folder, &pages[1..25]);
        let dumped = folder.run("dump t.nandex --format csv --skip-damaged");
        assert_eq!((dumped.code, dumped.stderr.lines().count()), (3, 22), "{}", dumped.stderr);
        assert!(dumped.stderr.contains("damage: and 5 further pages"), "{}", dumped.stderr);
        let dumped = folder.run("dump t.nandex --json --skip-damaged");
        assert_eq!(dumped.code, 3);
        let told: Value = serde_json::from_str(&dumped.stderr).expect("one object");
        assert_eq!((&told["damaged_pages"], &told["damage_left_out"]), (&25.into(), &5.into()));
        assert_eq!(told["records"], dumped.stdout.lines().count());
        let lost = told["entries_lost_max"].as_u64().expect("a number");
        assert!(told["records"].as_u64().expect("a number") + lost >= 80_000, "{told}");
        assert!(told["damage"][0]["page"].as_u64().is_some_and(|page| pages.contains(&page)));
        assert_keys(&told, &["table"]);
        assert_keys(&told["damage"][0], &["text"]);

        fs::write(folder.path("left.ndjson"), dumped.stdout).expect("the folder is writable");
        let create = "create new.nandex --key-bytes 8 --value-bytes 8 --entries 1e5 --ram 6MiB";
        assert_eq!(folder.run(create).code, 0, "{structure}");
        let loaded = json(&folder.run("load new.nandex left.ndjson --format ndjson --json"));
        assert_eq!(loaded["records"], told["records"], "{structure}");
    }
}

#[test]
fn the_verbs_of_the_lab_are_wrong_command_lines_that_name_its_command() {
    let folder = Folder::new();
    folder.assert_refused(
        "
2 | sim --list | run `nandex-lab sim`
2 | sim --help | run `nandex-lab sim`
2 | reproduce bufferhash --only figure-6 --json | run `nandex-lab reproduce`
",
    );
    let help = folder.run("--help").stdout;
    assert!(!help.contains("reproduce") && help.contains("probe"), "{help}");
}
