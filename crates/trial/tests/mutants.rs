//! Tests of the tests: switches off one barrier of durability at a time and requires that a check fails.
//!
//! `make mutants` runs it and shows which check found each. Each mutant is a process of its own for each
//! check, so that what hangs can be ended and what is off stays off. The test that fails must pass with all barriers
//! on.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::collections::HashSet;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::channel;
use std::time::{Duration, Instant};

use nandex::raw::store::mutants::Barrier;

/// A check: a test program, the tests of it that are run, and after how many seconds it has come to a stop.
#[derive(Clone, Copy, Debug)]
struct Check {
    program: &'static str,
    filter: &'static str,
    hang_seconds: u64,
}

const STORE: &str = "unittests src/lib.rs (nandex_store)";
const INDEX: &str = "unittests src/lib.rs (nandex)";
const SUITE: &str = "tests/suite/main.rs";
/// The key-value drive's.
const DRIVE: &str = "tests/suite/main.rs (nandex-kvssd)";

/// The checks, in the order of how quickly they tell.
const CHECKS: [Check; 19] = [
    Check { program: "tests/barriers.rs", filter: "", hang_seconds: 20 },
    Check { program: "tests/stale.rs", filter: "", hang_seconds: 30 },
    Check { program: "tests/volume.rs", filter: "", hang_seconds: 20 },
    Check { program: "tests/log_growth.rs", filter: "", hang_seconds: 30 },
    Check { program: STORE, filter: "", hang_seconds: 60 },
    Check { program: INDEX, filter: "slicehash::tests::moves::", hang_seconds: 60 },
    Check { program: INDEX, filter: "bufferhash::tests::what_an_eviction", hang_seconds: 60 },
    Check { program: INDEX, filter: "slicehash::growing::tests::what_was", hang_seconds: 60 },
    Check { program: INDEX, filter: "rhik::tests::a_", hang_seconds: 120 },
    Check { program: "tests/run/main.rs", filter: "failures::", hang_seconds: 60 },
    Check { program: SUITE, filter: "faults::", hang_seconds: 300 },
    Check { program: SUITE, filter: "filters::threads::", hang_seconds: 120 },
    Check { program: SUITE, filter: "tables::closed::", hang_seconds: 20 },
    Check { program: SUITE, filter: "failures::", hang_seconds: 20 },
    Check { program: SUITE, filter: "tables::durability::", hang_seconds: 20 },
    Check { program: DRIVE, filter: "crash::", hang_seconds: 120 },
    Check { program: "tests/shadow/main.rs", filter: "", hang_seconds: 200 },
    Check { program: SUITE, filter: "crash::", hang_seconds: 300 },
    Check { program: "tests/trials.rs", filter: "thousands_of_cuts", hang_seconds: 400 },
];

