//! Runs on a volume: what every power cut leaves of a merge, and what failures do.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod crash;
#[path = "../common/cuts.rs"]
mod cuts;
mod failures;
#[path = "../common/part.rs"]
mod part;
mod subject;
