//! Structures of any kind, opened by name in a volume, for programs that learn the kind from the volume.
//!
//! This module names no structure: the rows of the [`registry`](crate::registry) do.

mod config;
mod filter;
#[cfg(test)]
mod lives_tests;
mod neighbors;
#[cfg(test)]
mod tests;

use std::any::Any;
use std::fmt;
use std::sync::Arc;

use nandex_store::Volume;

pub use config::{AnyConfig, Configuration, Description};
pub use filter::{AnyFilter, OpenFilter};
pub use neighbors::{AnyNeighbors, OpenNeighbors};

use crate::api::{LookupStream, Table, TableStats, Value};
use crate::ram::SpareRam;
use crate::registry::{self, Family, TableRow};
use crate::write::absorb::{AbsorbOptions, Absorbed, Versions, Watch};
use crate::{Damage, Error, OpenOptions, Result};

/// An entry of any table: a key and its value.
pub type AnyPair = (Vec<u8>, Value);

/// All entries of a table.
pub type AnyEntries<'a> = Box<dyn Iterator<Item = Result<AnyPair>> + 'a>;

/// All entries of a table that damage has spared, and the damaged pages.
pub type AnyEntriesPastDamage<'a> =
    Box<dyn Iterator<Item = std::result::Result<AnyPair, Damage>> + 'a>;

/// The methods that an open table of any kind adds to [`Table`].
pub trait OpenTable: Table + Any + fmt::Debug {
    /// Its configuration.
    fn config(&self) -> AnyConfig;

    /// Returns all its entries, each key once with its newest value, in no particular order.
    fn iter(&self) -> AnyEntries<'_>;

    /// Returns all its entries except those of damaged pages; see [`AnyTable::iter_past_damage`].
    fn iter_past_damage(&self) -> AnyEntriesPastDamage<'_>;

    /// Preloads what opening has left on flash, such as filters, so that lookups need not.
    ///
    /// # Errors
    /// A failed read, damage.
    fn warm_up(&self) -> Result<()> {
        Ok(())
    }

    /// Uses the RAM that a growing table does not take yet as a cache; see [`AnyTable::with_spare_ram`].
    fn use_spare_ram(&self) {}

    /// The RAM that a growing table does not take yet; `None` if it does not grow.
    fn spare(&self) -> Option<&Arc<SpareRam>> {
        None
    }

    /// Uses RAM lent by a pool as a cache of entries, unless the table has a cache or cannot have one; returns whether
    /// it does. Must be called before the first lookup.
    fn borrow(&self, _spare: Arc<SpareRam>) -> bool {
        false
    }

    /// Adds all entries of other tables; see [`AnyTable::absorb`].
    ///
    /// # Errors
    /// A kind that does not absorb tables; those of [`AnyTable::absorb`].
    fn absorb(
        &mut self,
        _others: &[Versions<'_>],
        _options: &AbsorbOptions,
        _watch: &Watch<'_>,
    ) -> Result<Absorbed> {
        Err(cannot_merge(self.config().kind()))
    }

    /// Saves buffered updates and ends the background threads.
    ///
    /// # Errors
    /// A failed write or sync. Updates acknowledged as durable are in the log nevertheless.
    fn close(self: Box<Self>) -> Result<()>;
}

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
pub struct AnyTable(Box<dyn OpenTable>);

impl AnyTable {
    /// Creates a table in a volume, of the kind that the configuration is for, with default options.
    ///
    /// # Errors
    /// As the kind's own `create`; a configuration that is not a table's.
    pub fn create(volume: &Volume, name: &str, config: &AnyConfig) -> Result<Self> {
        Self::create_with(volume, name, config, &OpenOptions::default())
    }

    /// Creates a table in a volume, of the kind that the configuration is for.
    ///
    /// # Errors
    /// As [`create`](Self::create).
    pub fn create_with(
        volume: &Volume,
        name: &str,
        config: &AnyConfig,
        options: &OpenOptions,
    ) -> Result<Self> {
        (table_row(name, config.kind())?.create)(volume, name, config, options)
    }

