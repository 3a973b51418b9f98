//! Runs each verb of `nandex filter` as a child process, against sets that cannot be wrong.

mod ram;
mod stopped;

use std::collections::{BTreeMap, HashSet};
use std::fs;
use std::io::Write;
use std::process::{Command, Stdio};

use crate::common::{Folder, Outcome, json};

/// Runs the command with these bytes on stdin; returns its exit code, and its output.
fn piped(folder: &Folder, words: &str, input: &[u8]) -> (i32, Vec<u8>) {
    let mut child = Command::new(env!("CARGO_BIN_EXE_nandex"))
        .args(words.split_whitespace())
        .current_dir(folder.path("."))
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("the command can be started");
    let mut stdin = child.stdin.take().expect("stdin is piped");
    let input = input.to_vec();
    // A command that has read enough closes the pipe.
    let feeder = std::thread::spawn(move || drop(stdin.write_all(&input)));
    let output = child.wait_with_output().expect("the command ends");
    feeder.join().expect("the feeder does not panic");
    (output.status.code().unwrap_or(-1), output.stdout)
}

fn write(folder: &Folder, name: &str, bytes: impl AsRef<[u8]>) {
    fs::write(folder.path(name), bytes).expect("the folder is writable");
}

fn ok(outcome: Outcome) -> Outcome {
    assert_eq!(outcome.code, 0, "{outcome:?}");
    outcome
}

/// Returns words as texts have them: few often, most once.
fn words(count: u64, salt: u64) -> Vec<String> {
    let word = |n: u64| {
        let mixed = (n + salt).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        if n.is_multiple_of(3) {
            format!("often {}", mixed >> 56)
        } else {
            format!("word-{mixed:x}")
        }
    };
    (0..count).map(word).collect()
}

fn lines(words: &[String]) -> String {
    words.iter().map(|word| format!("{word}\n")).collect()
}

#[test]
fn a_window_has_the_last_keys_forgets_the_oldest_and_refuses_what_only_sets_do() {
    let folder = Folder::new();
    let line = |number: u32| format!("key {number}\n");
    let all: Vec<String> = (0..40_000).map(line).collect();
    write(&folder, "old", all[..20_000].concat());
    write(&folder, "new", all[20_000..].concat());
    let built = ok(folder.run("filter build w.nandex old --window 5000 --rate 1e-4 --json"));
    let built = json(&built);
    let window = built["window_keys"].as_u64().expect("a number");
    assert!((5000..8000).contains(&window), "{built}");
    assert_eq!(built["when_full"], "forget the oldest keys");
    ok(folder.run("filter add w.nandex new"));
    let recent: String = all[40_000 - window as usize..].concat();
    let (code, there) = piped(&folder, "filter test w.nandex", recent.as_bytes());
    assert_eq!((code, there.as_slice()), (0, recent.as_bytes()));
    let tested = json(&ok(folder.run("filter test w.nandex old --summary --json")));
    assert!(tested["present"].as_u64().expect("a number") < 40, "{tested}");
    ok(folder.run("check w.nandex"));
    let info = json(&ok(folder.run("filter info w.nandex --json")));
    assert_eq!((&info["window_keys"], &info["hashes"]), (&window.into(), &built["hashes"]));
    let info = json(&ok(folder.run("info w.nandex --json")));
    assert_eq!(info["tables"][0]["kind"], "slicebloom");
    ok(folder.run("filter build set.nandex old"));
    folder.assert_refused(
        "
2 | filter delete w.nandex old | forgets its oldest keys
2 | filter test w.nandex old --count | it does not count
2 | filter add w.nandex new --compact | omit --compact
2 | filter merge -o both.nandex set.nandex w.nandex | only sets merge
2 | filter build x.nandex old --window 1e9 --ram 1MiB | a window of 1000000000 keys
2 | filter build x.nandex old --window 5000 --counts | cannot be used with
2 | filter build x.nandex old --window 5000 --keys 7 | cannot be used with
2 | filter build x.nandex old --window 5000 --no-compact | cannot be used with
",
    );
    assert!(!folder.path("both.nandex").exists() && !folder.path("x.nandex").exists());
}

