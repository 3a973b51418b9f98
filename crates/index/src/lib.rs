//! Hash indexes that are bigger than RAM, on flash.
#![forbid(unsafe_code)]

pub mod api;
pub mod bufferhash;
mod error;
pub mod oracle;

pub use api::{Table, TableStats, Value};
pub use error::{Error, Result};
