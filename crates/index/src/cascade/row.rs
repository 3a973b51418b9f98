//! The cascade filter in the [`registry`](crate::registry).

use nandex_store::Volume;

use super::{Cascade, Config, KIND, RuntimeOptions, WhenFull, check};
use crate::any::{AnyConfig, AnyFilter, AnyOptions, Configuration, Description, OpenFilter};
use crate::model::text::count;
use crate::model::{OperationCosts, ParameterValue};
use crate::registry::{Family, FilterRow, Row};
use crate::{Counter, Result};

/// The cascade filter's row.
pub(crate) const ROW: Row = Row {
    kind: KIND,
    name: "cascade filter",
    good_for: "Sets and counts of keys in about 11 bits each, larger than RAM, with a known rate of false positives.",
    family: Family::Filter(FilterRow {
        deletes: true,
        create,
        open,
        advise: |requirements| Config::advised(requirements).map(Into::into),
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
) -> Result<AnyFilter> {
    let config = *config.of::<Config>()?;
    config.validate()?;
    let options = own(options).map_or_else(|| RuntimeOptions::suited(&config), Ok)?;
    Cascade::create_with(volume, name, config, options).map(Into::into)
}

fn open(volume: &Volume, name: &str, options: &AnyOptions) -> Result<AnyFilter> {
    let opened = match own(options) {
        Some(options) => Cascade::open_with(volume, name, options),
        None => Cascade::open(volume, name),
    };
    opened.map(Into::into)
}

fn own(options: &AnyOptions) -> Option<RuntimeOptions> {
    options.of().copied()
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

    /// With all levels in use: a lookup reads one page of each.
    fn operation_costs(&self) -> Result<OperationCosts> {
        let costs = self.costs()?;
        Ok(OperationCosts {
            reads_per_hit: costs.levels.into(),
            reads_per_miss: costs.levels.into(),
            insert_read_bytes: costs.read_bytes_per_key,
            insert_write_bytes: costs.written_bytes_per_key + costs.log_bytes_per_key,
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
            when_full: match self.when_full {
                WhenFull::Grow => "grow".into(),
                WhenFull::Refuse => "refuse".into(),
            },
            parameters: vec![
                ("fan_out", fan_out.unwrap_or(ParameterValue::None)),
                ("buffer_entries", ParameterValue::Count(self.buffer_entries)),
                ("counts", ParameterValue::Flag(self.counts)),
            ],
            shape: format!("{levels}, buffers of {} keys", count(self.buffer_entries)),
        }
    }
}

impl OpenFilter for Cascade {
    fn config(&self) -> AnyConfig {
        (*Self::config(self)).into()
    }

    fn counter(&self) -> Option<&(dyn Counter + 'static)> {
        Some(self)
    }

    fn close(self: Box<Self>) -> Result<()> {
        Self::close(*self)
    }
}
