//! SliceHash in the [`registry`](crate::registry).

use nandex_store::Volume;
use nandex_store::schedule::Channels;

use super::{Config, KIND, Policy, RuntimeOptions, SliceHash, check, model};
use crate::Result;
use crate::any::{
    AnyConfig, AnyEntries, AnyEntriesPastDamage, AnyOptions, AnyTable, Configuration, Description,
    OpenTable,
};
use crate::model::text::bytes;
use crate::model::{OperationCosts, PAGE_BYTES, ParameterValue};
use crate::registry::{Family, Row, TableRow};
use crate::write::absorb::{AbsorbOptions, Absorbed, Versions, Watch};

/// SliceHash's row.
pub(crate) const ROW: Row = Row {
    kind: KIND,
    name: "SliceHash",
    good_for: "One page read for any key, a fraction of the RAM, many more bytes written.",
    family: Family::Table(TableRow {
        grows: false,
        is_baseline: false,
        merges_into: Some(KIND),
        create,
        open,
        advise: model::advise,
        tiny: || Config::tiny().into(),
        #[cfg(feature = "testing")]
        testing: super::testing::TESTS,
    }),
    check: |checker, contents, entry, progress| {
        check(checker, contents, entry, progress);
        Ok(())
    },
    #[cfg(feature = "testing")]
    decoders: super::testing::DECODERS,
};

fn create(
    volume: &Volume,
    name: &str,
    config: &AnyConfig,
    options: &AnyOptions,
) -> Result<AnyTable> {
    SliceHash::create_with(volume, name, *config.of::<Config>()?, own(options)).map(Into::into)
}

fn open(volume: &Volume, name: &str, options: &AnyOptions) -> Result<AnyTable> {
    SliceHash::open_with(volume, name, own(options)).map(Into::into)
}

/// Its own options, or default ones.
pub(super) fn own(options: &AnyOptions) -> RuntimeOptions {
    let default = RuntimeOptions::default();
    let read_depth = options.read_depth.unwrap_or(default.read_depth);
    let flush_threads = options.flush_threads.unwrap_or(default.flush_threads);
    let usual = RuntimeOptions { read_depth, flush_threads, ..default };
    let mut own = options.of().cloned().unwrap_or(usual);
    if own.cache_bytes == 0 {
        own.cache_bytes = options.cache_bytes;
    }
    own
}

impl Configuration for Config {
    fn kind(&self) -> &'static str {
        KIND
    }

    fn encode(&self) -> Vec<u8> {
        Self::encode(self)
    }

    fn validate(&self) -> Result<()> {
        Self::validate(self)
    }

    fn log_bytes_best(&self) -> u64 {
        Self::log_bytes_best(self)
    }

    fn operation_costs(&self) -> Result<OperationCosts> {
        Self::operation_costs(self)
    }

    fn aligned_to(&self, channels: &Channels) -> Option<AnyConfig> {
        (channels.count() > 1).then(|| Self::aligned_to(*self, channels).into())
    }

    fn describe(&self) -> Description {
        let &Self { partitions, slices, .. } = self;
        let incarnations = Self::incarnations(self).unwrap_or(0.0);
        let buffer = bytes(u64::from(self.buffer_pages) * PAGE_BYTES);
        let count = |number: u32| ParameterValue::Count(number.into());
        Description {
            when_full: match self.policy {
                Policy::Fifo => "fifo".into(),
                Policy::Reject => "reject".into(),
            },
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
    /// What several devices are for, if it tells them apart.
    fn shown_array(&self) -> String {
        let shown = |design, devices| format!("; {design}-oriented on {devices} devices");
        match (self.devices, self.slice_parts) {
            (1, 1) => String::new(),
            (devices, 1) => shown("throughput", devices),
            (_, parts) => shown("memory", parts),
        }
    }
}

impl OpenTable for SliceHash {
    fn config(&self) -> AnyConfig {
        (*Self::config(self)).into()
    }

    fn iter(&self) -> AnyEntries<'_> {
        Box::new(Self::iter(self))
    }

    fn iter_past_damage(&self) -> AnyEntriesPastDamage<'_> {
        Box::new(Self::iter_past_damage(self))
    }

    fn versions(&self) -> Option<Versions<'_>> {
        Some(Self::versions(self))
    }

    fn absorb(
        &mut self,
        others: &[Versions<'_>],
        options: &AbsorbOptions,
        watch: &Watch<'_>,
    ) -> Result<Absorbed> {
        self.absorb_watched(others, options, watch)
    }

    fn close(self: Box<Self>) -> Result<()> {
        Self::close(*self)
    }
}
