//! Filters and counters: what a structure without values implements, and what its handle does in terms of that.

use nandex_store::Volume;

use super::Structure;
use crate::any::{AnyConfig, AnyFilter, OpenFilter};
use crate::api::{Counter, Filter, FilterStats};
use crate::model::FilterRequirements;
use crate::registry::{Family, FilterRow, Row};
#[cfg(feature = "testing")]
use crate::testing::FilterTests;
use crate::write::{Core, Handle};
use crate::{Error, OpenOptions, Result};

/// A structure of keys, optionally with counts.
pub(crate) trait FilterStructure: Structure {
    /// Whether it supports deletes. A filter of recent keys, for example, does not.
    const DELETES: bool = true;
    /// Its configurations for tests.
    #[cfg(feature = "testing")]
    const TESTS: FilterTests;

    /// Returns the configuration that meets the requirements.
    ///
    /// # Errors
    /// [`Error::Config`], naming the requirement that cannot be met.
    fn advise(requirements: &FilterRequirements) -> Result<AnyConfig>;

    /// Adds to the count of a key; a filter that cannot count takes only 1.
    ///
    /// # Errors
    /// As [`Counter::add`].
    fn add(core: &Core<Self>, key: &[u8], amount: i64) -> Result<()>;

    /// Adds to the count of each key, in order.
    ///
    /// # Errors
    /// As [`Counter::add_many`].
    fn add_many<'k>(
        core: &Core<Self>,
        amounts: impl Iterator<Item = (&'k [u8], i64)>,
    ) -> Result<()>;

    /// As [`Filter::insert_if_absent_many`].
    ///
    /// # Errors
    /// As [`Filter::insert_if_absent_many`].
    fn add_absent(core: &Core<Self>, keys: &[&[u8]]) -> Result<Vec<bool>>;

    /// As [`Filter::contains`].
    ///
    /// # Errors
    /// As [`Filter::contains`].
    fn contains(core: &Core<Self>, key: &[u8]) -> Result<bool>;

    /// As [`Filter::contains_many`].
    ///
    /// # Errors
    /// As [`Filter::contains_many`].
    fn contains_many(core: &Core<Self>, keys: &[&[u8]]) -> Result<Vec<bool>>;

    /// The filter's statistics.
    fn filter_stats(core: &Core<Self>) -> FilterStats;

    /// The error of a delete from a filter without deletes.
    fn no_deletes() -> Error {
        Error::NoDeletes { structure: Self::NAME, reason: "" }
    }

    /// Compacts its contents into the least space. Does nothing to a filter of fixed size.
    ///
    /// # Errors
    /// A failed read or write, damage, no space.
    fn compact(_handle: &Handle<Self>) -> Result<()> {
        Ok(())
    }

    /// Returns the filter as a counter, if it can count.
    fn counter(_handle: &Handle<Self>) -> Option<&(dyn Counter + 'static)> {
        None
    }
}

/// A filter that counts its keys.
pub(crate) trait CounterStructure: FilterStructure {
    /// As [`Counter::count`].
    ///
    /// # Errors
    /// As [`Counter::count`].
    fn count(core: &Core<Self>, key: &[u8]) -> Result<u64>;

    /// As [`Counter::count_many`].
    ///
    /// # Errors
    /// As [`Counter::count_many`].
    fn count_many(core: &Core<Self>, keys: &[&[u8]]) -> Result<Vec<u64>>;
}

impl<S: FilterStructure> Filter for Handle<S> {
    fn insert(&self, key: &[u8]) -> Result<()> {
        S::add(&self.core, key, 1)
    }

    fn delete(&self, key: &[u8]) -> Result<()> {
        if S::DELETES { S::add(&self.core, key, -1) } else { Err(S::no_deletes()) }
    }

    fn contains(&self, key: &[u8]) -> Result<bool> {
        S::contains(&self.core, key)
    }

    fn insert_many(&self, keys: &[&[u8]]) -> Result<()> {
        S::add_many(&self.core, keys.iter().map(|key| (*key, 1)))
    }

    fn insert_if_absent_many(&self, keys: &[&[u8]]) -> Result<Vec<bool>> {
        S::add_absent(&self.core, keys)
    }

    fn delete_many(&self, keys: &[&[u8]]) -> Result<()> {
        if !S::DELETES && !keys.is_empty() {
            return Err(S::no_deletes());
        }
        S::add_many(&self.core, keys.iter().map(|key| (*key, -1)))
    }

    fn contains_many(&self, keys: &[&[u8]]) -> Result<Vec<bool>> {
        S::contains_many(&self.core, keys)
    }

    fn sync(&self) -> Result<()> {
        self.core.sync()
    }

    fn flush(&self) -> Result<()> {
        self.core.flush_all()
    }

    fn stats(&self) -> FilterStats {
        S::filter_stats(&self.core)
    }
}

impl<S: CounterStructure> Counter for Handle<S> {
    fn add(&self, key: &[u8], amount: i64) -> Result<()> {
        S::add(&self.core, key, amount)
    }

    fn count(&self, key: &[u8]) -> Result<u64> {
        S::count(&self.core, key)
    }

    fn add_many(&self, amounts: &[(&[u8], i64)]) -> Result<()> {
        S::add_many(&self.core, amounts.iter().copied())
    }

    fn count_many(&self, keys: &[&[u8]]) -> Result<Vec<u64>> {
        S::count_many(&self.core, keys)
    }
}

impl<S: FilterStructure> OpenFilter for Handle<S> {
    fn config(&self) -> AnyConfig {
        Self::config(self).clone().into()
    }

    fn counter(&self) -> Option<&(dyn Counter + 'static)> {
        S::counter(self)
    }

    fn compact(&self) -> Result<()> {
        S::compact(self)
    }

    fn close(self: Box<Self>) -> Result<()> {
        Self::close(*self)
    }
}

impl Row {
    /// The row of a filter.
    #[must_use]
    pub(crate) const fn filter<S: FilterStructure>() -> Self {
        Self::of::<S>(Family::Filter(FilterRow {
            deletes: S::DELETES,
            create: create::<S>,
            open: open::<S>,
            advise: S::advise,
            tiny: || S::tiny().into(),
            #[cfg(feature = "testing")]
            testing: S::TESTS,
        }))
    }
}

fn create<S: FilterStructure>(
    volume: &Volume,
    name: &str,
    config: &AnyConfig,
    options: &OpenOptions,
) -> Result<AnyFilter> {
    let config = config.of::<S::Config>()?.clone();
    Handle::<S>::create_with(volume, name, config, options.clone()).map(Into::into)
}

fn open<S: FilterStructure>(
    volume: &Volume,
    name: &str,
    options: &OpenOptions,
) -> Result<AnyFilter> {
    Handle::<S>::open_with(volume, name, options.clone()).map(Into::into)
}
