//! Tests of tables of large keys and values alone: shared by threads, overwritten, full and with invalid
//! input.
mod bad_input;
mod cache;
mod change;
mod cleaning;
mod collisions;
mod contract;
mod cost;
mod faults;
mod format;
mod full;
mod grow;
mod support;
mod tables;
mod threads;

pub use contract::configurations;
pub use support::Setup;
