//! The counting table as a [`Structure`].

use super::buffer::BufferShape;
use super::segment::{Segment, Segments};
use super::stats;
use crate::write::{BufferRam, Retired};
use nandex_store::check::{Checker, Contents};
use nandex_store::checkpoint::CatalogEntry;
use nandex_store::{Structure as Entry, Volume};
use std::sync::{Arc, Mutex};

use super::read::clamped;
use super::{Change, Config, Inner, KIND, Keys, check, recover};
use crate::any::{AnyConfig, Configuration, Description};
use crate::api::{Counter, FilterStats};
use crate::check::OnProgress;
use crate::model::text::count;
use crate::model::{FilterRequirements, OperationCosts, ParameterValue};
use crate::structure::Structure;
use crate::structure::filter::{CounterStructure, FilterStructure};
use crate::write::Handle;
use crate::{OpenOptions, Result};

/// The counting table's layout: segments for each partition.
#[derive(Debug)]
pub struct CountingLayout {
    pub(super) config: Config,
    pub(super) buffer_ram: Arc<BufferRam<BufferShape>>,
    pub(super) segments: Segments,
    /// Held while a partition's buffer and segments change together, or all of them are captured.
    pub(super) maps: Mutex<()>,
    pub(super) retired: Retired<Segment>,
    pub(super) counters: stats::CountingCounters,
}

impl Structure for CountingLayout {
    const KIND: &'static str = KIND;
    const NAME: &'static str = "counting table";
    const GOOD_FOR: &'static str =
        "Exact counts of keys, larger than RAM: words, links, users. One page read for each count.";
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

    /// A configuration with fingerprints, since a filter takes keys of any width.
    fn tiny() -> Config {
        Config { keys: Keys::Fingerprints(8), ..Config::tiny() }
    }
}

impl FilterStructure for CountingLayout {
    #[cfg(feature = "testing")]
    const TESTS: crate::testing::FilterTests = super::testing::TESTS;

    fn advise(requirements: &FilterRequirements) -> Result<AnyConfig> {
        Config::advised(requirements).map(Into::into)
    }

    fn add(core: &Inner, key: &[u8], amount: i64) -> Result<()> {
        core.change_key(key, Change::add(amount))
    }

    fn add_many<'k>(core: &Inner, amounts: impl Iterator<Item = (&'k [u8], i64)>) -> Result<()> {
        core.change_keys(amounts.map(|(key, amount)| (key, Change::add(amount))))
    }

    fn add_absent(core: &Inner, keys: &[&[u8]]) -> Result<Vec<bool>> {
        core.add_absent(keys)
    }

    fn contains(core: &Inner, key: &[u8]) -> Result<bool> {
        Ok(core.sum(key)? > 0)
    }

    fn contains_many(core: &Inner, keys: &[&[u8]]) -> Result<Vec<bool>> {
        Ok(core.sum_many(keys)?.into_iter().map(|sum| sum > 0).collect())
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

impl CounterStructure for CountingLayout {
    fn count(core: &Inner, key: &[u8]) -> Result<u64> {
        core.sum(key).map(clamped)
    }

    fn count_many(core: &Inner, keys: &[&[u8]]) -> Result<Vec<u64>> {
        Ok(core.sum_many(keys)?.into_iter().map(clamped).collect())
    }
}

impl Configuration for Config {
    crate::schema::configuration!(KIND);

    fn log_bytes_best(&self) -> u64 {
        Self::log_bytes_best(self)
    }

    fn shared_ram_bytes(&self) -> u64 {
        Self::shared_ram_bytes(self)
    }

    fn operation_costs(&self) -> Result<OperationCosts> {
        self.validate()?;
        Ok(Self::operation_costs(self))
    }

    fn describe(&self) -> Description {
        let keys = match self.keys {
            Keys::Whole(bytes) => format!("whole keys of {bytes} bytes"),
            Keys::Fingerprints(bytes) => format!("fingerprints of {bytes} bytes"),
        };
        let number = |value: u32| ParameterValue::Count(value.into());
        Description {
            entries_capacity: self.q,
            when_full: "grow".into(),
            parameters: vec![
                ("block_pages", number(self.block_pages)),
                ("k", number(self.k)),
                ("buffer_entries", ParameterValue::Count(self.buffer_entries)),
                ("change_permille", number(self.change_permille)),
            ],
            shape: format!(
                "{}, {keys}, buffers of {} keys for {} data blocks",
                self.discipline.name(),
                count(self.buffer_entries),
                count(self.blocks())
            ),
        }
    }
}
