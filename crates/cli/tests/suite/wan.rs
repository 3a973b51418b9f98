//! Runs each verb of `nandex wan` as a child process, including both sides of a channel.

use std::fs;
use std::path::Path;

use crate::common::{Folder, Outcome, json};

/// The smallest cache.
const SIZE: &str = "--size 4MiB";

/// The command by its path, for a shell.
const NANDEX: &str = env!("CARGO_BIN_EXE_nandex");

#[track_caller]
fn ok(outcome: Outcome) -> Outcome {
    assert_eq!(outcome.code, 0, "{outcome:?}");
    outcome
}

fn lines(from: u32, count: u32) -> Vec<u8> {
    let line = |number: u32| format!("{} {}\n", number, number.wrapping_mul(2_654_435_761));
    (from..from + count).map(line).collect::<String>().into_bytes()
}

fn with_files() -> Folder {
    let folder = Folder::new();
    let first = lines(0, 20_000);
    let mut second = first.clone();
    second.splice(100_000..100_010, *b"a change");
    fs::write(folder.path("first"), &first).expect("the folder is writable");
    fs::write(folder.path("second"), &second).expect("the folder is writable");
    folder
}

#[track_caller]
fn assert_equal(folder: &Folder, one: &str, other: &str) {
    let read = |name: &str| fs::read(folder.path(name)).expect("the file is there");
    assert!(read(one) == read(other), "{one} and {other} differ");
}

fn words(parts: &[&str]) -> Vec<String> {
    parts.iter().map(|part| (*part).to_owned()).collect()
}

fn names(folder: &Folder) -> Vec<String> {
    let entries = fs::read_dir(folder.path("")).expect("the folder is there");
    entries.map(|it| it.expect("it can be read").file_name().into_string().expect("text")).collect()
}

#[test]
fn what_was_stored_is_restored_and_a_later_version_takes_little() {
    let folder = with_files();
    let first =
        json(&ok(folder.run(&format!("wan store first -o a.refs --cache c {SIZE} --json"))));
    let second = json(&ok(folder.run("wan store second -o b.refs --cache c --json")));
    let bytes = |stats: &serde_json::Value| stats["frame_bytes"].as_u64().expect("a number");
    assert_eq!(bytes(&second), fs::metadata(folder.path("b.refs")).expect("it is there").len());
    assert!(bytes(&second) * 50 < bytes(&first), "{second} after {first}");
    ok(folder.run("wan restore a.refs -o a --cache c"));
    ok(folder.run("wan restore b.refs -o b --cache c"));
    assert_equal(&folder, "a", "first");
    assert_equal(&folder, "b", "second");
    let to_stdout = folder.run_bytes("wan restore b.refs --cache c");
    assert!(to_stdout == fs::read(folder.path("second")).expect("it is there"));
    let info = json(&ok(folder.run("wan info c --json")));
    assert!(info["index_entries"].as_u64().expect("a number") > 50, "{info}");
    assert!(ok(folder.run("wan info c")).stdout.contains("anchors"));
}

#[test]
fn stdin_is_stored_and_text_says_how_much_was_known() {
    let folder = Folder::new();
    let stream = lines(0, 10_000);
    ok(folder.run_with(&format!("wan store - -o a.refs --cache c {SIZE}"), &stream));
    let again = ok(folder.run_with("wan store - -o a.refs --cache c", &stream));
    assert!(again.stdout.contains("100.0 % of them were known"), "{again:?}");
    assert_eq!(folder.run_bytes("wan restore a.refs --cache c"), stream);
}

#[test]
fn files_go_over_a_channel_in_both_directions() {
    let folder = with_files();
    let there = format!("{NANDEX} wan receive -o copy --cache there {SIZE}");
    let send = |file: &str| {
        let to = words(&[
            "wan", "send", file, "--cache", "here", "--size", "4MiB", "--json", "--to", &there,
        ]);
        json(&ok(folder.run_words(&to)))
    };
    let first = send("first");
    assert_equal(&folder, "copy", "first");
    let second = send("second");
    assert_equal(&folder, "copy", "second");
    let bytes = |stats: &serde_json::Value| stats["frame_bytes"].as_u64().expect("a number");
    assert!(bytes(&second) * 50 < bytes(&first), "{second} after {first}");
    assert_eq!(second["again_segments"], 0);
    let back = format!("{NANDEX} wan send copy --cache there");
    ok(folder
        .run_words(&words(&["wan", "receive", "-o", "back", "--cache", "here", "--from", &back])));
    assert_equal(&folder, "back", "second");
    // The other side lost its cache.
    fs::remove_file(folder.path("there")).expect("it is there");
    assert_ne!(send("second")["again_segments"], 0);
    assert_equal(&folder, "copy", "second");
    assert_eq!(send("second")["again_segments"], 0);
}

