//! Tests of tables alone, in each configuration: bad input, costs and threads.

mod bad_input;
mod cache;
mod closed;
mod cost;
mod durability;
mod evicted;
mod full;
mod lagging;
mod log_space;
mod stale;
mod support;
mod threads;

pub use support::{SLICES, Setup};
