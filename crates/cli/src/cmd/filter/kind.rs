//! A filter of either kind: a set of keys, or a window of the most recent ones.

use std::collections::HashSet;

use anyhow::Result;
use nandex::raw::store::schedule::Channels;
use nandex::raw::{OpenFilter, Stated};
use nandex::{Cascade, Counter, Durability, Filter, FilterStats, OpenOptions, SliceBloom, Volume};
use nandex::{cascade, slicebloom};

use crate::held::{Closing, Held, Words};
use crate::key_feed::FeedRam;
use crate::refuse;

/// The bytes that a lookup takes for each key of a batch: its place, its sum, its count, and the answer.
pub const LOOKUP_KEY_BYTES: u64 = 24 + 8 + 8 + 8;

/// An open filter.
#[derive(Debug)]
pub enum KeyFilter {
    /// A set: a cascade filter.
    Set(Cascade),
    /// The most recent keys: a SliceBloom.
    Window(SliceBloom),
}

/// The configuration of a filter.
#[derive(Clone, Copy, Debug)]
pub enum FilterConfig {
    /// A set.
    Set(cascade::Config),
    /// The most recent keys.
    Window(slicebloom::Config),
}

impl FilterConfig {
    /// Returns the same configuration for a device with these channels.
    #[must_use]
    pub fn aligned_to(self, channels: &Channels) -> Self {
        match self {
            Self::Window(config) if channels.count() > 1 => {
                Self::Window(config.aligned_to(channels))
            }
            other => other,
        }
    }
}

impl KeyFilter {
    /// Returns the operations of both kinds.
    pub fn filter(&self) -> &dyn OpenFilter {
        match self {
            Self::Set(filter) => filter,
            Self::Window(filter) => filter,
        }
    }

    /// Returns the set, for operations that only sets have.
    ///
    /// # Errors
    /// The filter is a window of recent keys; the message adds `why` that matters.
    pub fn set(&self, why: &str) -> Result<&Cascade> {
        match self {
            Self::Set(filter) => Ok(filter),
            Self::Window(_) => {
                refuse!("this filter is a window of recent keys (build --window): {why}")
            }
        }
    }

    /// Returns how often each key is present; unless `counted`, at least 1 for those that are. In a set many keys at
    /// once are looked up by reading the filter from front to back, few by reading a page for each.
    ///
    /// # Errors
    /// A failed read, damage; counts of a window, which has none.
    pub fn look_up(&self, keys: &[&[u8]], counted: bool) -> Result<Vec<u64>> {
        if counted {
            self.set("it does not count; leave --count out")?;
        }
        if let Self::Set(filter) = self {
            let pages = filter.level_pages();
            if pages > 0 && keys.len() as u64 > pages / 2 {
                return Ok(filter.sweep(keys)?);
            }
            if counted {
                return Ok(filter.count_many(keys)?);
            }
        }
        Ok(self.filter().contains_many(keys)?.into_iter().map(u64::from).collect())
    }

    /// Returns of each key whether it is absent and no earlier one of `keys` is the same. In a set many keys at once
    /// are looked up by reading the filter from front to back, few by reading a page for each.
    ///
    /// # Errors
    /// A failed read, damage.
    pub fn first_absent(&self, keys: &[&[u8]]) -> Result<Vec<bool>> {
        let filter = match self {
            Self::Set(filter) => return Ok(filter.first_absent(keys)?),
            Self::Window(filter) => filter,
        };
        let (mut here, found) = (HashSet::new(), filter.contains_many(keys)?);
        Ok(keys.iter().zip(found).map(|(key, is_there)| here.insert(*key) && !is_there).collect())
    }

    /// Returns the rate of false positives after `new` inserts of absent keys; `before` are the statistics before them.
    /// A set does not read its buffers for it, which statistics do.
    pub fn rate_with(&self, before: &FilterStats, new: u64) -> f64 {
        match self {
            Self::Set(filter) => filter.universe().rate(before.entries + new),
            Self::Window(filter) => filter.stats().rate,
        }
    }

