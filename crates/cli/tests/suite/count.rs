//! Runs each verb of `nandex count` as a child process, against maps that cannot be wrong.

use std::collections::BTreeMap;
use std::fs;
use std::io::Write;
use std::process::Command;
use std::time::Duration;

use crate::common::{Folder, Outcome, json};

/// A real text.
const TEXT: &str = include_str!("../../../../README.md");

fn ok(outcome: Outcome) -> Outcome {
    assert_eq!(outcome.code, 0, "{outcome:?}");
    outcome
}

fn folder(files: &[(&str, &[u8])]) -> Folder {
    let folder = Folder::new();
    for (name, bytes) in files {
        fs::write(folder.path(name), bytes).expect("the folder is writable");
    }
    folder
}

/// Returns the words of the text, counted by a map.
fn words() -> BTreeMap<String, i64> {
    let mut counts = BTreeMap::new();
    for word in TEXT.split(|char: char| !char.is_alphanumeric() && char != '_') {
        if word.chars().count() > 1 {
            *counts.entry(word.to_lowercase()).or_default() += 1;
        }
    }
    counts
}

/// Parses the output of `dump` and `top`, in its order.
fn printed(text: &str) -> Vec<(String, i64)> {
    let pair = |line: &str| {
        let (key, count) = line.rsplit_once('\t').expect("a tab");
        (key.to_owned(), count.parse().expect("a count"))
    };
    text.lines().map(pair).collect()
}

fn dumped(folder: &Folder, file: &str) -> BTreeMap<String, i64> {
    printed(&ok(folder.run(&format!("count dump {file}"))).stdout).into_iter().collect()
}

#[test]
fn words_of_a_text_are_counted_as_by_a_map_in_each_discipline() {
    let folder = folder(&[("text", TEXT.as_bytes())]);
    let expected = words();
    for name in ["mb", "mdb", "mdb-l"] {
        let build = format!("count build {name} text --words --lowercase --discipline {name}");
        let made = json(&ok(folder.run(&format!("{build} --json"))));
        assert_eq!(made["keys_counted"], expected.values().sum::<i64>());
        assert_eq!(made["lines_read"], TEXT.lines().count());
        assert_eq!(dumped(&folder, name), expected);
        let mut often: Vec<_> = expected.clone().into_iter().collect();
        often.sort_by_key(|(_, count)| -count);
        let top = printed(&ok(folder.run(&format!("count top {name} 10"))).stdout);
        assert_eq!(top[0], often[0]);
        let counts = |of: &[(String, i64)]| of.iter().map(|it| it.1).take(10).collect::<Vec<_>>();
        assert_eq!(counts(&top), counts(&often));
        ok(folder.run(&format!("count add {name} text --words --lowercase")));
        let twice = expected.iter().map(|(key, count)| (key.clone(), count * 2)).collect();
        assert_eq!(dumped(&folder, name), twice);
        assert_eq!(ok(folder.run(&format!("check {name}"))).code, 0);
    }
}

#[test]
fn get_prints_a_count_for_each_key_and_fails_where_none_is_there() {
    let folder = folder(&[("lines", b"b\na\nb\n\xff\n\n")]);
    for store in ["", "--fpr 1e-6", "--longest 8"] {
        ok(folder.run(&format!("count build f{} lines {store}", store.len())));
        let file = format!("f{}", store.len());
        assert_eq!(ok(folder.run(&format!("count get {file} a b c"))).stdout, "1\n2\n0\n");
        let none = folder.run(&format!("count get {file} c d"));
        assert_eq!((none.code, none.stdout.as_str()), (1, "0\n0\n"));
        let line = ok(folder.run(&format!("count get {file} b --json")));
        assert_eq!(json(&line), serde_json::json!({ "key": "b", "count": 2 }));
    }
    let hex = printed(&ok(folder.run("count top f10 1")).stdout);
    assert!(hex[0].1 == 2 && hex[0].0.chars().all(|digit| digit.is_ascii_hexdigit()), "{hex:?}");
}