#[test]
fn keys_are_unique_within_a_window_and_channels_place_its_slicetables() {
    let folder = Folder::new();
    let lines: String = (0..60_000).map(|number| format!("{}\n", number % 30_000)).collect();
    write(&folder, "in", &lines);
    // A window of all keys prints each once; the filter continues with the next run.
    let first = ok(folder.run("filter unique in --window 40000 --filter seen.nandex"));
    assert!(first.stdout.lines().count().abs_diff(30_000) < 5, "{}", first.stdout.lines().count());
    let again = ok(folder.run("filter unique in --filter seen.nandex --json"));
    assert_eq!(json(&again)["unique"], 0, "{again:?}");
    let probed = r#"{"chunk_bytes": {"value": 8192}, "channels": {"value": 16}, "groups": [2],
        "mapping": {"value": "lba"}, "phase_bytes": 0}"#;
    write(&folder, "drive.json", probed);
    let make = "filter build g.nandex in --window 30000 --geometry drive.json";
    ok(folder.run(make));
    let info = json(&ok(folder.run("info g.nandex --json")));
    assert_eq!(info["geometry"]["channels"], 16, "{info}");
    let flash_bytes = info["tables"][0]["flash_bytes"].as_u64().expect("a number");
    assert!(flash_bytes >= 32 * 4096, "{info}");
    let (code, there) = piped(&folder, "filter test g.nandex", b"29999\n");
    assert_eq!((code, there.as_slice()), (0, b"29999\n".as_slice()));
}

#[test]
fn what_was_built_and_added_is_there_in_the_order_of_the_question_and_little_else() {
    for make in
        ["--ram 3MiB --fan-out 2", "--counts", "--ram 2MiB --no-compact --durability every:10"]
    {
        let folder = Folder::new();
        let (first, second, strange) =
            (words(60_000, 0), words(60_000, 1 << 40), words(60_000, 1 << 41));
        write(&folder, "first", lines(&first));
        write(&folder, "second", lines(&second));
        let mut mixed: Vec<String> = [&first[..], &second, &strange].concat();
        mixed.sort();
        write(&folder, "mixed", lines(&mixed));
        let built =
            ok(folder.run(&format!("filter build f.nandex first --keys 200k {make} --json")));
        assert_eq!(json(&built)["keys_read"], 60_000);
        let added = json(&ok(folder.run("filter add f.nandex second --json")));
        assert_eq!(added["keys_read"], 60_000, "{make}");
        let oracle: HashSet<&String> = first.iter().chain(&second).collect();
        let found = ok(folder.run("filter test f.nandex mixed")).stdout;
        let expected: Vec<&String> = mixed.iter().filter(|word| oracle.contains(word)).collect();
        let mut found = found.lines().peekable();
        let mut extra = 0;
        for word in &mixed {
            if found.peek() == Some(&word.as_str()) {
                found.next();
                extra += usize::from(!oracle.contains(word));
            } else {
                assert!(!oracle.contains(word), "{make}: {word} is missing");
            }
        }
        assert_eq!(found.next(), None, "{make}: lines are out of order");
        // Of 60,000 at a rate of 0.1 % about 60 seem to be present; ten deviations more never occur.
        assert!(extra < 140, "{make}: {extra} of {}", expected.len());
        let absent = ok(folder.run("filter test f.nandex mixed --absent")).stdout.lines().count();
        assert_eq!(absent, mixed.len() - expected.len() - extra, "{make}");
        assert_eq!(folder.run("check f.nandex").code, 0, "{make}");
    }
}

