//! A planted bug must be noticed: switches off barriers of durability and expects trials to fail.
//!
//! `make canary` runs it. Without a planted bug the same trials pass.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::process::{Command, Output};

use nandex::store::mutants::Barrier;

/// Trials end after a minute at most.
fn trials(off: &str) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_nandex-trial"));
    command.args(["--seeds", "144", "--minutes", "1"]).env("NANDEX_MUTANT", off);
    command.env("RUST_BACKTRACE", "0").output().unwrap()
}

#[test]
fn planted_bugs_are_noticed_within_a_minute_and_said_in_a_line_that_replays() {
    for barrier in [
        Barrier::CommitWaitsForSync,
        Barrier::LogSyncsDevice,
        Barrier::CheckpointSynced,
        Barrier::SuperblockSynced,
        Barrier::CheckpointsAlternate,
        Barrier::BlockChecksum,
        Barrier::FailurePoisons,
        Barrier::ImagesAlternate,
        Barrier::BufferNotesItsPlace,
    ] {
        let output = trials(barrier.name());
        let text = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(1), "without {}: {text}", barrier.name());
        let line = text.lines().find(|line| line.starts_with("make trial SEED="));
        assert!(line.is_some(), "{text}");
    }
}

#[test]
fn nothing_is_noticed_where_nothing_is_planted() {
    let output = trials("none");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}
