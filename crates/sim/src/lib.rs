//! Simulated flash: SSDs in virtual time, power cuts and faults by seed.
//!
//! A [`Model`] says when each operation ends and why; it knows neither bytes nor callers. It is
//! deterministic: the same requests in the same order give the same nanoseconds, on every machine.
#![forbid(unsafe_code)]

mod model;
pub mod trace;
pub mod workload;

pub use model::{Done, Model, Parts, Request, RequestKind};
