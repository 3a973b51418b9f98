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

/// Adds the row of a structure that another crate has, for this process. From then on volumes that hold such structures
/// are opened and checked, and all that walks over the rows comes to it. A kind that has a row already keeps it, so
/// that a row may be added again.
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
    /// The options of an opening that it has a use for, by their names in [`OpenOptions`].
    pub options: &'static [&'static str],
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
    pub create: fn(&Volume, &str, &AnyConfig, &OpenOptions) -> Result<AnyTable>,
    /// Opens one.
    pub open: fn(&Volume, &str, &OpenOptions) -> Result<AnyTable>,
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
    pub create: fn(&Volume, &str, &AnyConfig, &OpenOptions) -> Result<AnyFilter>,
    /// Opens one.
    pub open: fn(&Volume, &str, &OpenOptions) -> Result<AnyFilter>,
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
    pub create: fn(&Volume, &str, &AnyConfig, &OpenOptions) -> Result<AnyNeighbors>,
    /// Opens one.
    pub open: fn(&Volume, &str, &OpenOptions) -> Result<AnyNeighbors>,
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
