//! One suite for every configuration of every table: the contract against an oracle, power cuts,
//! failing devices, bad input, killed processes, costs and threads.
//!
//! `NANDEX_SWEEP=full` cuts and fails at every single device operation instead
//! of at a spread of them that suits a short run.

mod kill;
mod runner;
mod support;
mod threads;

mod agreement;
mod bad_input;
mod cost;
mod crash;
mod faults;
