//! The shadow on a volume: what rewrites cost, what failures leave, and what every power cut leaves.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod crash;
#[path = "../common/cuts.rs"]
mod cuts;
mod failures;
#[path = "../common/part.rs"]
mod part;
mod subject;
