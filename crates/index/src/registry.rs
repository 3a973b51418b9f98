//! The registry: one row for each kind of structure that a volume can hold.
//!
//! A new structure is a folder and one line in the list of rows. All code that treats structures alike iterates over
//! [`rows`]: [`AnyTable`], [`AnyFilter`] and [`AnyNeighbors`], [`check`](crate::check()), [`compare`](crate::compare),
//! the command, the benchmark and the test harnesses. A row is a `const` in the structure's own folder, made of
//! function pointers; the type-erased handles are in [`any`](crate::AnyConfig).
//!
//! A structure of another crate is built on [`raw`](crate::raw), and [`add`] appends its row to these. This is for
//! experiments and tests, whose baselines and test structures are not part of what users get.

use std::fmt;
use std::sync::{PoisonError, RwLock};

use nandex_store::Volume;
use nandex_store::check::{Checker, Contents};
use nandex_store::checkpoint::CatalogEntry;

use crate::any::{AnyConfig, AnyFilter, AnyNeighbors, AnyTable};
use crate::check::OnProgress;
use crate::groups::Grouped;
use crate::model::{FilterRequirements, NeighborsRequirements, Prediction, Requirements};
#[cfg(feature = "testing")]
use crate::testing;
use crate::{
    OpenOptions, Result, bufferhash, cascade, counting, large, rhik, slicebloom, slicehash,
    slicelsh,
};

/// Every kind of structure that this crate can read, in order of preference among equals.
const ROWS: &[&Row] = &[
    &Row::table::<bufferhash::Incarnations>(),
    &Row::table::<slicehash::Slicetables>(),
    &Row::filter::<cascade::CascadeLayout>(),
    &Row::filter::<counting::CountingLayout>(),
    &large::ROW,
    &Row::growing::<bufferhash::growing::Generations>(),
    &bufferhash::growing::GENERATION_ROW,
    &Row::growing::<slicehash::growing::Tables>(),
    &slicehash::growing::TABLE_ROW,
    &Row::table::<Grouped<rhik::Directories>>(),
    &Row::filter::<slicebloom::BloomSlicetables>(),
    &slicelsh::ROW,
];

/// The rows of other crates' structures, in the order in which they were added.
static ADDED: RwLock<Vec<&Row>> = RwLock::new(Vec::new());

/// Adds the row of a structure of another crate, for this process. From then on volumes with such structures can be
/// opened and checked, and everything that iterates over the rows includes it. A kind that already has a row keeps it,
/// so that a row may be added again.
///
/// ```
/// use nandex::raw::registry;
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

/// Returns the rows of every kind of structure that can be read: those of this crate, followed by those that were
/// [added](add).
pub fn rows() -> impl Iterator<Item = &'static Row> {
    let added = ADDED.read().unwrap_or_else(PoisonError::into_inner).clone();
    ROWS.iter().copied().chain(added)
}

/// The description of one kind of structure.
pub struct Row {
    /// Its name in the volume's catalog, such as `bufferhash`; also its word on command lines.
    pub kind: &'static str,
    /// Its name in sentences, such as `BufferHash`.
    pub name: &'static str,
    /// Its use, in a sentence.
    pub good_for: &'static str,
    /// The options of an opening that it uses, by their names in [`OpenOptions`].
    pub options: &'static [&'static str],
    /// Its family, with the functions that create and open one.
    pub family: Family,
    /// Checks one structure of this kind offline and notes damage in the checker.
    pub check: CheckFn,
    /// The decoders of its own bytes, for fuzzing.
    #[cfg(feature = "testing")]
    pub decoders: &'static [testing::Decoder],
}

impl Row {
    /// Marks a table as a baseline, which advice never recommends.
    #[must_use]
    pub const fn baseline(mut self) -> Self {
        if let Family::Table(row) = &mut self.family {
            row.is_baseline = true;
        }
        self
    }
}

