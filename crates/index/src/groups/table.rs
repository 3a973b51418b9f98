//! Tables of groups as [`Structure`]s.

use std::sync::Arc;

use nandex_store::check::{Checker, Contents};
use nandex_store::checkpoint::CatalogEntry;
use nandex_store::{Structure as Entry, Volume};

use super::check::check;
use super::model::advise;
use super::scan::Partitions;
use super::{GroupConfig, GroupModel, GroupStructure, Grouped, open};
use crate::any::{AnyConfig, Configuration, Description};
use crate::check::OnProgress;
use crate::model::text::bytes;
use crate::model::{OperationCosts, PAGE_BYTES, Prediction, Requirements};
use crate::options::FLUSH_THREADS;
use crate::registry::Row;
use crate::scan::Scan;
use crate::schema::{ParameterSpec, refusal};
use crate::structure::Structure;
use crate::structure::table::TableStructure;
use crate::write::{self, Core, Handle};
use crate::{OpenOptions, Result};

/// A hash table on flash from fixed-width keys to fixed-width values, whose pages are in groups.
pub type GroupTable<S> = Handle<Grouped<S>>;

impl<S: GroupStructure> GroupTable<S> {
    /// Returns the row of these tables, for the [`registry`](crate::registry).
    #[must_use]
    pub const fn row() -> Row {
        Row::table::<Grouped<S>>()
    }

    /// Returns its current statistics, in the structure's own terms.
    #[must_use]
    pub fn group_stats(&self) -> S::Stats {
        self.core.layout.own.stats(&self.maps())
    }

    /// Returns the current map of each partition.
    #[must_use]
    pub fn maps(&self) -> Vec<Arc<S::Map>> {
        let partitions = self.core.partitions.iter();
        partitions.map(|partition| Arc::clone(&partition.read().level)).collect()
    }
}

impl<S: GroupStructure> Structure for Grouped<S> {
    const KIND: &'static str = S::Config::KIND;
    const NAME: &'static str = S::NAME;
    const GOOD_FOR: &'static str = S::GOOD_FOR;
    const OPTIONS: &'static [&'static str] = &["flush_threads", "read_depth", "cache_bytes"];
    #[cfg(feature = "testing")]
    const DECODERS: &'static [crate::testing::Decoder] = S::DECODERS;

    type Config = S::Config;

    fn admit(volume: &Volume, config: &S::Config, _options: &OpenOptions) -> Result<u64> {
        let shape = config.common().shape()?;
        write::check_log(volume, &shape)?;
        Ok(write::snapshot_pages(&shape))
    }

    fn restore(volume: &Volume, entry: &Entry, options: OpenOptions) -> Result<Handle<Self>> {
        open::open(volume, entry, &options)
    }

    fn config(&self) -> &S::Config {
        &self.config
    }

    fn check(
        checker: &mut Checker,
        contents: &Contents,
        entry: &CatalogEntry,
        progress: &mut OnProgress<'_>,
    ) -> Result<()> {
        check::<S>(checker, contents, entry, progress);
        Ok(())
    }

    fn tiny() -> S::Config {
        S::Config::tiny()
    }
}

impl<S: GroupStructure> TableStructure for Grouped<S> {
    const GROWS: bool = true;
    #[cfg(feature = "testing")]
    const TESTS: crate::testing::TableTests = S::TESTS;

    fn advise(requirements: &Requirements) -> Result<Prediction> {
        advise::<S::Config>(requirements)
    }

    fn scan(core: &Arc<Core<Self>>) -> impl Scan + '_ {
        Partitions::new(core)
    }
}

impl<C: GroupModel> Configuration for C {
    fn kind(&self) -> &'static str {
        C::KIND
    }

    fn encode(&self) -> Vec<u8> {
        let mut out = Vec::new();
        self.put(&mut out);
        out
    }

    fn validate(&self) -> Result<()> {
        self.check()
    }

    fn specs(&self) -> &'static [ParameterSpec] {
        C::SPECS
    }

    fn values(&self) -> Vec<(String, String)> {
        let mut out = Vec::new();
        self.list("", &mut out);
        out
    }

    fn with(&self, name: &str, value: &str) -> Result<AnyConfig> {
        let mut config = *self;
        config.set(name, value).map_err(|reason| refusal(name, reason))?;
        Ok(config.into())
    }

    fn log_bytes_best(&self) -> u64 {
        self.common().log_bytes_best()
    }

    fn operation_costs(&self) -> Result<OperationCosts> {
        self.check()?;
        Ok(super::model::usual_costs(self))
    }

    fn ram_bytes_with(&self, entries: u64) -> Option<u64> {
        Some(super::model::ram_bytes_in_all(self, entries))
    }

    fn shared_ram_bytes(&self) -> u64 {
        self.ram().shared_bytes()
    }

    fn describe(&self) -> Description {
        let common = self.common();
        let buffer = bytes(u64::from(common.buffer_pages) * PAGE_BYTES);
        let within = common
            .ram_bytes_max
            .map_or(String::new(), |most| format!("; all within {}", bytes(most)));
        let shape = self.shape();
        Description {
            when_full: "grow".into(),
            entries_capacity: self.ram().entries_max(FLUSH_THREADS).min(1 << 48),
            parameters: super::model::parameters(self),
            shape: format!(
                "partitions: {}, buffers of {buffer}, {shape}{within}",
                common.partitions
            ),
        }
    }

    fn growth_bytes_per_entry(&self) -> Option<f64> {
        self.common().ram_bytes_max.is_none().then(|| self.flash_bytes_per_entry())
    }

    fn flash_bytes_with(&self, entries: u64) -> Option<u64> {
        super::model::flash_bytes(self, entries).ok()
    }
}
