//! RHIK: a hash table on flash that grows, and reads at most one page for any key (HPDC'23).
//!
//! A directory in RAM names the table that has a key. Such a **record table** is one page on flash, a hopscotch hash
//! table of its own. So a lookup that RAM cannot answer reads exactly one page, found or not, whatever the number of
//! keys. The keys themselves, and a byte of signature for each, tell whether a key is there, and no filter. A table
//! that is nearly full splits in two, the directory doubles where its depth no longer tells tables apart, and both go
//! back after removals. Before all that is a write buffer: a full one rewrites its partition's tables from front to
//! back.
//!
//! ```text
//!              partition 0                       partition 1          ...
//!   RAM     +------------------+              +------------------+
//!           | write buffer     | <- insert    | write buffer     |
//!           +------------------+              +------------------+
//!           | 00 | 01 | 10 | 11|  directory   | 0     | 1        |    4 bytes for each entry
//!           +--|----|----|---/-+              +-|-------|--------+
//!              |    |    |  /                   |       |
//!   flash   +--v----v----v---+                +-v-------v--+
//!           | t0 | t1 | t2   |  <- lookup     | t0  | t1   |           one page each: hopscotch,
//!           +----------------+                +------------+           signatures, keys, values
//!             group of tables, written at once
//! ```
//!
//! Where this differs from the paper: each partition has a directory of its own, so that it doubles alone; tables split
//! one by one as a flush rewrites them, and nothing ever stops for a resize; keys are stored whole, so that answers are
//! exact; the neighbourhood is searched by signatures, without the bitmaps of hopscotch; and tables are written in
//! groups of an I/O chunk, in a new place each time, so that a power cut leaves the old ones.
//!
//! Invariants
//! 1. A key's newest version is in the active buffer, else in the newest frozen buffer that has it, else in the table
//!    that the directory names for its hash, once, at most `neighbourhood` slots from its home.
//! 2. The tables of a partition have all hashes, each one range, in order; or there is none, and no key.
//! 3. A directory and the buffers of its partition change together, under one lock. A lookup reads a page of the
//!    directory that it saw, whose groups keep their pages meanwhile. So it reads one page, also during a split.
//! 4. A rewrite takes new pages. One checkpoint replaces the old groups by the new ones; the old pages are reused
//!    only when that is durable. Until then the log has the buffer's updates.
//! 5. Everything that the write path's invariants say of partitions.
//!
//! With k for the pages of a partition's tables over those of its buffer, and f for the share of slots in use, which is
//! between .45 and .90:
//!
//! | operation | flash reads | flash writes | RAM |
//! |---|---|---|---|
//! | insert, remove | its share of a rewrite: k pages for a page of the buffer | the same, and the log | its slot |
//! | lookup, found or not | 1 page; none of a partition without tables | 0 | 4 to 8 bytes of directory for each table |
//! | rewrite | the partition's tables, once | the same, and a page for each split | five groups, a buffer's entries |
//! | split, join, doubling | none of their own | a page more or less | the partition's directory, copied |

mod check;
pub mod config;
mod directory;
mod flush;
mod iter;
mod model;
mod read;
mod recover;
mod rewrite;
mod row;
mod stats;
#[cfg(feature = "testing")]
mod testing;
#[cfg(test)]
mod tests;

use std::sync::atomic::AtomicBool;
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
pub use stats::RhikStats;

/// The name of this kind in the catalog.
pub const KIND: &str = "rhik";

/// A hash table on flash from fixed-width keys to fixed-width values, that grows and reads at most one page for a
/// lookup.
///
/// Lookups and inserts are cheap from any number of threads. Dropping it saves what is buffered, so that the
/// next open finds it. See the [module](self) for how it works and what it costs.
///
/// ```
/// use std::sync::Arc;
/// use nandex::rhik::Config;
/// use nandex::{Rhik, Table, Volume, VolumeOptions, device::MemoryDevice};
///
/// let volume = Volume::create(Arc::new(MemoryDevice::new()), VolumeOptions::tiny())?;
/// let table = Rhik::create(&volume, "objects", Config::tiny())?;
/// table.insert_u64(17, 4)?;
/// assert_eq!(table.get_u64(17)?, Some(4));
/// table.remove(&17u64.to_le_bytes())?;
/// assert_eq!(table.get_u64(17)?, None);
/// # Ok::<(), nandex::Error>(())
/// ```
#[derive(Debug)]
pub struct Rhik {
    handle: Handle<Records>,
}

write::delegate_table!(Rhik);

/// What RHIK adds to the write path: a directory and record tables for each partition.
#[derive(Debug)]
pub(crate) struct Records {
    config: Config,
    shape: TableShape,
    hasher: KeyHasher,
    records: RecordLayout,
    /// Entries with which its RAM is spent.
    entries_max: u64,
    /// The places for snapshots of buffers.
    snapshots: Extent,
    /// Held while a partition's buffers and directory change together, or all of them are captured.
    maps: Mutex<()>,
    retired: Retired<Group>,
    counters: stats::Counters,
    /// Have snapshots been loaded and the log replayed?
    is_open: AtomicBool,
}

type Inner = Core<Records>;
type State = PartitionState<Records>;

impl Records {
    fn hold_maps(&self) -> MutexGuard<'_, ()> {
        self.maps.lock().expect("no holder of the maps' lock panics")
    }
}

impl Rhik {
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
    /// record table.
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
    /// Each partition is seen as it was when the iteration reached it. Reads the whole table once, group by group, and
    /// holds the keys of one partition's buffers in memory.
    #[must_use]
    pub fn iter(&self) -> Iter<'_> {
        Iter::new(&self.handle.core)
    }

    /// As [`iter`](Self::iter), but a page that cannot be read or proven ends nothing: it is an item, and all other
    /// entries come.
    pub fn iter_past_damage(&self) -> impl Iterator<Item = std::result::Result<Pair, Damage>> + '_ {
        self.iter().past_damage()
    }

    /// Its directory and its tables now, and how they became what they are, in the paper's terms.
    #[must_use]
    pub fn rhik_stats(&self) -> RhikStats {
        self.handle.core.rhik_stats()
    }
}
