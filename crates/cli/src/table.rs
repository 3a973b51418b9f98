//! A table as the verbs use it: of fixed widths, or of keys and values of any size.

use anyhow::{Result, bail};
use nandex::large::{ValuesConfig, table_name};
use nandex::registry::{self, Family};
use nandex::{AnyTable, Damage, LargeTable, OpenOptions, Table, Volume};

use crate::size::show_bytes;

/// An open table of either sort.
#[derive(Debug)]
pub enum Keyed {
    /// All keys have one width, and so have all values.
    Fixed(AnyTable),
    /// Keys and values of any size.
    AnySize(LargeTable<AnyTable>),
}

/// The width of a table's keys and of its values, in bytes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Widths {
    /// Of each key.
    pub key_bytes: usize,
    /// Of each value.
    pub value_bytes: usize,
}

/// What a table holds and takes, of either sort.
#[derive(Clone, Copy, Debug)]
pub struct Held {
    /// Entries now, older versions of keys among them until they are evicted.
    pub entries: u64,
    /// Different keys that it surely holds.
    pub entries_capacity: u64,
    /// Entries that the policy has dropped since it was opened.
    pub evicted: u64,
    /// Entries that the policy has dropped in all openings; of a table of any size, entries of its index.
    pub evicted_life: u64,
    /// Those of `evicted_life` that the policy wanted to keep.
    pub forced_evictions_life: u64,
    /// RAM in bytes.
    pub ram_bytes: u64,
    /// Flash in bytes.
    pub flash_bytes: u64,
}

/// How full the log of keys and values of any size is.
#[derive(Clone, Copy, Debug, serde::Serialize)]
pub struct ValueLogUse {
    /// Bytes of keys and values that are there.
    pub live_bytes: u64,
    /// Bytes of those that were replaced or removed, until their segment is cleaned.
    pub garbage_bytes: u64,
    /// Bytes in all.
    pub flash_bytes: u64,
    /// How often it has grown.
    pub growths: u64,
    /// Segments of it that were overwritten in all openings.
    pub overwritten_segments_life: u64,
    /// Records in them that were there, as far as is known.
    pub overwritten_records_life: u64,
    /// Those of them since this opening.
    #[serde(skip)]
    pub overwritten_records: u64,
}

/// The RAM that a table may take.
#[derive(Clone, Copy, Default, Debug)]
pub struct Memory {
    /// All of one that grows; if `None`, what it was made with.
    pub ram_bytes_max: Option<u64>,
    /// Its cache of entries.
    pub cache_bytes: u64,
}

/// Bytes of a record of any size in a table that has none yet.
const RECORD_BYTES: f64 = 256.0;

/// A key and its value.
pub type Pair = (Vec<u8>, Vec<u8>);

impl Keyed {
    /// Opens the table of that name.
    ///
    /// # Errors
    /// No table of that name, damage.
    pub fn open(volume: &Volume, name: &str) -> Result<Self> {
        Self::open_within(volume, name, Memory::default())
    }

    /// Opens the table of that name, which may take this RAM.
    ///
    /// # Errors
    /// As [`open`](Self::open); less RAM than it needs as it is.
    pub fn open_within(volume: &Volume, name: &str, memory: Memory) -> Result<Self> {
        let Memory { ram_bytes_max, cache_bytes } = memory;
        let kind = registry::kind_in(volume, name)?;
        let mut options = OpenOptions { ram_bytes_max, cache_bytes, ..OpenOptions::default() };
        let table = match registry::find(&kind).map(|row| &row.family) {
            Some(Family::Part) => {
                if !has_keys(volume, name) {
                    bail!(
                        "{name} is a value log without a table of keys: a program made it, and that program reads it"
                    );
                }
                let of_values = ValuesConfig::of(volume, name)?.ram_bytes();
                options.ram_bytes_max = ram_bytes_max.map(|most| most.saturating_sub(of_values));
                let index = AnyTable::open_with(volume, &table_name(name), &options)?;
                Self::AnySize(LargeTable::open(volume, name, index)?)
            }
            _ => Self::Fixed(AnyTable::open_with(volume, name, &options)?),
        };
        if let Some(ram_bytes) = ram_bytes_max.filter(|_| table.grows()) {
            table.refuse_too_little(name, ram_bytes)?;
        }
        Ok(table)
    }

