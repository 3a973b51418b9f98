//! Flash as an array of pages: the seam everything in nandex hangs on.
//!
//! A [`Device`] is a run of pages that can be read, written, made durable and discarded through
//! [`Queue`]s of owned, aligned operations. Nothing above this crate sees a descriptor, a path or a
//! clock, so files, raw block devices, memory and striped arrays of them are interchangeable.
//! This is the only crate with `unsafe` code, the only one that talks to the kernel, and the only one
//! that knows the wall clock and entropy.

mod buf;
mod device;
mod error;
mod geometry;
mod memory;

pub use buf::PageBuf;
pub use device::{Completion, Device, EngineReport, Op, OpKind, Queue};
pub use error::{Error, Result};
pub use geometry::{Geometry, PAGE_BYTES, PageId};
pub use memory::MemoryDevice;
