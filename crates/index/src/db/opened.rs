//! A table or map of an existing file, of any kind.

use nandex_store::{Volume, is_replacement};

use super::Stated;
use super::compact::with_space;
use crate::large::{ValuesConfig, table_name};
use crate::registry::{self, Family};
use crate::{
    AnyTable, Damage, Error, LargeTable, OpenOptions, Result, Table, TableStats, WhenFull,
};

/// The expected bytes of a record in an empty map.
const RECORD_BYTES: f64 = 256.0;

/// A key and its value, or a damaged page.
type PairOrDamage<'t> = std::result::Result<(&'t [u8], &'t [u8]), &'t Damage>;

/// An open table or map, for programs that accept any file; see
/// [`Database::table_or_map`](super::Database::table_or_map).
///
/// ```
/// # let folder = tempfile::tempdir().unwrap();
/// # let path = folder.path().join("any.nandex");
/// let db = nandex::open(&path)?;
/// db.map("urls").create_or_open()?.put(b"key", b"value")?;
/// let any = db.table_or_map("urls")?;
/// assert_eq!(any.widths(), None);
/// assert_eq!(any.get_many(&[b"key"])?, [Some(b"value".to_vec())]);
/// # Ok::<(), nandex::Error>(())
/// ```
#[derive(Debug)]
pub enum TableOrMap {
    /// A table whose keys have one width, and so do its values.
    Table(AnyTable),
    /// A map with keys and values of any size.
    Map(LargeTable<AnyTable>),
}

impl TableOrMap {
    /// Opens the table or map of that name. It takes at most the RAM of the options.
    ///
    /// # Errors
    /// No table or map of that name; it is already open; damage.
    pub fn open(volume: &Volume, name: &str, options: &OpenOptions) -> Result<Self> {
        Self::open_stated(volume, name, options, &Stated::default())
    }

    /// Opens the table or map with options that were stated by name; parameters among them must match the table's.
    ///
    /// # Errors
    /// As [`open`](Self::open) and [`Stated::check`].
    pub fn open_stated(
        volume: &Volume,
        name: &str,
        options: &OpenOptions,
        stated: &Stated,
    ) -> Result<Self> {
        let kind = registry::kind_in(volume, name)?;
        let Some(Family::Part) = registry::find(&kind).map(|row| &row.family) else {
            let options = stated.options(&kind, options.clone())?;
            let table = AnyTable::open_with(volume, name, &options)?;
            stated.check(name, &table.config())?;
            return Ok(Self::Table(table.with_spare_ram()));
        };
        if !Self::is_map(volume, name) {
            let reason = format!(
                "{name} is a value log without a table of keys: a program made it, and that program reads it"
            );
            return Err(Error::Config { field: "kind", reason });
        }
        let values = ValuesConfig::of(volume, name)?;
        let asked =
            stated.options(&registry::kind_in(volume, &table_name(name))?, options.clone())?;
        // The cache is the map's, not its table's, unless the map evicts.
        let of_map = match values.when_full {
            WhenFull::EvictOldest => 0,
            WhenFull::Grow | WhenFull::Refuse => asked.cache_bytes,
        };
        let left = |most: u64| most.saturating_sub(of_map + values.ram_bytes());
        let index = OpenOptions {
            ram_bytes_max: asked.ram_bytes_max.map(left),
            cache_bytes: asked.cache_bytes - of_map,
            ..asked
        };
        let index = AnyTable::open_with(volume, &table_name(name), &index)?;
        stated.check(name, &index.config())?;
        let map = LargeTable::open(volume, name, index)?;
        let map = match of_map {
            0 => map.with_spare_ram(),
            cache_bytes => map.with_cache(cache_bytes)?,
        };
        Ok(Self::Map(map))
    }

    /// Returns the names of the structures that a user of the volume created: without the tables inside maps, and
    /// without the generations of tables that grow.
    #[must_use]
    pub fn names(volume: &Volume) -> Vec<String> {
        let family = |kind: &str| registry::find(kind).map(|row| &row.family);
        let is_part = |kind: &str| matches!(family(kind), Some(Family::Part));
        let mut all = volume.structures();
        all.retain(|it| !matches!(family(&it.kind), Some(Family::Generation)));
        let inner: Vec<String> =
            all.iter().filter(|it| is_part(&it.kind)).map(|it| table_name(&it.name)).collect();
        let is_own = |name: &String| !inner.contains(name) && !is_replacement(name);
        all.into_iter().map(|it| it.name).filter(is_own).collect()
    }

    /// Returns whether the value log of that name has a table of its keys, as a map has. A program may keep a log whose
    /// records it finds in another way.
    #[must_use]
    pub fn is_map(volume: &Volume, name: &str) -> bool {
        let keys = table_name(name);
        volume.structures().iter().any(|it| it.name == keys)
    }

    /// Returns the table: itself, or the table of references inside a map.
    #[must_use]
    pub fn index(&self) -> &AnyTable {
        match self {
            Self::Table(table) => table,
            Self::Map(map) => map.table(),
        }
    }

    /// The bytes of each key and of each value; `None` for a map.
    #[must_use]
    pub fn widths(&self) -> Option<(usize, usize)> {
        match self {
            Self::Table(table) => Some((table.key_bytes(), table.value_bytes())),
            Self::Map(_) => None,
        }
    }

    /// Returns whether the table grows when it is full.
    #[must_use]
    pub fn grows(&self) -> bool {
        registry::grows(self.index().kind())
    }

