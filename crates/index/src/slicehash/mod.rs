//! SliceHash: a hash table on flash that reads one page per lookup, found or not (ANCS'14).
//!
//! Keys are spread over partitions by their hash. Each partition collects updates in a RAM buffer, a small
//! cuckoo table, and has one slicetable on flash. A slice is a page that holds the entries of all
//! incarnations of the buffer for one bucket of keys. So a lookup that RAM cannot answer reads exactly one
//! page, and needs neither filters nor an index in RAM. Inserts pay the price: a full buffer is merged into
//! its whole slicetable, which is read and written in large I/O chunks.
//!
//! ```text
//!              partition 0                  partition 1               ...
//!   RAM     +----------------+           +----------------+
//!           | buffer         | <- insert | buffer         |   the newest entries
//!           +-------|--------+           +----------------+
//!                   | full: merged in one pass
//!   flash   +-------v--------+           +----------------+
//!   shadow  | slice 0        |           | slice 0        |   one page: the entries of all
//!           | slice 1        | <- lookup | slice 1        |   incarnations for these keys, by age
//!           | ...            |           | ...            |
//!           +----------------+           +----------------+   + spare slicetables
//! ```
//!
//! Improvements over the paper:
//! - A slice keeps each key once. The merge sees all versions of a key, so updates take the older one out
//!   and removals leave nothing; the paper keeps stale versions until their incarnation goes.
//! - Entries of a slice are in the order of their age instead of in a slot for each incarnation, so a page
//!   wastes no space when an incarnation has few entries for it. Full slices drop their oldest entries.
//! - Both cuckoo choices of a key are in one page of the buffer, and its slice is one page: the paper reads
//!   two if the first does not hold the key.
//! - A slicetable is rewritten to a spare place, so a power cut leaves the old one or the new one whole.
//!
//! Invariants
//! 1. A key's newest version is in the active buffer, else in the newest frozen buffer that has it, else in
//!    the newest run of the front table that has it, else in its slice, once.
//! 2. A slicetable is durable before the map names it, and the map names it in the moment in which the
//!    merged buffers leave RAM.
//! 3. A place on flash is written only when nothing durable refers to it any more (`shadow`).
//! 4. Everything that the write path's invariants say of partitions.
//!
//! With k for the buffers that a slicetable holds, and s for an entry's bytes in a full slice:
//!
//! | operation | flash reads | flash writes | RAM |
//! |---|---|---|---|
//! | insert, remove | its share of a merge: k s bytes | k s bytes, and the log | s / (k + 1) per entry |
//! | lookup, found or not | 1 page, in one or more parts | 0 | |
//! | the same, with a filter | found 1, not found about 0.01 | 0 | 10 bits per entry more |
//! | merge of a buffer | one slicetable | one slicetable | four I/O chunks |

mod bulk;
mod check;
pub mod config;
mod filter;
mod flush;
pub mod format;
mod front;
pub mod growing;
mod layout;
mod merge;
pub mod model;
mod older;
mod overflow;
mod read;
mod recover;
mod row;
mod scan;
#[cfg(feature = "testing")]
mod testing;

#[cfg(test)]
mod tests;

use std::sync::{Arc, Mutex};

use nandex_store::hash::KeyHasher;
use nandex_store::shadow::Shadow;
pub use nandex_store::slice;
use nandex_store::{Structure, Volume};

use crate::Result;
use crate::model::Budget;
use crate::scan::{Entries, EntriesPastDamage};
use crate::write::absorb::{AbsorbOptions, Absorbed, Versions, Watch, absorb, unwatched};
use crate::write::{self, Core, Handle, PartitionState, TableShape};

use check::check;
pub use config::{Config, Policy, RuntimeOptions};
pub(crate) use row::ROW;

use layout::Slicing;
use older::Older;
use scan::Partitions;
use slice::SliceLayout;

/// The name of this kind in the catalog.
pub const KIND: &str = "slicehash";