#[test]
fn numbers_and_amounts_add_up_and_removed_keys_are_gone() {
    let folder = folder(&[("n", b"7\n18446744073709551615\n7\n"), ("w", b"7\t40\n8\t-3\n7\t-2\n")]);
    ok(folder.run("count build c n --numbers"));
    ok(folder.run("count add c w --weights"));
    let last = u64::MAX.to_string();
    let pairs = |of: &[(&str, i64)]| of.iter().map(|it| (it.0.to_owned(), it.1)).collect();
    let all: BTreeMap<_, _> = pairs(&[("7", 40), ("8", -3), (&last, 1)]);
    assert_eq!(dumped(&folder, "c"), all);
    let removed = json(&ok(folder.run("count remove c 7 7 99 --json")));
    assert_eq!((removed["removed"].as_u64(), removed["absent"].as_u64()), (Some(1), Some(2)));
    assert_eq!(dumped(&folder, "c"), pairs(&[("8", -3), (&last, 1)]));
}

/// The dump of a table is in the order of its hash, so it is merged past the buffers. Removals that were still in the
/// buffers were applied after it: the removed keys had no counts.
#[test]
fn what_a_dump_adds_comes_after_the_removals_before_it() {
    let lines: String = (1..=300).map(|line| format!("{line}\n")).collect();
    let folder = folder(&[("lines", lines.as_bytes())]);
    ok(folder.run("count build c lines"));
    let dump = ok(folder.run("count dump c")).stdout;
    ok(folder.run("count remove c 7 8 9"));
    ok(folder.run_with("count add c --weights", dump.as_bytes()));
    assert_eq!(ok(folder.run("count get c 7 8 9 10")).stdout, "1\n1\n1\n2\n");
}

#[test]
fn merged_counts_add_up() {
    let folder = folder(&[("one", b"a\nb\n"), ("two", b"b\nc\n")]);
    ok(folder.run("count build 1 one"));
    ok(folder.run("count build 2 two --keys 1e5"));
    ok(folder.run("count merge -o all 1 2"));
    let expected = [("a", 1), ("b", 2), ("c", 1)].map(|(key, count)| (key.to_owned(), count));
    assert_eq!(dumped(&folder, "all"), expected.into());
    ok(folder.run("count build n one --fpr 0.01"));
    folder.assert_refused(
        "1 | count merge -o other 1 n | only tables that store keys alike merge\n\
         2 | count merge -o other 1 1 | is named twice\n\
         1 | count merge -o all 1 2 | it exists",
    );
    assert!(!folder.path("other").exists() && !folder.path("other.unfinished").exists());
}

#[test]
fn bad_input_is_told_and_what_came_before_is_kept() {
    let long = "x".repeat(32);
    let folder = folder(&[
        ("long", format!("a\n{long}\n").as_bytes()),
        ("endless", &vec![b'x'; (1 << 20) + 1]),
        ("max", b"k\t9223372036854775807\n"),
        ("lines", b"a\n"),
    ]);
    folder.assert_refused(
        "1 | count build l long | long:2: it has 32 bytes, and the table takes keys of up to 31: --too-long skip\n\
         1 | count dump l | it is unfinished\n\
         1 | count build e endless | longer than 1048576 bytes\n\
         1 | count build n lines --numbers | lines:1: `a` is not a key in the u64 format: a whole number\n\
         1 | count build w lines --weights | expected a key, a tab and an amount\n\
         1 | count build x absent | cannot open absent\n\
         2 | count build x lines --longest 32 | 32 is not in 8..=31\n\
         2 | count build x lines --numbers --words | cannot be used with",
    );
    assert!(!folder.path("l").exists() && !folder.path("x").exists());
    ok(folder.run("count build m max --weights"));
    let over = folder.run("count add m max --weights");
    let count = ok(folder.run("count get m k")).stdout;
    assert_eq!((over.code, count.trim()), (1, "9223372036854775807"), "{over:?}");
    assert!(over.stderr.contains("stopped after 0 lines, which are in m"), "{over:?}");
    assert!(over.stderr.contains("those before the failure may be counted"), "{over:?}");
    ok(folder.run("filter build filter lines"));
    folder.assert_refused(
        "1 | count get filter a | the volume holds no counts\n\
         1 | count get absent a | absent",
    );
}

