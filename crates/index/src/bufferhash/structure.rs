//! BufferHash as a [`Structure`].

use super::clean::Cleaning;
use super::columns::FilterColumns;
use super::config;
use super::filter::IncarnationFilter;
use super::older::Older;
use super::rings::Rings;
use crate::write::TableShape;
use nandex_store::hash::KeyHasher;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;

use nandex_store::check::{Checker, Contents};
use nandex_store::checkpoint::CatalogEntry;
use nandex_store::{Structure as Entry, Volume};

use super::scan::SuperTables;
use super::{Config, Inner, KIND, check, model, recover, refuse_chip, rings};
use crate::any::{Configuration, Description};
use crate::check::OnProgress;
use crate::model::text::bytes;
use crate::model::{OperationCosts, PAGE_BYTES, ParameterValue, Prediction, Requirements};
use crate::scan::Scan;
use crate::structure::Structure;
use crate::structure::table::{Merges, TableStructure};
use crate::write::{self, Handle};
use crate::{OpenOptions, Policy, Result};

/// BufferHash's layout: incarnations in a ring, and their filters.
#[derive(Debug)]
pub struct Incarnations {
    pub(super) config: Config,
    pub(super) ranking: config::Ranking,
    pub(super) shape: TableShape,
    pub(super) hasher: KeyHasher,
    pub(super) filter: IncarnationFilter,
    pub(super) rings: Rings,
    /// The number of evictions that partial discards may still make, in thousandths.
    pub(super) cascade_credit: AtomicU64,
    /// The priority threshold, if the policy has one.
    pub(super) threshold: AtomicU64,
    /// The state of cleaning.
    pub(super) cleaning: Cleaning,
    /// The columns of all filters.
    pub(super) columns: FilterColumns,
    /// The generations before this one, in a growing table.
    pub(super) older: Older,
}

impl Structure for Incarnations {
    const KIND: &'static str = KIND;
    const NAME: &'static str = "BufferHash";
    const GOOD_FOR: &'static str = "Each entry written once, a few bytes of RAM per entry, few reads for keys that are not there.";
    const OPTIONS: &'static [&'static str] = &["flush_threads", "read_depth", "cache_bytes"];
    #[cfg(feature = "testing")]
    const DECODERS: &'static [crate::testing::Decoder] = super::testing::DECODERS;

    type Config = Config;

    fn admit(volume: &Volume, config: &Config, options: &OpenOptions) -> Result<u64> {
        let shape = config.shape()?;
        write::check_log(volume, &shape)?;
        rings::grow_chip(volume, config, options)?;
        Ok(config.volume_ring_pages() + write::snapshot_pages(&shape))
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
        refuse_chip(entry)?;
        check(checker, contents, entry, progress);
        Ok(())
    }

    fn tiny() -> Config {
        Config::tiny()
    }
}

impl TableStructure for Incarnations {
    const MERGES: bool = true;
    #[cfg(feature = "testing")]
    const TESTS: crate::testing::TableTests = super::testing::TESTS;

    fn advise(requirements: &Requirements) -> Result<Prediction> {
        model::advise(requirements)
    }

    fn scan(core: &Arc<Inner>) -> impl Scan + '_ {
        SuperTables::new(|| (vec![&**core], ()))
    }

    fn warm_up(core: &Inner) -> Result<()> {
        core.load_all_filters()
    }

    /// The policy LRU has no cache: entries that are used stay because their uses read flash, which a cache would
    /// prevent.
    fn has_cache(config: &Config) -> bool {
        config.policy != Policy::Lru
    }

    fn counts_keys(config: &Config) -> bool {
        config.counts_keys()
    }

    fn merges(core: &Inner) -> Option<&dyn Merges> {
        Some(core)
    }
}

impl Configuration for Config {
    crate::schema::configuration!(KIND);

    fn log_bytes_best(&self) -> u64 {
        Self::log_bytes_best(self)
    }

    fn operation_costs(&self) -> Result<OperationCosts> {
        Self::operation_costs(self)
    }

    fn ram_bytes_with(&self, _entries: u64) -> Option<u64> {
        Some(self.ram_bytes_in_all())
    }

    fn shared_ram_bytes(&self) -> u64 {
        self.ram_bytes_in_all() - self.ram_bytes()
    }

    fn describe(&self) -> Description {
        let (super_tables, incarnations) = (self.super_tables, self.incarnations());
        let buffer = bytes(u64::from(self.buffer_pages) * PAGE_BYTES);
        Description {
            when_full: self.policy.to_string(),
            entries_capacity: self.entries_capacity(),
            parameters: vec![
                ("super_tables", ParameterValue::Count(super_tables.into())),
                ("incarnations", ParameterValue::Count(incarnations)),
                ("pages_per_buffer", ParameterValue::Count(self.buffer_pages.into())),
                ("pages_per_segment", ParameterValue::Count(self.segment_pages().into())),
            ],
            shape: format!(
                "super tables: {super_tables}, k = {incarnations} incarnations, buffers of {buffer}"
            ),
        }
    }
}
