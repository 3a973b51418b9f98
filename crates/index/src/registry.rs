//! The registry: one row for each kind of structure that a volume can hold.
//!
//! A new structure is a folder and one line in the list of rows. All code that treats structures alike walks over
//! [`rows`]: [`AnyTable`], [`AnyFilter`] and [`AnyNeighbors`], [`check`](crate::check()), [`compare`](crate::compare),
//! the command, the benchmark and the test harnesses. A row is a `const` in the structure's own folder, made of
//! function pointers; the types that it erases are in [`any`](crate::AnyConfig).
//!
//! A structure of another crate is made of [`raw`](crate::raw), and [`add`] puts its row behind these: for experiments
//! and tests, whose baselines and made-up structures are no part of what users get.

use std::fmt;
use std::sync::{PoisonError, RwLock};

use nandex_store::Volume;
use nandex_store::check::{Checker, Contents};
use nandex_store::checkpoint::CatalogEntry;

use crate::any::{AnyConfig, AnyFilter, AnyNeighbors, AnyOptions, AnyTable};
use crate::check::OnProgress;
use crate::model::{FilterRequirements, NeighborsRequirements, Prediction, Requirements};
#[cfg(feature = "testing")]
use crate::testing;
use crate::{
    Result, bufferhash, cascade, counting, large, multilevel, rhik, slicebloom, slicehash, slicelsh,
};

/// Every kind of structure that this crate can read, in order of preference among equals.
const ROWS: &[&Row] = &[
    &bufferhash::ROW,
    &slicehash::ROW,
    &cascade::ROW,
    &counting::ROW,
    &large::ROW,
    &bufferhash::growing::ROW,
    &bufferhash::growing::GENERATION_ROW,
    &slicehash::growing::ROW,
    &slicehash::growing::TABLE_ROW,
    &rhik::ROW,
    &multilevel::ROW,
    &slicebloom::ROW,
    &slicelsh::ROW,
    #[cfg(feature = "testing")]
    &crate::specimen::ROW,
];

/// The rows of other crates' structures, in the order in which they were added.
static ADDED: RwLock<Vec<&Row>> = RwLock::new(Vec::new());

/// Adds the row of a structure that another crate has, for this process. From then on volumes that hold such structures
/// are opened and checked, and all that walks over the rows comes to it. A kind that has a row already keeps it, so
/// that a row may be added again.
///
/// ```
/// use nandex::registry;
///
/// let rhik = registry::find("rhik").expect("this crate has it");
/// registry::add(rhik);
/// assert_eq!(registry::rows().filter(|row| row.kind == "rhik").count(), 1);
/// ```
pub fn add(row: &'static Row) {
    let mut added = ADDED.write().unwrap_or_else(PoisonError::into_inner);
    if ROWS.iter().chain(&*added).all(|there| there.kind != row.kind) {
        added.push(row);
    }
}

/// Every kind of structure that can be read: those of this crate, and behind them those that were [added](add).
pub fn rows() -> impl Iterator<Item = &'static Row> {
    let added = ADDED.read().unwrap_or_else(PoisonError::into_inner).clone();
    ROWS.iter().copied().chain(added)
}

/// What the code knows of one kind of structure.
pub struct Row {
    /// Its name in the volume's catalog, such as `bufferhash`; also its word on command lines.
    pub kind: &'static str,
    /// Its name in sentences, such as `BufferHash`.
    pub name: &'static str,
    /// Its use, in a sentence.
    pub good_for: &'static str,
    /// What it does, and the functions that make one.
    pub family: Family,
    /// Proves one structure of this kind offline and notes damage in the checker.
    pub check: CheckFn,
    /// The decoders of its own bytes, for fuzzing.
    #[cfg(feature = "testing")]
    pub decoders: &'static [testing::Decoder],
}

