//! The run: a sorted list of fingerprints on flash, written once, front to back.

mod entry;

pub use entry::{Entry, Source};
