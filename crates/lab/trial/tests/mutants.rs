//! Tests of the tests: switches off one barrier of durability at a time and requires that a check fails.
//!
//! `make mutants` runs it and shows which check found each. Each mutant is a process of its own for each
//! check, so that a hanging one can be ended and a barrier stays off. The test that fails must pass with all
//! barriers on.
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
use serde_json::Value;

/// A check: a test program by its source, its tests that are run, and the seconds after which it counts as
/// hanging.
#[derive(Clone, Copy, Debug)]
struct Check {
    program: &'static str,
    filter: &'static str,
    hang_seconds: u64,
}

const STORE: &str = "crates/store/src/lib.rs";
const STALE: &str = "crates/store/tests/stale.rs";
const LOG_GROWTH: &str = "crates/store/tests/log_growth.rs";
const RUNS: &str = "crates/store/tests/run/main.rs";
const SHADOW: &str = "crates/store/tests/shadow/main.rs";
const INDEX: &str = "crates/index/src/lib.rs";
const SUITE: &str = "crates/lab/trial/tests/suite/main.rs";
/// The test program of the key-value drive.
const DRIVE: &str = "crates/apps/kvssd/tests/suite/main.rs";

/// The checks, the quickest first.
const CHECKS: [Check; 20] = [
    Check { program: "crates/store/tests/barriers.rs", filter: "", hang_seconds: 20 },
    Check { program: STALE, filter: "", hang_seconds: 30 },
    Check { program: "crates/store/tests/volume.rs", filter: "", hang_seconds: 20 },
    Check { program: LOG_GROWTH, filter: "", hang_seconds: 30 },
    Check { program: STORE, filter: "", hang_seconds: 60 },
    Check { program: INDEX, filter: "slicehash::tests::moves::", hang_seconds: 60 },
    Check { program: INDEX, filter: "bufferhash::tests::what_an_eviction", hang_seconds: 60 },
    Check { program: INDEX, filter: "slicehash::growing::tests::what_was", hang_seconds: 60 },
    Check { program: INDEX, filter: "rhik::tests::a_", hang_seconds: 120 },
    Check { program: RUNS, filter: "failures::", hang_seconds: 60 },
    Check { program: SUITE, filter: "faults::", hang_seconds: 300 },
    Check { program: SUITE, filter: "filters::threads::", hang_seconds: 120 },
    Check { program: SUITE, filter: "large::cleaning::", hang_seconds: 120 },
    Check { program: SUITE, filter: "tables::closed::", hang_seconds: 20 },
    Check { program: SUITE, filter: "failures::", hang_seconds: 20 },
    Check { program: SUITE, filter: "tables::durability::", hang_seconds: 20 },
    Check { program: DRIVE, filter: "crash::", hang_seconds: 120 },
    Check { program: SHADOW, filter: "", hang_seconds: 200 },
    Check { program: SUITE, filter: "crash::", hang_seconds: 300 },
    Check {
        program: "crates/lab/trial/tests/trials.rs",
        filter: "thousands_of_cuts",
        hang_seconds: 400,
    },
];

