//! Builders of tables of fixed widths.

use std::sync::Arc;

use super::advice::Question;
use super::ram::{explain, fitting, limit};
use super::sizing::ENTRIES_GROWING;
use super::stated::{Calls, Stated, check_enough, check_same};
use super::{Database, Quantity};
use crate::model::text;
use crate::ram::SpareRam;
use crate::registry;
use crate::{AnyTable, Error, OpenOptions, Policy, Prediction, Requirements, Result, Table};

/// The parameters that other calls of a builder state: of a table, and of the table of a map.
const WIDTHS: Calls = &[("key_bytes", "widths"), ("value_bytes", "widths")];
const OF_MAP: Calls = &[("key_bytes", "map"), ("value_bytes", "map"), ("policy", "policy")];

/// The approximate RAM of a cached entry in addition to key and value, in bytes; and the smallest default cache.
const CACHED_BYTES: u64 = 64;
const CACHE_BYTES_MIN: u64 = 64 << 10;

/// A cache that needs at most this many bytes borrows free RAM of the database.
const CACHE_BYTES_LENT: u64 = 1 << 20;

/// The default number of entries of a table that does not grow.
const ENTRIES: u64 = 1_000_000;

/// Builds or opens a table; see [`Database::table`].
/// By default it holds a million entries of 8 + 8 bytes and rejects more. The options apply when the table is created;
/// an existing table must have the stated widths and policy, and hold the stated entries.
///
/// ```
/// use nandex::Table;
///
/// # let folder = tempfile::tempdir().unwrap();
/// # let path = folder.path().join("seen.nandex");
/// let db = nandex::open(&path)?;
/// let seen = db.table("seen").entries("100k").widths(20, 12).create_or_open()?;
/// seen.insert(&[7; 20], &[1; 12])?;
/// assert!(seen.contains(&[7; 20])?);
/// # Ok::<(), nandex::Error>(())
/// ```
#[derive(Clone, Debug)]
#[must_use = "a builder does nothing until `create_or_open`"]
pub struct TableBuilder<'db> {
    db: &'db Database,
    name: String,
    entries: Option<Quantity>,
    widths: (u32, u32),
    ram: Option<Quantity>,
    cache: Option<Quantity>,
    policy: Policy,
    /// Whether the policy was stated.
    has_policy: bool,
    stated: Stated,
    calls: Calls,
}

impl<'db> TableBuilder<'db> {
    pub(super) fn new(db: &'db Database, name: String) -> Self {
        let (widths, policy) = ((8, 8), Policy::Reject);
        let stated = Stated::default();
        let (entries, ram, cache) = (None, None, None);
        let has_policy = false;
        Self { db, name, entries, widths, ram, cache, policy, has_policy, stated, calls: WIDTHS }
    }

    /// Sets the entries that the table must hold.
    pub fn entries(mut self, count: impl Into<Quantity>) -> Self {
        self.entries = Some(count.into());
        self
    }

    /// Sets the bytes of every key, 8 to 32, and of every value, 0 to 64.
    pub fn widths(mut self, key_bytes: u32, value_bytes: u32) -> Self {
        self.widths = (key_bytes, value_bytes);
        self
    }

    /// Limits the RAM that the table may take. Without a limit, a table that grows takes what it needs of the
    /// database's RAM.
    pub fn ram(mut self, bytes: impl Into<Quantity>) -> Self {
        self.ram = Some(bytes.into());
        self
    }

    /// Sets the RAM for a cache of entries, so that lookups of frequent keys read no page. By default the cache gets
    /// the part of `ram` that the table does not use. Without `ram`, a table that grows uses a share of the database's
    /// unclaimed RAM, and any other table at most a quarter of what it may take, and no more than its entries need. 0
    /// for no cache; [`Policy::Lru`] has none.
    pub fn cache(mut self, bytes: impl Into<Quantity>) -> Self {
        self.cache = Some(bytes.into());
        self
    }

    /// Sets the policy of a full table, such as [`Policy::Lru`]; it rejects inserts by default. With [`Policy::Grow`]
    /// the table begins with `entries` and grows within its RAM, or the database's.
    pub fn policy(mut self, policy: Policy) -> Self {
        (self.policy, self.has_policy) = (policy, true);
        self
    }

    /// Sets a parameter of the structure, such as `("filter.bits", "14")`, in place of the one derived from the
    /// requirements. [`AnyConfig::values`](crate::AnyConfig::values) of an open table lists the names.
    ///
    /// An existing table must have this value: `create_or_open` fails if it differs, or if the structure has no such
    /// parameter.
    ///
    /// An option of this opening is stated in the same way, such as `("read_depth", "64")`; it is not stored.
    /// [`OpenOptions::SPECS`] lists the options.
    pub fn parameter(mut self, name: impl Into<String>, value: impl Into<String>) -> Self {
        self.stated.add(name, value);
        self
    }

