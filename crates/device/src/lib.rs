//! Flash as an array of pages: the base of everything in nandex.
//!
//! A [`Device`] is a run of pages that can be read, written, made durable and discarded through
//! [`Queue`]s of owned, aligned operations. Nothing above this crate sees a descriptor, a path or a
//! clock, so files, raw block devices, memory and striped arrays of them are interchangeable.
//! This is the only crate with `unsafe` code, the only one that talks to the kernel, and the only one
//! that knows the wall clock and entropy.

mod allocator;
mod array;
mod before_write;
mod bits;
mod buf;
mod counted;
mod described;
mod device;
mod entropy;
mod error;
mod file;
mod forward;
mod geometry;
mod huge;
pub mod laws;
mod machine;
mod memory;
pub mod number;
pub mod output;
mod overlay;
mod prefetch;
pub mod probe;
mod vectors;
mod watched;

pub use allocator::{give_back_freed_ram, give_back_gaps};
pub use array::{ArrayDevice, ArrayOptions, Label, LabelFault, LabelledArray, Member, Striping};
pub use before_write::{CopyBeforeWrite, CopyOrder, copy_pages};
pub use bits::{Bits, PlainBits, SwiftBits};
pub use buf::PageBuf;
pub use counted::{Counted, Counters, Counts};
pub use described::Described;
pub use device::{Completion, Device, EngineReport, Op, OpKind, Queue};
pub use entropy::random_u128;
pub use error::{Error, Result};
pub use file::{Access, Allocation, Create, EngineChoice, FileDevice, FileOptions, growth_bytes};
pub use geometry::{CHANNELS_MAX, Geometry, Mapping, PAGE_BYTES, PageId};
pub use huge::prefer_huge_pages;
pub use machine::{cores, ram_bytes, resident_peak_bytes};
pub use memory::MemoryDevice;
pub use overlay::Overlay;
pub use prefetch::prefetch;
pub use vectors::{VectorLoop, run_in_vectors};
pub use watched::{Call, Ended, Observer, Watched};
