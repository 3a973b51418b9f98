//! The short way to embed nandex: a file opened by its path, and structures opened by name.
//!
//! [`open`] creates or opens a file, and the [`Database`] it returns has builders. Each `create_or_open` opens the
//! structure of that name, or sizes one by its requirements and creates it. The results are the same types as without a
//! database: an [`AnyTable`], a [`LargeTable`], an [`AnyFilter`]. The underlying volume is [`Database::volume`].
//!
//! ```
//! # let folder = tempfile::tempdir().unwrap();
//! # let path = folder.path().join("seen.nandex");
//! let db = nandex::options().ram("32MiB").open(&path)?;
//! let seen = db.table("seen").entries(100_000).ram("8MiB").create_or_open()?;
//! seen.insert_u64(7, 42)?;
//! let cache = db.map("cache").entries(10_000).bytes("16MiB").create_or_open()?;
//! cache.put(b"https://example.org/", b"<html>...")?;
//! let urls = db.filter("urls").keys(1e6).rate(0.01).create_or_open()?;
//! urls.insert(b"https://example.org/")?;
//! let words = db.filter("words").keys(1e5).counts().create_or_open()?;
//! words.add(b"the", 3)?;
//!
//! assert_eq!(seen.get_u64(7)?, Some(42));
//! assert_eq!(cache.get(b"https://example.org/")?.as_deref(), Some(&b"<html>..."[..]));
//! assert!(urls.contains(b"https://example.org/")?);
//! assert_eq!(words.count(b"the")?, 3);
//! # Ok::<(), nandex::Error>(())
//! ```
//!
//! **Growth.** A map with no stated size grows until its RAM or the device is exhausted. Tables reject more than their
//! `entries`, unless [`Policy::Grow`](crate::Policy::Grow) is stated.
//!
//! **RAM** is stated once, for all structures that are open at the same time: 64 MiB, or [`DatabaseOptions::ram`]. A
//! builder's `ram` limits one structure alone. A structure without one takes what it works well with, and at most half
//! of what is free when it is opened; a table or map that grows takes more as it needs it. The caches of growing tables
//! and maps share the unclaimed RAM in equal parts, until a structure needs it. Memory that flushes and lookups use
//! temporarily counts once for each background thread, not for each structure. Opening a structure that does not fit
//! fails, and the error names the largest others; so does growth. Dropping a structure frees its RAM.
//!
//! **The log** is 512 KiB at first and grows as updates fill it, up to the length that the buffers of the structures
//! work best with, and at most to twice the stated RAM or 32 MiB. With [`DatabaseOptions::log`] its length is fixed
//! from the start. Builders make write buffers small enough for the length that the log may grow to.
//!
//! **Whole files.** With [`DatabaseOptions::unfinished`] a new file gets its name at [`Database::finish`], so a program
//! that is stopped while it fills a file leaves none that passes as whole.
//!
//! **Durability** is by default every 100 ms, and at each `sync`; dropping a structure saves it.

mod advice;
mod compact;
mod counting;
mod filter;
pub(crate) mod listing;
mod map;
mod names;
mod opened;
mod options;
mod ram;
#[cfg(test)]
mod ram_tests;
pub(crate) mod sizing;
pub(crate) mod stated;
mod table;
#[cfg(test)]
mod tests;
#[cfg(test)]
mod warm_tests;

use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard};

use nandex_device::output::UnfinishedFiles;
use nandex_store::Volume;

use advice::RecentAdvice;
pub use compact::Compacted;
pub use counting::CountingBuilder;
pub use filter::{AnyCounter, CounterBuilder, FilterBuilder};
pub use listing::{Statable, parameters};
pub use map::MapBuilder;
pub use names::MAP;
pub use opened::TableOrMap;
pub use options::DatabaseOptions;
use stated::Stated;
pub use table::TableBuilder;

pub use crate::ram::RamPool;

#[cfg(doc)]
use crate::{AnyFilter, AnyTable, LargeTable};

use crate::registry::{self, Family};
use crate::size::Quantity;
use crate::{Error, OpenOptions, Result};

/// Opens a database, and creates it if the file does not exist or is empty.
///
/// # Errors
/// A file that is not a volume, is in use, is damaged, or cannot be created.
pub fn open(path: impl AsRef<Path>) -> Result<Database> {
    options().open(path)
}

/// Returns options for opening a database.
#[must_use]
pub fn options() -> DatabaseOptions {
    DatabaseOptions::new()
}

