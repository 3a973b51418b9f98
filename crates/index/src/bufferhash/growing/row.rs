//! The growing table and its generations in the [`registry`](crate::registry).

use nandex_store::Volume;

use super::check::check;
use super::model::{advise, parameters};
use super::{Config, GENERATION_KIND, Growing, KIND};
use crate::any::{
    AnyConfig, AnyEntries, AnyEntriesPastDamage, AnyTable, Configuration, Description, OpenTable,
};
use crate::bufferhash;
use crate::model::text::bytes;
use crate::model::{OperationCosts, PAGE_BYTES};
use crate::registry::{Family, Row, TableRow};
use crate::write::absorb::Versions;
use crate::{OpenOptions, Result};

/// The growing table's row.
pub(crate) const ROW: Row = Row {
    kind: KIND,
    name: "growing BufferHash",
    good_for: "Entries whose number nobody knows: a BufferHash that doubles and evicts nothing.",
    family: Family::Table(TableRow {
        grows: true,
        is_baseline: false,
        merges_into: Some(bufferhash::KIND),
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

/// A generation's row.
pub(crate) const GENERATION_ROW: Row = Row {
    kind: GENERATION_KIND,
    name: "generation",
    good_for: "Part of a growing BufferHash.",
    family: Family::Generation,
    check: |checker, contents, entry, progress| {
        bufferhash::check(checker, contents, entry, progress);
        Ok(())
    },
    #[cfg(feature = "testing")]
    decoders: &[],
};

/// Entries of a table that has grown for a long time.
const ENTRIES_GROWN: u64 = 1 << 26;

fn create(
    volume: &Volume,
    name: &str,
    config: &AnyConfig,
    options: &OpenOptions,
) -> Result<AnyTable> {
    let config = config.of::<Config>()?.clone();
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

    /// That of generations of 32 super tables at least: the log keeps its length while the table grows.
    fn log_bytes_best(&self) -> u64 {
        self.log_bytes_best()
    }

    /// Once it has grown to 64 M entries, or as far as its RAM goes.
    fn operation_costs(&self) -> Result<OperationCosts> {
        self.costs(self.entries_capacity().min(ENTRIES_GROWN))
    }

    fn describe(&self) -> Description {
        let (super_tables, incarnations) = (self.first.super_tables, self.first.incarnations_max);
        let buffer = bytes(u64::from(self.first.buffer_pages) * PAGE_BYTES);
        let within = self
            .ram_bytes_max
            .map_or(String::new(), |most| format!("; all within {}", bytes(most)));
        Description {
            when_full: "grow".into(),
            entries_capacity: self.entries_capacity(),
            parameters: parameters(self),
            shape: format!(
                "first super tables: {super_tables}, {incarnations} incarnations, buffers of {buffer}{within}"
            ),
        }
    }

    fn growth_bytes_per_entry(&self) -> Option<f64> {
        let (first, limit) = (&self.first, self.ram_bytes_max);
        let incarnations = u64::from(first.super_tables) * u64::from(first.incarnations_max);
        let bytes = incarnations * u64::from(first.segment_pages()) * PAGE_BYTES;
        let entries = first.entries_capacity().max(1);
        limit.is_none().then(|| bytes as f64 / entries as f64)
    }
}

impl OpenTable for Growing {
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

    fn close(self: Box<Self>) -> Result<()> {
        Self::close(*self)
    }
}
