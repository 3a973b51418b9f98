//! One suite for every configuration of every table: the contract against an oracle, power cuts,
//! failing devices, bad input, killed processes, costs and threads.
//!
//! `NANDEX_SWEEP=full` cuts and fails at every single device operation and kills 200 times, for a quarter of an hour,
//! instead of at a spread of them that suits a short run.

mod agreement;
mod bad_input;
mod cost;
mod crash;
mod faults;
mod inline;
mod kill;
mod life;
mod recorder;
mod rewrite;
mod runner;
mod support;
mod threads;
