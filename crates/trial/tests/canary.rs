//! A planted bug must be noticed: switches off barriers of durability and expects trials to fail.
//!
//! `make canary` runs it. Without a planted bug the same trials pass.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::process::{Command, Output};

use nandex::store::mutants::Barrier;
use nandex_trial::BLOCK;

/// Trials end after a minute at most. Those of SliceHash begin with seed [`BLOCK`], those of cascade filters
/// with twice that.
fn trials(off: &str, start: u64) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_nandex-trial"));
    command.args(["--seeds", "144", "--minutes", "1", "--start", &start.to_string()]);
    command.env("NANDEX_MUTANT", off).env("RUST_BACKTRACE", "0").output().unwrap()
}

fn are_noticed(barriers: &[Barrier], start: u64) {
    for barrier in barriers {
        let output = trials(barrier.name(), start);
        let text = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(1), "without {}: {text}", barrier.name());
        let line = text.lines().find(|line| line.starts_with("make trial SEED="));
        assert!(line.is_some(), "{text}");
    }
}

#[test]
fn planted_bugs_are_noticed_within_a_minute_and_said_in_a_line_that_replays() {
    let barriers = [
        Barrier::CommitWaitsForSync,
        Barrier::LogSyncsDevice,
        Barrier::CheckpointSynced,
        Barrier::SuperblockSynced,
        Barrier::CheckpointsAlternate,
        Barrier::BlockChecksum,
        Barrier::FailurePoisons,
        Barrier::SnapshotsAlternate,
        Barrier::BufferNotesItsPlace,
    ];
    are_noticed(&barriers, 0);
}

#[test]
fn planted_bugs_of_slicetables_are_noticed_by_trials_of_slicehash() {
    are_noticed(&[Barrier::ShadowSyncsBlocks, Barrier::ShadowSparesOld], BLOCK);
}

#[test]
fn planted_bugs_of_cuts_are_noticed_by_trials_of_cascade_filters() {
    are_noticed(&[Barrier::BoundaryIsLogged, Barrier::ReplaySkipsToBoundary], 2 * BLOCK);
}

#[test]
fn nothing_is_noticed_where_nothing_is_planted() {
    for start in [0, BLOCK, 2 * BLOCK] {
        let output = trials("none", start);
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    }
}