#[test]
fn an_interrupted_build_leaves_counts_that_are_marked_unfinished_and_goes_on() {
    for signal in ["-INT", "-TERM"] {
        let folder = folder(&[("rest", b"b\n")]);
        let mut child = folder.start_piped("count build c - --json");
        let stdin = child.stdin.as_mut().expect("stdin is piped");
        stdin.write_all(b"a\n").expect("it reads");
        while !folder.path("c.unfinished").exists() {
            std::thread::sleep(Duration::from_millis(5));
        }
        let kill = Command::new("kill").args([signal, &child.id().to_string()]).status();
        assert!(kill.expect("kill can be started").success());
        // Its stdin stays open, so only the signal ends it.
        let stdin = child.stdin.take();
        let output: Outcome = child.wait_with_output().expect("the command ends").into();
        drop(stdin);
        assert_eq!(output.code, 1, "{output:?}");
        let built = json(&output);
        assert_eq!((&built["interrupted"], &built["path"]), (&true.into(), &"c.unfinished".into()));
        assert!(!folder.path("c").exists());
        ok(folder.run("count add c.unfinished rest"));
        let mut expected = BTreeMap::from([("b".to_owned(), 1)]);
        if built["keys_counted"] == 1 {
            expected.insert("a".into(), 1);
        }
        assert_eq!(dumped(&folder, "c.unfinished"), expected);
    }
}

/// Creates a table of `count` numbers.
fn numbers(folder: &Folder, name: &str, count: u32) {
    let lines: String = (0..count).map(|number| format!("{number}\n")).collect();
    let built = folder.run_with(&format!("count build {name} --numbers"), lines.as_bytes());
    assert_eq!(built.code, 0, "{built:?}");
}

#[test]
fn an_interrupted_merge_leaves_no_file_and_its_inputs_as_they_are() {
    for signal in ["-INT", "-TERM"] {
        let folder = folder(&[]);
        numbers(&folder, "one", 400_000);
        numbers(&folder, "two", 400_000);
        let mut child = folder.start("count merge -o all one two");
        while !folder.path("all.unfinished").exists() {
            assert!(
                child.try_wait().expect("it is ours").is_none(),
                "it has ended before it began"
            );
            std::thread::sleep(Duration::from_millis(1));
        }
        let kill = Command::new("kill").args([signal, &child.id().to_string()]).status();
        assert!(kill.expect("kill can be started").success());
        let output: Outcome = child.wait_with_output().expect("the command ends").into();
        assert!(
            output.code == 1 && output.stderr.contains("stopped; no file was made"),
            "{output:?}"
        );
        assert!(!folder.path("all").exists() && !folder.path("all.unfinished").exists());
        assert_eq!(ok(folder.run("count get two 7 399999")).stdout, "1\n1\n");
    }
}

/// Its output is not read for a while, so it takes longer than the time between two lines of progress.
#[test]
fn a_dump_says_how_far_it_is() {
    let folder = folder(&[]);
    numbers(&folder, "c", 100_000);
    let child = folder.start("count dump c --progress plain");
    std::thread::sleep(Duration::from_millis(3000));
    let output: Outcome = child.wait_with_output().expect("the command ends").into();
    assert_eq!((output.code, output.stdout.lines().count()), (0, 100_000));
    assert!(output.stderr.contains("reading: ") && output.stderr.contains(" of "), "{output:?}");
}

#[test]
fn a_small_input_of_unknown_size_makes_a_small_file() {
    let folder = folder(&[]);
    let built = folder.run_with("count build c", b"a\nb\n");
    assert_eq!(built.code, 0, "{built:?}");
    let bytes = fs::metadata(folder.path("c")).expect("it is there").len();
    assert!(bytes < 5 << 20, "{bytes}");
    // Its log would need more than its length.
    let lines: String = (0..300_000).map(|number| format!("line {number}\n")).collect();
    let added = folder.run_with("count add c", lines.as_bytes());
    assert_eq!(added.code, 0, "{added:?}");
    assert_eq!(ok(folder.run("count get c a")).stdout, "1\n");
    assert_eq!(ok(folder.run("count dump c")).stdout.lines().count(), 300_002);
}

#[test]
fn a_discipline_that_is_asked_for_keeps_to_the_ram() {
    let folder = folder(&[("lines", b"a\n")]);
    for name in ["mb", "mdb", "mdb-l"] {
        let build = format!("count build {name} lines --keys 8M --ram 24MiB --discipline {name}");
        ok(folder.run(&build));
        let info = json(&ok(folder.run(&format!("info {name} --json"))));
        let ram_bytes = info["tables"][0]["ram_bytes"].as_u64().expect("a number");
        assert!(ram_bytes <= 24 << 20, "{name}: {info}");
    }
}

