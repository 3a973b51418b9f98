//! The crash-safe substrate that every structure of nandex stands on.
#![forbid(unsafe_code)]

pub mod buffer;
pub mod bytes;
pub mod entries;
mod error;
pub mod superblock;
pub mod space;
pub mod checkpoint;
pub mod hash;
pub mod log;
pub mod page;
mod poison;

pub use error::{Error, Result};
pub use log::{Durability, Log, LogSpan, Lsn};
pub use page::StructureId;
pub use poison::Poison;