/// A hash table on flash from fixed-width keys to fixed-width values, with one page read per lookup.
///
/// Lookups and inserts are cheap from any number of threads. Dropping it saves what is buffered, so that the
/// next open finds it. See the [module](self) for how it works and what it costs.
///
/// ```
/// use std::sync::{Arc, Mutex, MutexGuard};
/// use nandex::slicehash::Config;
/// use nandex::{SliceHash, Table, Volume, VolumeOptions, device::MemoryDevice};
///
/// let volume = Volume::create(Arc::new(MemoryDevice::new()), VolumeOptions::tiny())?;
/// let table = SliceHash::create(&volume, "seen", Config::tiny())?;
/// table.insert_u64(17, 4)?;
/// assert_eq!(table.get_u64(17)?, Some(4));
/// table.remove(&17u64.to_le_bytes())?;
/// assert_eq!(table.get_u64(17)?, None);
/// # Ok::<(), nandex::Error>(())
/// ```
#[derive(Debug)]
pub struct SliceHash {
    handle: Handle<Slicetables>,
}

write::delegate_table!(SliceHash);

/// What SliceHash adds to the write path: slicetables, and a front table before them.
#[derive(Debug)]
pub(crate) struct Slicetables {
    config: Config,
    options: RuntimeOptions,
    shape: TableShape,
    hasher: KeyHasher,
    slices: SliceLayout,
    slicing: Slicing,
    shadow: Shadow,
    front: front::Front,
    /// Held while both maps, shadow and front, change or are captured.
    maps: Mutex<()>,
    captured: recover::Captured,
    filters: filter::Filters,
    /// `None` where a table is not one of a growing table's.
    older: Option<Older>,
}

/// A partition's data below its buffers, protected by its lock.
#[derive(Debug, Default)]
pub(crate) struct Level {
    /// Runs of the front table that were not merged yet, oldest first.
    runs: std::collections::VecDeque<front::Run>,
    /// Tells which keys the slicetable does not hold, if there is memory for it.
    filter: Option<filter::SliceFilter>,
    /// Entries in the slicetable.
    entries: u64,
    /// Entries that the last merge left in RAM, if nothing is evicted.
    refused: u64,
    /// Those of them that an older table had in RAM.
    overflow: overflow::Overflow,
}

/// Background work other than merging full buffers.
#[derive(Debug)]
pub(crate) enum SlicetableJob {
    /// Merge the runs of a partition when nothing else is queued.
    Drain(usize),
    /// Build the filter of a partition.
    BuildFilter(usize),
}

type Inner = Core<Slicetables>;
type State = PartitionState<Slicetables>;

impl SliceHash {
    /// Creates a table in a volume, with default [`RuntimeOptions`].
    ///
    /// # Errors
    /// A configuration that cannot work, a name that is taken, no space, a failed write.
    pub fn create(volume: &Volume, name: &str, config: Config) -> Result<Self> {
        Self::create_with(volume, name, config, RuntimeOptions::default())
    }

    /// Creates a table of 8-byte keys and values for that many entries within that much RAM, with the
    /// parameters that the cost model advises. See [`Config::advised`] for other widths and
    /// requirements.
    ///
    /// # Errors
    /// A budget too small for the table, with the least that is enough; else as [`create`](Self::create).
    pub fn with_budget(volume: &Volume, name: &str, budget: Budget) -> Result<Self> {
        Self::create(volume, name, Config::advised(&budget.into())?)
    }

    /// Creates a table in a volume.
    ///
    /// # Errors
    /// As [`create`](Self::create).
    pub fn create_with(
        volume: &Volume,
        name: &str,
        config: Config,
        options: RuntimeOptions,
    ) -> Result<Self> {
        let create = |config, pages| Ok(volume.create_structure(name, KIND, config, pages)?);
        Self::create_as(volume, create, (config, options), None)
    }

    /// Creates one as `create` makes its entry in the catalog, from its configuration and number of pages.
    fn create_as(
        volume: &Volume,
        create: impl FnOnce(Vec<u8>, u64) -> Result<Structure>,
        (config, options): (Config, RuntimeOptions),
        older: Option<Older>,
    ) -> Result<Self> {
        config.validate()?;
        config.check_array(&volume.device().geometry())?;
        recover::check_options(&options)?;
        let shape = config.shape()?;
        write::check_log(volume, &shape)?;
        let images = write::snapshot_pages(&shape);
        let pages = config.slicetable_pages() + config.front_pages() + images;
        recover::open(volume, &create(config.encode(), pages)?, options, older)
    }