/// Keys that were being read took 50 MiB in addition to what was stated, and `add` had nothing to state.
#[cfg(target_os = "linux")]
#[test]
fn the_ram_that_is_stated_holds_the_table_and_the_keys_that_are_read() {
    let lines: String =
        (0..600_000_u64).map(|number| format!("key {}\n", number * 7919 % 100_003)).collect();
    let folder = folder(&[("lines", lines.as_bytes()), ("none", b"")]);
    let run = |words: &str| json(&ok(folder.run(words)));
    let bytes = |of: &serde_json::Value, name: &str| of[name].as_u64().expect("a number");
    let empty = run("count build e none --keys 100k --ram 8MiB --json");
    for (run, mib) in [
        (run("count build c lines --keys 100k --ram 8MiB --json"), 8),
        (run("count add c lines --ram 8MiB --json"), 8),
        (run("count add c lines --top 3 --ram 10MiB --json"), 10),
    ] {
        let stated = mib << 20;
        assert!(bytes(&run, "ram_bytes") <= stated, "{run}");
        let more = bytes(&run, "resident_peak_bytes") - bytes(&empty, "resident_peak_bytes");
        assert!(more <= stated + (2 << 20), "{more} bytes more than without keys: {run}");
    }
    let refused = folder.run("count add c lines --ram 1MiB");
    let least = refused.stderr.split("at least ").nth(1).and_then(|it| it.split(' ').next());
    let least: u64 = least.and_then(|it| it.parse().ok()).expect("the least is named");
    ok(folder.run(&format!("count add c none --ram {least}")));
    assert_eq!(folder.run(&format!("count add c none --ram {}", least - 1)).code, 2);
}

/// A bad line dropped up to 262,144 lines before it, and the message named another number.
#[test]
fn a_bad_line_ends_the_run_with_its_number_after_all_lines_before_it() {
    let mut lines: String = (0..9000).map(|number| format!("{number}\n")).collect();
    lines += &format!("{}\nafter\n", "x".repeat(32));
    let folder = folder(&[("lines", lines.as_bytes())]);
    let stopped = folder.run("count build c lines");
    assert_eq!(stopped.code, 1, "{stopped:?}");
    assert!(stopped.stderr.contains("lines:9001: it has 32 bytes"), "{stopped:?}");
    assert!(stopped.stderr.contains("stopped after 9000 lines"), "{stopped:?}");
    assert_eq!(printed(&ok(folder.run("count dump c.unfinished")).stdout).len(), 9000);
}

/// Returns a run's estimate: keys with bounds, as in `--json`.
fn estimated(built: &serde_json::Value) -> Vec<(String, i64, i64, bool)> {
    let rows = built["estimate"]["top"].as_array().expect("there is an estimate");
    let row = |row: &serde_json::Value| {
        let bound = |name: &str| row[name].as_i64().expect("a number");
        let key = row["key"].as_str().expect("a text").to_owned();
        (key, bound("lower"), bound("upper"), row["certain"].as_bool().expect("a word"))
    };
    rows.iter().map(row).collect()
}

#[test]
fn the_top_of_what_a_run_adds_is_estimated_with_bounds_that_hold() {
    let folder =
        folder(&[("text", TEXT.as_bytes()), ("more", b"zebra\t9000\nfew\t-2\nzebra\t1\n")]);
    let expected = words();
    let mut often: Vec<_> = expected.iter().map(|(key, count)| (*count, key.clone())).collect();
    often.sort_by_key(|(count, key)| (-count, key.clone()));
    // All words fit, so each is counted from its first occurrence on.
    let built = json(&ok(folder.run("count build c text --words --lowercase --top 7 --json")));
    let exact = often.iter().take(7).map(|(count, key)| (key.clone(), *count, *count, true));
    assert_eq!(estimated(&built), exact.collect::<Vec<_>>());
    assert_eq!(built["estimate"]["others_upper"], 0);
    assert!(built["estimate"]["ram_bytes"].as_u64().is_some_and(|bytes| bytes < 8 << 20));
    // The estimate covers what the run adds, not what was there.
    let added = ok(folder.run("count add c more --weights --top 2"));
    assert!(added.stdout.ends_with("\nzebra\t9001\t9001\n"), "{added:?}");
    assert!(added.stdout.contains("top      key, lower bound and upper bound"), "{added:?}");
    let plain = json(&ok(folder.run("count add c more --weights --json")));
    assert_eq!(plain.get("estimate"), None);
}

