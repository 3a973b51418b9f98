//! The growing table as a [`GrowingStructure`], and its parts in the [`registry`](crate::registry).

use nandex_store::Volume;
use nandex_store::check::{Checker, Contents};
use nandex_store::checkpoint::CatalogEntry;

use super::check::check;
use super::config::{FIXED_RAM_BYTES, ram_bytes, shared_ram_bytes};
use super::model::{advise, parameters};
use super::{Config, KIND, TABLE_KIND, Tables};
use crate::any::{Configuration, Description};
use crate::grow::{GrowingStructure, Grows, Owner};
use crate::lookup::TableCache;
use crate::model::text::bytes;
use crate::model::{OperationCosts, PAGE_BYTES, Prediction, Requirements};
use crate::registry::{Family, Row};
use crate::scan::Scan;
use crate::slicehash;
use crate::slicehash::scan::Partitions;
use crate::{OpenOptions, Result, write};

/// The row of one of its tables.
pub(crate) const TABLE_ROW: Row = Row {
    kind: TABLE_KIND,
    name: "table of a growing SliceHash",
    good_for: "Part of a growing SliceHash.",
    options: &[],
    family: Family::Generation,
    check: |checker, contents, entry, progress| {
        slicehash::check(checker, contents, entry, progress);
        Ok(())
    },
    #[cfg(feature = "testing")]
    decoders: &[],
};

impl Grows for Tables {
    type Config = Config;
}

impl GrowingStructure for Tables {
    const KIND: &'static str = KIND;
    const NAME: &'static str = "growing SliceHash";
    const GOOD_FOR: &'static str = "Entries whose number nobody knows, one page read for any key: a SliceHash that doubles and evicts nothing.";
    const OPTIONS: &'static [&'static str] =
        &["flush_threads", "read_depth", "cache_bytes", "io_chunk_pages"];
    const MERGES_INTO: &'static str = slicehash::KIND;
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
        Partitions::new(|| owner.parts.core())
    }

    fn check(checker: &mut Checker, contents: &Contents, entry: &CatalogEntry) {
        check(checker, contents, entry);
    }
}

impl Configuration for Config {
    crate::schema::configuration!(KIND);

    /// The log keeps its length while the table grows, so it suits one size of the table.
    fn log_bytes_best(&self) -> u64 {
        Self::log_bytes_best(self)
    }

    fn operation_costs(&self) -> Result<OperationCosts> {
        self.first.operation_costs()
    }

    fn ram_bytes_with(&self, entries: u64) -> Option<u64> {
        Some(FIXED_RAM_BYTES + ram_bytes(&self.holding(entries)))
    }

    fn flash_bytes_with(&self, entries: u64) -> Option<u64> {
        let table = self.holding(entries);
        let snapshot_pages = table.shape().map_or(0, |shape| write::snapshot_pages(&shape));
        Some((table.slicetable_pages() + snapshot_pages) * PAGE_BYTES)
    }

    fn shared_ram_bytes(&self) -> u64 {
        shared_ram_bytes(&self.first)
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