/// Tests that are known to fail without some barriers, and are run first. They only shorten the way through
/// the checks: the output of `make mutants` can be written here.
const KNOWN: [(&str, &str, &[Barrier]); 34] = [
    (
        STALE,
        "put_back",
        &[
            Barrier::SuperblockCopied,
            Barrier::StaleSuperblockRefused,
            Barrier::BlockNamesSuperblock,
            Barrier::LeftLogNamesSuperblock,
        ],
    ),
    (LOG_GROWTH, "a_power_cut", &[Barrier::GrownLogNoted, Barrier::LeftLogKept]),
    (
        STORE,
        "shadow::model::a_map_reads_back_as_it_was",
        &[
            Barrier::ShadowSparesOld,
            Barrier::ShadowSyncedBehindUpdate,
            Barrier::ShadowCommitsItsCapture,
            Barrier::ShadowHidesDrafts,
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
    (SUITE, "large::cleaning::threads_that", &[Barrier::CleaningHeedsUpdates]),
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
    (SHADOW, "failures::", &[Barrier::RewriteProvesPages, Barrier::RewriteEndsItsWrites]),
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
    (INDEX, "bufferhash::tests::what_flushes_put_back", &[Barrier::PutBackIsReplayedOnce]),
    (
        INDEX,
        "bufferhash::growing::lives_tests::",
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
    (
        STORE,
        "log::tests::sync::a_",
        &[
            Barrier::LogSyncsWhatItFound,
            Barrier::LogSyncVouchesForItsStart,
            Barrier::LogSyncAsksForPoison,
            Barrier::LogWrittenInOrder,
        ],
    ),
    (
        STORE,
        "log::tests::damage::",
        &[
            Barrier::BlockChecksum,
            Barrier::BlockPlace,
            Barrier::BlockVolume,
            Barrier::BlockChain,
            Barrier::ReplayHearsWitness,
            Barrier::ReplayHearsSuperblock,
        ],
    ),
    (
        STORE,
        "page::tests::",
        &[
            Barrier::PageChecksum,
            Barrier::PageMagic,
            Barrier::PageStructure,
            Barrier::PageNumber,
            Barrier::PageGeneration,
        ],
    ),
    (
        STORE,
        "ring::tests::",
        &[Barrier::RingHidesUnfinished, Barrier::RingSparesCheckpoint, Barrier::RingTellsEpochs],
    ),
    (STORE, "shadow::tests::an_older_flip", &[Barrier::ShadowKeepsNewest]),
];

/// The result of a check. A broken check hung, or ended without naming the failed test.
#[derive(PartialEq, Eq, Debug)]
enum Verdict {
    Passed,
    Failed(String),
    Broken(String),
}

/// Returns the test programs, by their sources, with a feature that switches barriers off. They are built as
/// `make unit` builds them, of all packages at once, so that after it there is nothing to build.
fn programs() -> Vec<(PathBuf, PathBuf)> {
    let mut cargo = Command::new(env!("CARGO"));
    cargo.args(["test", "--locked", "--no-run", "--workspace", "--tests"]);
    cargo.args(["--features", "nandex-trial/mutants", "--message-format", "json"]);
    cargo.current_dir(Path::new(env!("CARGO_MANIFEST_DIR")).join("../../.."));
    if !cfg!(debug_assertions) {
        cargo.arg("--release");
    }
    // Cargo's variables for a test of its package do not concern other packages, but some crates are rebuilt
    // if they change.
    let of_package =
        |name: &String| ["CARGO_MANIFEST_", "CARGO_PKG_"].iter().any(|it| name.starts_with(it));
    for (name, _) in std::env::vars().filter(|(name, _)| of_package(name)) {
        cargo.env_remove(name);
    }
    let output = cargo.output().unwrap();
    let text = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "the checks cannot be built:\n{text}");
    let messages = String::from_utf8(output.stdout).unwrap();
    let program = |message: &str| {
        let message: Value = serde_json::from_str(message).unwrap();
        // A command's program is listed without tests too.
        let is_test = message["profile"]["test"] == true;
        let paths = (message["target"]["src_path"].as_str()?, message["executable"].as_str()?);
        is_test.then(|| (paths.0.into(), paths.1.into()))
    };
    messages.lines().filter_map(program).collect()
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
        // After a time-out the receiver is gone.
        let _ = failed.send(lines.map_while(Result::ok).find_map(name));
    });
    let told = ended.recv_timeout(Duration::from_secs(check.hang_seconds));
    if !matches!(told, Ok(None)) {
        // It may have ended on its own meanwhile.
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

/// The test programs, and the tests that have passed with all barriers on.
struct Checker {
    programs: Vec<(PathBuf, PathBuf)>,
    proven: Mutex<HashSet<(PathBuf, String)>>,
}

impl Checker {
    fn program(&self, check: &Check) -> &Path {
        let program = self.programs.iter().find(|(source, _)| source.ends_with(check.program));
        &program.unwrap_or_else(|| panic!("{} is not built", check.program)).1
    }

    /// Requires that the tests pass with all barriers on: only then is a failure with a barrier off
    /// significant.
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

    /// Returns the first test that fails with this barrier off, trying the known ones first; a check that
    /// breaks only if none fails.
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

    /// Searches for a check that misses a barrier which is off; returns its name if there is none.
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
    // If a barrier is missed by a wait that does not end, its check sleeps for most of its time.
    let threads = 1 + std::thread::available_parallelism().map_or(1, usize::from);
    std::thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(|| {
                while let Some(&off) = Barrier::ALL.get(next.fetch_add(1, Ordering::Relaxed)) {
                    // The lock is taken afterwards, so that the others continue meanwhile.
                    let survivor = checker.survivor(off);
                    survivors.lock().unwrap().extend(survivor);
                }
            });
        }
    });
    let survivors = survivors.into_inner().unwrap();
    let all = Barrier::ALL.len();
    println!("{} of {all} barriers are proven by a check", all - survivors.len());
    assert!(survivors.is_empty(), "no check misses {survivors:?}");
}
