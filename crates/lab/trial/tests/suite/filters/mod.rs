//! Tests of filters alone, in each configuration: an exact multiset and binomial bounds, bad input, costs and
//! threads.

mod agreement;
mod bad_input;
mod cost;
mod flawed;
mod odds;
mod runner;
mod support;
mod threads;

pub use support::Setup;