#[test]
fn counts_are_those_of_the_input_and_deletes_take_them_down() {
    let folder = Folder::new();
    let words = words(30_000, 7);
    write(&folder, "words", lines(&words));
    ok(folder.run("filter build f.nandex words --rate 1e-9 --counts --ram 2MiB"));
    let mut oracle: BTreeMap<&String, u64> = BTreeMap::new();
    words.iter().for_each(|word| *oracle.entry(word).or_default() += 1);
    let counted = |oracle: &BTreeMap<&String, u64>| {
        let found = folder.run("filter test f.nandex words --count").stdout;
        let expected: String = words
            .iter()
            .map(|word| format!("{}\t{word}\n", oracle.get(word).unwrap_or(&0)))
            .collect();
        assert!(found == expected, "counts differ");
    };
    counted(&oracle);
    // Some words once less, one far more often than it was added, and an absent one.
    let mut gone: Vec<String> = oracle.keys().step_by(5).map(|word| (*word).clone()).collect();
    let once = gone.len() as u64;
    let often = words.iter().find(|word| oracle[word] > 1 && !gone.contains(word)).expect("one is");
    let more = oracle[often];
    gone.extend(std::iter::repeat_n(often.clone(), 1000));
    gone.push("never".into());
    write(&folder, "gone", lines(&gone));
    let deleted = json(&ok(folder.run("filter delete f.nandex gone --json")));
    assert_eq!(deleted["deleted"], once + more);
    assert_eq!(deleted["absent"], 1001 - more);
    for word in &gone {
        oracle.entry(word).and_modify(|count| *count = count.saturating_sub(1));
    }
    counted(&oracle);
    let all: String = oracle.keys().map(|word| format!("{word}\n")).collect();
    write(&folder, "all", all);
    let deleted = json(&ok(folder.run("filter delete f.nandex all --all --compact --json")));
    assert_eq!((&deleted["entries"], &deleted["unmatched_deletes"]), (&0.into(), &0.into()));
    let none = folder.run("filter test f.nandex words");
    assert_eq!((none.code, none.stdout.as_str()), (1, ""));
    assert_eq!(folder.run("check f.nandex").code, 0);
}

#[test]
fn keys_may_be_separated_by_zeros_or_of_one_width_and_come_from_stdin() {
    let folder = Folder::new();
    let zeros = b"one\ntwo\0\0three\0last";
    assert_eq!(piped(&folder, "filter build z.nandex - --nul --keys 10", zeros).0, 0);
    let asked = piped(&folder, "filter test z.nandex --nul", b"last\0four\0one\ntwo\0\0one\0");
    assert_eq!(asked, (0, b"last\0one\ntwo\0\0".to_vec()));
    let numbers: Vec<u8> = (0..5000_u64).flat_map(u64::to_le_bytes).collect();
    assert_eq!(piped(&folder, "filter build w.nandex --width 8 --keys 5000", &numbers).0, 0);
    let (code, found) = piped(&folder, "filter test w.nandex --width 8", &numbers);
    assert!(code == 0 && found == numbers);
    let lines = piped(&folder, "filter build l.nandex --keys 10", b"a\n\nb");
    assert_eq!(lines.0, 0);
    assert_eq!(piped(&folder, "filter test l.nandex", b"b\n\nc\na"), (0, b"b\n\na\n".to_vec()));
    assert_eq!(piped(&folder, "filter build e.nandex", b"").0, 0);
    assert_eq!(piped(&folder, "filter test e.nandex", b"a\n"), (1, Vec::new()));
    assert_eq!(piped(&folder, "filter test e.nandex --absent", b"a\n"), (0, b"a\n".to_vec()));
}

#[test]
fn the_answer_of_a_test_is_its_exit_code_and_its_summary_too() {
    let folder = Folder::new();
    write(&folder, "in", "a\nb\n");
    write(&folder, "some", "a\nx\ny\n");
    write(&folder, "none", "x\n");
    ok(folder.run("filter build f.nandex in --keys 1000 --rate 1e-9"));
    for (ask, code) in
        [("in", 0), ("some", 0), ("none", 1), ("in --absent", 1), ("some --absent", 0)]
    {
        let quiet = folder.run(&format!("filter test f.nandex {ask} --quiet"));
        assert_eq!((quiet.code, quiet.stdout.as_str()), (code, ""), "{ask}");
        assert_eq!(folder.run(&format!("filter test f.nandex {ask}")).code, code, "{ask}");
    }
    let summary = json(&folder.run("filter test f.nandex some --json"));
    assert_eq!((&summary["present"], &summary["absent"]), (&1.into(), &2.into()));
    let summary = folder.run("filter test f.nandex some --summary").stdout;
    assert!(summary.contains("there      1\nnot there  2\n"), "{summary}");
}

