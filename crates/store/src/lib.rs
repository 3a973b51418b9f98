//! The crash-safe substrate that every structure of nandex stands on.
#![forbid(unsafe_code)]

pub mod bytes;
mod error;
pub mod log;
pub mod page;
mod poison;

pub use error::{Error, Result};
pub use log::{Durability, Log, LogSpan, Lsn};
pub use page::StructureId;
pub use poison::Poison;
