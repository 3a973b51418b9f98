//! A multi-level hash index: hash tables of growing length, of which a full page spills into the next one.
//!
//! It is what key-value drives had before RHIK: the global hash table of Samsung's device, which RHIK's paper (HPDC'23,
//! section 2) compares itself with, and of which it says that levels spill and that an access reads 3 to 7 pages once
//! the index exceeds its DRAM. It is here to compare with: take [`Rhik`](crate::Rhik) for anything else.
//!
//! A key has one page in each level, by the first bits of its hash. An insert goes to the first of them that has space,
//! so pages fill from the first level on, and a level of twice the pages is added where the last one spills. A lookup
//! reads the key's pages in this order until one has the key, but for those that RAM keeps: a cache of pages, in which
//! the upper levels stay. Before all that is a write buffer, and a full one is put into the levels of its partition
//! from the first to the last.
//!
//! ```text
//!              partition 0                          partition 1     ...
//!   RAM     +------------------+                 +------------------+
//!           | write buffer     | <- insert       | write buffer     |
//!           +------------------+                 +------------------+
//!           | cache of pages: level 0, most of level 1, some of 2 .. |    lookups look here first
//!           +--------------------------------------------------------+
//!   flash   level 0   [ full | full ]              <- lookup: 1st read        one page each: hopscotch,
//!                       |  \    |  \   spilled                                signatures, keys, values
//!           level 1   [ full | full | full | ok ]  <- 2nd read
//!                       |  \   |  \    |  \
//!           level 2   [ ok | ok | - | ok | ok | - | - | - ]   <- 3rd read
//! ```
//!
//! Where this differs from the published sentence: each partition has levels of its own, which together are the global
//! ones; the bits of the hash that name a page of a level name its two pages of the next one, so that a buffer's
//! updates go down in one pass; whether a page has entries is a byte in RAM, in place of a flag on the page before it,
//! and it is exact after removals too; and pages are written in groups, in a new place each time, so that a power cut
//! leaves the old ones. Sizes of levels and the replacement of pages in RAM are not published and chosen here.
//!
//! Invariants
//! 1. A key's newest version is in the active buffer, else in the newest frozen buffer that has it, else in one page of
//!    its own of one level, once.
//! 2. A page without entries is not read, and a group without entries is not on flash. The last level has entries.
//! 3. A map and the buffers of its partition change together, under one lock. A lookup reads pages of the map that it
//!    saw, whose groups keep their pages meanwhile.
//! 4. A flush takes new pages. One checkpoint replaces the old groups by the new ones; the old pages are reused only
//!    when that is durable. Until then the log has the buffer's updates.
//! 5. The cache has pages that were proven, by place and generation; a replaced group's are never an answer.
//! 6. Everything that the write path's invariants say of partitions.
//!
//! With L for the levels in which the key's page has entries, and g for the groups that a buffer's updates touch:
//!
//! | operation | flash reads | flash writes | RAM |
//! |---|---|---|---|
//! | insert, remove | g groups over a buffer's entries | groups that change, and the log | its slot |
//! | lookup, found | its level's number, less pages in RAM: up to L | 0 | 1 to 2 bytes of map for each page |
//! | lookup, not found | L, less the pages that RAM keeps | 0 | the same |
//! | flush | each group that a put or an entry concerns, once | those that change | six groups, two buffers' entries |
//! | the same of a shrunk table | one of the last level, in addition | where its entries go | the same |
//! | new level | none | the groups that are spilled to | 8 bytes for each of its groups |

mod check;
pub mod config;
mod flush;
mod iter;
mod levels;
mod lift;
mod model;
mod page_cache;
mod read;
mod recover;
mod row;
mod spill;
mod stats;
#[cfg(feature = "testing")]
mod testing;
#[cfg(test)]
mod tests;

use std::sync::{Mutex, MutexGuard};

use nandex_store::Volume;
use nandex_store::hash::KeyHasher;
use nandex_store::records::RecordLayout;
use nandex_store::space::Extent;

use crate::write::groups::Group;
use crate::write::{self, Core, Handle, PartitionState, Retired, TableShape};
use crate::{Damage, Result};