#[test]
fn several_files_merge_into_one_that_has_all_keys_with_their_counts() {
    let folder = Folder::new();
    let parts: Vec<Vec<String>> = (0..10).map(|part| words(4000, part * 2000)).collect();
    let mut names = Vec::new();
    for (number, part) in parts.iter().enumerate() {
        write(&folder, "part", lines(part));
        let name = format!("p{number}.nandex");
        ok(folder.run(&format!("filter build {name} part --keys 50k --rate 1e-8 --ram 4MiB")));
        names.push(name);
    }
    let merged =
        json(&ok(folder.run(&format!("filter merge -o all.nandex {} --json", names.join(" ")))));
    let all: Vec<String> = parts.concat();
    let mut oracle: BTreeMap<&String, u64> = BTreeMap::new();
    all.iter().for_each(|word| *oracle.entry(word).or_default() += 1);
    assert_eq!(merged["entries"], oracle.len());
    assert_eq!(merged["levels"].as_array().map(Vec::len), Some(1));
    let distinct: String = oracle.keys().map(|word| format!("{word}\n")).collect();
    let expected: String =
        oracle.iter().map(|(word, count)| format!("{count}\t{word}\n")).collect();
    write(&folder, "distinct", distinct);
    let found = ok(folder.run("filter test all.nandex distinct --count")).stdout;
    assert!(found == expected, "counts of the merged filter differ");
    assert_eq!(folder.run("check all.nandex").code, 0);
    let part = json(&ok(folder.run("filter info p0.nandex --json")));
    let own: HashSet<&String> = parts[0].iter().collect();
    assert_eq!(part["entries"], own.len(), "the parts stay as they are");
}

#[test]
fn filters_that_were_not_made_alike_do_not_merge_and_nothing_is_made() {
    let folder = Folder::new();
    write(&folder, "in", "a\n");
    for (name, words) in [
        ("a", "--keys 1000"),
        ("b", "--keys 2000"),
        ("c", "--keys 1000 --rate 0.01"),
        ("d", "--keys 1000 --hash sip13"),
        ("e", "--keys 1000 --hash-key random"),
    ] {
        ok(folder.run(&format!("filter build {name}.nandex in {words}")));
    }
    for (other, reason) in [
        ("b.nandex", "b.nandex was made for 2,000 keys at 0.100 %, a.nandex for 1,000 keys"),
        ("c.nandex", "made for 1,000 keys at 1.000 %"),
        ("d.nandex", "d.nandex hashes keys by sip13, a.nandex by xxh3"),
        ("e.nandex", "or under another key"),
        ("a.nandex", "a.nandex is named twice"),
        ("in", "not a nandex volume"),
        ("gone", "cannot open gone"),
    ] {
        let outcome = folder.run(&format!("filter merge -o new.nandex a.nandex {other}"));
        let code = if other == "a.nandex" { 2 } else { 1 };
        assert_eq!(outcome.code, code, "{other}: {outcome:?}");
        assert!(outcome.stderr.contains(reason), "{other}: {outcome:?}");
        assert!(!folder.path("new.nandex").exists(), "{other}");
    }
}