    /// The RAM in bytes that it takes now.
    pub fn ram_bytes(&self) -> u64 {
        match self {
            Self::Set(filter) => filter.ram_bytes(),
            Self::Window(filter) => filter.ram_bytes(),
        }
    }

    /// The RAM in bytes that it may take: what its configuration takes when all of it is in use.
    fn ram_bytes_planned(&self) -> u64 {
        match self {
            Self::Set(filter) => filter.config().costs().map_or(0, |costs| costs.ram_bytes),
            Self::Window(filter) => filter.config().costs().ram_bytes,
        }
    }

    /// Returns the RAM for reading keys to update it, for a caller that takes `per_key` bytes for each key of a batch:
    /// the same share as when it was built.
    pub fn update_feed(&self, per_key: u64) -> FeedRam {
        FeedRam::of_run(self.ram_bytes_planned(), per_key)
    }

    /// Returns the RAM for reading keys that are only looked up: all that buffers do not take now, because fewer and
    /// larger batches read the filter less often.
    pub fn lookup_feed(&self) -> FeedRam {
        let FeedRam { bytes, per_key } = self.update_feed(LOOKUP_KEY_BYTES);
        let free = self.ram_bytes_planned().saturating_sub(self.ram_bytes());
        FeedRam { bytes: bytes.max(free), per_key }
    }

    /// Saves what is buffered, with `compact` merging all levels into one, so that a lookup reads one page. A window
    /// has no levels.
    ///
    /// # Errors
    /// A failed read or write.
    pub fn settle(&self, compact: bool) -> Result<()> {
        match self {
            Self::Set(filter) if compact => Ok(filter.compact()?),
            _ => Ok(self.filter().flush()?),
        }
    }
}

impl Closing for KeyFilter {
    fn close(self) -> nandex::Result<()> {
        match self {
            Self::Set(filter) => filter.close(),
            Self::Window(filter) => filter.close(),
        }
    }
}

impl Held for KeyFilter {
    type Config = FilterConfig;

    const WORDS: Words = Words {
        kinds: &[cascade::KIND, slicebloom::KIND],
        noun: "filter",
        make: "nandex filter build",
        other: "look keys up with `nandex get`",
        several: "say which with --name",
    };

    fn log_bytes(config: &FilterConfig, durability: Durability) -> u64 {
        match (config, durability) {
            (FilterConfig::Set(_), Durability::Never) => cascade::Config::LOG_BYTES_MIN,
            (FilterConfig::Set(config), _) => config.log_bytes_best(),
            (FilterConfig::Window(config), _) => config.log_bytes_best(),
        }
    }

    fn create(
        volume: &Volume,
        name: &str,
        config: FilterConfig,
        stated: &Stated,
    ) -> nandex::Result<Self> {
        let options = |kind| stated.options(kind, OpenOptions::default());
        match config {
            FilterConfig::Set(config) => {
                Cascade::create_with(volume, name, config, options(cascade::KIND)?).map(Self::Set)
            }
            FilterConfig::Window(config) => {
                let options = options(slicebloom::KIND)?;
                SliceBloom::create_with(volume, name, config, options).map(Self::Window)
            }
        }
    }

    fn open(volume: &Volume, name: &str, stated: &Stated) -> nandex::Result<Self> {
        let structures = volume.structures();
        let is_window = structures.iter().any(|it| it.name == name && it.kind == slicebloom::KIND);
        let options = |kind| stated.options(kind, OpenOptions::default());
        let filter = if is_window {
            SliceBloom::open_with(volume, name, options(slicebloom::KIND)?).map(Self::Window)
        } else {
            Cascade::open_with(volume, name, options(cascade::KIND)?).map(Self::Set)
        }?;
        stated.check(name, &filter.filter().config()).map(|()| filter)
    }
}
