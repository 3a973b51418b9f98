//! Runs on a volume: the result of every power cut during a merge, and of failures.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod crash;
#[path = "../common/cuts.rs"]
mod cuts;
mod failures;
#[path = "../common/part.rs"]
mod part;
mod subject;