impl Row {
    /// The same for a table that is there to be compared with, so that advice never names it.
    #[must_use]
    pub const fn baseline(mut self) -> Self {
        if let Family::Table(row) = &mut self.family {
            row.is_baseline = true;
        }
        self
    }

    /// The same with a table's configurations for tests, and decoders for fuzzing.
    #[cfg(feature = "testing")]
    #[must_use]
    pub const fn tested(
        mut self,
        tests: testing::TableTests,
        decoders: &'static [testing::Decoder],
    ) -> Self {
        if let Family::Table(row) = &mut self.family {
            row.testing = tests;
        }
        self.decoders = decoders;
        self
    }
}

/// Checks one structure, given as its entry in the catalog. Damage is noted in the checker; an error means
/// that the check is impossible.
pub type CheckFn = fn(&mut Checker, &Contents, &CatalogEntry, &mut OnProgress<'_>) -> Result<()>;

/// What a structure does, with the functions of such structures.
#[derive(Debug)]
pub enum Family {
    /// A [`Table`](crate::Table) from keys to values.
    Table(TableRow),
    /// A [`Filter`](crate::Filter), and a [`Counter`](crate::Counter) if it counts.
    Filter(FilterRow),
    /// A [`Neighbors`](crate::Neighbors): ids of documents by bucket keys.
    Neighbors(NeighborsRow),
    /// A part of another structure, which makes and opens it.
    Part,
    /// A generation of a table that grows, which makes and opens it.
    Generation,
}

/// The functions of a table.
pub struct TableRow {
    /// Is it for requirements of a table that grows, and for no others?
    pub grows: bool,
    /// Is it here to be compared with, so that advice never names it?
    pub is_baseline: bool,
    /// The kind of table that a merge of tables of this kind makes; `None` if they cannot be merged in the order of the
    /// hash.
    pub merges_into: Option<&'static str>,
    /// Creates one from a configuration of its kind.
    pub create: fn(&Volume, &str, &AnyConfig, &AnyOptions) -> Result<AnyTable>,
    /// Opens one.
    pub open: fn(&Volume, &str, &AnyOptions) -> Result<AnyTable>,
    /// The prediction for requirements, or why it cannot meet them.
    pub advise: fn(&Requirements) -> Result<Prediction>,
    /// The smallest limits that work, for 8 + 8 bytes.
    pub tiny: fn() -> AnyConfig,
    /// Its configurations for tests.
    #[cfg(feature = "testing")]
    pub testing: testing::TableTests,
}

/// The functions of a filter.
pub struct FilterRow {
    /// Does it delete keys? One that does not, such as a window of recent keys, refuses to.
    pub deletes: bool,
    /// Creates one from a configuration of its kind.
    pub create: fn(&Volume, &str, &AnyConfig, &AnyOptions) -> Result<AnyFilter>,
    /// Opens one.
    pub open: fn(&Volume, &str, &AnyOptions) -> Result<AnyFilter>,
    /// The configuration that meets requirements, or why none does.
    pub advise: fn(&FilterRequirements) -> Result<AnyConfig>,
    /// The smallest limits that work.
    pub tiny: fn() -> AnyConfig,
    /// Its configurations for tests.
    #[cfg(feature = "testing")]
    pub testing: testing::FilterTests,
}

/// The functions of an index of neighbours.
pub struct NeighborsRow {
    /// Creates one from a configuration of its kind.
    pub create: fn(&Volume, &str, &AnyConfig, &AnyOptions) -> Result<AnyNeighbors>,
    /// Opens one.
    pub open: fn(&Volume, &str, &AnyOptions) -> Result<AnyNeighbors>,
    /// The configuration that meets requirements, or why none does.
    pub advise: fn(&NeighborsRequirements) -> Result<AnyConfig>,
    /// The smallest limits that work.
    pub tiny: fn() -> AnyConfig,
    /// Its configurations for tests.
    #[cfg(feature = "testing")]
    pub testing: testing::NeighborsTests,
}

/// The row of a kind, if it exists.
#[must_use]
pub fn find(kind: &str) -> Option<&'static Row> {
    rows().find(|row| row.kind == kind)
}

