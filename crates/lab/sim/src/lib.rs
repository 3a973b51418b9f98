//! Simulated flash: SSDs in virtual time, power cuts and faults by seed.
//!
//! A [`SimDevice`] is a device like any other to its users. Inside, a [`Model`] computes when each operation
//! ends and why; it knows neither bytes nor callers. An [`Image`] knows the bytes and which of them survive a
//! power cut, and [`Faults`] decide which operations fail. Everything is deterministic: the same operations
//! in the same order give the same bytes and nanoseconds, on every machine.
#![forbid(unsafe_code)]

mod device;
pub mod disk;
mod error;
mod fault;
mod ftl;
pub mod image;
mod model;
pub mod preset;
pub mod report;
pub mod run;
mod shared;
pub mod spec;
pub mod ssd;
pub mod trace;
pub mod workload;

pub use device::{Cut, SimDevice};
pub use disk::{Disk, DiskSpec};
pub use error::{Error, Result};
pub use fault::{Fault, FaultKind, FaultOn, FaultSpan, Faults, Strike};
pub use ftl::FtlCounts;
pub use image::{History, Image};
pub use model::{Done, Model, Parts, Request, RequestKind};
pub use preset::{Machine, Preset, PresetError};
pub use spec::Spec;
pub use ssd::{Fill, Ssd};