/// A file of named structures; see the [module](self).
///
/// Structures opened from it keep the file open when it is dropped.
#[derive(Debug)]
pub struct Database {
    volume: Volume,
    ram: Arc<RamPool>,
    /// Serializes openings, so that the RAM that a new structure may take is still free when it is created.
    opening: Mutex<()>,
    /// Files that do not have their final names yet.
    unfinished: Mutex<UnfinishedFiles>,
    advice: RecentAdvice,
}

impl Database {
    /// A table from keys to values of fixed widths, 8 and 8 bytes unless stated.
    pub fn table(&self, name: impl Into<String>) -> TableBuilder<'_> {
        TableBuilder::new(self, name.into())
    }

    /// A table from keys to values of any size.
    pub fn map(&self, name: impl Into<String>) -> MapBuilder<'_> {
        MapBuilder::new(self, name.into())
    }

    /// A set of keys of any size, with false positives at a known rate; also a counter.
    pub fn filter(&self, name: impl Into<String>) -> FilterBuilder<'_> {
        FilterBuilder::new(self, name.into())
    }

    /// A table of exact counts of keys, which can list its keys.
    pub fn counting(&self, name: impl Into<String>) -> CountingBuilder<'_> {
        CountingBuilder::new(self, name.into())
    }

    /// Returns the open structures and the RAM of each, in bytes, including what its cache may take. Memory that
    /// structures share in turn is left out, such as the memory that flushes reuse.
    #[must_use]
    pub fn ram_taken(&self) -> Vec<(String, u64)> {
        self.ram.taken()
    }

    /// Opens the existing table or map of that name, of any kind and any widths.
    ///
    /// # Errors
    /// No such table or map; it is already open; damage.
    pub fn table_or_map(&self, name: &str) -> Result<TableOrMap> {
        TableOrMap::open(&self.volume, name, &OpenOptions::suited_to(&self.volume))
    }

    /// Returns the files of a new database that get their names at [`finish`](Self::finish), for a caller that reports
    /// where they are or removes them; none if the database existed.
    #[must_use]
    pub fn unfinished(&self) -> UnfinishedFiles {
        self.unfinished.lock().expect("no holder of this lock panics").clone()
    }

    /// Finishes a new database: gives its files their names, durably, and clears the mark of an unfinished volume.
    /// Close its structures first. Does nothing if the database is already finished.
    /// # Errors
    /// Another file has taken one of the names meanwhile; a failed write or sync.
    pub fn finish(&self) -> Result<()> {
        let mut files = self.unfinished.lock().expect("no holder of this lock panics");
        if self.volume.is_unfinished() {
            self.volume.finish()?;
        } else if !files.is_empty() {
            self.volume.checkpoint()?;
        }
        Ok(files.finish()?)
    }

    /// Returns the volume, for what builders do not offer.
    #[must_use]
    pub fn volume(&self) -> &Volume {
        &self.volume
    }

    fn opening(&self) -> MutexGuard<'_, ()> {
        self.opening.lock().expect("no holder of this lock panics")
    }

    /// Returns the kind of the structure of that name, if it exists and the builder `builder` creates that kind.
    fn kind(&self, name: &str, builder: &str) -> Result<Option<String>> {
        let structures = self.volume.structures();
        let Some(found) = structures.into_iter().find(|found| found.name == name) else {
            return Ok(None);
        };
        let right = match registry::find(&found.kind).map(|row| &row.family) {
            Some(Family::Table(_)) => "table",
            Some(Family::Filter(_)) => "filter",
            Some(Family::Part) => "map",
            Some(Family::Neighbors(_) | Family::Generation) | None => "volume().open_structure",
        };
        if right == builder {
            return Ok(Some(found.kind));
        }
        let reason = format!(
            "{name:?} exists and is not a {builder}: its kind is {:?}; open it with db.{right}({name:?}), or choose \
             another name",
            found.kind
        );
        Err(Error::Config { field: "kind", reason })
    }

    /// Returns whether the log is, or may grow to, the length that a configuration works best with.
    fn log_holds(&self, log_bytes_best: u64) -> bool {
        log_bytes_best <= self.volume.log_bytes_max()
    }

    /// Adds the remedy to the error of a log that is too short.
    fn explain(&self, name: &str, error: Error) -> Error {
        match error {
            Error::ShortLog { reason, .. } => Error::ShortLog {
                field: "log",
                reason: format!(
                    "{name:?}: {reason}. It has all the length that it may have: open the file with more RAM, if it was \
                     made without nandex::options().log(...), else make it again; or ask for less `ram`"
                ),
            },
            error => error,
        }
    }
}
