//! The growing table as a [`GrowingStructure`], and its parts in the [`registry`](crate::registry).

use nandex_store::Volume;
use nandex_store::check::{Checker, Contents};
use nandex_store::checkpoint::CatalogEntry;

use super::check::check;
use super::model::{advise, parameters};
use super::{Config, GENERATION_KIND, Generations, KIND};
use crate::any::{Configuration, Description};
use crate::bufferhash::scan::SuperTables;
use crate::bufferhash::{self, Inner as Core};
use crate::grow::{GrowingStructure, Grows, Owner};
use crate::lookup::TableCache;
use crate::model::text::bytes;
use crate::model::{OperationCosts, PAGE_BYTES, Prediction, Requirements};
use crate::registry::{Family, Row};
use crate::scan::Scan;
use crate::write::snapshot_pages;
use crate::{OpenOptions, Result};

/// The row of a generation.
pub(crate) const GENERATION_ROW: Row = Row {
    kind: GENERATION_KIND,
    name: "generation",
    good_for: "Part of a growing BufferHash.",
    options: &[],
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

impl Grows for Generations {
    type Config = Config;
}

impl GrowingStructure for Generations {
    const KIND: &'static str = KIND;
    const NAME: &'static str = "growing BufferHash";
    const GOOD_FOR: &'static str =
        "Entries whose number nobody knows: a BufferHash that doubles and evicts nothing.";
    const OPTIONS: &'static [&'static str] = &["flush_threads", "read_depth", "cache_bytes"];
    const MERGES_INTO: &'static str = bufferhash::KIND;
    #[cfg(feature = "testing")]
    const TESTS: crate::testing::TableTests = super::testing::TESTS;
    #[cfg(feature = "testing")]
    const DECODERS: &'static [crate::testing::Decoder] = super::testing::DECODERS;

    fn widths(config: &Config) -> (usize, usize) {
        (config.first.key_bytes, config.first.value_bytes)
    }

    fn ram_bytes_max(config: &mut Config) -> &mut Option<u64> {
        &mut config.ram_bytes_max
    }

    fn tiny() -> Config {
        Config::tiny()
    }

    fn open_parts(
        volume: &Volume,
        name: &str,
        config: Config,
        opened: (OpenOptions, Option<TableCache>),
    ) -> Result<Self> {
        Self::open(volume, name, config, opened)
    }

    fn advise(requirements: &Requirements) -> Result<Prediction> {
        advise(requirements)
    }

    fn scan(owner: &Owner<Self>) -> impl Scan + '_ {
        SuperTables::new(|| {
            let held = owner.parts.keep();
            let mut newest_first: Vec<_> = owner.parts.cores().collect();
            newest_first.reverse();
            (newest_first, held)
        })
    }

    fn warm_up(&self) -> Result<()> {
        self.cores().try_for_each(Core::load_all_filters)
    }

    fn check(checker: &mut Checker, contents: &Contents, entry: &CatalogEntry) {
        check(checker, contents, entry);
    }
}

impl Configuration for Config {
    crate::schema::configuration!(KIND);

    /// The log suits generations of at least 32 super tables, since it keeps its length while the table grows.
    fn log_bytes_best(&self) -> u64 {
        self.log_bytes_best()
    }

    /// The costs once it has grown to 64 M entries, or as far as its RAM allows.
    fn operation_costs(&self) -> Result<OperationCosts> {
        self.costs(self.entries_capacity().min(ENTRIES_GROWN))
    }

    fn ram_bytes_with(&self, entries: u64) -> Option<u64> {
        Some(self.ram_bytes_with(entries))
    }

    fn flash_bytes_with(&self, entries: u64) -> Option<u64> {
        let first = self.first_for(entries)?;
        let snapshot_pages = first.shape().map_or(0, |shape| snapshot_pages(&shape));
        Some((first.ring_pages() + snapshot_pages) * PAGE_BYTES)
    }

    fn shared_ram_bytes(&self) -> u64 {
        crate::bufferhash::model::FIXED_RAM_BYTES
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