/// The rows of tables, each with what only tables have.
pub fn tables() -> impl Iterator<Item = (&'static Row, &'static TableRow)> {
    rows().filter_map(|row| match &row.family {
        Family::Table(table) => Some((row, table)),
        Family::Filter(_) | Family::Neighbors(_) | Family::Part | Family::Generation => None,
    })
}

/// The rows of filters, each with what only filters have.
pub fn filters() -> impl Iterator<Item = (&'static Row, &'static FilterRow)> {
    rows().filter_map(|row| match &row.family {
        Family::Filter(filter) => Some((row, filter)),
        Family::Table(_) | Family::Neighbors(_) | Family::Part | Family::Generation => None,
    })
}

/// The rows of indexes of neighbours, each with what only they have.
pub fn neighbors() -> impl Iterator<Item = (&'static Row, &'static NeighborsRow)> {
    rows().filter_map(|row| match &row.family {
        Family::Neighbors(neighbors) => Some((row, neighbors)),
        Family::Table(_) | Family::Filter(_) | Family::Part | Family::Generation => None,
    })
}

/// Is this the kind of a table that grows?
#[must_use]
pub fn grows(kind: &str) -> bool {
    tables().any(|(row, table)| row.kind == kind && table.grows)
}

/// The kind of the structure with this name in a volume.
///
/// # Errors
/// No structure of that name, with the names that exist; a poisoned volume.
pub fn kind_in(volume: &Volume, name: &str) -> Result<String> {
    let found = volume.structures().into_iter().find(|found| found.name == name);
    match found {
        Some(found) => Ok(found.kind),
        // The volume's own refusal names the structures that exist.
        None => Ok(volume.open_structure(name, "structure")?.name),
    }
}

impl fmt::Debug for Row {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Row").field("kind", &self.kind).finish_non_exhaustive()
    }
}

impl fmt::Debug for TableRow {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TableRow").finish_non_exhaustive()
    }
}

impl fmt::Debug for FilterRow {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("FilterRow").finish_non_exhaustive()
    }
}

impl fmt::Debug for NeighborsRow {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("NeighborsRow").finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;
    use std::sync::Arc;

    use nandex_device::MemoryDevice;
    use nandex_store::{Volume, VolumeOptions};

    use super::*;

    fn volume(log_bytes: u64) -> Volume {
        let options = VolumeOptions { log_bytes, ..VolumeOptions::tiny() };
        Volume::create(Arc::new(MemoryDevice::new()), options).unwrap()
    }

    #[test]
    fn each_kind_has_one_row_and_says_what_it_is_good_for() {
        let kinds: HashSet<_> = ROWS.iter().map(|row| row.kind).collect();
        assert_eq!(kinds.len(), ROWS.len());
        assert!(ROWS.iter().all(|row| row.good_for.ends_with('.') && !row.name.is_empty()));
        assert!(ROWS.iter().all(|row| find(row.kind).is_some_and(|found| found.name == row.name)));
    }

    #[test]
    fn tiny_configurations_are_of_their_rows_kind_and_work() {
        let tables = tables().map(|(row, table)| (row.kind, (table.tiny)()));
        let filters = filters().map(|(row, filter)| (row.kind, (filter.tiny)()));
        let neighbors = neighbors().map(|(row, neighbors)| (row.kind, (neighbors.tiny)()));
        for (kind, config) in tables.chain(filters).chain(neighbors) {
            assert_eq!(config.kind(), kind);
            config.validate().unwrap();
            assert!(config.log_bytes_best() > 0);
        }
    }

