//! BufferHash in the [`registry`](crate::registry).

use nandex_store::Volume;

use super::{BufferHash, Config, KIND, RuntimeOptions, check, model, refuse_chip};
use crate::Result;
use crate::any::{
    AnyConfig, AnyEntries, AnyEntriesPastDamage, AnyOptions, AnyTable, Configuration, Description,
    OpenTable,
};
use crate::model::text::bytes;
use crate::model::{OperationCosts, PAGE_BYTES, ParameterValue};
use crate::registry::{Family, Row, TableRow};
use crate::write::absorb::{AbsorbOptions, Absorbed, Versions, Watch};

/// BufferHash's row.
pub(crate) const ROW: Row = Row {
    kind: KIND,
    name: "BufferHash",
    good_for: "Each entry written once, a few bytes of RAM per entry, few reads for keys that are not there.",
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
        refuse_chip(entry)?;
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
    let config = config.of::<Config>()?.clone();
    BufferHash::create_with(volume, name, config, own(options)).map(Into::into)
}

fn open(volume: &Volume, name: &str, options: &AnyOptions) -> Result<AnyTable> {
    BufferHash::open_with(volume, name, own(options)).map(Into::into)
}

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

impl OpenTable for BufferHash {
    fn config(&self) -> AnyConfig {
        Self::config(self).clone().into()
    }

    fn iter(&self) -> AnyEntries<'_> {
        Box::new(Self::iter(self))
    }

    fn iter_past_damage(&self) -> AnyEntriesPastDamage<'_> {
        Box::new(Self::iter_past_damage(self))
    }

    fn warm_up(&self) -> Result<()> {
        self.load_filters()
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
