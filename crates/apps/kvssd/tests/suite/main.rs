//! The drive against its specification: an oracle, every result code, full drives, power cuts, iterators, queues.
#![forbid(unsafe_code)]
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod codes;
mod common;
mod crash;
mod full;
mod iterators;
mod life;
mod loads;
mod model;
mod oracle;
mod queue;
