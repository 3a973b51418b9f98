//! Builders of tables with keys and values of any size.

use std::sync::Arc;

use super::sizing::{RECORD_BYTES, values_for};
use super::stated::Stated;
use super::{Database, Quantity, TableBuilder};
use crate::large::{PoolShare, TABLE_KEY_BYTES, TABLE_VALUE_BYTES, ValuesConfig, table_name};
use crate::model::text;
use crate::ram::SpareRam;
use crate::{AnyTable, Error, LargeTable, OpenOptions, Policy, Result, WhenFull};

/// The default number of entries of a map that keeps its size.
const ENTRIES: u64 = 1_000_000;

/// Builds or opens a table of keys and values of any size; see [`Database::map`].
///
/// By default it grows until its RAM or the device is full. One whose `entries` or `bytes` are stated holds these and
/// refuses more, unless its `policy` is stated too. It is two structures of the volume: a value log of its name, and a
/// table of its name and `-keys`.
///
/// A put or a removal reads nothing, unless the map evicts. It rests on 128 bits of a key's hash, by which two of 2^40
/// keys are taken for one with a probability of 2^-49. Who chooses the keys and knows the file's hash key can find such
/// keys for the default hash function, and the one put last then replaces the other.
#[derive(Clone, Debug)]
#[must_use = "a builder does nothing until `create_or_open`"]
pub struct MapBuilder<'db> {
    db: &'db Database,
    name: String,
    entries: Option<Quantity>,
    bytes: Option<Quantity>,
    ram: Option<Quantity>,
    cache: Option<Quantity>,
    policy: Option<Policy>,
    stated: Stated,
}

impl<'db> MapBuilder<'db> {
    pub(super) fn new(db: &'db Database, name: String) -> Self {
        let stated = Stated::default();
        Self { db, name, entries: None, bytes: None, ram: None, cache: None, policy: None, stated }
    }

    /// Entries that it must hold; those that it begins with if it grows.
    pub fn entries(mut self, count: impl Into<Quantity>) -> Self {
        self.entries = Some(count.into());
        self
    }

    /// Bytes of all keys and values that it must hold, or begins with, including about 40 more for each entry. If
    /// `entries` are stated and these are not, 256 for each.
    pub fn bytes(mut self, bytes: impl Into<Quantity>) -> Self {
        self.bytes = Some(bytes.into());
        self
    }

    /// The RAM that its table and its cache may take, at most; that is how far one grows. Without it, it takes what it
    /// needs of the database's.
    pub fn ram(mut self, bytes: impl Into<Quantity>) -> Self {
        self.ram = Some(bytes.into());
        self
    }

    /// RAM for a cache of records, so that keys that are in it are read and updated without a read of flash; part of
    /// its RAM. By default what its table leaves of its `ram`, and without that a part of what no structure of the
    /// database has taken. 0 for none; a map that evicts has none.
    pub fn cache(mut self, bytes: impl Into<Quantity>) -> Self {
        self.cache = Some(bytes.into());
        self
    }

    /// The policy of a full map: [`Policy::Grow`], [`Policy::Reject`] or [`Policy::Fifo`].
    pub fn policy(mut self, policy: Policy) -> Self {
        self.policy = Some(policy);
        self
    }

    /// Makes it a cache: when it is full the oldest entries are evicted. The same as [`Policy::Fifo`].
    pub fn evict_oldest(self) -> Self {
        self.policy(Policy::Fifo)
    }

    /// States a parameter of the map's table of keys, such as `("spare_buffers", "8")`, in place of what the
    /// requirements lead to; see [`TableBuilder::parameter`](super::TableBuilder::parameter).
    pub fn parameter(mut self, name: impl Into<String>, value: impl Into<String>) -> Self {
        self.stated.add(name, value);
        self
    }

    /// Options of this opening of the map's table of keys; see
    /// [`TableBuilder::options`](super::TableBuilder::options).
    pub fn options(mut self, options: OpenOptions) -> Self {
        self.stated.options = options;
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
        let config = match is_there {
            true => ValuesConfig::of(&db.volume, name)?,
            false => self.config()?,
        };
        let table = self.table(config.when_full.into());
        let kind = db.kind(table.name(), "table")?;
        let _opening = db.opening();
        let (is_stated, is_limited) = (table.stated_cache().is_some(), table.is_limited());
        // The table first: a crash then leaves a table without entries.
        let (table, cache_bytes) = table.create_or_open_here(kind.as_deref())?;
        let map = if is_there {
            LargeTable::open(&db.volume, name, table)?
        } else {
            LargeTable::create(&db.volume, name, table, config)?
        };
        let is_lent = !is_limited && config.when_full == WhenFull::Refuse;
        let spare = is_lent.then(|| SpareRam::new(name, Some(&db.ram)));
        let (pool, name) = (Arc::clone(&db.ram), name.clone());
        let map = map.with_batches_of(PoolShare { pool, name, spare: spare.clone() })?;
        if let Some(spare) = spare {
            return Ok(map.with_spare_of(spare));
        }
        match is_stated {
            false if config.when_full == WhenFull::Grow => Ok(map.with_spare_ram()),
            _ if cache_bytes > 0 => map.with_cache(cache_bytes),
            _ => Ok(map),
        }
    }

    /// What was stated; else it grows if no size was.
    fn chosen_policy(&self) -> Policy {
        let has_size = self.entries.is_some() || self.bytes.is_some();
        self.policy.unwrap_or(if has_size { Policy::Reject } else { Policy::Grow })
    }

    fn table(&self, policy: Policy) -> TableBuilder<'db> {
        let table = TableBuilder::new(self.db, table_name(&self.name))
            .widths(TABLE_KEY_BYTES as u32, TABLE_VALUE_BYTES as u32)
            .policy(policy)
            .of_map(self.stated.clone());
        let table = self.entries.iter().cloned().fold(table, TableBuilder::entries);
        let table = self.cache.iter().cloned().fold(table, TableBuilder::cache);
        self.ram.iter().cloned().fold(table, TableBuilder::ram)
    }

    fn config(&self) -> Result<ValuesConfig> {
        let (field, bytes) = match &self.bytes {
            Some(bytes) => ("bytes", Some(bytes.bytes("bytes")?)),
            None => ("entries", None),
        };
        let entries = self.entries.as_ref().map_or(Ok(ENTRIES), |it| it.count("entries"))?;
        let config = values_for(bytes, entries, self.chosen_policy())?;
        let too_many = |_| {
            let bytes = bytes.unwrap_or_else(|| entries.saturating_mul(RECORD_BYTES));
            let (name, bytes) = (&self.name, text::bytes(bytes));
            let reason = format!(
                "{name:?}: {bytes} of keys and values are more than a map holds; state less"
            );
            Error::Config { field, reason }
        };
        config.validate().map_err(too_many).map(|()| config)
    }
}