    /// Does it grow when it is full?
    pub fn grows(&self) -> bool {
        registry::grows(self.index().kind())
    }

    /// Refuses RAM that is less than what the beginning of a growing table takes.
    fn refuse_too_little(&self, name: &str, ram_bytes: u64) -> Result<()> {
        let Held { entries_capacity, ram_bytes: taken, .. } = self.held();
        if entries_capacity > 0 {
            return Ok(());
        }
        let (stated, taken) = (show_bytes(ram_bytes), show_bytes(taken));
        bail!(
            "table {name} takes {taken} of RAM as it is, and --ram {stated} is too little; state more"
        )
    }

    /// Bytes of flash for each entry that it grows by, where nothing but the device limits it.
    pub fn growth_per_entry(&self) -> Option<f64> {
        let of_index = self.index().config().growth_bytes_per_entry()?;
        let of_values = match self {
            Self::Fixed(_) => 0.0,
            Self::AnySize(table) => {
                let stats = table.stats().values;
                let mean = stats.live_bytes as f64 / stats.live_records.max(1) as f64;
                if stats.live_records > 0 { mean } else { RECORD_BYTES }
            }
        };
        Some(of_index + of_values)
    }

    /// Its widths; none where keys and values may have any size.
    pub fn widths(&self) -> Option<Widths> {
        match self {
            Self::Fixed(table) => {
                Some(Widths { key_bytes: table.key_bytes(), value_bytes: table.value_bytes() })
            }
            Self::AnySize(_) => None,
        }
    }

    /// The table of fixed widths: itself, or the index of fingerprints of one of any size.
    pub fn index(&self) -> &AnyTable {
        match self {
            Self::Fixed(table) => table,
            Self::AnySize(table) => table.table(),
        }
    }

    /// The table, where it must have fixed widths.
    ///
    /// # Errors
    /// One of any size.
    pub fn fixed(&self) -> Result<&AnyTable> {
        match self {
            Self::Fixed(table) => Ok(table),
            Self::AnySize(_) => {
                bail!("the table has keys and values of any size; name one of fixed widths")
            }
        }
    }

    /// Puts each pair, in order.
    ///
    /// # Errors
    /// A full table, a width that is not the table's, a failed write.
    pub fn insert_many(&self, pairs: &[(&[u8], &[u8])]) -> Result<()> {
        match self {
            Self::Fixed(table) => Ok(table.insert_many(pairs)?),
            Self::AnySize(table) => Ok(table.put_many(pairs)?),
        }
    }

    /// The values under all of `keys`, in their order.
    ///
    /// # Errors
    /// A width that is not the table's, a failed read, damage.
    pub fn get_many(&self, keys: &[&[u8]]) -> Result<Vec<Option<Vec<u8>>>> {
        Ok(match self {
            Self::Fixed(table) => {
                let values = table.get_many(keys)?.into_iter();
                values.map(|value| value.map(|value| value.to_vec())).collect()
            }
            Self::AnySize(table) => table.get_many(keys)?,
        })
    }

    /// Removes a key.
    ///
    /// # Errors
    /// As `insert_many`.
    pub fn remove(&self, key: &[u8]) -> Result<()> {
        match self {
            Self::Fixed(table) => Ok(table.remove(key)?),
            Self::AnySize(table) => Ok(table.remove(key)?),
        }
    }