/// Tests that are known to fail without some barriers, and are asked first. They only save the way through the
/// checks: what `make mutants` prints may be written here.
const KNOWN: [(&str, &str, &[Barrier]); 27] = [
    (
        "tests/stale.rs",
        "put_back",
        &[
            Barrier::SuperblockCopied,
            Barrier::StaleSuperblockRefused,
            Barrier::BlockNamesSuperblock,
            Barrier::LeftLogNamesSuperblock,
        ],
    ),
    ("tests/log_growth.rs", "a_power_cut", &[Barrier::GrownLogNoted, Barrier::LeftLogKept]),
    (
        STORE,
        "shadow::model::a_map_reads_back_as_it_was",
        &[
            Barrier::ShadowSparesOld,
            Barrier::ShadowSyncedBehindUpdate,
            Barrier::ShadowCommitsItsCapture,
            Barrier::ShadowHidesDrafts,
            Barrier::ShadowKeepsNewest,
            Barrier::ShadowTellsEpochs,
        ],
    ),
    (STORE, "values::tests::", &[Barrier::ValuesSpareCheckpoint, Barrier::ValuesGrowInCheckpoint]),
    (SUITE, "crash::what_a_slicehash", &[Barrier::CarryOverKeepsSnapshot]),
    (
        SUITE,
        "crash::what_an_index",
        &[Barrier::EachPartitionNotesItsPlace, Barrier::DocumentsAreLogged],
    ),
    (SUITE, "filters::threads::", &[Barrier::RetiredRunsKeepPages]),
    (STORE, "run::tests::", &[Barrier::RunProvesPages, Barrier::RunHearsItsWrites]),
    (
        INDEX,
        "slicehash::tests::moves::",
        &[
            Barrier::ShadowSyncsBlocks,
            Barrier::MovesMustBeNews,
            Barrier::MoveForgetsWhatItTook,
            Barrier::MergeCarriesOver,
            Barrier::MoveSyncsItsSnapshot,
            Barrier::MoveTakesItsRuns,
            Barrier::CaptureHoldsMaps,
            Barrier::BufferNotesItsPlace,
        ],
    ),
    (
        "tests/shadow/main.rs",
        "failures::",
        &[Barrier::RewriteProvesPages, Barrier::RewriteEndsItsWrites],
    ),
    (SUITE, "failures::a_poisoned", &[Barrier::FailurePoisons]),
    (
        SUITE,
        "faults::a_failed_growth",
        &[Barrier::BoundaryIsLogged, Barrier::ReplaySkipsToBoundary, Barrier::SnapshotsAlternate],
    ),
    (
        SUITE,
        "crash::what_a_table_of_large_values",
        &[
            Barrier::ValuesSynced,
            Barrier::ValuesRolledForward,
            Barrier::ValuesBeforeReferences,
            Barrier::CleaningSyncsReferences,
        ],
    ),
    (
        INDEX,
        "bufferhash::tests::what_an_eviction_keeps",
        &[Barrier::KeptIsLogged, Barrier::CheckpointSyncsLog, Barrier::CleanCloseSavedAll],
    ),
    (
        INDEX,
        "bufferhash::growing::lives::",
        &[Barrier::WholeKeepsARemoval, Barrier::OlderStayUntilAllAreWhole],
    ),
    (INDEX, "slicehash::growing::tests::what_was", &[Barrier::RefusedKeepsInherited]),
    (INDEX, "rhik::tests::a_", &[Barrier::RecordsProvePages, Barrier::RecordsHearTheirWrites]),
    (INDEX, "rhik::tests::while_a_checkpoint", &[Barrier::RecordsCaptureHoldsMaps]),
    (INDEX, "cascade::tests::counts_outlive", &[Barrier::DroppedBoundaryIsAPlace]),
    (INDEX, "cascade::tests::while_a_checkpoint", &[Barrier::RunsCaptureHoldsMaps]),
    (INDEX, "counting::tests::while_a_checkpoint", &[Barrier::CountsCaptureHoldsMaps]),
    (INDEX, "slicebloom::tests::while_a_checkpoint", &[Barrier::SlicesCaptureHoldsMaps]),
    (
        INDEX,
        "slicelsh::tests::moves::",
        &[Barrier::DocumentsCarryOver, Barrier::DocumentsSyncTheirSnapshot],
    ),
    (SUITE, "crash::what_a_cascade", &[Barrier::SnapshotOwnsItsPages]),
    (SUITE, "faults::a_failed_sync", &[Barrier::FailedCheckpointPoisons]),
    (DRIVE, "crash::", &[Barrier::DriveMarksItsCounts]),
    (STORE, "log::tests::sync::a_failed_sync_of_the_timer", &[Barrier::CommitAsksForPoison]),
];

/// How a check went. What is broken hung, or ended without a word of which test failed.
#[derive(PartialEq, Eq, Debug)]
enum Verdict {
    Passed,
    Failed(String),
    Broken(String),
}

/// The test programs, by what cargo calls them. The drive's are named as those of the trials are, so its package is
/// added. It is built together with the trials, so that both take the same library.
fn programs() -> Vec<(String, PathBuf)> {
    let mut programs = programs_of(&["-p", "nandex-store", "-p", "nandex", "-p", "nandex-trial"]);
    let suites = programs_of(&["-p", "nandex-trial", "-p", "nandex-kvssd"]);
    let drive = suites.into_iter().filter(|suite| !programs.contains(suite));
    let drive: Vec<_> =
        drive.map(|(name, path)| (format!("{name} (nandex-kvssd)"), path)).collect();
    programs.extend(drive);
    programs
}

/// The test programs of these packages, built as this one is, with a feature that switches barriers off.
fn programs_of(packages: &[&str]) -> Vec<(String, PathBuf)> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let mut cargo = Command::new(env!("CARGO"));
    cargo.args(["test", "--locked", "--no-run", "--tests"]).current_dir(&root);
    cargo.args(packages).args(["--features", "nandex-trial/mutants"]);
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