    /// Opens a table of a volume by its name, whatever its kind, with that kind's default options.
    ///
    /// # Errors
    /// No structure of that name, one of a kind that this version of nandex cannot read, and the errors of the kind's
    /// opening.
    pub fn open(volume: &Volume, name: &str) -> Result<Self> {
        Self::open_with(volume, name, &OpenOptions::default())
    }

    /// Opens a table of a volume by its name, whatever its kind.
    ///
    /// # Errors
    /// As [`open`](Self::open).
    pub fn open_with(volume: &Volume, name: &str, options: &OpenOptions) -> Result<Self> {
        let kind = registry::kind_in(volume, name)?;
        (table_row(name, &kind)?.open)(volume, name, options)
    }

    /// Its kind, as the volume's catalog names it.
    #[must_use]
    pub fn kind(&self) -> &'static str {
        self.config().kind()
    }

    /// Its configuration.
    #[must_use]
    pub fn config(&self) -> AnyConfig {
        self.0.config()
    }

    /// Returns all its entries, each key once with its newest value, in no particular order; see the kinds' own `iter`.
    #[must_use]
    pub fn iter(&self) -> AnyEntries<'_> {
        self.0.iter()
    }

    /// Like [`iter`](Self::iter), but a page that cannot be read or verified does not end the iteration: it is reported
    /// as an item, and all other entries follow. No other failure is possible.
    ///
    /// A key whose newest version was on a damaged page may appear with an older value that the table still has, or
    /// although it was removed.
    #[must_use]
    pub fn iter_past_damage(&self) -> AnyEntriesPastDamage<'_> {
        self.0.iter_past_damage()
    }

    /// Returns its versions of keys in hash order, for another table to [`absorb`](Self::absorb) or for
    /// [`count_shared`](crate::count_shared).
    ///
    /// # Errors
    /// A kind that cannot provide them: [`TableRow::merges_into`] says which can.
    pub fn versions(&self) -> Result<Versions<'_>> {
        self.all_versions().ok_or_else(|| cannot_merge(self.kind()))
    }

    /// Adds all entries of other tables, of any kinds, in long reads and writes. The options say which entry wins on
    /// duplicate keys. Reports the share that is done to `watch` from time to time, which may cancel the operation.
    /// What was added is durable when this returns. See [`BufferHash::absorb`](crate::BufferHash::absorb).
    ///
    /// # Errors
    /// A kind that does not absorb tables: those that do are the [`TableRow::merges_into`] of others; tables of other
    /// widths; too little RAM for their entries; a full table that may not evict, a failed read or write, damage;
    /// [`Error::Stopped`]. What was added before stays.
    pub fn absorb(
        &mut self,
        others: &[Versions<'_>],
        options: &AbsorbOptions,
        watch: &Watch<'_>,
    ) -> Result<Absorbed> {
        self.0.absorb(others, options, watch)
    }

    /// Preloads what opening has left on flash, such as filters, so that lookups need not.
    ///
    /// # Errors
    /// A failed read, damage.
    pub fn warm_up(&self) -> Result<()> {
        self.0.warm_up()
    }

    /// Makes the table use the RAM that it may take but does not take yet as a cache of entries, unless it has a cache.
    /// As the table grows, the cache returns that RAM. Without a RAM limit the cache gets 64 MiB. Does nothing if the
    /// table does not grow.
    #[must_use]
    pub fn with_spare_ram(self) -> Self {
        self.0.use_spare_ram();
        self
    }

    /// Makes the table use RAM lent by a pool as a cache of entries; see [`OpenTable::borrow`].
    pub(crate) fn borrow(&self, spare: Arc<SpareRam>) -> bool {
        self.0.borrow(spare)
    }

    /// The RAM that a growing table does not take yet; `None` if it does not grow.
    pub(crate) fn spare(&self) -> Option<&Arc<SpareRam>> {
        self.0.spare()
    }

    /// Returns the table as its concrete type, if it is of that type.
    #[must_use]
    pub fn of<T: OpenTable>(&self) -> Option<&T> {
        let any: &dyn Any = &*self.0;
        any.downcast_ref()
    }

    /// Saves buffered updates and ends the background threads. Dropping does the same, and ignores
    /// failures.
    ///
    /// # Errors
    /// A failed write or sync. Updates acknowledged as durable are in the log nevertheless.
    pub fn close(self) -> Result<()> {
        self.0.close()
    }

    /// Inserts `value` under `key`, for tables of 8 + 8 bytes; numbers are stored little-endian.
    ///
    /// # Errors
    /// As [`Table::insert`].
    pub fn insert_u64(&self, key: u64, value: u64) -> Result<()> {
        self.insert(&key.to_le_bytes(), &value.to_le_bytes())
    }

    /// Returns the value of `key`, for tables of 8 + 8 bytes.
    ///
    /// # Errors
    /// As [`Table::get`]; values of another width.
    pub fn get_u64(&self, key: u64) -> Result<Option<u64>> {
        Error::check_width("value", &[0; 8], self.value_bytes())?;
        let number = |value: Value| nandex_store::bytes::get_u64(&value, 0);
        Ok(self.get(&key.to_le_bytes())?.map(number))
    }
}