    /// Sets options of this opening, in place of those derived from the requirements. Options stated with
    /// [`parameter`](Self::parameter) take precedence.
    pub fn options(mut self, options: OpenOptions) -> Self {
        self.stated.options = options;
        self
    }

    /// Sets the parameters stated for the table of a map, whose policy and widths are the map's.
    pub(super) fn of_map(mut self, stated: Stated) -> Self {
        (self.stated, self.calls) = (stated, OF_MAP);
        self
    }

    /// The table's name in the volume.
    pub(super) fn name(&self) -> &str {
        &self.name
    }

    /// Opens the table of that name, or creates one of the kind that suits the requirements.
    ///
    /// # Errors
    /// A structure of that name that is not a table or has other widths, or is already open; too little RAM
    /// or log; damage, no space, a failed read or write.
    pub fn create_or_open(self) -> Result<AnyTable> {
        let db = self.db;
        let kind = db.kind(&self.name, "table")?;
        let _opening = db.opening();
        self.create_or_open_here(kind.as_deref()).map(|(table, _)| table)
    }

    /// Opens or creates a table of a known kind while no other structure is being opened. Also returns the RAM that is
    /// left for the cache of the map whose table this is.
    pub(super) fn create_or_open_here(&self, kind: Option<&str>) -> Result<(AnyTable, u64)> {
        match kind {
            Some(kind) => self.open(kind),
            None => self.create(),
        }
    }

    fn create(&self) -> Result<(AnyTable, u64)> {
        let limit = limit(&self.db.ram, &self.name, self.stated_ram().as_ref())?;
        // A table that takes RAM as it grows begins as it would alone, if enough RAM is free.
        let alone = self.db.ram.bytes() / 2;
        if self.policy == Policy::Grow && !self.is_limited() && limit < alone {
            match self.create_within(alone) {
                Err(Error::TooLittleRam { .. }) => {}
                done => return done,
            }
        }
        self.create_within(limit)
    }

    fn create_within(&self, limit: u64) -> Result<(AnyTable, u64)> {
        let limit_without = self.without_cache(limit)?;
        let advised = self
            .advise(limit_without, |asked| self.choose(asked))
            .map_err(|error| explain(&self.db.ram, &self.name, limit, error))?;
        let mut options = advised.options.clone();
        // A table that grows may take all of it, even if the log suits a smaller beginning.
        self.limit_ram(&mut options, limit);
        options.cache_bytes = self.cache_bytes(advised.ram_bytes(), limit)?;
        let config = self.stated.on_with(&advised.config, self.calls)?;
        let mut options = self.stated.options(config.kind(), options)?;
        let of_map = self.take_cache(&mut options);
        let table = AnyTable::create_with(&self.db.volume, &self.name, &config, &options)
            .map_err(|error| self.db.explain(&self.name, error))?;
        let table = self.with_spare_ram(table);
        self.claim((&table, of_map), Some(&advised), &options).map(|()| (table, of_map))
    }

    fn open(&self, kind: &str) -> Result<(AnyTable, u64)> {
        let limit = limit(&self.db.ram, &self.name, self.stated_ram().as_ref())?;
        // Options such as SliceHash's filters are chosen again at each opening.
        let limit_without = self.without_cache(limit)?;
        let of_kind = || Question::Kind(kind.to_owned());
        let advise =
            |asked: &Requirements| self.db.advice.get(asked, of_kind(), || asked.advise_one(kind));
        // A table that grows in the database's RAM takes what it needs, whatever was advised.
        let is_free = registry::grows(kind) && !self.is_limited();
        let advised = if is_free { None } else { self.advise(limit_without, advise).ok() };
        let mut options =
            advised.as_ref().map_or_else(OpenOptions::default, |it| it.options.clone());
        self.limit_ram(&mut options, limit);
        options.cache_bytes = match &advised {
            // Its cache uses unclaimed RAM, whatever policy was stated at this opening.
            _ if registry::grows(kind) && !self.is_limited() => 0,
            Some(advised) => self.cache_bytes(advised.ram_bytes(), limit)?,
            None => self.cache_bytes(limit, limit)?,
        };
        let mut options = self.stated.options(kind, options)?;
        let of_map = self.take_cache(&mut options);
        let table = AnyTable::open_with(&self.db.volume, &self.name, &options)?;
        self.check_widths(&table)?;
        self.stated.check(&self.name, &table.config())?;
        self.check_size(&table)?;
        let table = self.with_spare_ram(table);
        self.claim((&table, of_map), advised.as_ref(), &options).map(|()| (table, of_map))
    }