use check::check;
pub use config::{Config, RuntimeOptions};
pub use iter::{Iter, Pair};
pub(crate) use row::ROW;
pub use stats::MultilevelStats;

use levels::LevelPlan;
use page_cache::PageCache;

/// The name of this kind in the catalog.
pub const KIND: &str = "multilevel";

/// A hash table on flash from fixed-width keys to fixed-width values, of levels that spill into one another.
///
/// Lookups and inserts come from any number of threads. Dropping it saves what is buffered, so that the next open finds
/// it. See the [module](self) for how it works and what it costs, and [`Rhik`](crate::Rhik) for what reads less.
///
/// ```
/// use std::sync::Arc;
/// use nandex::multilevel::Config;
/// use nandex::{Multilevel, Table, Volume, VolumeOptions, device::MemoryDevice};
///
/// let volume = Volume::create(Arc::new(MemoryDevice::new()), VolumeOptions::tiny())?;
/// let table = Multilevel::create(&volume, "objects", Config::tiny())?;
/// table.insert_u64(17, 4)?;
/// assert_eq!(table.get_u64(17)?, Some(4));
/// table.remove(&17u64.to_le_bytes())?;
/// assert_eq!(table.get_u64(17)?, None);
/// # Ok::<(), nandex::Error>(())
/// ```
#[derive(Debug)]
pub struct Multilevel {
    handle: Handle<Leveled>,
}

write::delegate_table!(Multilevel);

/// What the index adds to the write path: levels for each partition, and a cache of their pages.
#[derive(Debug)]
pub(crate) struct Leveled {
    config: Config,
    shape: TableShape,
    plan: LevelPlan,
    hasher: KeyHasher,
    records: RecordLayout,
    cache: PageCache,
    /// Entries with which its RAM is spent.
    entries_max: u64,
    /// The places for snapshots of buffers.
    snapshots: Extent,
    /// Held while a partition's buffers and map change together, or all of them are captured.
    maps: Mutex<()>,
    retired: Retired<Group>,
    counters: stats::LevelCounters,
}

type Inner = Core<Leveled>;
type State = PartitionState<Leveled>;

impl Leveled {
    fn hold_maps(&self) -> MutexGuard<'_, ()> {
        self.maps.lock().expect("no holder of the maps' lock panics")
    }
}

impl Multilevel {
    /// Creates a table in a volume, with default [`RuntimeOptions`]. It takes pages as it grows.
    ///
    /// # Errors
    /// A configuration that cannot work, a name that is taken, no space, a failed write.
    pub fn create(volume: &Volume, name: &str, config: Config) -> Result<Self> {
        Self::create_with(volume, name, config, RuntimeOptions::default())
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
        config.validate()?;
        options.validate()?;
        let shape = config.shape()?;
        write::check_log(volume, &shape)?;
        let pages = write::snapshot_pages(&shape);
        let structure = volume.create_structure(name, KIND, config.encode(), pages)?;
        recover::open(volume, &structure, options)
    }

    /// Opens a table of a volume, with default [`RuntimeOptions`]. Reads snapshots of buffers and the log's tail; no
    /// page of a level.
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
        options.validate()?;
        let structure = volume.open_structure(name, KIND)?;
        recover::open(volume, &structure, options)
    }

    /// What it was created with; its RAM is that of this opening.
    #[must_use]
    pub fn config(&self) -> &Config {
        &self.handle.core.layout.config
    }

    /// All entries, each key once with its newest value, in no order.
    ///
    /// Each partition is seen as it was when the iteration reached it. Reads all levels once, group by group, and holds
    /// the keys of one partition's buffers in memory.
    #[must_use]
    pub fn iter(&self) -> Iter<'_> {
        Iter::new(&self.handle.core)
    }

    /// As [`iter`](Self::iter), but a page that cannot be read or proven ends nothing: it is an item, and all other
    /// entries come.
    pub fn iter_past_damage(&self) -> impl Iterator<Item = std::result::Result<Pair, Damage>> + '_ {
        self.iter().past_damage()
    }

    /// Its levels now, and its cache of pages.
    #[must_use]
    pub fn multilevel_stats(&self) -> MultilevelStats {
        self.handle.core.multilevel_stats()
    }
}
