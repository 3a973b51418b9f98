//! A table of whichever kind a volume holds under a name, for programs that learn it from the volume.

use nandex_store::Volume;

use crate::api::{LookupStream, Table, TableStats, Value};
use crate::model::OperationCosts;
use crate::{BufferHash, Error, Result, SliceHash, bufferhash, cascade, slicehash};

/// What a table of any kind is created with: its kind, and that kind's configuration.
///
/// ```
/// use std::sync::Arc;
/// use nandex::compare::Wish;
/// use nandex::{AnyTable, Table, Volume, VolumeOptions, device::MemoryDevice};
///
/// let wish = Wish { ram_bytes: Some(6 << 20), ..Wish::new(100_000, 8, 8) };
/// let config = wish.compare()?.config();
/// let options = VolumeOptions { log_bytes: config.log_bytes_best(), ..VolumeOptions::default() };
/// let volume = Volume::create(Arc::new(MemoryDevice::new()), options)?;
/// let table = AnyTable::create(&volume, "seen", config)?;
/// table.insert_u64(7, 42)?;
/// assert_eq!(table.get_u64(7)?, Some(42));
/// # Ok::<(), nandex::Error>(())
/// ```
#[derive(Clone, PartialEq, Debug)]
#[non_exhaustive]
pub enum AnyConfig {
    /// A BufferHash's.
    BufferHash(bufferhash::Config),
    /// A SliceHash's.
    SliceHash(slicehash::Config),
}

impl AnyConfig {
    /// Refuses what cannot work.
    ///
    /// # Errors
    /// [`Error::Config`], naming the field.
    pub fn validate(&self) -> Result<()> {
        match self {
            Self::BufferHash(config) => config.validate(),
            Self::SliceHash(config) => config.validate(),
        }
    }

    /// A log that seldom makes a table of this configuration flush early, in bytes.
    #[must_use]
    pub fn log_bytes_best(&self) -> u64 {
        match self {
            Self::BufferHash(config) => config.log_bytes_best(),
            Self::SliceHash(config) => config.log_bytes_best(),
        }
    }

    /// What its operations ask of the device once the table is full, as the cost models have it.
    ///
    /// # Errors
    /// [`Error::Config`] for widths out of range.
    pub fn operation_costs(&self) -> Result<OperationCosts> {
        match self {
            Self::BufferHash(config) => config.operation_costs(),
            Self::SliceHash(config) => config.operation_costs(),
        }
    }
}

/// What can be chosen each time a table of any kind is opened; a table takes what is for its kind.
#[derive(Clone, Debug, Default)]
pub struct AnyOptions {
    /// For a BufferHash.
    pub bufferhash: bufferhash::RuntimeOptions,
    /// For a SliceHash.
    pub slicehash: slicehash::RuntimeOptions,
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
    /// Creates a table in a volume, of the kind that the configuration is for, with default options.
    ///
    /// # Errors
    /// As the kind's own `create`.
    pub fn create(volume: &Volume, name: &str, config: AnyConfig) -> Result<Self> {
        Self::create_with(volume, name, config, AnyOptions::default())
    }

    /// Creates a table in a volume, of the kind that the configuration is for.
    ///
    /// # Errors
    /// As [`create`](Self::create).
    pub fn create_with(
        volume: &Volume,
        name: &str,
        config: AnyConfig,
        options: AnyOptions,
    ) -> Result<Self> {
        match config {
            AnyConfig::BufferHash(config) => {
                BufferHash::create_with(volume, name, config, options.bufferhash).map(Self::from)
            }
            AnyConfig::SliceHash(config) => {
                SliceHash::create_with(volume, name, config, options.slicehash).map(Self::from)
            }
        }
    }

    /// Opens a table of a volume by its name, whatever its kind, with that kind's default options.
    ///
    /// # Errors
    /// No structure of that name, one of a kind that this nandex has no reader for, and what the kind's
    /// own opening refuses.
    pub fn open(volume: &Volume, name: &str) -> Result<Self> {
        Self::open_with(volume, name, AnyOptions::default())
    }