    /// Opens a table of a volume, with default [`RuntimeOptions`].
    ///
    /// Reads snapshots of buffers and the log's tail; no slicetable.
    ///
    /// # Errors
    /// No table of that name, another kind of structure, damage, a failed read.
    pub fn open(volume: &Volume, name: &str) -> Result<Self> {
        Self::open_with(volume, name, RuntimeOptions::default())
    }

    /// Opens a table of a volume.
    ///
    /// # Errors
    /// As [`open`](Self::open).
    pub fn open_with(volume: &Volume, name: &str, options: RuntimeOptions) -> Result<Self> {
        let structure = volume.open_structure(name, KIND)?;
        recover::open(volume, &structure, options, None)
    }

    /// What it was created with.
    #[must_use]
    pub fn config(&self) -> &Config {
        &self.handle.core.layout.config
    }

    /// All entries, each key once with its newest value, in no order.
    ///
    /// Each partition is seen as it was when the iteration reached it. Reads the whole table once,
    /// sequentially, and holds the buffers and one slicetable's keys in memory.
    #[must_use]
    pub fn iter(&self) -> Entries<'_> {
        Entries::new(self.partitions())
    }

    fn partitions(&self) -> Partitions<impl Fn() -> Arc<Inner> + '_> {
        Partitions::new(|| Arc::clone(&self.handle.core))
    }

    /// Adds all entries of other tables, in the order of the hash: all are read in long runs, and each slicetable is
    /// rewritten once for all that comes. Of entries with one key the options say which stays. What was added is
    /// durable when this returns.
    ///
    /// Nobody can update this table meanwhile, which is why it is borrowed exclusively. Others may be in use: of
    /// updates that come to them meanwhile some are added and some are not. They may be in the same volume or in
    /// others. Tables whose volumes hash keys as this one's does are read once, others as often as
    /// [`Absorbed::passes`] says.
    ///
    /// # Errors
    /// Tables of other widths; too little RAM for their entries; a full table that may not evict, a failed read or
    /// write, damage. What was added before stays.
    ///
    /// ```
    /// use std::sync::Arc;
    /// use nandex::slicehash::Config;
    /// use nandex::{AbsorbOptions, SliceHash, Volume, VolumeOptions, device::MemoryDevice};
    ///
    /// let table = |name| {
    ///     let volume = Volume::create(Arc::new(MemoryDevice::new()), VolumeOptions::tiny())?;
    ///     SliceHash::create(&volume, name, Config::tiny())
    /// };
    /// let (mut ours, theirs) = (table("ours")?, table("theirs")?);
    /// ours.insert_u64(1, 10)?;
    /// theirs.insert_u64(1, 11)?;
    /// theirs.insert_u64(2, 20)?;
    /// let absorbed = ours.absorb(&[theirs.versions()], &AbsorbOptions::default())?;
    /// assert_eq!((absorbed.shared, absorbed.put), (1, 1));
    /// assert_eq!((ours.get_u64(1)?, ours.get_u64(2)?), (Some(10), Some(20)));
    /// # Ok::<(), nandex::Error>(())
    /// ```
    pub fn absorb(&mut self, others: &[Versions<'_>], options: &AbsorbOptions) -> Result<Absorbed> {
        self.absorb_watched(others, options, &unwatched)
    }

    /// As [`absorb`](Self::absorb); tells `watch` from time to time the share that is done, which may end it.
    ///
    /// # Errors
    /// As [`absorb`](Self::absorb), and [`Error::Stopped`](crate::Error::Stopped).
    pub fn absorb_watched(
        &mut self,
        others: &[Versions<'_>],
        options: &AbsorbOptions,
        watch: &Watch<'_>,
    ) -> Result<Absorbed> {
        absorb(&self.handle.core, others, options, watch)
    }

    /// Its versions of keys, for another table to [`absorb`](Self::absorb) or for
    /// [`count_shared`](crate::count_shared).
    #[must_use]
    pub fn versions(&self) -> Versions<'_> {
        Versions(&*self.handle.core)
    }

    /// As [`iter`](Self::iter), but a page that cannot be read or proven ends nothing: it is an item, and all other
    /// entries come. A key whose newest version was on such a page may come with an older one, or although it was
    /// removed.
    ///
    /// Reads and holds as much as [`iter`](Self::iter).
    #[must_use]
    pub fn iter_past_damage(&self) -> EntriesPastDamage<'_> {
        EntriesPastDamage::new(self.partitions())
    }
}