#[test]
fn figures_are_shown_for_people_and_programs_and_by_the_volumes_own_verbs() {
    let folder = Folder::new();
    let numbers: String = (0..100_000).map(|number| format!("{number}\n")).collect();
    write(&folder, "in", numbers);
    let made = ok(folder.run("filter build f.nandex in --fpr 0.0039 --ram 2MiB --json"));
    assert!(made.stderr.contains("made for 1"), "{made:?}");
    let info = json(&ok(folder.run("filter info f.nandex --json")));
    for key in [
        "keys_made_for",
        "rate",
        "buffered",
        "fan_out",
        "buffer_entries",
        "flash_bytes",
        "hash_key",
    ] {
        assert!(info.get(key).is_some(), "no {key} in {info}");
        assert_eq!(info[key], json(&made)[key], "{key}");
    }
    assert!(info["bits_per_key"].as_f64().expect("a number") < 11.2, "{info}");
    assert!(info["rate"].as_f64() < info["rate_made_for"].as_f64(), "{info}");
    assert!(info["ram_bytes"].as_u64() <= Some(2 << 20), "{info}");
    let text = ok(folder.run("filter info f.nandex")).stdout;
    for line in ["made for ", "hash        xxh3, shared key", "when full   grow"] {
        assert!(text.contains(line), "no {line} in {text}");
    }
    let volume = json(&ok(folder.run("info f.nandex --json")));
    assert_eq!(volume["tables"][0]["kind"], "cascade");
    assert_eq!(volume["tables"][0]["entries"], info["entries"]);
    assert!(ok(folder.run("info f.nandex")).stdout.contains("filter filter\n"));
    let checked = json(&ok(folder.run("check f.nandex --json")));
    assert_eq!(checked["tables"][0]["entries"], info["entries"]);
    let table = folder.run("get f.nandex 1");
    assert!(
        table.stderr.contains("is a filter of the kind")
            && table.stderr.contains("holds no values"),
        "{table:?}"
    );
}

#[test]
fn a_damaged_page_is_named_and_gives_exit_code_3() {
    let folder = Folder::new();
    let numbers: String = (0..100_000).map(|number| format!("{number}\n")).collect();
    write(&folder, "in", numbers);
    ok(folder.run("filter build f.nandex in --ram 2MiB"));
    let mut bytes = fs::read(folder.path("f.nandex")).expect("the volume is readable");
    let is_run = |page: &[u8]| page[4..9] == *b"ndx1\x08";
    let pages: Vec<usize> =
        bytes.chunks_exact(4096).enumerate().filter(|(_, it)| is_run(it)).map(|it| it.0).collect();
    assert!(pages.len() > 20, "{} pages", pages.len());
    pages.iter().for_each(|page| bytes[page * 4096 + 1000] ^= 1);
    write(&folder, "f.nandex", bytes);
    let checked = folder.run("check f.nandex --json");
    assert_eq!(checked.code, 3, "{checked:?}");
    assert!(json(&checked)["damage"].as_array().map(Vec::len) > Some(20), "{checked:?}");
    assert_eq!(folder.run("filter test f.nandex in").code, 3);
}

#[test]
fn unique_prints_each_line_the_first_time_and_remembers() {
    let folder = Folder::new();
    let words = words(50_000, 3);
    write(&folder, "words", lines(&words));
    let mut seen = HashSet::new();
    let expected: String =
        words.iter().filter(|word| seen.insert(*word)).map(|word| format!("{word}\n")).collect();
    let found = ok(folder.run("filter unique words --rate 1e-9 --ram 2MiB"));
    assert!(found.stdout == expected, "lines differ");
    let kept = "filter unique words --rate 1e-9 --ram 2MiB --filter seen.nandex";
    assert!(ok(folder.run(kept)).stdout == expected, "lines differ with a filter that is kept");
    write(&folder, "words", lines(&words) + "new\n");
    assert_eq!(ok(folder.run(kept)).stdout, "new\n");
    let counted = json(&ok(folder.run("filter unique words --json")));
    assert_eq!(counted["keys_read"], 50_001);
    let names = fs::read_dir(folder.path(".")).expect("the folder is readable").count();
    assert_eq!(names, 2, "a filter that nobody keeps leaves nothing behind");
}

#[test]
fn a_filter_that_refuses_keeps_its_rate_and_what_came_before() {
    let folder = Folder::new();
    let numbers: String = (0..5000).map(|number| format!("{number}\n")).collect();
    write(&folder, "in", numbers);
    let refused = folder.run("filter build f.nandex in --keys 2000 --refuse");
    assert_eq!(refused.code, 1, "{refused:?}");
    assert!(refused.stderr.contains("was made for 2000"), "{refused:?}");
    assert!(!folder.path("f.nandex").exists());
    let info = json(&ok(folder.run("filter info f.nandex.unfinished --json")));
    assert!(info["entries"].as_u64() <= Some(2000), "{info}");
    assert_eq!(folder.run("check f.nandex.unfinished").code, 0);
}

