//! Hash indexes that are bigger than RAM, on flash.
#![forbid(unsafe_code)]

pub mod api;
pub mod bufferhash;
mod error;
pub mod oracle;

pub use api::{Table, TableStats, Value};
pub use bufferhash::BufferHash;
pub use error::{Error, Result};
pub use nandex_device as device;
pub use nandex_store as store;
pub use nandex_store::{Durability, OpenOptions, Volume, VolumeOptions};
