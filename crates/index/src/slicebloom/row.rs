//! SliceBloom in the [`registry`](crate::registry).

use nandex_store::Volume;
use nandex_store::schedule::Channels;

use super::{Config, KIND, RuntimeOptions, SliceBloom, check};
use crate::any::{AnyConfig, AnyFilter, AnyOptions, Configuration, Description, OpenFilter};
use crate::model::text::count;
use crate::model::{OperationCosts, ParameterValue};
use crate::registry::{Family, FilterRow, Row};
use crate::{Counter, Result};

/// SliceBloom's row.
pub(crate) const ROW: Row = Row {
    kind: KIND,
    name: "SliceBloom",
    good_for: "A sliding window of recent keys on flash, in a tenth of a bit of RAM each. It deletes nothing; for sets a \
               cascade filter is better.",
    family: Family::Filter(FilterRow {
        deletes: false,
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
    SliceBloom::create_with(volume, name, *config.of::<Config>()?, own(options)).map(Into::into)
}

fn open(volume: &Volume, name: &str, options: &AnyOptions) -> Result<AnyFilter> {
    SliceBloom::open_with(volume, name, own(options)).map(Into::into)
}

/// Its own options, or default ones.
fn own(options: &AnyOptions) -> RuntimeOptions {
    let default = RuntimeOptions::default();
    let read_depth = options.read_depth.unwrap_or(default.read_depth);
    options.of().copied().unwrap_or(RuntimeOptions { read_depth, ..default })
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
        Ok(self.usual_costs())
    }

    fn aligned_to(&self, channels: &Channels) -> Option<AnyConfig> {
        (channels.count() > 1).then(|| Self::aligned_to(*self, channels).into())
    }

    fn describe(&self) -> Description {
        let number = |value: u32| ParameterValue::Count(value.into());
        Description {
            when_full: "forget the oldest keys".into(),
            entries_capacity: self.window_keys(),
            parameters: vec![
                ("partitions", number(self.partitions)),
                ("buffer_keys", number(self.buffer_keys)),
                ("bits_per_key", number(self.bits_per_key)),
                ("hashes", number(self.hashes)),
                ("incarnations", number(self.incarnations)),
            ],
            shape: format!(
                "a window of {} keys: partitions: {}, buffers of {} keys, {} incarnations, {} bits and {} reads a key",
                count(self.window_keys()),
                self.partitions,
                count(self.buffer_keys.into()),
                self.incarnations,
                self.bits_per_key,
                self.hashes
            ),
        }
    }
}

impl OpenFilter for SliceBloom {
    fn config(&self) -> AnyConfig {
        (*Self::config(self)).into()
    }

    fn counter(&self) -> Option<&(dyn Counter + 'static)> {
        None
    }

    fn close(self: Box<Self>) -> Result<()> {
        Self::close(*self)
    }
}
