//! One suite for every configuration of every filter: the contract against an exact multiset, power cuts,
//! failing devices, bad input, killed processes, costs and threads.
//!
//! `NANDEX_SWEEP=full` cuts and fails at every single device operation instead of at a spread of them.

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
