//! One suite for every configuration of every table: the contract against an oracle, bad input,
//! costs and threads.

mod agreement;
mod bad_input;
mod cost;
mod failures;
mod inline;
mod runner;
mod support;
mod threads;

pub use support::{SLICES, Setup};
