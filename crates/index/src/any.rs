//! A table of whichever kind a volume holds under a name, for programs that learn it from the volume.

use nandex_store::Volume;

use crate::api::{LookupStream, Table, TableStats, Value};
use crate::{BufferHash, Error, Result, SliceHash, bufferhash, slicehash};

/// A table of any kind.
///
/// ```
/// use std::sync::Arc;
/// use nandex::slicehash::Config;
/// use nandex::{AnyTable, SliceHash, Table, Volume, VolumeOptions, device::MemoryDevice};
///
/// let volume = Volume::create(Arc::new(MemoryDevice::new()), VolumeOptions::tiny())?;
/// SliceHash::create(&volume, "seen", Config::tiny())?.close()?;
/// let table = AnyTable::open(&volume, "seen")?;
/// assert_eq!(table.kind(), "slicehash");
/// table.insert(&[7; 8], &[1; 8])?;
/// assert!(table.contains(&[7; 8])?);
/// # Ok::<(), nandex::Error>(())
/// ```
#[derive(Debug)]
#[non_exhaustive]
pub enum AnyTable {
    /// A BufferHash.
    BufferHash(BufferHash),
    /// A SliceHash.
    SliceHash(SliceHash),
}

/// An entry of any table: key and value.
pub type AnyPair = (Vec<u8>, Value);

impl AnyTable {
    /// Opens a table of a volume by its name, whatever its kind, with that kind's default options.
    ///
    /// # Errors
    /// No structure of that name, one of a kind that this nandex has no reader for, and what the kind's
    /// own opening refuses.
    pub fn open(volume: &Volume, name: &str) -> Result<Self> {
        let structures = volume.structures();
        let kind = structures.iter().find(|found| found.name == name).map(|found| &found.kind[..]);
        match kind {
            Some(slicehash::KIND) => SliceHash::open(volume, name).map(Self::SliceHash),
            // A name that is not there is refused with those that are.
            Some(bufferhash::KIND) | None => BufferHash::open(volume, name).map(Self::BufferHash),
            Some(other) => Err(Error::Config {
                field: "table",
                reason: format!(
                    "{name:?} is of the kind {other:?}, which this nandex has no reader for; open it \
                     with one that has"
                ),
            }),
        }
    }

    /// How the volume's catalog names its kind.
    #[must_use]
    pub const fn kind(&self) -> &'static str {
        match self {
            Self::BufferHash(_) => bufferhash::KIND,
            Self::SliceHash(_) => slicehash::KIND,
        }
    }

    /// All entries of it, each key once with its newest value, in no order; see the kinds' own `iter`.
    #[must_use]
    pub fn iter(&self) -> Box<dyn Iterator<Item = Result<AnyPair>> + '_> {
        match self {
            Self::BufferHash(table) => Box::new(table.iter()),
            Self::SliceHash(table) => Box::new(table.iter()),
        }
    }

    /// Saves what is buffered and ends the background threads. Dropping does the same, and ignores
    /// failures.
    ///
    /// # Errors
    /// A failed write or sync. What was acknowledged as durable is in the log nevertheless.
    pub fn close(self) -> Result<()> {
        match self {
            Self::BufferHash(table) => table.close(),
            Self::SliceHash(table) => table.close(),
        }
    }

    /// Puts `value` under `key`, for tables of 8 + 8 bytes; numbers are stored little-endian.
    ///
    /// # Errors
    /// As [`Table::insert`].
    pub fn insert_u64(&self, key: u64, value: u64) -> Result<()> {
        self.insert(&key.to_le_bytes(), &value.to_le_bytes())
    }

    /// The value under `key`, for tables of 8 + 8 bytes.
    ///
    /// # Errors
    /// As [`Table::get`].
    pub fn get_u64(&self, key: u64) -> Result<Option<u64>> {
        match self {
            Self::BufferHash(table) => table.get_u64(key),
            Self::SliceHash(table) => table.get_u64(key),
        }
    }

    fn table(&self) -> &dyn Table {
        match self {
            Self::BufferHash(table) => table,
            Self::SliceHash(table) => table,
        }
    }
}

impl From<BufferHash> for AnyTable {
    fn from(table: BufferHash) -> Self {
        Self::BufferHash(table)
    }
}

impl From<SliceHash> for AnyTable {
    fn from(table: SliceHash) -> Self {
        Self::SliceHash(table)
    }
}

impl Table for AnyTable {
    fn key_bytes(&self) -> usize {
        self.table().key_bytes()
    }

    fn value_bytes(&self) -> usize {
        self.table().value_bytes()
    }

    fn insert(&self, key: &[u8], value: &[u8]) -> Result<()> {
        self.table().insert(key, value)
    }

    fn remove(&self, key: &[u8]) -> Result<()> {
        self.table().remove(key)
    }

    fn get(&self, key: &[u8]) -> Result<Option<Value>> {
        self.table().get(key)
    }

    fn contains(&self, key: &[u8]) -> Result<bool> {
        self.table().contains(key)
    }

    fn insert_many(&self, pairs: &[(&[u8], &[u8])]) -> Result<()> {
        self.table().insert_many(pairs)
    }

    fn get_many(&self, keys: &[&[u8]]) -> Result<Vec<Option<Value>>> {
        self.table().get_many(keys)
    }

    fn stream(&self) -> Result<Box<dyn LookupStream + '_>> {
        self.table().stream()
    }

    fn sync(&self) -> Result<()> {
        self.table().sync()
    }

    fn flush(&self) -> Result<()> {
        self.table().flush()
    }

    fn stats(&self) -> TableStats {
        self.table().stats()
    }
}
