//! Simulated flash: SSDs in virtual time, power cuts and faults by seed.
//!
//! A [`Model`] says when each operation ends and why; it knows neither bytes nor callers. It is
//! deterministic: the same requests in the same order give the same nanoseconds, on every machine.
#![forbid(unsafe_code)]

mod error;
mod ftl;
mod model;
pub mod spec;
pub mod ssd;
pub mod trace;
pub mod workload;

pub use error::{Error, Result};
pub use ftl::FtlCounts;
pub use model::{Done, Model, Parts, Request, RequestKind};
pub use spec::Spec;
pub use ssd::{Fill, Ssd};
