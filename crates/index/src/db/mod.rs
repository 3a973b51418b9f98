//! The short way to embed: a file opened by its path, and structures opened by name.
//!
//! [`open`] makes or opens a file, and the [`Database`] has builders. Each `create_or_open` opens the
//! structure of that name, or sizes one by its requirements and creates it. It returns the same types as the
//! long way: an [`AnyTable`], a [`LargeTable`], an [`AnyFilter`]; the volume below is [`Database::volume`].
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
//! **Growth.** A map of which no size is stated grows until its RAM or the device is spent. Tables refuse more than
//! their `entries`, unless [`Policy::Grow`](crate::Policy::Grow) is stated.
//!
//! **RAM** is stated once, for all structures that are open at the same time: 64 MiB, or
//! [`DatabaseOptions::ram`]. A builder's own `ram` is a limit for its structure. One without takes what its
//! structure works well with, and at most half of what is free. A structure that does not fit is refused,
//! with what the others have. A dropped structure frees its RAM.
//!
//! **The log** gets its length when the file is made, for good: twice the RAM stated then, and 32 MiB at
//! least, or [`DatabaseOptions::log`]. Builders make write buffers small enough for it, so a longer log
//! serves a database that is later opened with more RAM.
//!
//! **Durability** is by default every 100 ms, and at each `sync`; dropping a structure saves it.

mod counting;
mod filter;
mod map;
mod ram;
mod stated;
mod table;
#[cfg(test)]
mod tests;

use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard};

use nandex_device::{Access, Create, Device, FileDevice, FileOptions, Overlay, PAGE_BYTES};
use nandex_store::{Durability, Volume, VolumeOpenOptions, VolumeOptions};

pub use counting::CountingBuilder;
pub use filter::{AnyCounter, CounterBuilder, FilterBuilder};
pub use map::MapBuilder;
pub use table::TableBuilder;

#[cfg(doc)]
use crate::{AnyFilter, AnyTable, LargeTable};

use crate::registry::{self, Family};
use crate::size::Quantity;
use crate::{Error, Result};
use ram::Shares;

/// The default RAM of all structures, in bytes.
const RAM_BYTES: u64 = 64 << 20;

/// The shortest default log, in bytes.
const LOG_BYTES_MIN: u64 = 32 << 20;

/// Opens a database, and makes it if the file does not exist or is empty.
///
/// # Errors
/// A file that is something else, is in use, is damaged, or cannot be made.
pub fn open(path: impl AsRef<Path>) -> Result<Database> {
    options().open(path)
}

/// Options for opening a database.
#[must_use]
pub fn options() -> DatabaseOptions {
    DatabaseOptions {
        ram: RAM_BYTES.into(),
        log: None,
        durability: Durability::default(),
        access: Access::ReadWrite,
        create: Create::OpenOrCreate,
        hash_key: None,
    }
}

/// Options for opening a database; see [`options`].
#[derive(Clone, Debug)]
pub struct DatabaseOptions {
    ram: Quantity,
    log: Option<Quantity>,
    durability: Durability,
    access: Access,
    create: Create,
    hash_key: Option<u128>,
}

impl DatabaseOptions {
    /// RAM that all structures may take together, such as `"256MiB"`.
    #[must_use]
    pub fn ram(mut self, bytes: impl Into<Quantity>) -> Self {
        self.ram = bytes.into();
        self
    }

    /// Length of the write-ahead log of a new file; ignored for an existing file.
    #[must_use]
    pub fn log(mut self, bytes: impl Into<Quantity>) -> Self {
        self.log = Some(bytes.into());
        self
    }

    /// When an acknowledged update is durable: always, periodically, or only at `sync`.
    #[must_use]
    pub fn durability(mut self, durability: Durability) -> Self {
        self.durability = durability;
        self
    }

    /// Opens a file that exists to be read only: any number of processes may, as long as none writes to it.
    /// Structures that it does not have cannot be made, and updates are refused.
    #[must_use]
    pub fn read_only(mut self) -> Self {
        (self.access, self.create) = (Access::ReadOnly, Create::Open);
        self
    }