    #[test]
    fn what_is_made_by_its_row_is_opened_as_what_it_is() {
        for (row, table) in tables() {
            let config = (table.tiny)();
            let volume = volume(config.log_bytes_best());
            let made = AnyTable::create(&volume, "t", &config).unwrap();
            made.insert_u64(7, 42).unwrap();
            made.close().unwrap();
            let opened = AnyTable::open(&volume, "t").unwrap();
            assert_eq!((opened.kind(), opened.config()), (row.kind, config));
            assert_eq!(opened.get_u64(7).unwrap(), Some(42));
            assert_eq!(opened.iter().count(), 1);
        }
        for (row, filter) in filters() {
            let config = (filter.tiny)();
            let volume = volume(config.log_bytes_best());
            let made = AnyFilter::create(&volume, "f", &config).unwrap();
            made.insert(b"a key").unwrap();
            made.close().unwrap();
            let opened = AnyFilter::open(&volume, "f", &AnyOptions::default()).unwrap();
            assert_eq!((opened.config().kind(), opened.config()), (row.kind, config));
            assert!(opened.contains(b"a key").unwrap());
            assert_eq!(opened.delete(b"a key").is_ok(), filter.deletes, "{}", row.kind);
            assert!(AnyTable::open(&volume, "f").is_err());
        }
        for (row, neighbors) in neighbors() {
            let config = (neighbors.tiny)();
            let volume = volume(config.log_bytes_best());
            let made = AnyNeighbors::create(&volume, "n", &config).unwrap();
            let keys: Vec<u64> = (0..u64::from(made.tables())).collect();
            made.insert(7, &keys).unwrap();
            made.close().unwrap();
            let opened = AnyNeighbors::open(&volume, "n", &AnyOptions::default()).unwrap();
            assert_eq!((opened.config().kind(), opened.config()), (row.kind, config));
            assert_eq!(opened.candidates(&keys).unwrap(), [7]);
            assert!(
                AnyTable::open(&volume, "n").is_err()
                    && AnyFilter::open(&volume, "n", &AnyOptions::default()).is_err()
            );
        }
    }

    #[cfg(feature = "testing")]
    #[test]
    fn every_variant_for_tests_works_whether_flash_is_ample_or_short() {
        use crate::testing::TableRequest;
        for (row, table) in tables() {
            let request =
                |variant, (keys, partitions, widths): (_, _, (usize, usize))| TableRequest {
                    variant,
                    key_bytes: widths.0,
                    value_bytes: widths.1,
                    partitions,
                    keys,
                    ..TableRequest::default()
                };
            let short = (None, 4, (16, 64));
            let ample = (Some(3320), 2, (8, 0));
            for request in
                (0..table.testing.variants).flat_map(|at| [short, ample].map(|it| request(at, it)))
            {
                let made = (table.testing.config)(&request);
                assert_eq!(made.config.kind(), row.kind);
                made.config.validate().unwrap_or_else(|error| panic!("{}: {error}", made.label));
            }
        }
        for (row, filter) in filters() {
            for variant in 0..filter.testing.variants {
                let made = (filter.testing.config)(variant, 1);
                assert_eq!(made.config.kind(), row.kind);
                made.config.validate().unwrap_or_else(|error| panic!("{}: {error}", made.label));
            }
        }
        for (row, neighbors) in neighbors() {
            for variant in 0..neighbors.testing.variants {
                let made = (neighbors.testing.config)(variant, 1);
                assert_eq!(made.config.kind(), row.kind);
                made.config.validate().unwrap_or_else(|error| panic!("{}: {error}", made.label));
            }
        }
    }

    #[cfg(feature = "testing")]
    #[test]
    fn decoders_take_any_bytes() {
        let mut state = 7_u64;
        let mut bytes = [8; 5000];
        for length in (0..bytes.len()).step_by(97) {
            for byte in &mut bytes[2..] {
                state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
                *byte = (state >> 60) as u8;
            }
            for decoder in ROWS.iter().flat_map(|row| row.decoders) {
                (decoder.run)(&bytes[..length]);
            }
        }
    }
}
