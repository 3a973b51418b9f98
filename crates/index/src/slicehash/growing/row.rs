//! The growing SliceHash and its tables in the [`registry`](crate::registry).

use nandex_store::Volume;

use super::check::check;
use super::model::{advise, parameters};
use super::{Config, Growing, KIND, TABLE_KIND};
use crate::any::{
    AnyConfig, AnyEntries, AnyEntriesPastDamage, AnyTable, Configuration, Description, OpenTable,
};
use crate::model::text::bytes;
use crate::model::{OperationCosts, PAGE_BYTES};
use crate::registry::{Family, Row, TableRow};
use crate::slicehash;
use crate::write::absorb::Versions;
use crate::{OpenOptions, Result};

/// The growing SliceHash's row.
pub(crate) const ROW: Row = Row {
    kind: KIND,
    name: "growing SliceHash",
    good_for: "Entries whose number nobody knows, one page read for any key: a SliceHash that doubles and evicts nothing.",
    family: Family::Table(TableRow {
        grows: true,
        is_baseline: false,
        merges_into: Some(slicehash::KIND),
        create,
        open,
        advise,
        tiny: || Config::tiny().into(),
        #[cfg(feature = "testing")]
        testing: super::testing::TESTS,
    }),
    check: |checker, contents, entry, _| {
        check(checker, contents, entry);
        Ok(())
    },
    #[cfg(feature = "testing")]
    decoders: super::testing::DECODERS,
};

/// A table's row.
pub(crate) const TABLE_ROW: Row = Row {
    kind: TABLE_KIND,
    name: "table of a growing SliceHash",
    good_for: "Part of a growing SliceHash.",
    family: Family::Generation,
    check: |checker, contents, entry, progress| {
        slicehash::check(checker, contents, entry, progress);
        Ok(())
    },
    #[cfg(feature = "testing")]
    decoders: &[],
};

fn create(
    volume: &Volume,
    name: &str,
    config: &AnyConfig,
    options: &OpenOptions,
) -> Result<AnyTable> {
    let config = *config.of::<Config>()?;
    let ram_bytes_max = options.ram_bytes_max.or(config.ram_bytes_max);
    let config = Config { ram_bytes_max, ..config };
    Growing::create_with(volume, name, config, options.clone()).map(Into::into)
}

fn open(volume: &Volume, name: &str, options: &OpenOptions) -> Result<AnyTable> {
    let table = Growing::open_within(volume, name, options.ram_bytes_max, options.clone());
    table.map(Into::into)
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

    /// The log keeps its length while the table grows, so it is that of a table of some size.
    fn log_bytes_best(&self) -> u64 {
        Self::log_bytes_best(self)
    }

    fn operation_costs(&self) -> Result<OperationCosts> {
        self.first.operation_costs()
    }

    fn describe(&self) -> Description {
        let buffer = bytes(u64::from(self.first.buffer_pages) * PAGE_BYTES);
        let within = self
            .ram_bytes_max
            .map_or(String::new(), |most| format!("; all within {}", bytes(most)));
        Description {
            when_full: "grow".into(),
            entries_capacity: self.entries_capacity(),
            parameters: parameters(self),
            shape: format!(
                "first partitions: {}, slices: {}, buffers of {buffer}{within}",
                self.first.partitions, self.first.slices
            ),
        }
    }

    fn growth_bytes_per_entry(&self) -> Option<f64> {
        let slicetable_bytes = (u64::from(self.first.block_pages()) * PAGE_BYTES) as f64;
        self.ram_bytes_max.is_none().then_some(slicetable_bytes / f64::from(self.first.entries_max))
    }
}

impl OpenTable for Growing {
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

    fn close(self: Box<Self>) -> Result<()> {
        Self::close(*self)
    }
}