#[test]
fn more_keys_than_are_followed_leave_bounds_around_their_counts() {
    let folder = folder(&[]);
    let mut counts = BTreeMap::<String, i64>::new();
    let mut lines = String::new();
    for number in 0..60_000_u64 {
        // A hundred keys come often, all others once.
        let name = if number % 3 == 0 { number / 3 % 100 } else { number };
        *counts.entry(name.to_string()).or_default() += 1;
        lines += &format!("{name}\n");
    }
    let run = "count build c --numbers --top 100 --ram 8MiB --json";
    let built = json(&folder.run_with(run, lines.as_bytes()));
    let top = estimated(&built);
    assert!(top.len() == 100 && top.iter().all(|it| it.3), "{top:?}");
    for (key, lower, upper, _) in &top {
        assert!((lower..=upper).contains(&&counts[key]), "{key}: {lower} to {upper}");
    }
    let others = built["estimate"]["others_upper"].as_i64().expect("a number");
    assert!((1..100).contains(&others), "{built}");
    let exact = printed(&ok(folder.run("count top c 100")).stdout);
    let keys = |of: Vec<String>| of.into_iter().collect::<std::collections::BTreeSet<_>>();
    assert_eq!(
        keys(top.into_iter().map(|it| it.0).collect()),
        keys(exact.into_iter().map(|it| it.0).collect())
    );
}

#[test]
fn an_estimate_has_the_keys_where_the_table_has_fingerprints_only() {
    let long = "x".repeat(300);
    let text = format!("often\noften\n{long}\nonce\n\"q\\\n");
    let folder = folder(&[("lines", text.as_bytes())]);
    let built = ok(folder.run("count build c lines --fpr 1e-6 --top 3"));
    assert!(
        built.stdout.ends_with("\noften\t2\t2\n\"\\\"q\\\\\"\t1\t1\nonce\t1\t1\n"),
        "{built:?}"
    );
    assert!(built.stderr.contains("1 keys of more than 256 bytes are counted, and not followed"));
    assert_eq!(ok(folder.run(&format!("count get c {long}"))).stdout, "1\n");
    let hex = ok(folder.run("count build h lines --fpr 1e-6 --top 1 --key-format text --json"));
    assert_eq!(estimated(&json(&hex)), [("often".into(), 2, 2, true)]);
}

#[test]
fn an_estimate_that_cannot_be_is_refused_before_anything_is_made() {
    let folder = folder(&[("lines", b"a\n"), ("max", b"a\t9223372036854775807\nb\t1\n")]);
    folder.assert_refused(
        "2 | count build c lines --top 0 | 0 is too few\n\
         2 | count build c lines --top 1M | an eighth of 64.0 MiB of RAM follows\n\
         2 | count build c lines --top many | invalid value",
    );
    assert!(!folder.path("c").exists() && !folder.path("c.unfinished").exists());
    folder.assert_refused(
        "1 | count build m max --weights --top 1 | --top adds up all amounts, and they are too large",
    );
    assert!(folder.path("m.unfinished").exists(), "it keeps what came before");
}

#[test]
fn parameters_that_are_stated_are_those_of_the_table_and_are_listed() {
    let folder = folder(&[("lines", b"b\na\nb\n")]);
    ok(folder.run("count build c lines --set discipline=MB --set block_pages=16"));
    let listed = json(&folder.run("info c --json"));
    let values = &listed["tables"][0]["values"];
    assert!(values["discipline"] == "MB" && values["block_pages"] == "16", "{listed}");
    assert_eq!(ok(folder.run("count get c b")).stdout.trim().split('\t').next_back(), Some("2"));
    for (set, told) in [
        ("keys=whole:4", "state --numbers, --key-bytes, --longest or --fpr instead"),
        ("colour=red", "change_permille (0 to 1,000; "),
    ] {
        let refused = folder.run(&format!("count build d lines --set {set}"));
        assert!(refused.code != 0 && refused.stderr.contains(told), "{refused:?}");
        assert!(!folder.path("d").exists());
    }
}