    /// Limits its RAM: a table that can grow takes what it needs of the database's, unless a limit or a cache size was
    /// stated.
    fn limit_ram(&self, options: &mut OpenOptions, limit: u64) {
        options.ram_bytes_max = Some(limit);
        options.ram_pool = (!self.is_limited()).then(|| Arc::clone(&self.db.ram));
    }

    /// Returns whether its RAM is separate from the database's, because its RAM or its cache was stated.
    pub(super) fn is_limited(&self) -> bool {
        self.stated_ram().is_some() || self.stated_cache().is_some()
    }

    /// Removes the cache from the options of a map's table, since it belongs to the map, and returns its bytes.
    fn take_cache(&self, options: &mut OpenOptions) -> u64 {
        if !self.is_of_map() {
            return 0;
        }
        let cache_bytes = std::mem::take(&mut options.cache_bytes);
        let left = |most: u64| most.saturating_sub(cache_bytes);
        options.ram_bytes_max = options.ram_bytes_max.map(left);
        cache_bytes
    }

    /// Lets a table that grows use the RAM that it does not take as its cache, if no other cache was stated.
    fn with_spare_ram(&self, table: AnyTable) -> AnyTable {
        if self.is_of_map() || self.stated_cache().is_some() {
            table
        } else {
            table.with_spare_ram()
        }
    }

    fn is_of_map(&self) -> bool {
        std::ptr::eq(self.calls, OF_MAP)
    }

    /// Returns the structure that works well if it fits the limit and the log is long enough for it, else the best one
    /// that does.
    fn advise(
        &self,
        limit: u64,
        ask: impl Fn(&Requirements) -> Result<Prediction>,
    ) -> Result<Prediction> {
        let (key_bytes, value_bytes) = self.widths;
        let entries = self.entries_asked()?;
        let policy = self.policy;
        let asked = Requirements { policy, ..Requirements::new(entries, key_bytes, value_bytes) };
        let fits = |it: &Prediction| self.db.log_holds(it.config.log_bytes_best());
        if self.stated_ram().is_none()
            && policy != Policy::Grow
            && let Ok(best) = ask(&asked)
            && best.ram_bytes() <= limit
            && fits(&best)
        {
            return Ok(best);
        }
        fitting(limit, |ram_bytes| ask(&asked.clone().ram(ram_bytes)), fits)
    }

    /// Returns the structure that suits the requirements. One that grows is chosen for its grown size, and begins small
    /// if nothing else was stated.
    fn choose(&self, asked: &Requirements) -> Result<Prediction> {
        let advice = &self.db.advice;
        if self.policy == Policy::Grow && self.entries.is_none() {
            return advice.get(asked, Question::First, || Ok(asked.size_first(None)?.prediction));
        }
        advice.get(asked, Question::Best, || Ok(asked.advise()?.into_chosen()))
    }

    /// The entries that it must hold, or the default.
    fn entries_asked(&self) -> Result<u64> {
        let usual = if self.policy == Policy::Grow { ENTRIES_GROWING } else { ENTRIES };
        self.entries.as_ref().map_or(Ok(usual), |it| it.count("entries"))
    }

    /// The RAM that was stated for this table.
    fn stated_ram(&self) -> Option<Quantity> {
        self.ram.clone().or_else(|| self.stated.options.ram_bytes_max.map(Into::into))
    }

    /// The cache size that was stated.
    pub(super) fn stated_cache(&self) -> Option<Quantity> {
        let by_name = self.stated.latest("cache_bytes").map(Into::into);
        let in_options = || Some(self.stated.options.cache_bytes).filter(|it| *it > 0);
        by_name.or_else(|| self.cache.clone()).or_else(|| in_options().map(Into::into))
    }

    /// Returns the part of a table's RAM that remains after a stated cache.
    fn without_cache(&self, limit: u64) -> Result<u64> {
        let Some(cache) = self.stated_cache() else { return Ok(limit) };
        let cache_bytes = cache.bytes("cache")?;
        limit.checked_sub(cache_bytes).ok_or_else(|| Error::TooLittleRam {
            field: "cache",
            reason: format!(
                "{:?} may take {} of RAM in all, and {} for its cache alone is too much; give it more with `ram`",
                self.name,
                text::bytes(limit),
                text::bytes(cache_bytes)
            ),
        })
    }