    /// Opens a table of a volume by its name, whatever its kind.
    ///
    /// # Errors
    /// As [`open`](Self::open).
    pub fn open_with(volume: &Volume, name: &str, options: AnyOptions) -> Result<Self> {
        let structures = volume.structures();
        let kind = structures.iter().find(|found| found.name == name).map(|found| &found.kind[..]);
        match kind {
            Some(slicehash::KIND) => {
                SliceHash::open_with(volume, name, options.slicehash).map(Self::SliceHash)
            }
            // A name that is not there is refused with those that are.
            Some(bufferhash::KIND) | None => {
                BufferHash::open_with(volume, name, options.bufferhash).map(Self::BufferHash)
            }
            Some(cascade::KIND) => Err(Error::Config {
                field: "table",
                reason: format!(
                    "{name:?} is a filter, which holds no values and cannot list its keys; open it with \
                     Cascade::open, or use the verbs of `nandex filter`"
                ),
            }),
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

    /// What it was created with.
    #[must_use]
    pub fn config(&self) -> AnyConfig {
        match self {
            Self::BufferHash(table) => AnyConfig::BufferHash(table.config().clone()),
            Self::SliceHash(table) => AnyConfig::SliceHash(*table.config()),
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

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use nandex_device::MemoryDevice;
    use nandex_store::VolumeOptions;

    use super::*;
    use crate::compare::{Comparison, Structure, Wish};

    fn wishes() -> [Wish; 3] {
        let quarter_billion = Wish::new(256_000_000, 8, 8);
        [
            Wish { ram_bytes: Some(160 << 20), ..quarter_billion.clone() },
            Wish { ram_bytes: Some(900 << 20), ..quarter_billion },
            Wish::new(1_000_000, 20, 12),
        ]
    }

    #[test]
    fn a_configuration_costs_what_the_advice_for_it_says() {
        for wish in wishes() {
            let comparison = wish.compare().unwrap();
            let (buffered, sliced) =
                (comparison.bufferhash.as_ref().unwrap(), comparison.slicehash.as_ref().unwrap());
            for (chosen, advised) in [
                (Structure::BufferHash, buffered.operation_costs()),
                (Structure::SliceHash, sliced.operation_costs()),
            ] {
                // Filters of a SliceHash are no part of its configuration.
                let advised = match chosen {
                    Structure::BufferHash => advised,
                    Structure::SliceHash => OperationCosts { reads_per_miss: 1.0, ..advised },
                };
                let made = Comparison { chosen, ..wish.compare().unwrap() };
                let costs = made.config().operation_costs().unwrap();
                let all = |it: &OperationCosts| {
                    [
                        it.reads_per_hit,
                        it.reads_per_miss,
                        it.insert_read_bytes,
                        it.insert_write_bytes,
                    ]
                };
                for (found, expected) in all(&costs).into_iter().zip(all(&advised)) {
                    let far = (found - expected).abs() > expected * 0.005;
                    assert!(!far, "{chosen:?} of {:?}: {costs:?}, {advised:?}", comparison.wish);
                }
            }
        }
    }

    #[test]
    fn what_is_chosen_is_made_and_opened_as_what_it_is() {
        for (chosen, kind) in
            [(Structure::BufferHash, bufferhash::KIND), (Structure::SliceHash, slicehash::KIND)]
        {
            let mut comparison = Wish::new(100_000, 8, 8).compare().unwrap();
            comparison.chosen = chosen;
            let config = comparison.config();
            let options =
                VolumeOptions { log_bytes: config.log_bytes_best(), ..VolumeOptions::default() };
            let device = MemoryDevice::new();
            let volume = Volume::create(Arc::new(device), options).unwrap();
            let made =
                AnyTable::create_with(&volume, "t", config.clone(), comparison.options()).unwrap();
            assert_eq!(made.kind(), kind);
            made.insert_u64(7, 42).unwrap();
            made.close().unwrap();
            let opened = AnyTable::open(&volume, "t").unwrap();
            assert_eq!((opened.kind(), opened.config()), (kind, config));
            assert_eq!(opened.get_u64(7).unwrap(), Some(42));
        }
    }
}
