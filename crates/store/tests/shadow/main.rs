//! The shadow on a volume: the cost of rewrites, and the state after failures and power cuts.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod crash;
#[path = "../common/cuts.rs"]
mod cuts;
mod failures;
#[path = "../common/part.rs"]
mod part;
mod subject;
