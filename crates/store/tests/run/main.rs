//! Runs on a volume: what every power cut leaves of a merge, and what failures do.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod crash;
mod failures;
mod subject;
