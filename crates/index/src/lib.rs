//! Hash indexes that are bigger than RAM, on flash.
//!
//! A [`Volume`] is a file or device that holds named structures and survives crashes. The structure of
//! this release is [`BufferHash`], a hash table that writes only large sequential segments and reads
//! about one page per lookup, at about two bytes of RAM per entry. All tables are used through the
//! [`Table`] trait, singly or in batches; batches keep the device's whole queue busy from one thread.
//!
//! ```
//! use std::sync::Arc;
//! use nandex::bufferhash::model::Budget;
//! use nandex::{BufferHash, Table, Volume, VolumeOptions, device::MemoryDevice};
//!
//! let volume = Volume::create(Arc::new(MemoryDevice::new()), VolumeOptions::default())?;
//! let budget = Budget { entries: 100_000, ram_bytes: 8 << 20 };
//! let table = BufferHash::with_budget(&volume, "seen", budget)?;
//! table.insert_u64(7, 42)?;
//! assert_eq!(table.get_u64(7)?, Some(42));
//! table.sync()?; // everything acknowledged so far now survives a power cut
//! # Ok::<(), nandex::Error>(())
//! ```
//!
//! The layers below are re-exported: [`device`] (where pages lie) and [`store`] (how they last).
#![forbid(unsafe_code)]

mod any;
pub mod api;
pub mod bufferhash;
mod check;
mod error;
mod intake;
pub mod oracle;
pub mod slicehash;

pub use any::{AnyPair, AnyTable};
pub use api::{LookupStream, Table, TableStats, Value};
pub use bufferhash::BufferHash;
pub use check::{CheckProgress, OnProgress, check};
pub use error::{Error, Result};
pub use nandex_device as device;
pub use nandex_store as store;
pub use nandex_store::check::{Finding, Report};
pub use nandex_store::{Durability, OpenOptions, Threads, Volume, VolumeOptions};
pub use slicehash::SliceHash;

/// Runs the example of the README.
#[cfg(doctest)]
#[doc = include_str!("../../../README.md")]
pub struct Readme;
