//! The shadow on a volume: what rewrites cost, what failures leave, and what every power cut leaves.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod crash;
mod failures;
mod subject;