/// Returns the error for a table that can only be read and written key by key.
pub(crate) fn cannot_merge(kind: &str) -> Error {
    let reason = format!(
        "a table of the kind {kind:?} cannot be merged in the order of the hash; add what it dumps to another table, with \
         `nandex dump` and `nandex load`"
    );
    Error::Config { field: "table", reason }
}

fn table_row(name: &str, kind: &str) -> Result<&'static TableRow> {
    let reason = match registry::find(kind).map(|row| &row.family) {
        Some(Family::Table(table)) => return Ok(table),
        Some(Family::Filter(_)) => format!(
            "{name:?} is a filter of the kind {kind:?}, which holds no values and cannot list its keys; open it with \
             AnyFilter::open, or use the verbs of `nandex filter`"
        ),
        Some(Family::Neighbors(_)) => format!(
            "{name:?} is an index of neighbours of the kind {kind:?}, which holds ids of documents by bucket keys; open \
             it with AnyNeighbors::open"
        ),
        Some(Family::Generation) => format!(
            "{name:?} is a generation of a table that grows; open that, by the name before the slash"
        ),
        Some(Family::Part) | None => format!(
            "{name:?} is of the kind {kind:?}, which this build of nandex does not have; open it with \
             one that has"
        ),
    };
    Err(Error::Config { field: "table", reason })
}

impl<T: OpenTable> From<T> for AnyTable {
    fn from(table: T) -> Self {
        Self(Box::new(table))
    }
}

impl Table for AnyTable {
    fn key_bytes(&self) -> usize {
        self.0.key_bytes()
    }

    fn value_bytes(&self) -> usize {
        self.0.value_bytes()
    }

    fn insert(&self, key: &[u8], value: &[u8]) -> Result<()> {
        self.0.insert(key, value)
    }

    fn remove(&self, key: &[u8]) -> Result<()> {
        self.0.remove(key)
    }

    fn get(&self, key: &[u8]) -> Result<Option<Value>> {
        self.0.get(key)
    }

    fn contains(&self, key: &[u8]) -> Result<bool> {
        self.0.contains(key)
    }

    fn insert_many(&self, pairs: &[(&[u8], &[u8])]) -> Result<()> {
        self.0.insert_many(pairs)
    }

    fn get_or_insert_many(&self, pairs: &[(&[u8], &[u8])]) -> Result<Vec<Option<Value>>> {
        self.0.get_or_insert_many(pairs)
    }

    fn get_many(&self, keys: &[&[u8]]) -> Result<Vec<Option<Value>>> {
        self.0.get_many(keys)
    }

    fn stream(&self) -> Result<Box<dyn LookupStream + '_>> {
        self.0.stream()
    }

    fn sync(&self) -> Result<()> {
        self.0.sync()
    }

    fn flush(&self) -> Result<()> {
        self.0.flush()
    }

    fn stats(&self) -> TableStats {
        self.0.stats()
    }

    fn counts_keys(&self) -> bool {
        self.0.counts_keys()
    }

    fn all_versions(&self) -> Option<Versions<'_>> {
        self.0.all_versions()
    }
}
