//! Builders of filters and counters.

use std::ops::Deref;

use super::ram::{explain, fitting, limit};
use super::stated::{Stated, check_enough, check_same};
use super::{Database, Quantity};
use crate::registry;
use crate::{
    AnyConfig, AnyFilter, Counter, Error, FilterRequirements, OpenOptions, Policy, Result,
    WhenFull, cascade,
};

/// The default number of keys of a filter.
const KEYS: u64 = 1_000_000;

/// The default rate of false positives.
const RATE: f64 = 0.01;

/// Builds or opens a filter; see [`Database::filter`].
///
/// By default it is made for a million keys at a rate of false positives of 1 %, and grows beyond. What is stated
/// applies when the filter is created. An existing filter must have a stated rate and policy, and be made for at least
/// the stated keys.
#[derive(Clone, Debug)]
#[must_use = "a builder does nothing until `create_or_open`"]
pub struct FilterBuilder<'db> {
    db: &'db Database,
    name: String,
    keys: Option<Quantity>,
    rate: Option<f64>,
    ram: Option<Quantity>,
    counts: bool,
    when_full: Option<WhenFull>,
    stated: Stated,
}

impl<'db> FilterBuilder<'db> {
    pub(super) fn new(db: &'db Database, name: String) -> Self {
        let (keys, rate, when_full, stated) = (None, None, None, Stated::default());
        Self { db, name, keys, rate, ram: None, counts: false, when_full, stated }
    }

    /// Sets the number of different keys that the filter is sized for.
    pub fn keys(mut self, count: impl Into<Quantity>) -> Self {
        self.keys = Some(count.into());
        self
    }

    /// Sets the false-positive rate of the filter with that number of keys, such as 0.001.
    pub fn rate(mut self, rate: f64) -> Self {
        self.rate = Some(rate);
        self
    }

    /// Limits the RAM that the filter may take.
    pub fn ram(mut self, bytes: impl Into<Quantity>) -> Self {
        self.ram = Some(bytes.into());
        self
    }

    /// Makes the filter reject more keys than it is sized for, to keep its rate.
    pub fn refuse_when_full(mut self) -> Self {
        self.when_full = Some(WhenFull::Refuse);
        self
    }

    /// Sets a parameter of the filter, such as `("fan_out", "8")`, in place of the one derived from the requirements;
    /// see [`TableBuilder::parameter`](super::TableBuilder::parameter).
    pub fn parameter(mut self, name: impl Into<String>, value: impl Into<String>) -> Self {
        self.stated.add(name, value);
        self
    }

    /// Sets options of this opening; see [`TableBuilder::options`](super::TableBuilder::options).
    pub fn options(mut self, options: OpenOptions) -> Self {
        self.stated.options = options;
        self
    }

