//! Copies of volumes, including volumes that other processes write, and compacted volumes.

use std::fs;
use std::io::Write;
use std::os::unix::fs::{MetadataExt, symlink};
use std::process::{ChildStdin, Command};
use std::thread;
use std::time::{Duration, Instant};

use crate::common::{Folder, Outcome, json};

/// The number of keys of the batches that a load may be logging at one moment.
const LAST_BATCHES: u32 = 2048;
/// The two kinds of tables of fixed widths.
const STRUCTURES: [&str; 2] = ["bufferhash", "slicehash"];

#[track_caller]
fn ok(outcome: Outcome) -> Outcome {
    assert_eq!(outcome.code, 0, "{outcome:?}");
    outcome
}

fn make(folder: &Folder, structure: &str, entries: u32) {
    let widths = "--key-bytes 8 --value-bytes 8";
    let structure = format!("--structure {structure}");
    ok(folder.run(&format!("create t --entries {entries} {widths} {structure}")));
}

fn records(keys: std::ops::Range<u32>) -> String {
    keys.map(|key| format!("{key},{}\n", key + 1)).collect()
}

fn load(folder: &Folder, keys: std::ops::Range<u32>) {
    fs::write(folder.path("in.csv"), records(keys)).expect("the folder is writable");
    ok(folder.run("load t in.csv --format csv --key-format u64"));
}

/// Returns the keys of a table, sorted, after checking that each has the value of `records`.
fn keys(folder: &Folder, name: &str) -> Vec<u32> {
    keys_of(folder, name, " --key-format u64")
}

fn keys_of(folder: &Folder, name: &str, format: &str) -> Vec<u32> {
    let dump = ok(folder.run(&format!("dump {name} --format csv{format}"))).stdout;
    let number = |word: &str| word.parse::<u32>();
    let pairs = dump.lines().filter_map(|line| line.split_once(','));
    let pairs = pairs.filter_map(|(key, value)| Some((number(key).ok()?, number(value).ok()?)));
    let mut keys: Vec<u32> = pairs
        .map(|(key, value)| {
            assert_eq!(value, key + 1);
            key
        })
        .collect();
    keys.sort_unstable();
    keys
}

fn allocated(folder: &Folder, name: &str) -> u64 {
    fs::metadata(folder.path(name)).expect("it is there").blocks() * 512
}

#[test]
fn a_copy_of_a_closed_volume_is_the_same_table() {
    let folder = Folder::new();
    make(&folder, "bufferhash", 200_000);
    load(&folder, 0..50_000);
    let copied = json(&ok(folder.run("backup t copy --json")));
    assert_eq!((&copied["path"], &copied["retries"]), (&"copy".into(), &0.into()));
    assert!(!folder.path("copy.unfinished").exists());
    assert_eq!(keys(&folder, "copy"), keys(&folder, "t"));
    ok(folder.run("check copy"));
    ok(folder.run("load copy in.csv --format csv --key-format u64"));
    folder.assert_refused(
        "1 | backup t copy | cannot create copy: it exists\n1 | backup gone new | cannot open gone",
    );
}

#[test]
fn an_array_and_a_log_of_its_own_are_copied_to_files() {
    let folder = Folder::new();
    let widths = "--key-bytes 8 --value-bytes 8";
    ok(folder.run(&format!("create t --member u --log-device l --entries 1e5 {widths}")));
    fs::write(folder.path("in.csv"), records(0..1000)).expect("the folder is writable");
    ok(folder.run("load t in.csv --member u --log-device l --format csv --key-format u64"));
    folder.assert_refused("2 | backup t c --member u --log-device l | with --log-to");
    ok(folder.run("backup t c --member u --log-device l --log-to c.log"));
    ok(folder.run("check c --log-device c.log"));
    let got = ok(folder.run("get c 7 --log-device c.log --key-format u64"));
    assert_eq!(got.stdout, "7\t8\n");
    folder.assert_refused("1 | compact t --member u --log-device l | on several devices");
}

