//! Builders of tables with keys and values of any size.

use std::sync::Arc;

use super::sizing::{RECORD_BYTES, values_for};
use super::stated::{Stated, check_enough, check_same};
use super::{Database, Quantity, TableBuilder};
use crate::large::{PoolShare, TABLE_KEY_BYTES, TABLE_VALUE_BYTES, ValuesConfig, table_name};
use crate::model::text;
use crate::ram::SpareRam;
use crate::{AnyTable, Error, LargeTable, OpenOptions, Policy, Result, WhenFull};

/// The default number of entries of a map that does not grow.
const ENTRIES: u64 = 1_000_000;

/// Builds or opens a table of keys and values of any size; see [`Database::map`].
///
/// By default it grows until its RAM or the device is full. A map whose `entries` or `bytes` are stated holds these and
/// rejects more, unless its `policy` is stated too. An existing map must have a stated policy, and hold the stated size
/// unless it grows. It consists of two structures of the volume: a value log of its
/// name, and a table with the suffix `-keys`.
///
/// A put or a removal reads nothing, unless the map evicts. It relies on 128 bits of a key's hash: two of 2^40 keys
/// collide with a probability of 2^-49. Someone who chooses the keys and knows the file's hash key can find colliding
/// keys for the default hash function; the one put last then replaces the other.
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

    /// Sets the entries that the map must hold, or begins with if it grows.
    pub fn entries(mut self, count: impl Into<Quantity>) -> Self {
        self.entries = Some(count.into());
        self
    }

    /// Sets the bytes of all keys and values that the map must hold, or begins with, including about 40 more for each
    /// entry. The default is 256 for each of the `entries`, if those are stated.
    pub fn bytes(mut self, bytes: impl Into<Quantity>) -> Self {
        self.bytes = Some(bytes.into());
        self
    }

    /// Limits the RAM of the map's table and cache, which limits how far the map grows. Without a limit, it takes what
    /// it needs of the database's.
    pub fn ram(mut self, bytes: impl Into<Quantity>) -> Self {
        self.ram = Some(bytes.into());
        self
    }

    /// Sets the RAM for a cache of records, so that cached keys are read and updated without a read of flash; it is
    /// part of the map's RAM. The default is the part of `ram` that its table does not use, and without `ram` a share
    /// of the database's unclaimed RAM. 0 for no cache; a map that evicts has none.
    pub fn cache(mut self, bytes: impl Into<Quantity>) -> Self {
        self.cache = Some(bytes.into());
        self
    }

    /// Sets the policy of a full map: [`Policy::Grow`], [`Policy::Reject`] or [`Policy::Fifo`].
    pub fn policy(mut self, policy: Policy) -> Self {
        self.policy = Some(policy);
        self
    }

    /// Makes the map a cache: when it is full the oldest entries are evicted. The same as [`Policy::Fifo`].
    pub fn evict_oldest(self) -> Self {
        self.policy(Policy::Fifo)
    }

    /// Sets a parameter of the map's table of keys, such as `("spare_buffers", "8")`, in place of the one derived from
    /// the requirements; see [`TableBuilder::parameter`](super::TableBuilder::parameter).
    pub fn parameter(mut self, name: impl Into<String>, value: impl Into<String>) -> Self {
        self.stated.add(name, value);
        self
    }

    /// Sets options of this opening of the map's table of keys; see
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
            true => self.checked(ValuesConfig::of(&db.volume, name)?)?,
            false => self.config()?,
        };
        let table = self.table(config.when_full.into());
        let kind = db.kind(table.name(), "table")?;
        let _opening = db.opening();
        let (is_stated, is_limited) = (table.stated_cache().is_some(), table.is_limited());
        // The table is created first: a crash then leaves a table without entries.
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

    /// Fails if an existing map has another policy than was stated, or holds less and keeps its size.
    fn checked(&self, found: ValuesConfig) -> Result<ValuesConfig> {
        let policy = found.when_full.into();
        check_same(&self.name, "policy", &policy, self.policy.as_ref())?;
        let has_size = self.entries.is_some() || self.bytes.is_some();
        if has_size && found.when_full != WhenFull::Grow {
            let asked = Self { policy: Some(policy), ..self.clone() }.config()?;
            let required = Some(asked.payload_bytes());
            check_enough(&self.name, "bytes", found.payload_bytes(), required)?;
        }
        Ok(found)
    }

    /// Returns the policy that was stated; by default a map grows if no size was stated.
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
