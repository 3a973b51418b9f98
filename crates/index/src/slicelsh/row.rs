//! SliceLSH in the [`registry`](crate::registry).

use nandex_store::Volume;

use super::{Config, KIND, Policy, RuntimeOptions, SliceLsh, check};
use crate::Result;
use crate::any::{AnyConfig, AnyNeighbors, AnyOptions, Configuration, Description, OpenNeighbors};
use crate::model::text::count;
use crate::model::{OperationCosts, ParameterValue};
use crate::registry::{Family, NeighborsRow, Row};

/// SliceLSH's row.
pub(crate) const ROW: Row = Row {
    kind: KIND,
    name: "SliceLSH",
    good_for: "Documents that may be alike, by bucket keys: one page read for each hash table, all at once.",
    family: Family::Neighbors(NeighborsRow {
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
) -> Result<AnyNeighbors> {
    let config = config.of::<Config>()?.clone();
    SliceLsh::create_with(volume, name, config, own(options)).map(Into::into)
}

fn open(volume: &Volume, name: &str, options: &AnyOptions) -> Result<AnyNeighbors> {
    SliceLsh::open_with(volume, name, own(options)).map(Into::into)
}

/// Its own options, or default ones.
fn own(options: &AnyOptions) -> RuntimeOptions {
    let default = RuntimeOptions::default();
    let read_depth = options.read_depth.unwrap_or(default.read_depth);
    options.of().cloned().unwrap_or(RuntimeOptions { read_depth, ..default })
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
            when_full: match self.policy {
                Policy::Fifo => "fifo".into(),
                Policy::Reject => "reject".into(),
            },
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