    /// Returns the RAM for the cache of a table that takes `taken` bytes and may take `limit`.
    fn cache_bytes(&self, taken: u64, limit: u64) -> Result<u64> {
        if let Some(cache) = self.stated_cache() {
            return cache.bytes("cache");
        }
        let left = limit.saturating_sub(taken).min(nandex_device::ram_bytes());
        Ok(match self.policy {
            Policy::Grow => 0,
            // A map's cache is not notified of evictions.
            policy if self.is_of_map() && policy != Policy::Reject => 0,
            // The cache of a map without its own limit uses unclaimed RAM.
            _ if self.stated_ram().is_none() && self.is_of_map() => 0,
            _ if self.borrows()? => 0,
            _ if self.stated_ram().is_none() => left.min(limit / 4).min(self.cache_bytes_useful()?),
            _ => left,
        })
    }

    /// Returns whether its cache is small enough to borrow free RAM of the database: with many such tables, little else
    /// would be left. A larger cache is separate, which is somewhat faster.
    fn borrows(&self) -> Result<bool> {
        let is_own = self.is_limited() || self.is_of_map() || self.policy == Policy::Grow;
        Ok(!is_own && self.cache_bytes_useful()? <= CACHE_BYTES_LENT)
    }

    /// The RAM of a cache for all its entries: more would not be used.
    fn cache_bytes_useful(&self) -> Result<u64> {
        let (key_bytes, value_bytes) = self.widths;
        let entries = self.entries_asked()?;
        let of_entries = entries.saturating_mul(u64::from(key_bytes + value_bytes) + CACHED_BYTES);
        Ok(of_entries.saturating_mul(2).max(CACHE_BYTES_MIN))
    }

    /// Claims a table's RAM: its full size if that is known, else its size now. One that grows claims all that it may
    /// take, unless it has claimed its RAM already.
    fn claim(
        &self,
        (table, of_map): (&AnyTable, u64),
        advised: Option<&Prediction>,
        options: &OpenOptions,
    ) -> Result<()> {
        if options.ram_pool.is_some() && table.spare().is_some() {
            return Ok(());
        }
        let needed = match options.ram_bytes_max {
            Some(most) if registry::grows(table.kind()) => most + of_map,
            _ => self.ram_bytes((table, of_map), advised, options),
        };
        let shared = table.config().shared_ram_bytes();
        if self.borrows()? && !registry::grows(table.kind()) {
            let spare = SpareRam::of_small(self.cache_bytes_useful()?);
            self.db.ram.claim(&self.name, (needed, shared), Some(&spare))?;
            if table.borrow(spare) {
                return Ok(());
            }
        }
        self.db.ram.claim(&self.name, (needed, shared), None)
    }

    /// Returns a table's RAM once it is full if that is known, else its RAM now.
    fn ram_bytes(
        &self,
        (table, of_map): (&AnyTable, u64),
        advised: Option<&Prediction>,
        options: &OpenOptions,
    ) -> u64 {
        let same = advised.filter(|it| it.config == table.config());
        let stats = table.stats();
        let filter_bytes = advised.map_or(0, |it| it.options.filter_bytes);
        let known = same.map_or(stats.ram_bytes, |it| it.ram_bytes() + stats.cache_bytes);
        (known + of_map + options.filter_bytes).saturating_sub(filter_bytes)
    }

    /// Fails if an existing table has another policy than was stated, or holds fewer entries and keeps its size. The
    /// table of a map has the map's.
    fn check_size(&self, table: &AnyTable) -> Result<()> {
        if self.is_of_map() {
            return Ok(());
        }
        let found = table.config().describe();
        let stated = self.has_policy.then(|| self.policy.to_string());
        check_same(&self.name, "policy", &found.when_full, stated.as_ref())?;
        let entries = self.entries.as_ref().filter(|_| !registry::grows(table.kind()));
        let entries = entries.map(|it| it.count("entries")).transpose()?;
        check_enough(&self.name, "entries", found.entries_capacity, entries)
    }

    fn check_widths(&self, table: &AnyTable) -> Result<()> {
        let found = (table.key_bytes(), table.value_bytes());
        let (key_bytes, value_bytes) = self.widths;
        if found == (key_bytes as usize, value_bytes as usize) {
            return Ok(());
        }
        let reason = format!(
            "{:?} exists with keys of {} bytes and values of {}, and was required with {key_bytes} and \
             {value_bytes}; ask with .widths({}, {}), or choose another name",
            self.name, found.0, found.1, found.0, found.1
        );
        Err(Error::Config { field: "widths", reason })
    }
}
