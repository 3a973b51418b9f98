//! The multi-level index in the [`registry`](crate::registry).

use nandex_store::Volume;

use super::config::FLUSH_THREADS;
use super::model::{advise, parameters};
use super::{Config, KIND, Multilevel, RuntimeOptions, check};
use crate::Result;
use crate::any::{
    AnyConfig, AnyEntries, AnyEntriesPastDamage, AnyOptions, AnyTable, Configuration, Description,
    OpenTable,
};
use crate::model::text::bytes;
use crate::model::{OperationCosts, PAGE_BYTES};
use crate::registry::{Family, Row, TableRow};

/// The row of the multi-level index.
pub(crate) const ROW: Row = Row {
    kind: KIND,
    name: "multi-level index",
    good_for: "A comparison with RHIK: the index of older key-value drives, which reads a page for each of its levels.",
    family: Family::Table(TableRow {
        grows: true,
        is_baseline: true,
        merges_into: None,
        create,
        open,
        advise,
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
    Multilevel::create_with(volume, name, *config.of::<Config>()?, own(options)).map(Into::into)
}

fn open(volume: &Volume, name: &str, options: &AnyOptions) -> Result<AnyTable> {
    Multilevel::open_with(volume, name, own(options)).map(Into::into)
}

/// Its own options, or default ones.
fn own(options: &AnyOptions) -> RuntimeOptions {
    let default = RuntimeOptions::default();
    let read_depth = options.read_depth.unwrap_or(default.read_depth);
    let flush_threads = options.flush_threads.unwrap_or(default.flush_threads);
    let usual = RuntimeOptions { read_depth, flush_threads, ..default };
    let mut own = options.of().copied().unwrap_or(usual);
    if own.cache_bytes == 0 {
        own.cache_bytes = options.cache_bytes;
    }
    own.ram_bytes_max = own.ram_bytes_max.or(options.ram_bytes_max);
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
        self.usual_costs()
    }

    fn describe(&self) -> Description {
        let buffer = bytes(u64::from(self.buffer_pages) * PAGE_BYTES);
        let within = self
            .ram_bytes_max
            .map_or(String::new(), |most| format!("; all within {}", bytes(most)));
        Description {
            when_full: "grow".into(),
            entries_capacity: self.entries_max(FLUSH_THREADS).min(1 << 48),
            parameters: parameters(self),
            shape: format!(
                "partitions: {}, buffers of {buffer}, levels from {} pages on, {} of RAM for pages{within}",
                self.partitions,
                self.first_pages,
                bytes(self.page_cache_bytes)
            ),
        }
    }

    fn growth_bytes_per_entry(&self) -> Option<f64> {
        self.ram_bytes_max.is_none().then(|| self.flash_bytes_per_entry())
    }
}

impl OpenTable for Multilevel {
    fn config(&self) -> AnyConfig {
        (*Self::config(self)).into()
    }

    fn iter(&self) -> AnyEntries<'_> {
        Box::new(Self::iter(self))
    }

    fn iter_past_damage(&self) -> AnyEntriesPastDamage<'_> {
        Box::new(Self::iter_past_damage(self))
    }

    fn close(self: Box<Self>) -> Result<()> {
        Self::close(*self)
    }
}
