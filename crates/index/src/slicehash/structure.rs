//! SliceHash as a [`Structure`].

use super::layout::Slicing;
use super::older::Older;
use super::slice::SliceLayout;
use super::{filter, front};
use crate::write::TableShape;
use nandex_store::hash::KeyHasher;
use nandex_store::shadow::Shadow;
use std::sync::Arc;
use std::sync::Mutex;

use nandex_store::check::{Checker, Contents};
use nandex_store::checkpoint::CatalogEntry;
use nandex_store::{Structure as Entry, Volume};

use nandex_store::schedule::Channels;

use super::scan::Partitions;
use super::{Config, Inner, KIND, check, model, recover};
use crate::any::{AnyConfig, Configuration, Description};
use crate::check::OnProgress;
use crate::model::text::bytes;
use crate::model::{OperationCosts, PAGE_BYTES, ParameterValue, Prediction, Requirements};
use crate::scan::Scan;
use crate::schema::{FifoOrReject, Stored};
use crate::structure::Structure;
use crate::structure::table::{Merges, TableStructure};
use crate::write::{self, Handle};
use crate::{OpenOptions, Result};

/// SliceHash's layout: slicetables, and a front table in front of them.
#[derive(Debug)]
pub struct Slicetables {
    pub(super) config: Config,
    pub(super) io_chunk_pages: u32,
    pub(super) shape: TableShape,
    pub(super) hasher: KeyHasher,
    pub(super) slices: SliceLayout,
    pub(super) slicing: Slicing,
    pub(super) shadow: Shadow,
    pub(super) front: front::Front,
    /// Held while both maps, shadow and front, change or are captured.
    pub(super) maps: Mutex<()>,
    pub(super) captured: recover::Captured,
    pub(super) filters: filter::Filters,
    /// The older table; `None` if this is not part of a growing table.
    pub(super) older: Option<Older>,
}

impl Structure for Slicetables {
    const KIND: &'static str = KIND;
    const NAME: &'static str = "SliceHash";
    const GOOD_FOR: &'static str =
        "One page read for any key, a fraction of the RAM, many more bytes written.";
    const OPTIONS: &'static [&'static str] =
        &["flush_threads", "read_depth", "cache_bytes", "filter_bytes", "io_chunk_pages"];
    #[cfg(feature = "testing")]
    const DECODERS: &'static [crate::testing::Decoder] = super::testing::DECODERS;

    type Config = Config;

    fn admit(volume: &Volume, config: &Config, _options: &OpenOptions) -> Result<u64> {
        config.check_array(&volume.device().geometry())?;
        let shape = config.shape()?;
        write::check_log(volume, &shape)?;
        Ok(config.slicetable_pages() + config.front_pages() + write::snapshot_pages(&shape))
    }

    fn restore(volume: &Volume, entry: &Entry, options: OpenOptions) -> Result<Handle<Self>> {
        recover::open(volume, entry, options, None)
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

impl TableStructure for Slicetables {
    const MERGES: bool = true;
    #[cfg(feature = "testing")]
    const TESTS: crate::testing::TableTests = super::testing::TESTS;

    fn advise(requirements: &Requirements) -> Result<Prediction> {
        model::advise(requirements)
    }

    fn scan(core: &Arc<Inner>) -> impl Scan + '_ {
        Partitions::new(|| Arc::clone(core))
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

    fn shared_ram_bytes(&self) -> u64 {
        crate::slicehash::model::SHARED_RAM_BYTES
    }

    fn operation_costs(&self) -> Result<OperationCosts> {
        Self::operation_costs(self)
    }

    fn aligned_to(&self, channels: &Channels) -> Option<AnyConfig> {
        (channels.count() > 1).then(|| Self::aligned_to(*self, channels).into())
    }

    fn ram_bytes_with(&self, _entries: u64) -> Option<u64> {
        Some(model::ram_bytes(self))
    }

    fn describe(&self) -> Description {
        let &Self { partitions, slices, .. } = self;
        let incarnations = Self::incarnations(self).unwrap_or(0.0);
        let buffer = bytes(u64::from(self.buffer_pages) * PAGE_BYTES);
        let count = |number: u32| ParameterValue::Count(number.into());
        Description {
            when_full: FifoOrReject::from(self.policy).show(),
            entries_capacity: u64::from(partitions) * u64::from(self.entries_max),
            parameters: vec![
                ("partitions", count(partitions)),
                ("incarnations", ParameterValue::Number(incarnations)),
                ("pages_per_buffer", count(self.buffer_pages)),
                ("slices", count(slices)),
                ("slice_parts", count(self.slice_parts)),
                ("devices", count(self.devices.max(self.slice_parts))),
                ("front_runs", count(self.front_runs)),
            ],
            shape: format!(
                "partitions: {partitions}, slices: {slices}, k = {incarnations:.1} buffers of {buffer}{}",
                self.shown_array()
            ),
        }
    }
}

impl Config {
    /// Describes the use of several devices, if it distinguishes them.
    fn shown_array(&self) -> String {
        let shown = |design, devices| format!("; {design}-oriented on {devices} devices");
        match (self.devices, self.slice_parts) {
            (1, 1) => String::new(),
            (devices, 1) => shown("throughput", devices),
            (_, parts) => shown("memory", parts),
        }
    }
}
