//! The counting table in the [`registry`](crate::registry).

use nandex_store::Volume;

use super::{Config, Counting, KIND, Keys, RuntimeOptions, check};
use crate::any::{AnyConfig, AnyFilter, AnyOptions, Configuration, Description, OpenFilter};
use crate::model::text::count;
use crate::model::{OperationCosts, ParameterValue};
use crate::registry::{Family, FilterRow, Row};
use crate::{Counter, Result};

/// The counting table's row.
pub(crate) const ROW: Row = Row {
    kind: KIND,
    name: "counting table",
    good_for: "Exact counts of keys, larger than RAM: words, links, users. One page read for each count.",
    family: Family::Filter(FilterRow {
        deletes: true,
        create,
        open,
        advise: |requirements| Config::advised(requirements).map(Into::into),
        // A filter takes keys of any width.
        tiny: || Config { keys: Keys::Fingerprints(8), ..Config::tiny() }.into(),
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
    let options = own(options).unwrap_or_else(|| RuntimeOptions::suited(&config));
    Counting::create_with(volume, name, config, options).map(Into::into)
}

fn open(volume: &Volume, name: &str, options: &AnyOptions) -> Result<AnyFilter> {
    let opened = match own(options) {
        Some(options) => Counting::open_with(volume, name, options),
        None => Counting::open(volume, name),
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

impl OpenFilter for Counting {
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
