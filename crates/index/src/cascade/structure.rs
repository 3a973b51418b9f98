//! The cascade filter as a [`Structure`].

use super::buffer::BufferShape;
use super::runs::Runs;
use super::stats;
use crate::write::{BufferRam, Retired};
use nandex_store::check::{Checker, Contents};
use nandex_store::checkpoint::CatalogEntry;
use nandex_store::fingerprint::{Split, Universe};
use nandex_store::run::Run;
use nandex_store::{Structure as Entry, Volume};
use std::sync::{Arc, Mutex};

use super::{Config, Inner, KIND, check, recover};
use crate::any::{AnyConfig, Configuration, Description};
use crate::api::{Counter, FilterStats};
use crate::check::OnProgress;
use crate::model::text::count;
use crate::model::{FilterRequirements, OperationCosts, ParameterValue};
use crate::schema::{GrowOrRefuse, Stored};
use crate::structure::Structure;
use crate::structure::filter::{CounterStructure, FilterStructure};
use crate::write::Handle;
use crate::{OpenOptions, Result};

/// The cascade filter's layout: levels of runs for each part.
#[derive(Debug)]
pub struct CascadeLayout {
    pub(super) config: Config,
    pub(super) universe: Universe,
    /// The division into parts.
    pub(super) split: Split,
    pub(super) buffer_ram: Arc<BufferRam<BufferShape>>,
    pub(super) runs: Runs,
    /// Held while a part's buffer and levels change together, or all of them are captured.
    pub(super) maps: Mutex<()>,
    pub(super) retired: Retired<Run>,
    pub(super) counters: stats::CascadeCounters,
}

impl Structure for CascadeLayout {
    const KIND: &'static str = KIND;
    const NAME: &'static str = "cascade filter";
    const GOOD_FOR: &'static str = "Sets and counts of keys in about 11 bits each, larger than RAM, with a known rate of false positives.";
    const OPTIONS: &'static [&'static str] = &["flush_threads", "read_depth", "io_chunk_pages"];
    #[cfg(feature = "testing")]
    const DECODERS: &'static [crate::testing::Decoder] = super::testing::DECODERS;

    type Config = Config;

    fn admit(volume: &Volume, config: &Config, _options: &OpenOptions) -> Result<u64> {
        Inner::check_log(volume, config).map(|()| 0)
    }

    fn restore(volume: &Volume, entry: &Entry, options: OpenOptions) -> Result<Handle<Self>> {
        recover::open(volume, entry, options)
    }

    fn config(&self) -> &Config {
        &self.config
    }

    fn check(
        checker: &mut Checker,
        contents: &Contents,
        entry: &CatalogEntry,
        progress: &mut OnProgress<'_>,
    ) -> Result<()> {
        check(checker, contents, entry, progress);
        Ok(())
    }

    fn tiny() -> Config {
        Config::tiny()
    }
}

impl FilterStructure for CascadeLayout {
    #[cfg(feature = "testing")]
    const TESTS: crate::testing::FilterTests = super::testing::TESTS;

    fn advise(requirements: &FilterRequirements) -> Result<AnyConfig> {
        Config::advised(requirements).map(Into::into)
    }

    fn add(core: &Inner, key: &[u8], amount: i64) -> Result<()> {
        core.add_key(key, amount)
    }

    fn add_many<'k>(core: &Inner, amounts: impl Iterator<Item = (&'k [u8], i64)>) -> Result<()> {
        core.add_keys(amounts)
    }

    fn add_absent(core: &Inner, keys: &[&[u8]]) -> Result<Vec<bool>> {
        core.add_absent(keys)
    }

    fn contains(core: &Inner, key: &[u8]) -> Result<bool> {
        core.contains(key)
    }

    fn contains_many(core: &Inner, keys: &[&[u8]]) -> Result<Vec<bool>> {
        core.contains_many(keys)
    }

    fn filter_stats(core: &Inner) -> FilterStats {
        core.stats()
    }

    fn compact(handle: &Handle<Self>) -> Result<()> {
        handle.compact()
    }

    fn counter(handle: &Handle<Self>) -> Option<&(dyn Counter + 'static)> {
        Some(handle)
    }
}

impl CounterStructure for CascadeLayout {
    fn count(core: &Inner, key: &[u8]) -> Result<u64> {
        core.count(key)
    }

    fn count_many(core: &Inner, keys: &[&[u8]]) -> Result<Vec<u64>> {
        core.count_many(keys)
    }
}

impl Configuration for Config {
    crate::schema::configuration!(KIND);

    fn log_bytes_best(&self) -> u64 {
        Self::log_bytes_best(self)
    }

    fn shared_ram_bytes(&self) -> u64 {
        Self::shared_ram_bytes(self).unwrap_or_default()
    }

    /// The costs with all levels in use: a lookup reads one page of each.
    fn operation_costs(&self) -> Result<OperationCosts> {
        let costs = self.costs()?;
        Ok(OperationCosts {
            reads_per_hit: costs.levels.into(),
            reads_per_miss: costs.levels.into(),
            insert_read_bytes: costs.read_bytes_per_key,
            insert_write_bytes: costs.written_bytes_per_key + costs.log_bytes_per_key,
            updates: None,
        })
    }

    fn describe(&self) -> Description {
        let levels = match self.fan_out {
            Some(times) => format!("each level {times} times the one above"),
            None => "one level".into(),
        };
        let fan_out = self.fan_out.map(|times| ParameterValue::Count(times.into()));
        Description {
            entries_capacity: self.keys,
            when_full: GrowOrRefuse::from(self.when_full).show(),
            parameters: vec![
                ("fan_out", fan_out.unwrap_or(ParameterValue::None)),
                ("buffer_entries", ParameterValue::Count(self.buffer_entries)),
                ("counts", ParameterValue::Flag(self.counts)),
            ],
            shape: format!("{levels}, buffers of {} keys", count(self.buffer_entries)),
        }
    }
}
