//! Hash indexes that are bigger than RAM, on flash.
#![forbid(unsafe_code)]

pub mod api;
pub mod bufferhash;
mod check;
mod error;
pub mod oracle;

pub use api::{Table, TableStats, Value};
pub use bufferhash::BufferHash;
pub use check::{CheckProgress, OnProgress, check};
pub use error::{Error, Result};
pub use nandex_device as device;
pub use nandex_store as store;
pub use nandex_store::check::{Finding, Report};
pub use nandex_store::{Durability, OpenOptions, Volume, VolumeOptions};
