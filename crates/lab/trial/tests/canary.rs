//! A planted bug must be noticed: switches off durability barriers and expects trials to fail.
//!
//! `make canary` runs it. Without a planted bug the same trials pass.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::process::{Command, Output, Stdio};
use std::time::{Duration, Instant};

use nandex::raw::store::mutants::Barrier;
use nandex_trial::BLOCK;

/// Bugs, each with the seed that notices it soonest. Those of SliceHash begin with seed [`BLOCK`], those of
/// cascade filters with twice that. If a seed no longer notices its bug, others of its block are searched,
/// and the test prints one that does.
const PLANTED: [(Barrier, u64); 13] = [
    (Barrier::CommitWaitsForSync, 3),
    (Barrier::LogSyncsDevice, 25),
    (Barrier::CheckpointSynced, 0),
    (Barrier::SuperblockSynced, 0),
    (Barrier::CheckpointsAlternate, 0),
    (Barrier::BlockChecksum, 0),
    (Barrier::FailurePoisons, 10),
    (Barrier::SnapshotsAlternate, 0),
    (Barrier::BufferNotesItsPlace, 1),
    (Barrier::ShadowSyncsBlocks, 400),
    (Barrier::ShadowSparesOld, 402),
    (Barrier::BoundaryIsLogged, 770),
    (Barrier::ReplaySkipsToBoundary, 779),
];

/// The maximum time of a process of trials: a planted bug may also make a call wait forever.
const DEADLINE: Duration = Duration::from_secs(120);

/// Runs trials of `count` seeds; they end with the first that fails, after a minute, or when they are killed
/// at the deadline.
fn trials(off: &str, start: u64, count: u64) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_nandex-trial"));
    command.args(["--seeds", &count.to_string(), "--minutes", "1", "--start", &start.to_string()]);
    command.env("NANDEX_MUTANT", off).env("RUST_BACKTRACE", "0");
    let mut child = command.stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
    let begun = Instant::now();
    while child.try_wait().unwrap().is_none() {
        if begun.elapsed() > DEADLINE {
            child.kill().unwrap();
        }
        std::thread::sleep(Duration::from_millis(10));
    }
    child.wait_with_output().unwrap()
}

#[test]
fn planted_bugs_are_noticed_and_said_in_a_line_that_replays() {
    for (barrier, seed) in PLANTED {
        let mut output = trials(barrier.name(), seed, 1);
        if output.status.success() {
            output = trials(barrier.name(), seed / BLOCK * BLOCK, 144);
        }
        let text = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(1), "without {}: {text}", barrier.name());
        let line = text.lines().find(|line| line.starts_with("make trial SEED="));
        println!("{}: {}", barrier.name(), line.unwrap_or_else(|| panic!("{text}")));
    }
}

#[test]
fn nothing_is_noticed_where_nothing_is_planted() {
    for (_, seed) in PLANTED {
        let output = trials("none", seed, 1);
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    }
}