    /// Passes every key and its value to `act`, in no order.
    ///
    /// # Errors
    /// Those of `act`; a failed read, damage.
    pub fn for_each(&self, mut act: impl FnMut(&[u8], &[u8]) -> Result<()>) -> Result<()> {
        match self {
            Self::Fixed(table) => table.iter().try_for_each(|entry| {
                let (key, value) = entry?;
                act(&key, &value)
            }),
            Self::AnySize(table) => table.iter()?.try_for_each(|pair| {
                let (key, value): Pair = pair?;
                act(&key, &value)
            }),
        }
    }

    /// Passes every key and its value to `act` that damage has left, in no order, and each damaged page.
    ///
    /// # Errors
    /// Those of `act`.
    pub fn for_each_past_damage(
        &self,
        mut act: impl FnMut(Result<(&[u8], &[u8]), &Damage>) -> Result<()>,
    ) -> Result<()> {
        match self {
            Self::Fixed(table) => table
                .iter_past_damage()
                .try_for_each(|item| act(item.as_ref().map(|(key, value)| (&key[..], &value[..])))),
            Self::AnySize(table) => table
                .iter_past_damage()?
                .try_for_each(|item| act(item.as_ref().map(|(key, value)| (&key[..], &value[..])))),
        }
    }

    /// What it holds and takes.
    pub fn held(&self) -> Held {
        let index = self.index().stats();
        let (ram_bytes, flash_bytes) = match self {
            Self::Fixed(_) => (index.ram_bytes, index.flash_bytes),
            Self::AnySize(table) => {
                let stats = table.stats();
                (stats.ram_bytes, stats.table.flash_bytes + stats.values.flash_bytes)
            }
        };
        let entries_capacity = self.index().config().describe().entries_capacity;
        Held {
            entries: index.entries,
            entries_capacity,
            evicted: index.evicted,
            evicted_life: index.evicted_life,
            forced_evictions_life: index.forced_evictions_life,
            ram_bytes,
            flash_bytes,
        }
    }

    /// Bytes that keys and values of any size take in their log, and what it has for them.
    pub fn log_of_values(&self) -> Option<ValueLogUse> {
        let Self::AnySize(table) = self else { return None };
        let stats = table.stats().values;
        Some(ValueLogUse {
            live_bytes: stats.live_bytes,
            garbage_bytes: stats.garbage_bytes,
            flash_bytes: stats.flash_bytes,
            growths: stats.growths,
            overwritten_segments_life: stats.overwritten_segments_life,
            overwritten_records_life: stats.overwritten_records_life,
            overwritten_records: stats.overwritten_records,
        })
    }

    /// Makes everything durable.
    ///
    /// # Errors
    /// A failed write or sync, a full table.
    pub fn sync(&self) -> Result<()> {
        match self {
            Self::Fixed(table) => Ok(table.sync()?),
            Self::AnySize(table) => Ok(table.sync()?),
        }
    }

    /// Closes it.
    ///
    /// # Errors
    /// As `sync`.
    pub fn close(self) -> Result<()> {
        match self {
            Self::Fixed(table) => Ok(table.close()?),
            Self::AnySize(table) => Ok(table.close()?),
        }
    }
}

/// Whether the value log of that name has a table of its keys, as tables of any size do. An application may keep a log
/// whose records are found in another way.
pub fn has_keys(volume: &Volume, name: &str) -> bool {
    let keys = table_name(name);
    volume.structures().iter().any(|it| it.name == keys)
}

/// The names of a volume's structures that a user made: without the indexes of tables of any size, and without the
/// generations of tables that grow.
pub fn names(volume: &Volume) -> Vec<String> {
    let family = |kind: &str| registry::find(kind).map(|row| &row.family);
    let is_part = |kind: &str| matches!(family(kind), Some(Family::Part));
    let mut all = volume.structures();
    all.retain(|it| !matches!(family(&it.kind), Some(Family::Generation)));
    let indexes: Vec<String> =
        all.iter().filter(|it| is_part(&it.kind)).map(|it| table_name(&it.name)).collect();
    all.into_iter().map(|it| it.name).filter(|name| !indexes.contains(name)).collect()
}
