//! One suite for every configuration of every filter: the contract against an exact multiset, power cuts,
//! failing devices, bad input, killed processes, costs and threads.
//!
//! `NANDEX_SWEEP=full` cuts and fails at every single device operation instead of at a spread of them.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

#[path = "../common/chance.rs"]
mod chance;
#[path = "../common/ground.rs"]
mod ground;
#[path = "../common/guarded.rs"]
mod guarded;
#[path = "../common/processes.rs"]
mod processes;
#[path = "../common/sites.rs"]
mod sites;

mod agreement;
mod bad_input;
mod cost;
mod crash;
mod faults;
mod flawed;
mod kill;
mod life;
mod odds;
mod runner;
mod support;
mod threads;