/// Exit codes, commands, and their messages.
const WRONG: &str = r#"
1 | filter build f.nandex in | exists
1 | filter build n.nandex gone | cannot open gone
1 | filter build n.nandex dir | dir is a directory
2 | filter build n.nandex in --rate 2 | '--rate <RATE>': expected a rate above 0 and below 1
2 | filter build n.nandex in --keys 0 | '--keys <COUNT>': 0 is too few
2 | filter build n.nandex in --keys 1e9 --ram 64KiB | (64.0 KiB)
2 | filter build n.nandex in --fan-out 1 | auto, one, or a number from 2
2 | filter build n.nandex in --hash md5 | xxh3, sip13
2 | filter build n.nandex in --hash-key pass | 32 digits in hex
2 | filter build n.nandex in --width 0 | --width 0: keys have 1 to
2 | filter build n.nandex in --width 2 --nul | cannot be used with
1 | filter add gone.nandex in | cannot open gone.nandex
1 | filter add foreign in | not a nandex volume
1 | filter add t.nandex in | the volume holds no filter; it holds "main" of the kind "bufferhash"
1 | filter test t.nandex in --name main | "main" is not a filter
1 | filter test f.nandex in --name other | no structure named "other"
1 | filter test f.nandex odd --width 2 | odd, key 3: expected 2 bytes, found 1
2 | filter test f.nandex in --count --width 2 | leave --count out
2 | filter test f.nandex in --count --absent | cannot be used with
1 | filter info in | not a nandex volume
2 | filter merge f.nandex f.nandex | --output
2 | filter sort in | unrecognized subcommand
"#;

#[test]
fn wrong_input_is_refused_with_what_would_do() {
    let folder = Folder::new();
    write(&folder, "in", "a\nb\n");
    write(&folder, "odd", "12345");
    write(&folder, "foreign", [1; 10_000]);
    fs::create_dir(folder.path("dir")).expect("the folder is writable");
    ok(folder.run("create t.nandex --key-bytes 8 --entries 1e5 --structure bufferhash"));
    ok(folder.run("filter build f.nandex in"));
    folder.assert_refused(WRONG);
    assert!(!folder.path("n.nandex").exists(), "what fails leaves no file");
    let odd = folder.run("filter build o.nandex odd --width 2 --keys 10");
    assert!(
        odd.stderr.contains("stopped after 2 keys, which are in o.nandex.unfinished"),
        "{odd:?}"
    );
    assert_eq!(json(&ok(folder.run("filter info o.nandex.unfinished --json")))["entries"], 2);
}

#[test]
fn parameters_that_are_stated_are_those_of_the_filter_and_are_listed() {
    let folder = Folder::new();
    write(&folder, "in", "a\nb\n");
    for (build, name, value) in [
        ("--keys 1000 --set fan_out=8 --set parts=2", "fan_out", "8"),
        ("--window 1000 --set hashes=5", "hashes", "5"),
    ] {
        ok(folder.run(&format!("filter build {name}.nandex in {build}")));
        let listed = json(&folder.run(&format!("filter info {name}.nandex --json")));
        assert_eq!(listed["values"][name], value, "{listed}");
        let listed = json(&folder.run(&format!("info {name}.nandex --json")));
        assert_eq!(listed["tables"][0]["values"][name], value, "{listed}");
        let shown = folder.run(&format!("info {name}.nandex")).stdout;
        assert!(shown.contains(&format!("{name}={value}")), "{shown}");
    }
    ok(folder.run("filter unique in --filter seen.nandex --keys 1000 --set parts=2"));
    for (set, told) in
        [("colour=red", "the parameters are keys ("), ("parts=0", "0 is not in 1..=4096")]
    {
        let refused = folder.run(&format!("filter build f.nandex in --set {set}"));
        assert!(refused.code != 0 && refused.stderr.contains(told), "{refused:?}");
        assert!(!folder.path("f.nandex").exists());
    }
}
