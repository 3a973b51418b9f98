//! Every number that a verb accepts, as users mistype it: rejected with exit code 2 or 1, or accepted, and never a
//! panic, an abort or an endless run.
//!
//! The options are read from the manual pages, which clap generates from its own tree of verbs. Each number goes to a
//! working command line of its verb. A run has limits of memory, of the length of a file and of time: a run that
//! exceeds one of them has not checked the number.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::thread;

use crate::common::Folder;

/// The command by its path, for a shell.
const NANDEX: &str = env!("CARGO_BIN_EXE_nandex");

/// The values that are tried for each number.
const VALUES: [&str; 7] = ["nan", "inf", "-1", "0", "1e18", "1e30", ""];

/// Words in the manual that are not numbers.
const NO_NUMBERS: [&str; 34] = [
    "ADDRESS",
    "CHUNKER",
    "COLUMN",
    "COMMAND",
    "DESIGN",
    "ENGINE",
    "FAMILY",
    "FIELD",
    "FILE",
    "FILL",
    "FORMAT",
    "HASH",
    "HOST:PORT",
    "HOW",
    "KIND",
    "NAME",
    "NORM",
    "PATH",
    "PATTERN",
    "PREFIX",
    "PRESET",
    "SOURCE",
    "STRUCTURE",
    "TABLE",
    "TRACE",
    "WHAT",
    "WHICH",
    "ORIGIN",
    "WORD",
    "english|FILE",
    "DIR",
    "TEXT",
    "ID",
    "SHELL",
];

/// The form of a number in options that contain more than it.
const FORMS: [(&str, &str); 3] =
    [("--durability", "every:"), ("--policy", "priority:"), ("--bands", "1x")];

/// The number of seconds after which a run that continues until it is stopped is signalled.
const SECONDS: &str = "1";

/// The exit code of a run that continues for as long as its number says, and was stopped.
const INTERRUPTED: i32 = 130;

/// The number of seconds after which a signalled run counts as endless.
const SECONDS_MORE: &str = "20";

/// The files that command lines need, in the order of their creation.
const FILES: &str = "\
seq 1 300 > keys
for n in $(seq 1 60); do echo \"$n $n red fish blue fish\"; done > texts
seq 1 100 | sed 's/.*/&,&/' > in.csv
printf '1219008,1,SET,obj,100\\n' > trace
nandex create v --key-bytes 8 --entries 1e4 --ram 4MiB
nandex create w --key-bytes 8 --entries 1e4 --ram 4MiB
nandex load v in.csv --format csv --key-format u64 --value-format u64
nandex filter build f keys
nandex filter build g keys
nandex count build k keys
nandex count build l keys
nandex tfidf build i texts --ram 64MiB
nandex tfidf build j keys --ram 64MiB
nandex neardup index n texts --ram 64MiB --documents 1k
nandex kvssd create d --capacity 16MiB
nandex kvssd put d a 1
nandex wan store texts -o refs --cache c --size 4MiB
nandex wan proxy key peers.key";

/// A command line of each verb that accepts numbers. Its output is named `new`.
const LINES: &str = "\
advise --entries 1e5
backup v new
check v
compact v
count add k keys
count build new keys
count dump k
count get k 7
count merge -o new k l
count remove k 7
count top k 3
create new --key-bytes 8 --entries 1e4
create new --bytes 1MiB
dedup texts --avg 256
delete v 0100000000000000
dump v
filter add f keys
filter build new keys
filter build new keys --window 1000
filter delete f keys
filter info f
filter merge -o new f g
filter test f keys
filter unique keys
get v 0100000000000000
info v
kvssd bench d --count 100
kvssd create new --capacity 16MiB
kvssd exist d a
kvssd get d a
kvssd info d
kvssd list d
kvssd put d b 2
kvssd replay d --trace trace --format twitter
kvssd rm d a
kvssd space create d s2
kvssd space delete d s2
kvssd space list d
load v in.csv --format csv --key-format u64 --value-format u64
merge v w -o new
merge v w --count
neardup clusters n
neardup dedup new texts --kept new2
neardup index new texts --documents 1000
neardup pairs n
neardup query n texts
neardup remove n texts:1
neardup stats n
probe new --size 4MiB
tfidf build new texts
tfidf export i texts --npz new
tfidf index i texts
tfidf keywords i texts
tfidf merge i j
tfidf query i fish
tfidf rank i fish texts
tfidf remove i texts
tfidf report i
tfidf update i keys
wan info c
wan pipe --cache c --to cat
wan proxy client --peer 127.0.0.1:1 --target 127.0.0.1:2 --listen 127.0.0.1:0 --key peers.key --cache c
wan proxy latency --count 10
wan proxy measure --direct 127.0.0.1:1
wan proxy server --listen 127.0.0.1:0 --target 127.0.0.1:2 --key peers.key --cache c
wan proxy target --listen 127.0.0.1:0
wan receive -o new --cache c --from cat
wan restore refs -o new --cache c
wan send texts --cache new --to cat
wan store texts -o new --cache new2";