    /// Makes the filter a counter.
    pub fn counts(mut self) -> CounterBuilder<'db> {
        self.counts = true;
        CounterBuilder(self)
    }

    /// Opens the filter of that name, or creates it.
    ///
    /// # Errors
    /// A structure of that name that is not a filter, or is already open; an impossible rate; too little RAM
    /// or log; damage, no space, a failed read or write.
    pub fn create_or_open(self) -> Result<AnyFilter> {
        let (db, name) = (self.db, &self.name);
        let kind = db.kind(name, "filter")?;
        let _opening = db.opening();
        let limit = limit(&db.ram, name, self.ram.as_ref())?;
        let options = |kind: &str| self.stated.options(kind, OpenOptions::default());
        let filter = if let Some(kind) = kind {
            let filter = AnyFilter::open(&db.volume, name, &options(&kind)?)?;
            self.stated.check(name, &filter.config())?;
            self.check(&filter.config())?;
            filter
        } else {
            let config =
                self.advise(limit).map_err(|error| explain(&db.ram, name, limit, error))?;
            let config = self.stated.on(&config)?;
            AnyFilter::create_with(&db.volume, name, &config, &options(config.kind())?)
                .map_err(|error| db.explain(name, error))?
        };
        let needed = match filter.config().of::<cascade::Config>() {
            Ok(config) => config.costs()?.ram_bytes.max(filter.stats().ram_bytes),
            Err(_) => filter.stats().ram_bytes,
        };
        let shared = filter.config().shared_ram_bytes();
        db.ram.claim(name, (needed, shared), None).map(|()| filter)
    }

    /// The keys that it must hold, if they were stated.
    fn keys_asked(&self) -> Result<Option<u64>> {
        self.keys.as_ref().map(|it| it.count("keys")).transpose()
    }

    /// Fails if an existing filter was created with another rate or policy than was stated, or for fewer keys.
    fn check(&self, found: &AnyConfig) -> Result<()> {
        let Ok(found) = found.of::<cascade::Config>() else { return Ok(()) };
        let for_keys = |rate| cascade::Config::rate_for((found.keys, found.counts), rate);
        if self.rate.map(for_keys) != Some(found.rate) {
            check_same(&self.name, "rate", &found.rate, self.rate.as_ref())?;
        }
        check_enough(&self.name, "keys", found.keys, self.keys_asked()?)?;
        let stated = self.when_full.map(Policy::from);
        check_same(&self.name, "when_full", &found.when_full.into(), stated.as_ref())
    }

    fn advise(&self, limit: u64) -> Result<AnyConfig> {
        let keys = self.keys_asked()?.unwrap_or(KEYS);
        let new = FilterRequirements::new(keys, self.rate.unwrap_or(RATE), limit);
        let when_full = self.when_full.unwrap_or(WhenFull::Grow);
        let asked = FilterRequirements { counts: self.counts, when_full, ..new };
        let first = |ram_bytes| {
            let asked = FilterRequirements { ram_bytes, ..asked };
            let (_, row) = registry::filters().next().expect("the registry has a filter");
            (row.advise)(&asked)
        };
        fitting(limit, first, |config| self.db.log_holds(config.log_bytes_best()))
    }
}

/// Builds or opens a counter; see [`FilterBuilder::counts`].
#[derive(Clone, Debug)]
#[must_use = "a builder does nothing until `create_or_open`"]
pub struct CounterBuilder<'db>(FilterBuilder<'db>);

impl CounterBuilder<'_> {
    /// Sets a parameter of the filter; see [`FilterBuilder::parameter`].
    pub fn parameter(self, name: impl Into<String>, value: impl Into<String>) -> Self {
        Self(self.0.parameter(name, value))
    }

    /// Sets options of this opening; see [`TableBuilder::options`](super::TableBuilder::options).
    pub fn options(self, options: OpenOptions) -> Self {
        Self(self.0.options(options))
    }

    /// Opens the counter of that name, or creates it.
    ///
    /// # Errors
    /// As [`FilterBuilder::create_or_open`]; a filter that cannot count.
    pub fn create_or_open(self) -> Result<AnyCounter> {
        let name = self.0.name.clone();
        let filter = self.0.create_or_open()?;
        if filter.counter().is_none() {
            let reason = format!("{name:?} cannot count; open it without .counts()");
            return Err(Error::Config { field: "counts", reason });
        }
        Ok(AnyCounter(filter))
    }
}

/// A filter of any kind that counts; it can be used as a [`Counter`].
#[derive(Debug)]
pub struct AnyCounter(AnyFilter);

impl AnyCounter {
    /// Saves buffered updates and ends the background threads. Dropping does the same, and ignores failures.
    ///
    /// # Errors
    /// As [`AnyFilter::close`].
    pub fn close(self) -> Result<()> {
        self.0.close()
    }
}

impl Deref for AnyCounter {
    type Target = dyn Counter;

    fn deref(&self) -> &(dyn Counter + 'static) {
        self.0.counter().expect("it was asked for when it was opened")
    }
}
