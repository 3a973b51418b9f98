//! Builders of tables with keys and values of any size.

use super::{Database, Quantity, TableBuilder};
use crate::large::{TABLE_KEY_BYTES, TABLE_VALUE_BYTES, ValuesConfig, WhenFull, table_name};
use crate::{AnyTable, LargeTable, Policy, Result};

/// The default for the bytes of a key and its value, with a record's overhead.
const RECORD_BYTES: u64 = 256;

/// The default number of entries of a map.
const ENTRIES: u64 = 1_000_000;

/// Builds or opens a table of keys and values of any size; see [`Database::map`].
///
/// By default it holds a million entries, 256 bytes of flash for each, and refuses more. It is two structures
/// of the volume: a value log of its name, and a table of its name and `-keys`.
#[derive(Clone, Debug)]
#[must_use = "a builder does nothing until `create_or_open`"]
pub struct MapBuilder<'db> {
    db: &'db Database,
    name: String,
    entries: Quantity,
    bytes: Option<Quantity>,
    ram: Option<Quantity>,
    when_full: WhenFull,
}

impl<'db> MapBuilder<'db> {
    pub(super) fn new(db: &'db Database, name: String) -> Self {
        let (entries, when_full) = (ENTRIES.into(), WhenFull::Keep);
        Self { db, name, entries, bytes: None, ram: None, when_full }
    }

    /// Entries that it must hold.
    pub fn entries(mut self, count: impl Into<Quantity>) -> Self {
        self.entries = count.into();
        self
    }

    /// Bytes of all keys and values that it must hold, including about 40 more for each entry.
    pub fn bytes(mut self, bytes: impl Into<Quantity>) -> Self {
        self.bytes = Some(bytes.into());
        self
    }

    /// The RAM that its table may take, at most.
    pub fn ram(mut self, bytes: impl Into<Quantity>) -> Self {
        self.ram = Some(bytes.into());
        self
    }

    /// Makes it a cache: when it is full the oldest entries are evicted.
    pub fn evict_oldest(mut self) -> Self {
        self.when_full = WhenFull::Overwrite;
        self
    }

    /// Opens the map of that name, or creates it.
    ///
    /// # Errors
    /// A structure of that name that is not a map, or is already open; too little RAM or log; damage, no
    /// space, a failed read or write.
    pub fn create_or_open(self) -> Result<LargeTable<AnyTable>> {
        let (db, name) = (self.db, &self.name);
        let is_there = db.kind(name, "map")?.is_some();
        let table = self.table();
        let kind = db.kind(table.name(), "table")?;
        let config = self.config()?;
        let mut shares = db.shares();
        // The table first: a crash then leaves a table without entries.
        let table = table.create_or_open_in(&mut shares, kind.as_deref())?;
        let map = if is_there {
            LargeTable::open(&db.volume, name, table)?
        } else {
            LargeTable::create(&db.volume, name, table, config)?
        };
        let needed = map.stats().values.ram_bytes.max(chunk_bytes(&config));
        shares.take(&db.volume, name, needed).map(|()| map)
    }

    fn table(&self) -> TableBuilder<'db> {
        let table = TableBuilder::new(self.db, table_name(&self.name))
            .entries(self.entries.clone())
            .widths(TABLE_KEY_BYTES as u32, TABLE_VALUE_BYTES as u32)
            .policy(match self.when_full {
                WhenFull::Keep => Policy::Reject,
                WhenFull::Overwrite => Policy::Fifo,
            });
        match &self.ram {
            Some(ram) => table.ram(ram.clone()),
            None => table,
        }
    }

    fn config(&self) -> Result<ValuesConfig> {
        let bytes = match &self.bytes {
            Some(bytes) => bytes.bytes("bytes")?,
            None => self.entries.count("entries")?.saturating_mul(RECORD_BYTES),
        };
        Ok(ValuesConfig::holding(bytes, self.when_full))
    }
}

/// RAM of the batch of records that fills up and the one that is written.
fn chunk_bytes(config: &ValuesConfig) -> u64 {
    2 * config.io_chunk_bytes() as u64
}