/// Checks one structure, given as its entry in the catalog. Damage is noted in the checker; an error means that the
/// check is impossible.
pub type CheckFn = fn(&mut Checker, &Contents, &CatalogEntry, &mut OnProgress<'_>) -> Result<()>;

/// The family of a structure, with its functions.
#[derive(Debug)]
pub enum Family {
    /// A [`Table`](crate::Table) from keys to values.
    Table(TableRow),
    /// A [`Filter`](crate::Filter), and a [`Counter`](crate::Counter) if it counts.
    Filter(FilterRow),
    /// A [`Neighbors`](crate::Neighbors): ids of documents by bucket keys.
    Neighbors(NeighborsRow),
    /// A part of another structure, which creates and opens it.
    Part,
    /// A generation of a growing table, which creates and opens it.
    Generation,
}

/// The functions of a table.
pub struct TableRow {
    /// Whether it serves requirements of a growing table, and only those.
    pub grows: bool,
    /// Whether it is a baseline only, and never recommended.
    pub is_baseline: bool,
    /// The kind of table that a merge of tables of this kind creates; `None` if they cannot be merged in hash order.
    pub merges_into: Option<&'static str>,
    /// Creates one from a configuration of its kind.
    pub create: fn(&Volume, &str, &AnyConfig, &OpenOptions) -> Result<AnyTable>,
    /// Opens a table by name.
    pub open: fn(&Volume, &str, &OpenOptions) -> Result<AnyTable>,
    /// Returns the prediction for the requirements, or why they cannot be met.
    pub advise: fn(&Requirements) -> Result<Prediction>,
    /// The smallest limits that work, for 8 + 8 bytes.
    pub tiny: fn() -> AnyConfig,
    /// Its configurations for tests.
    #[cfg(feature = "testing")]
    pub testing: testing::TableTests,
}

/// The functions of a filter.
pub struct FilterRow {
    /// Whether it supports deletes. A filter of recent keys, for example, does not.
    pub deletes: bool,
    /// Creates one from a configuration of its kind.
    pub create: fn(&Volume, &str, &AnyConfig, &OpenOptions) -> Result<AnyFilter>,
    /// Opens a filter by name.
    pub open: fn(&Volume, &str, &OpenOptions) -> Result<AnyFilter>,
    /// Returns the configuration that meets the requirements, or why none does.
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
    pub create: fn(&Volume, &str, &AnyConfig, &OpenOptions) -> Result<AnyNeighbors>,
    /// Opens an index by name.
    pub open: fn(&Volume, &str, &OpenOptions) -> Result<AnyNeighbors>,
    /// Returns the configuration that meets the requirements, or why none does.
    pub advise: fn(&NeighborsRequirements) -> Result<AnyConfig>,
    /// The smallest limits that work.
    pub tiny: fn() -> AnyConfig,
    /// Its configurations for tests.
    #[cfg(feature = "testing")]
    pub testing: testing::NeighborsTests,
}

/// Returns the row of a kind, if it exists.
#[must_use]
pub fn find(kind: &str) -> Option<&'static Row> {
    rows().find(|row| row.kind == kind)
}

/// Returns the rows of tables, each with its table functions.
pub fn tables() -> impl Iterator<Item = (&'static Row, &'static TableRow)> {
    rows().filter_map(|row| match &row.family {
        Family::Table(table) => Some((row, table)),
        Family::Filter(_) | Family::Neighbors(_) | Family::Part | Family::Generation => None,
    })
}

/// Returns the rows of filters, each with its filter functions.
pub fn filters() -> impl Iterator<Item = (&'static Row, &'static FilterRow)> {
    rows().filter_map(|row| match &row.family {
        Family::Filter(filter) => Some((row, filter)),
        Family::Table(_) | Family::Neighbors(_) | Family::Part | Family::Generation => None,
    })
}

/// Returns the rows of indexes of neighbours, each with its functions for those.
pub fn neighbors() -> impl Iterator<Item = (&'static Row, &'static NeighborsRow)> {
    rows().filter_map(|row| match &row.family {
        Family::Neighbors(neighbors) => Some((row, neighbors)),
        Family::Table(_) | Family::Filter(_) | Family::Part | Family::Generation => None,
    })
}

/// Returns whether this is the kind of a growing table.
#[must_use]
pub fn grows(kind: &str) -> bool {
    tables().any(|(row, table)| row.kind == kind && table.grows)
}

/// Returns the kind of the structure with this name in a volume.
///
/// # Errors
/// No structure of that name, with the names that exist; a poisoned volume.
pub fn kind_in(volume: &Volume, name: &str) -> Result<String> {
    let found = volume.structures().into_iter().find(|found| found.name == name);
    match found {
        Some(found) => Ok(found.kind),
        // The volume's error names the structures that exist.
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
