//! SliceLSH as a [`Structure`].

use super::filter::BucketFilter;
use super::keys::BucketPlacing;
use super::placement::Placement;
use super::saved_filter::SavedFilter;
use super::stats;
use nandex_store::check::{Checker, Contents};
use nandex_store::checkpoint::CatalogEntry;
use nandex_store::shadow::Shadow;
use nandex_store::slice::SliceLayout;
use nandex_store::{Structure as Entry, Volume};
use std::sync::atomic::AtomicU64;

use super::{Config, KIND, SliceLsh, check, recover};
use crate::any::{AnyConfig, Configuration, Description, OpenNeighbors};
use crate::check::OnProgress;
use crate::model::text::count;
use crate::model::{OperationCosts, ParameterValue};
use crate::registry::{Family, NeighborsRow, Row};
use crate::schema::{FifoOrReject, Stored};
use crate::structure::Structure;
use crate::write::Handle;
use crate::{OpenOptions, Result};

/// SliceLSH's layout: a group of slicetables for each partition.
#[derive(Debug)]
pub struct SlicetableGroups {
    pub(super) config: Config,
    pub(super) io_chunk_pages: u32,
    pub(super) placing: BucketPlacing,
    pub(super) placement: Placement,
    pub(super) slices: SliceLayout,
    pub(super) shadow: Shadow,
    /// The filter of buckets in slicetables, if RAM is given for it.
    pub(super) filter: Option<BucketFilter>,
    pub(super) saved_filter: SavedFilter,
    /// The map updates in the last capture.
    pub(super) captured: AtomicU64,
    pub(super) counters: stats::DocumentCounters,
}

impl Structure for SlicetableGroups {
    const KIND: &'static str = KIND;
    const NAME: &'static str = "SliceLSH";
    const GOOD_FOR: &'static str = "Documents that may be alike, by bucket keys: one page read for each hash table, all at once.";
    const OPTIONS: &'static [&'static str] =
        &["flush_threads", "read_depth", "filter_bytes", "io_chunk_pages"];
    #[cfg(feature = "testing")]
    const DECODERS: &'static [crate::testing::Decoder] = super::testing::DECODERS;

    type Config = Config;

    fn admit(volume: &Volume, config: &Config, _options: &OpenOptions) -> Result<u64> {
        recover::check_log(volume, config).map(|()| config.pages())
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

/// SliceLSH's row.
pub(crate) const ROW: Row = Row::of::<SlicetableGroups>(Family::Neighbors(NeighborsRow {
    create: |volume, name, config, options| {
        let config = config.of::<Config>()?.clone();
        SliceLsh::create_with(volume, name, config, options.clone()).map(Into::into)
    },
    open: |volume, name, options| {
        SliceLsh::open_with(volume, name, options.clone()).map(Into::into)
    },
    advise: |requirements| Config::advised(requirements).map(Into::into),
    tiny: || Config::tiny().into(),
    #[cfg(feature = "testing")]
    testing: super::testing::TESTS,
}));

impl OpenNeighbors for SliceLsh {
    fn config(&self) -> AnyConfig {
        Self::config(self).clone().into()
    }

    fn family(&self) -> &[u8] {
        &Self::config(self).family
    }

    fn close(self: Box<Self>) -> Result<()> {
        Self::close(*self)
    }
}

impl Configuration for Config {
    crate::schema::configuration!(KIND);

    fn log_bytes_best(&self) -> u64 {
        Self::log_bytes_best(self)
    }

    fn operation_costs(&self) -> Result<OperationCosts> {
        self.validate()?;
        Ok(self.document_costs())
    }

    fn describe(&self) -> Description {
        let number = |value: u32| ParameterValue::Count(value.into());
        let placed = if self.placement().is_striped() {
            "striped, since no channels are known".to_owned()
        } else {
            format!("each on channels of its own, of {}", self.channels)
        };
        Description {
            when_full: FifoOrReject::from(self.policy).show(),
            entries_capacity: u64::from(self.partitions) * u64::from(self.entries_max),
            parameters: vec![
                ("tables", number(self.tables)),
                ("partitions", number(self.partitions)),
                ("incarnations", ParameterValue::Number(self.incarnations())),
                ("buffer_entries", number(self.buffer_entries)),
                ("slices", number(self.slices)),
                ("bucket_ids_max", number(self.bucket_ids_max)),
                ("channels", number(self.channels)),
                ("chunk_pages", number(self.chunk_pages)),
            ],
            shape: format!(
                "{} tables {placed}; partitions: {}, k = {:.1} buffers of {} entries, {} ids of a bucket",
                self.tables,
                self.partitions,
                self.incarnations(),
                count(self.buffer_entries.into()),
                self.bucket_ids_max
            ),
        }
    }
}