/// Runs tests of a check, with a barrier off, until the first fails.
fn run(program: &Path, check: &Check, tests: &[&str], off: Option<Barrier>) -> Verdict {
    let mut command = Command::new(program);
    command.args(tests.iter().filter(|test| !test.is_empty())).arg("--test-threads=1");
    command.current_dir(env!("CARGO_MANIFEST_DIR")).env("RUST_BACKTRACE", "0");
    command.env("NANDEX_MUTANT", off.map_or("none", Barrier::name));
    let mut child = command.stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
    let lines = BufReader::new(child.stdout.take().unwrap()).lines();
    let (failed, ended) = channel();
    let reader = std::thread::spawn(move || {
        let name = |line: String| {
            Some(line.strip_prefix("test ")?.strip_suffix(" ... FAILED")?.to_owned())
        };
        // Nobody listens after a time-out.
        let _ = failed.send(lines.map_while(Result::ok).find_map(name));
    });
    let told = ended.recv_timeout(Duration::from_secs(check.hang_seconds));
    if !matches!(told, Ok(None)) {
        // It may have ended by itself meanwhile.
        let _ = child.kill();
    }
    let status = child.wait().unwrap();
    reader.join().unwrap();
    match told {
        Ok(Some(test)) => Verdict::Failed(test),
        Ok(None) if status.success() => Verdict::Passed,
        Ok(None) => Verdict::Broken(status.to_string()),
        Err(_) => Verdict::Broken(format!("{} {} hangs", check.program, check.filter)),
    }
}

/// The test programs, and which of their tests have passed with all barriers on.
struct Checker {
    programs: Vec<(String, PathBuf)>,
    proven: Mutex<HashSet<(PathBuf, String)>>,
}

impl Checker {
    fn program(&self, check: &Check) -> &Path {
        let program = self.programs.iter().find(|(program, _)| program == check.program);
        &program.unwrap_or_else(|| panic!("{} is not built", check.program)).1
    }

    /// A test that fails with a barrier off says something only where it passes with all of them on.
    fn must_pass(&self, check: &Check, tests: &[&str]) {
        let program = self.program(check);
        let key = (program.to_owned(), tests.join(" "));
        if self.proven.lock().unwrap().contains(&key) {
            return;
        }
        let verdict = run(program, check, tests, None);
        assert_eq!(verdict, Verdict::Passed, "with all barriers on: {check:?}, {tests:?}");
        self.proven.lock().unwrap().insert(key);
    }

    /// The first test that fails with this barrier off, one that is known to first of all; a check that breaks only
    /// where none fails.
    fn killer(&self, off: Barrier) -> Option<String> {
        let known = KNOWN.iter().find(|(.., barriers)| barriers.contains(&off));
        let known = known.map(|&(program, filter, _)| Check { program, filter, hang_seconds: 60 });
        let mut broken = None;
        for check in known.iter().chain(&CHECKS) {
            match run(self.program(check), check, &[check.filter], Some(off)) {
                Verdict::Passed => {}
                Verdict::Failed(test) => {
                    self.must_pass(check, &["--exact", &test]);
                    return Some(test);
                }
                Verdict::Broken(what) => broken = broken.or(Some((*check, what))),
            }
        }
        let (check, what) = broken?;
        self.must_pass(&check, &[check.filter]);
        Some(what)
    }

    /// Asks for what misses a barrier that is off; gives its name where nothing does.
    fn survivor(&self, off: Barrier) -> Option<&'static str> {
        let (started, name) = (Instant::now(), off.name());
        let killer = self.killer(off);
        let (seconds, by) = (started.elapsed().as_secs_f64(), killer.as_deref());
        println!("{name:28} {seconds:5.1} s  {}", by.unwrap_or("SURVIVES"));
        killer.is_none().then_some(name)
    }
}

#[test]
fn every_barrier_is_missed_by_some_check_when_it_is_off() {
    let checker = Checker { programs: programs(), proven: Mutex::default() };
    let (next, survivors) = (AtomicUsize::new(0), Mutex::new(Vec::new()));
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    std::thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(|| {
                while let Some(&off) = Barrier::ALL.get(next.fetch_add(1, Ordering::Relaxed)) {
                    survivors.lock().unwrap().extend(checker.survivor(off));
                }
            });
        }
    });
    let survivors = survivors.into_inner().unwrap();
    let all = Barrier::ALL.len();
    println!("{} of {all} barriers are proven by a check", all - survivors.len());
    assert!(survivors.is_empty(), "no check misses {survivors:?}");
}
