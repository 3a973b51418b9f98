//! Every configuration of every structure: the contract against an oracle, power cuts, failing devices, bad
//! input, killed processes, costs and threads.
//!
//! `NANDEX_SWEEP=full` cuts and fails at every single device operation and kills 200 times, for a quarter of
//! an hour, instead of at a sample of them for a short run.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod absent;
mod absorbed;
mod agreement;
mod bad_input;
mod crash;
mod damage;
mod devices;
mod failures;
mod faults;
mod filters;
mod guarded;
mod kill;
mod large;
mod lives;
mod neighbors;
mod processes;
mod recorded;
mod sites;
mod structure;
mod tables;