/// Feeds records to a load until it must stop; returns the number of keys fed.
fn feed(mut input: ChildStdin, until: Instant) -> u32 {
    let mut at = 0;
    while Instant::now() < until {
        let lines = records(at..at + 500);
        if input.write_all(lines.as_bytes()).and_then(|()| input.flush()).is_err() {
            break;
        }
        at += 500;
        thread::sleep(Duration::from_millis(4));
    }
    at
}

#[test]
fn a_volume_that_another_process_writes_is_copied_as_it_was_at_one_moment() {
    for structure in STRUCTURES {
        let folder = Folder::new();
        make(&folder, structure, 2_000_000);
        load(&folder, 0..100_000);
        let mut child = folder.start_piped("load t --format csv --key-format u64");
        let input = child.stdin.take().expect("it is piped");
        let feeding = thread::spawn(move || feed(input, Instant::now() + Duration::from_secs(4)));
        thread::sleep(Duration::from_millis(800));
        let mut before = 0;
        for round in 0..3 {
            let copied = folder.run(&format!("backup t copy{round}"));
            assert_eq!(copied.code, 0, "{structure}: {copied:?}");
            ok(folder.run(&format!("check copy{round}")));
            let found = keys(&folder, &format!("copy{round}"));
            // A batch is logged partition by partition, so any keys of the last ones may be present.
            let whole = found.last().map_or(0, |last| last.saturating_sub(LAST_BATCHES));
            assert!(
                found.iter().copied().take(whole as usize).eq(0..whole),
                "{structure}: {whole}"
            );
            assert!(found.len() >= before.max(100_000), "{structure}: {} keys", found.len());
            before = found.len();
        }
        let fed = feeding.join().expect("it does not panic");
        assert!(child.wait_with_output().expect("it ends").status.success());
        assert_eq!(keys(&folder, "t").len(), fed.max(100_000) as usize);
    }
}

#[test]
fn a_compacted_volume_takes_the_space_of_what_is_in_it() {
    for structure in STRUCTURES {
        let folder = Folder::new();
        make(&folder, structure, 500_000);
        load(&folder, 0..20_000);
        let (expected, before) = (keys(&folder, "t"), allocated(&folder, "t"));
        let copied = json(&ok(folder.run("compact t --to small --json")));
        assert_eq!(copied["allocated_bytes"], allocated(&folder, "small"));
        assert_eq!(allocated(&folder, "t"), before);
        let compacted = json(&ok(folder.run("compact t --json")));
        assert_eq!(compacted["before"]["allocated_bytes"], before);
        assert!(allocated(&folder, "t") < before / 3 * 2, "{structure}: {compacted}");
        assert!(!folder.path("t.unfinished").exists());
        for name in ["t", "small"] {
            ok(folder.run(&format!("check {name}")));
            assert_eq!(keys(&folder, name), expected, "{structure}");
        }
        // The same table continues.
        load(&folder, 20_000..40_000);
        assert_eq!(keys(&folder, "t").len(), 40_000);
        folder.assert_refused("1 | compact t --to small | cannot create small: it exists");
    }
}

#[test]
fn tables_and_maps_that_shrank_are_rewritten_and_info_says_how_much_that_gives_back() {
    let makes = [
        "create t --entries 10k --key-bytes 8 --value-bytes 8",
        "create t --entries 10k --key-bytes 8 --value-bytes 8 --structure growing-slicehash",
        "create t --entries 10k",
    ];
    for make in makes {
        let folder = Folder::new();
        ok(folder.run(make));
        let is_map = !make.contains("--key-bytes");
        let format = if is_map { "" } else { " --key-format u64" };
        let load = format!("load t - --format csv{format}");
        ok(folder.run_with(&load, records(0..200_000).as_bytes()));
        let gone = (0..200_000).filter(|key| key % 20 != 0);
        let gone: String = gone.map(|key| format!("{key}\n")).collect();
        ok(folder.run_with(&format!("delete t -{format}"), gone.as_bytes()));
        let keys = |name: &str| keys_of(&folder, name, format);
        let expected = keys("t");
        assert_eq!(expected.len(), 10_000, "{make}");
        let figures = |name: &str| {
            let info = json(&ok(folder.run(&format!("info {name} --json"))));
            info["tables"][0].clone()
        };
        let before = figures("t");
        let gives_back = before["compaction_bytes"].as_u64().expect("a number");
        assert!(gives_back > before["flash_bytes"].as_u64().expect("a number") / 5, "{before}");
        let copied = json(&ok(folder.run("compact t --to small --json")));
        assert_eq!(figures("t"), before);
        let compacted = json(&ok(folder.run("compact t --json")));
        for compacted in [copied, compacted] {
            let rewritten = &compacted["rewritten"][0];
            assert!(rewritten["name"] == "main" && rewritten["entries"] == 10_000, "{compacted}");
            let [was, is] = ["flash_bytes_before", "flash_bytes"].map(|it| rewritten[it].as_u64());
            assert!(is < was.map(|was| was / 4 * 3), "{make}: {rewritten}");
        }
        for name in ["t", "small"] {
            ok(folder.run(&format!("check {name}")));
            assert_eq!(keys(name), expected, "{make}");
            let after = figures(name);
            assert_eq!(after["compaction_bytes"], 0, "{make}");
            assert_eq!(after["values"], before["values"], "{make}");
        }
        ok(folder.run_with(&load, records(200_000..210_000).as_bytes()));
        assert_eq!(keys("t").len(), 20_000);
    }
}