    /// Must the file exist, or be new? By default it may be either.
    #[must_use]
    pub fn create(mut self, create: Create) -> Self {
        self.create = create;
        self
    }

    /// The key of the hash function of a new file, random by default; ignored for an existing file. Filters and
    /// counting tables of two files can be merged if the files have one key. Whoever knows it can choose keys that
    /// share a place, so do not let it be known where strangers choose keys.
    #[must_use]
    pub fn hash_key(mut self, key: u128) -> Self {
        self.hash_key = Some(key);
        self
    }

    /// Opens the database at `path`, and makes it if the file does not exist or is empty.
    ///
    /// # Errors
    /// As [`open`]; text that is not a size; a file that exists and must be new, or does not and must.
    pub fn open(self, path: impl AsRef<Path>) -> Result<Database> {
        let ram_bytes = self.ram.bytes("ram")?;
        let create = VolumeOptions {
            log_bytes: self.log_bytes(ram_bytes)?,
            durability: self.durability,
            hash_key: self.hash_key,
            ..VolumeOptions::default()
        };
        // Before the file is made.
        create.validate()?;
        let (access, durability) = (self.access, self.durability);
        let options = FileOptions { access, create: self.create, ..FileOptions::default() };
        let device = FileDevice::open(path, &options)?;
        let is_new = access == Access::ReadWrite && device.is_empty_file()?;
        let device: Arc<dyn Device> = match access {
            Access::ReadWrite => Arc::new(device),
            // What an opening writes stays in RAM.
            _ => Arc::new(Overlay::new(Arc::new(device))),
        };
        let volume = if is_new {
            Volume::create(device, create)?
        } else {
            Volume::open(
                device,
                VolumeOpenOptions { access, durability, ..VolumeOpenOptions::default() },
            )?
        };
        Ok(Database { volume, shares: Mutex::new(Shares::new(ram_bytes)) })
    }

    fn log_bytes(&self, ram_bytes: u64) -> Result<u64> {
        match &self.log {
            Some(log) => log.bytes("log"),
            None => Ok(ram_bytes
                .saturating_mul(2)
                .next_multiple_of(PAGE_BYTES as u64)
                .max(LOG_BYTES_MIN)),
        }
    }
}

/// A file of named structures; see the [module](self).
///
/// Structures opened from it keep the file open when it is dropped.
#[derive(Debug)]
pub struct Database {
    volume: Volume,
    shares: Mutex<Shares>,
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

    /// A set of keys of any size that may contain an absent key, at a known rate; also a counter.
    pub fn filter(&self, name: impl Into<String>) -> FilterBuilder<'_> {
        FilterBuilder::new(self, name.into())
    }

    /// A table of exact counts of keys, which it can list.
    pub fn counting(&self, name: impl Into<String>) -> CountingBuilder<'_> {
        CountingBuilder::new(self, name.into())
    }

    /// The open structures and the RAM of each, in bytes.
    #[must_use]
    pub fn ram_taken(&self) -> Vec<(String, u64)> {
        self.shares().taken(&self.volume).to_vec()
    }

    /// The volume, for what builders do not offer.
    #[must_use]
    pub fn volume(&self) -> &Volume {
        &self.volume
    }

    fn shares(&self) -> MutexGuard<'_, Shares> {
        self.shares.lock().expect("no holder of this lock panics")
    }

    /// The kind of the structure of that name, if it exists and the builder called `builder` makes such.
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
            "{name:?} exists and is no {builder}: it is of the kind {:?}; open it with db.{right}({name:?}), or choose \
             another name",
            found.kind
        );
        Err(Error::Config { field: "kind", reason })
    }

    /// Is the log long enough for what a configuration works best with?
    fn log_holds(&self, log_bytes_best: u64) -> bool {
        log_bytes_best <= self.volume.log().capacity_bytes()
    }

    /// Adds what to do to the refusal of a log that is too short.
    fn explain(&self, name: &str, error: Error) -> Error {
        match error {
            Error::Config { field: "log_bytes", reason } => Error::Config {
                field: "log",
                reason: format!(
                    "{name:?}: {reason}. A log keeps its length: make the file again with \
                     nandex::options().log(...), or ask for less `ram`"
                ),
            },
            error => error,
        }
    }
}
