//! Hash indexes that are bigger than RAM, on flash.
//!
//! [`open`] is the short way in, and [`db`] documents it in full. Underneath, a [`Volume`] is a file or device that
//! holds named structures and survives crashes. There are two kinds of hash tables:
//!
//! - [`BufferHash`] writes each entry once, in large sequential segments, and reads about one page for a key that is
//!   present and hardly ever one for an absent key, at about two bytes of RAM per entry.
//! - [`SliceHash`] reads one page for any key, at a fraction of that RAM, and pays for it with writes: each
//!   entry is written again with every flush of its partition.
//!
//! [`Requirements::advise`] recommends one of the two, with the reason and the cost of each. All tables are used
//! through the [`Table`] trait: singly, in batches, or as a [`LookupStream`](raw::LookupStream). Batches and streams
//! keep the device's whole queue busy from one thread, and a [`LookupEngine`] merges the single lookups of several
//! threads into one stream. [`AnyTable`] is a table of whichever kind a volume holds, and a [`LargeTable`] stores keys
//! and values of any size on top of one.
//!
//! ```
//! # let folder = tempfile::tempdir().unwrap();
//! # let path = folder.path().join("seen.nandex");
//! let db = nandex::open(&path)?;
//! let seen = db.table("seen").entries(100_000).ram("8MiB").create_or_open()?;
//! seen.insert_u64(7, 42)?;
//! assert_eq!(seen.get_u64(7)?, Some(42));
//! seen.close()?; // dropping does the same, but ignores failures
//! # Ok::<(), nandex::Error>(())
//! ```
//!
//! The layers below are [`raw::device`] (storage of pages) and [`raw::store`] (durability). [`raw`] exports what
//! programs seldom name.
#![forbid(unsafe_code)]

mod any;
mod api;
pub mod bufferhash;
mod cache;
pub mod cascade;
mod check;
pub mod counting;
mod damage;
pub mod db;
mod error;
mod groups;
mod grow;
pub mod large;
mod lookup;
mod neighbors;
mod options;
mod ram;
pub mod raw;
pub mod rhik;
mod scan;
pub mod slicebloom;
pub mod slicehash;
pub mod slicelsh;
mod stats;
mod structure;
#[cfg(feature = "testing")]
pub mod testing;
mod write;

#[cfg(any(doc, test))]
pub(crate) use raw::oracle;
pub(crate) use raw::{compare, model, quotient, registry, schema, size};

pub use any::{AnyConfig, AnyFilter, AnyNeighbors, AnyTable};
pub use api::{
    Counter, Filter, FilterStats, Neighbors, NeighborsStats, READS_HISTOGRAM_LEN, Table,
    TableStats, VALUE_BYTES_MAX, Value,
};
pub use bufferhash::BufferHash;
pub use cascade::Cascade;
pub use check::check;
#[doc(inline)]
pub use compare::Advice;
pub use counting::Counting;
pub use damage::Damage;
pub use db::{Database, DatabaseOptions, TableOrMap, open, options};
pub use error::{Error, Result};
pub use large::LargeTable;
pub use lookup::engine::LookupEngine;
#[doc(inline)]
pub use model::{FilterRequirements, NeighborsRequirements, Policy, Prediction, Requirements};
pub use nandex_store::check::{Finding, Report};
pub use nandex_store::{Durability, Threads, Volume, VolumeOpenOptions, VolumeOptions, WhenFull};
pub use options::OpenOptions;
pub use rhik::Rhik;
#[doc(inline)]
pub use size::Quantity;
pub use slicebloom::SliceBloom;
pub use slicehash::SliceHash;
pub use slicelsh::SliceLsh;
pub use write::absorb::{AbsorbOptions, Prefer, count_shared, expected_passes};

/// Devices that volumes are stored on.
///
/// The rest of the device layer (arrays, overlays, and the traits for a device of your own) is in [`raw::device`].
pub mod device {
    pub use nandex_device::{Access, Create, Device, FileDevice, FileOptions, MemoryDevice};
    pub use nandex_device::{give_back_freed_ram, give_back_gaps, resident_peak_bytes};
}

/// Runs the example of the README as a test.
#[cfg(doctest)]
#[doc = include_str!("../../../README.md")]
pub struct Readme;

/// Runs the example of the tutorial.
#[cfg(doctest)]
#[doc = include_str!("../../../docs/tutorials/rust.md")]
pub struct RustTutorial;

/// Runs the example of the page on RAM as a test.
#[cfg(doctest)]
#[doc = include_str!("../../../docs/explanation/ram.md")]
pub struct RamPage;

/// Runs the example of the cache's page as a test.
#[cfg(doctest)]
#[doc = include_str!("../../../docs/explanation/cache.md")]
pub struct CachePage;
