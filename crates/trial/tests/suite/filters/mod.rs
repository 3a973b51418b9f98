//! One suite for every configuration of every filter: the contract against an exact multiset, bad
//! input, costs and threads.

mod agreement;
mod bad_input;
mod cost;
mod flawed;
mod kinds;
mod odds;
mod runner;
mod support;
mod threads;

pub use runner::key;
pub use support::Setup;
