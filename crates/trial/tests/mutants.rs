//! Tests of the tests: switches off one barrier of durability at a time and requires that a check fails.
//!
//! `make mutants` runs it and shows which check found each. Each mutant is a process of its own for each
//! check, so that what hangs can be ended and what is off stays off.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use nandex::store::mutants::Barrier;

/// A check: a test program, the tests of it that are run, and after how many seconds it has come to a stop.
struct Check {
    program: &'static str,
    filter: &'static str,
    hang_seconds: u64,
}

/// The checks, in the order of how quickly they tell.
const CHECKS: [Check; 12] = [
    Check { program: "tests/barriers.rs", filter: "", hang_seconds: 10 },
    Check { program: "tests/volume.rs", filter: "", hang_seconds: 10 },
    Check { program: "unittests src/lib.rs (nandex_store)", filter: "", hang_seconds: 25 },
    Check {
        program: "unittests src/lib.rs (nandex)",
        filter: "slicehash::tests::moves::",
        hang_seconds: 30,
    },
    Check { program: "tests/run/main.rs", filter: "failures::", hang_seconds: 30 },
    Check { program: "tests/suite/main.rs", filter: "filters::threads::", hang_seconds: 60 },
    Check {
        program: "tests/suite/main.rs",
        filter: "filters::faults::a_failed_growth",
        hang_seconds: 60,
    },
    Check { program: "tests/shadow/main.rs", filter: "", hang_seconds: 120 },
    Check { program: "tests/volumes/main.rs", filter: "closed::", hang_seconds: 10 },
    Check { program: "tests/suite/main.rs", filter: "large::crash::", hang_seconds: 120 },
    Check { program: "tests/suite/main.rs", filter: "tables::faults::", hang_seconds: 120 },
    Check { program: "tests/suite/main.rs", filter: "tables::crash::", hang_seconds: 120 },
];

/// How a check went.
#[derive(PartialEq, Eq, Debug)]
enum Verdict {
    Passed,
    Failed(String),
    Hung(String),
}

/// The test programs, by what cargo calls them, built as this one is.
fn programs() -> Vec<(String, PathBuf)> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let mut cargo = Command::new(env!("CARGO"));
    cargo.args(["test", "--locked", "--no-run", "--tests"]).current_dir(&root);
    cargo.args(["-p", "nandex-store", "-p", "nandex", "-p", "nandex-trial"]);
    cargo.args(["--features", "nandex-trial/mutants"]);
    if !cfg!(debug_assertions) {
        cargo.arg("--release");
    }
    let output = cargo.output().unwrap();
    let text = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "the checks cannot be built:\n{text}");
    let lines = text.lines().filter_map(|line| line.trim().strip_prefix("Executable "));
    let split = |line: &str| {
        let (name, path) = line.strip_suffix(')')?.split_once(" (")?;
        let file = Path::new(path).file_name()?.to_string_lossy().into_owned();
        // The libraries' unit tests have one name for all packages.
        let package = file.rsplit_once('-')?.0;
        let unit = name.starts_with("unittests");
        let name = if unit { format!("{name} ({package})") } else { name.to_owned() };
        Some((name, root.join(path)))
    };
    lines.filter_map(split).collect()
}

/// Runs a check, with a barrier off.
fn run(program: &Path, check: &Check, off: Option<Barrier>) -> Verdict {
    let mut command = Command::new(program);
    command.args([check.filter, "--test-threads=1"].iter().filter(|argument| !argument.is_empty()));
    command.current_dir(env!("CARGO_MANIFEST_DIR")).env("RUST_BACKTRACE", "0");
    command.env("NANDEX_MUTANT", off.map_or("none", Barrier::name));
    let mut child = command.stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
    let mut stdout = child.stdout.take().unwrap();
    let reader = std::thread::spawn(move || {
        let mut text = Vec::new();
        std::io::Read::read_to_end(&mut stdout, &mut text).map(|_| text)
    });
    let deadline = Instant::now() + Duration::from_secs(check.hang_seconds);
    let ended = loop {
        if let Some(status) = child.try_wait().unwrap() {
            break Some(status);
        }
        if Instant::now() > deadline {
            child.kill().unwrap();
            child.wait().unwrap();
            break None;
        }
        std::thread::sleep(Duration::from_millis(5));
    };
    let text = reader.join().unwrap().unwrap();
    let text = String::from_utf8_lossy(&text);
    let failed =
        text.lines().find_map(|line| line.strip_prefix("test ")?.strip_suffix(" ... FAILED"));
    match ended {
        Some(status) if status.success() => Verdict::Passed,
        Some(status) => Verdict::Failed(failed.map_or_else(|| status.to_string(), str::to_owned)),
        None => Verdict::Hung(format!("{} {} hangs", check.program, check.filter)),
    }
}

/// The first check that fails with this barrier off; one that hangs only where none fails.
fn killer(programs: &[(String, PathBuf)], off: Option<Barrier>) -> Option<String> {
    let mut hung = None;
    for check in &CHECKS {
        let program = programs.iter().find(|(program, _)| program == check.program);
        let (_, path) = program.unwrap_or_else(|| panic!("{} is not built", check.program));
        match run(path, check, off) {
            Verdict::Passed => {}
            Verdict::Failed(test) => return Some(test),
            Verdict::Hung(what) => hung = hung.or(Some(what)),
        }
    }
    hung
}

#[test]
fn every_barrier_is_missed_by_some_check_when_it_is_off() {
    let programs = programs();
    assert_eq!(killer(&programs, None), None, "with all barriers on");
    let (next, survivors) = (AtomicUsize::new(0), Mutex::new(Vec::new()));
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    std::thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(|| {
                while let Some(&off) = Barrier::ALL.get(next.fetch_add(1, Ordering::Relaxed)) {
                    let killer = killer(&programs, Some(off));
                    println!("{:28} {}", off.name(), killer.as_deref().unwrap_or("SURVIVES"));
                    if killer.is_none() {
                        survivors.lock().unwrap().push(off.name());
                    }
                }
            });
        }
    });
    let survivors = survivors.into_inner().unwrap();
    let all = Barrier::ALL.len();
    println!("{} of {all} barriers are proven by a check", all - survivors.len());
    assert!(survivors.is_empty(), "no check misses {survivors:?}");
}