#[test]
fn a_pipe_sends_stdin_and_writes_to_stdout() {
    let folder = with_files();
    let shell = |script: &str| {
        let mut command = std::process::Command::new("sh");
        command
            .args(["-ec", script])
            .current_dir(folder.path(""))
            .status()
            .expect("a shell can be started")
            .success()
    };
    let run = format!(
        "'{NANDEX}' wan pipe --cache here {SIZE} --to \"'{NANDEX}' wan receive -o copy --cache there {SIZE}\" < first"
    );
    assert!(shell(&run));
    assert_equal(&folder, "copy", "first");
    let run = format!(
        "'{NANDEX}' wan pipe --cache here --from \"'{NANDEX}' wan send copy --cache there\" > back"
    );
    assert!(shell(&run));
    assert_equal(&folder, "back", "first");
}

/// `cat` returns the receiver's greeting, and then nothing.
#[test]
fn a_channel_that_falls_silent_fails_if_that_was_asked_for() {
    let folder = Folder::new();
    let receive = [
        "wan",
        "receive",
        "-o",
        "out",
        "--cache",
        "c",
        "--size",
        "4MiB",
        "--silence",
        "1",
        "--from",
        "cat",
    ];
    let outcome = folder.run_words(&words(&receive));
    assert!(outcome.code == 1 && outcome.stderr.contains("nothing came for 1 s"), "{outcome:?}");
    assert!(!folder.path("out").exists());
    folder.assert_refused(
        "
2 | wan receive -o out --cache c --silence 0 | 0 is not in 1..
2 | wan pipe --cache c --silence 1 --to cat | --silence is for --from
",
    );
}

fn refs_of(folder: &Folder) -> Vec<u8> {
    ok(folder.run(&format!("wan store first -o a.refs --cache c {SIZE}")));
    fs::read(folder.path("a.refs")).expect("it is there")
}

#[test]
fn damaged_references_are_refused_and_leave_no_file() {
    let folder = with_files();
    let refs = refs_of(&folder);
    fs::write(folder.path("cut.refs"), &refs[..refs.len() - 5]).expect("it is writable");
    let mut flipped = refs.clone();
    flipped[refs.len() / 2] ^= 4;
    fs::write(folder.path("flipped.refs"), &flipped).expect("it is writable");
    fs::write(folder.path("other.refs"), "no references").expect("it is writable");
    folder.assert_refused(
        "
1 | wan restore cut.refs -o out --cache c | cut off
1 | wan restore flipped.refs -o out --cache c | checksum
1 | wan restore other.refs -o out --cache c | cut off
1 | wan restore first -o out --cache c | readable stream of nandex wan
1 | wan restore gone.refs -o out --cache c | cannot open gone.refs
1 | wan restore a.refs -o out --cache gone | there is no cache gone: a file of references is useful only with the cache
1 | wan restore a.refs -o out --cache first | first
2 | wan send - --cache c | stdin cannot be the input and the channel
2 | wan store first -o out --cache c --level 99 | 99 is not in 1..=19
2 | wan store first -o out --cache small --size 1MiB | expected 4194304
1 | wan info first | first
2 | wan pipe --cache c | --to
",
    );
    let left: Vec<String> =
        names(&folder).into_iter().filter(|name| name.starts_with("out")).collect();
    assert!(left.is_empty(), "{left:?}");
    assert!(!Path::new(&folder.path("small")).exists());
}

#[test]
fn another_cache_says_what_is_missing() {
    let folder = with_files();
    refs_of(&folder);
    ok(folder.run("wan store first -o again.refs --cache c"));
    ok(folder.run(&format!("wan store second -o b.refs --cache other {SIZE}")));
    fs::write(folder.path("empty"), "").expect("it is writable");
    ok(folder.run(&format!("wan store empty -o e.refs --cache new {SIZE}")));
    folder
        .assert_refused("1 | wan restore again.refs -o out --cache new | segment 0 needs content");
}

#[test]
fn a_side_that_fails_fails_both_and_names_the_command() {
    let folder = with_files();
    for there in
        ["exit 3".to_owned(), format!("{NANDEX} wan receive -o gone/copy --cache there {SIZE}")]
    {
        let send = ["wan", "send", "first", "--cache", "here", "--size", "4MiB", "--to", &there];
        let outcome = folder.run_words(&words(&send));
        assert_eq!(outcome.code, 1, "{outcome:?}");
        assert!(outcome.stderr.contains("the other side"), "{outcome:?}");
        assert!(outcome.stderr.contains(&there), "{outcome:?}");
    }
    let receive = ["wan", "receive", "-o", "copy", "--cache", "here", "--from", "echo no stream"];
    let outcome = folder.run_words(&words(&receive));
    assert_eq!(outcome.code, 1, "{outcome:?}");
    assert!(!folder.path("copy").exists() && !folder.path("copy.unfinished").exists());
}