    /// The bytes of flash that each further entry takes, for one that only the device limits.
    #[must_use]
    pub fn growth_bytes_per_entry(&self) -> Option<f64> {
        let of_index = self.index().config().growth_bytes_per_entry()?;
        let Self::Map(map) = self else { return Some(of_index) };
        let values = map.stats().values;
        let mean = values.live_bytes as f64 / values.live_records.max(1) as f64;
        Some(of_index + if values.live_records > 0 { mean } else { RECORD_BYTES })
    }

    /// Returns the flash that it would take after a [compaction](super::Database::compact), in bytes by the cost model;
    /// `None` for a structure with a fixed amount of flash.
    #[must_use]
    pub(super) fn compacted_bytes(&self) -> Option<u64> {
        let config = self.index().config();
        let Self::Map(map) = self else {
            return config.flash_bytes_with(with_space(self.stats().entries));
        };
        let of_index = config.flash_bytes_with(with_space(map.stats().values.live_records))?;
        let values = map.compacted_values();
        let page_bytes = nandex_device::PAGE_BYTES as u64;
        (values.when_full == WhenFull::Grow).then(|| of_index + values.pages() * page_bytes)
    }

    /// Returns the flash that a [compaction](super::Database::compact) frees, in bytes by the cost model; 0 if that is
    /// too little to be worth compacting.
    #[must_use]
    pub fn compaction_bytes(&self) -> u64 {
        let flash_bytes = self.stats().flash_bytes;
        let less = flash_bytes.saturating_sub(self.compacted_bytes().unwrap_or(flash_bytes));
        if less > flash_bytes / 16 { less } else { 0 }
    }

    /// Inserts each pair, in order.
    ///
    /// # Errors
    /// A full table, a width that is not the table's, a failed write.
    pub fn put_many(&self, pairs: &[(&[u8], &[u8])]) -> Result<()> {
        match self {
            Self::Table(table) => table.insert_many(pairs),
            Self::Map(map) => map.put_many(pairs),
        }
    }

    /// Returns the values of all `keys`, in their order.
    ///
    /// # Errors
    /// A width that is not the table's, a failed read, damage.
    pub fn get_many(&self, keys: &[&[u8]]) -> Result<Vec<Option<Vec<u8>>>> {
        match self {
            Self::Table(table) => {
                let values = table.get_many(keys)?.into_iter();
                Ok(values.map(|value| value.map(|value| value.to_vec())).collect())
            }
            Self::Map(map) => map.get_many(keys),
        }
    }

    /// Removes a key.
    ///
    /// # Errors
    /// As [`put_many`](Self::put_many).
    pub fn remove(&self, key: &[u8]) -> Result<()> {
        match self {
            Self::Table(table) => table.remove(key),
            Self::Map(map) => map.remove(key),
        }
    }

    /// Passes every key and its value to `act`, in no particular order.
    ///
    /// # Errors
    /// Those of `act`; a failed read, damage.
    pub fn for_each<E: From<Error>>(
        &self,
        mut act: impl FnMut(&[u8], &[u8]) -> std::result::Result<(), E>,
    ) -> std::result::Result<(), E> {
        match self {
            Self::Table(table) => table.iter().try_for_each(|entry| {
                let (key, value) = entry?;
                act(&key, &value)
            }),
            Self::Map(map) => map.iter()?.try_for_each(|pair| {
                let (key, value): (Vec<u8>, Vec<u8>) = pair?;
                act(&key, &value)
            }),
        }
    }

    /// Passes every key and value that damage has spared to `act`, in no particular order, and each damaged page.
    /// # Errors
    /// Those of `act`.
    pub fn for_each_past_damage<E: From<Error>>(
        &self,
        mut act: impl FnMut(PairOrDamage<'_>) -> std::result::Result<(), E>,
    ) -> std::result::Result<(), E> {
        match self {
            Self::Table(table) => table.iter_past_damage().try_for_each(|item| match &item {
                Ok((key, value)) => act(Ok((key, value))),
                Err(damage) => act(Err(damage)),
            }),
            Self::Map(map) => map.iter_past_damage()?.try_for_each(|item| match &item {
                Ok((key, value)) => act(Ok((key, value))),
                Err(damage) => act(Err(damage)),
            }),
        }
    }

    /// The statistics of the table; for a map, RAM, flash and cache include all of its parts.
    #[must_use]
    pub fn stats(&self) -> TableStats {
        match self {
            Self::Table(table) => table.stats(),
            Self::Map(map) => {
                let stats = map.stats();
                let flash_bytes = stats.table.flash_bytes + stats.values.flash_bytes;
                TableStats {
                    ram_bytes: stats.ram_bytes,
                    flash_bytes,
                    cache_bytes: stats.cache_bytes + stats.table.cache_bytes,
                    cache_bytes_max: stats.cache_bytes_max + stats.table.cache_bytes_max,
                    cache_entries_max: stats.cache_records + stats.table.cache_entries_max,
                    cache_hits: stats.cache_hits + stats.table.cache_hits,
                    ..stats.table
                }
            }
        }
    }

    /// The number of different keys that it is guaranteed to hold.
    #[must_use]
    pub fn entries_capacity(&self) -> u64 {
        self.index().config().describe().entries_capacity
    }

    /// Makes all updates durable.
    ///
    /// # Errors
    /// A failed write or sync, a full table.
    pub fn sync(&self) -> Result<()> {
        match self {
            Self::Table(table) => table.sync(),
            Self::Map(map) => map.sync(),
        }
    }

    /// Saves buffered updates and ends the background threads. Dropping does the same, and ignores failures.
    ///
    /// # Errors
    /// As [`sync`](Self::sync).
    pub fn close(self) -> Result<()> {
        match self {
            Self::Table(table) => table.close(),
            Self::Map(map) => map.close(),
        }
    }
}