#[test]
fn a_compaction_that_is_stopped_leaves_the_volume_whole() {
    let folder = Folder::new();
    make(&folder, "bufferhash", 1_000_000);
    load(&folder, 0..300_000);
    for signal in ["INT", "TERM", "KILL"] {
        for wait_ms in [0, 5, 20, 60] {
            let mut child = folder.start("compact t");
            thread::sleep(Duration::from_millis(wait_ms));
            let killed =
                Command::new("kill").args([format!("-{signal}"), child.id().to_string()]).status();
            assert!(killed.is_ok());
            child.wait().expect("it ends");
            ok(folder.run("check t"));
        }
    }
    assert_eq!(keys(&folder, "t").len(), 300_000);
    // An unfinished copy is marked, and replaced.
    ok(folder.run("compact t"));
    assert!(!folder.path("t.unfinished").exists());
}

#[test]
fn a_compaction_follows_a_link_and_takes_no_place_but_a_files() {
    let folder = Folder::new();
    make(&folder, "bufferhash", 500_000);
    load(&folder, 0..1000);
    symlink("t", folder.path("link")).expect("the folder is writable");
    let before = allocated(&folder, "t");
    // The link was replaced by a file of its own, and the volume stayed as it was.
    ok(folder.run("compact link"));
    assert!(fs::symlink_metadata(folder.path("link")).expect("it is there").is_symlink());
    assert!(allocated(&folder, "t") < before / 3 * 2);
    assert_eq!(keys(&folder, "link").len(), 1000);
    folder.assert_refused(
        "2 | compact /dev/null | it is not a regular file\n1 | compact gone | cannot open gone",
    );
}

#[test]
fn a_volume_that_a_killed_load_left_is_copied_and_compacted_with_its_log() {
    let folder = Folder::new();
    make(&folder, "slicehash", 500_000);
    let mut child = folder.start_piped("load t --format csv --key-format u64");
    let mut input = child.stdin.take().expect("it is piped");
    input.write_all(records(0..50_000).as_bytes()).expect("the load reads");
    thread::sleep(Duration::from_millis(900));
    child.kill().expect("it runs");
    child.wait().expect("it ends");
    ok(folder.run("backup t copy"));
    let expected = keys(&folder, "t");
    assert!(expected.len() > 10_000, "{} keys", expected.len());
    ok(folder.run("compact t"));
    for name in ["t", "copy"] {
        assert_eq!(keys(&folder, name), expected);
    }
}

#[test]
fn a_volume_in_use_is_not_compacted() {
    let folder = Folder::new();
    make(&folder, "bufferhash", 100_000);
    let mut child = folder.start_piped("load t --format csv --key-format u64");
    let input = child.stdin.take().expect("it is piped");
    thread::sleep(Duration::from_millis(500));
    let refused = folder.run("compact t");
    assert_eq!(refused.code, 1, "{refused:?}");
    assert!(refused.stderr.contains("cannot open t"), "{refused:?}");
    drop(input);
    child.wait().expect("it ends");
}
