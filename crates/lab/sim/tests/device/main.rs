//! The simulated device from outside: the laws, power cuts, faults, time, and arrays with a bad member.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod array;
mod faults;
mod labelled;
mod laws;
mod power;
mod support;
mod time;