/// Runs a line in a folder with a shell that finds the command, with limits.
fn shell(folder: &Path, line: &str) -> (i32, String) {
    let limits = "trap '' XFSZ; ulimit -f 2097152; ulimit -v 4194304";
    let functions = format!("nandex() {{ '{NANDEX}' \"$@\"; }}");
    let mut command = Command::new("sh");
    command.arg("-c").arg(format!("{limits}; {functions}; {line}")).current_dir(folder);
    let output = command.stdin(Stdio::null()).output().expect("there is a shell");
    let code = output.status.code().unwrap_or(-1);
    (code, String::from_utf8_lossy(&output.stderr).into_owned())
}

/// Creates a folder with all files.
fn with_files() -> Folder {
    let folder = Folder::new();
    let (code, stderr) = shell(&folder.path(""), &format!("set -e\n{FILES}"));
    assert_eq!(code, 0, "{stderr}");
    folder
}

/// Returns the options of each verb that accept a number, by the manual pages of the command.
fn numbers() -> BTreeMap<String, Vec<String>> {
    let folder = Folder::new();
    assert_eq!(folder.run("man pages").code, 0);
    let mut all = BTreeMap::new();
    for page in fs::read_dir(folder.path("pages")).expect("it was made") {
        let path = page.expect("it can be read").path();
        let text = fs::read_to_string(&path).expect("it is text").replace("\\-", "-");
        let options: Vec<String> = text.lines().filter_map(number).collect();
        let name = path.file_stem().expect("it has a name").to_string_lossy();
        if let Some(verb) = name.strip_prefix("nandex-").filter(|_| !options.is_empty()) {
            all.insert(verb.to_owned(), options);
        }
    }
    all
}

/// Returns the option of a line of the manual, if it accepts a number.
fn number(line: &str) -> Option<String> {
    let option = line.strip_prefix("\\fB")?.split("\\fR").find_map(|part| {
        let at = part.find("--")?;
        Some(part[at..].to_owned())
    })?;
    let (_, word) = line.split_once("\\fI<")?;
    let (word, _) = word.split_once('>')?;
    (!NO_NUMBERS.contains(&word)).then_some(option)
}

/// Returns the verb of a command line, as the manual pages name it.
fn verb_of<'v>(line: &str, verbs: &'v BTreeMap<String, Vec<String>>) -> Option<&'v String> {
    let words = line.replace(' ', "-");
    let mut fit: Vec<_> = verbs
        .keys()
        .filter(|verb| words == **verb || words.starts_with(&format!("{verb}-")))
        .collect();
    fit.sort_by_key(|verb| verb.len());
    fit.pop()
}

/// Returns a command line with an option, replacing the same option if it has that already.
fn with_option(line: &str, option: &str, value: &str) -> String {
    let mut words: Vec<&str> = line.split(' ').collect();
    if let Some(at) = words.iter().position(|word| *word == option) {
        words.drain(at..at + 2);
    }
    format!("{} '{option}={value}'", words.join(" "))
}

/// Returns all runs: each option of each verb with each value.
fn runs() -> Vec<String> {
    let verbs = numbers();
    let mut runs = Vec::new();
    let mut seen = Vec::new();
    for line in LINES.lines() {
        let Some(verb) = verb_of(line, &verbs) else { continue };
        seen.push(verb);
        for option in &verbs[verb] {
            let form = FORMS.iter().find(|(name, _)| name == option).map_or("", |form| form.1);
            let with = |value| with_option(line, option, &format!("{form}{value}"));
            runs.extend(VALUES.iter().map(with));
        }
    }
    let left: Vec<_> = verbs.keys().filter(|verb| !seen.contains(verb)).collect();
    assert!(left.is_empty(), "verbs with numbers and no command line here: {left:?}");
    runs
}

/// Runs one line in a folder with all files; returns the fault of its end.
fn fault_of(folder: &Path, run: &str) -> Option<String> {
    let line = format!(
        "timeout --preserve-status -s INT -k {SECONDS_MORE} {SECONDS} '{NANDEX}' {run} > stdout"
    );
    let (code, stderr) = shell(folder, &line);
    for made in fs::read_dir(folder).expect("it is there").flatten() {
        if made.file_name().to_string_lossy().starts_with("new") {
            let _ = fs::remove_file(made.path());
        }
    }
    let is_fine = matches!(code, 0..=4 | INTERRUPTED) && !stderr.contains("panicked");
    (!is_fine).then(|| format!("{code}: nandex {run}\n{stderr}"))
}

#[test]
fn no_number_of_any_verb_is_a_panic_an_abort_or_a_run_without_end() {
    let runs = runs();
    assert!(runs.len() > 1000, "{} runs", runs.len());
    let (next, faults) = (AtomicUsize::new(0), Mutex::new(Vec::new()));
    thread::scope(|scope| {
        for _ in 0..thread::available_parallelism().map_or(2, usize::from).min(4) {
            scope.spawn(|| {
                let folder = with_files();
                while let Some(run) = runs.get(next.fetch_add(1, Relaxed)) {
                    let fault = fault_of(&folder.path(""), run);
                    faults.lock().expect("none panics").extend(fault);
                }
            });
        }
    });
    let faults = faults.into_inner().expect("none panics");
    assert!(faults.is_empty(), "{} faults:\n{}", faults.len(), faults.join("\n"));
}
