//! RHIK: a growing hash table on flash that reads at most one page for any key (HPDC'23).
//!
//! A directory in RAM names the table that has a key. This **record table** is one page on flash, a hopscotch hash
//! table of its own. So a lookup that RAM cannot answer reads exactly one page, found or not, whatever the number of
//! keys. The keys themselves, and a byte of signature for each, tell whether a key is present; there is no filter. A
//! table that is nearly full splits in two, the directory doubles when its depth no longer distinguishes tables, and
//! both are reversed after removals. In front of all that is a write buffer: a full one rewrites its partition's tables
//! from front to back.
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
//! Differences from the paper: each partition has its own directory, which doubles independently; tables split one by
//! one as a flush rewrites them, and operations never stop for a resize; keys are stored whole, so that answers are
//! exact; the neighbourhood is searched by signatures, without the bitmaps of hopscotch; and tables are written in
//! groups of an I/O chunk, in a new place each time, so that a power cut leaves the old ones.
//!
//! Invariants
//! 1. A key's newest version is in the active buffer, else in the newest frozen buffer that has it, else in the table
//!    that the directory names for its hash, once, at most `neighbourhood` slots from its home.
//! 2. The tables of a partition cover all hashes, each with one range, in order; or there are no tables, and no keys.
//! 3. A directory and the buffers of its partition change together, under one lock. A lookup reads a page of the
//!    directory that it saw, whose groups keep their pages meanwhile. So it reads one page, also during a split.
//! 4. A rewrite takes new pages. One checkpoint replaces the old groups by the new ones; the old pages are reused
//!    only when that is durable. Until then the log has the buffer's updates.
//! 5. Everything that the invariants of the write path say about partitions.
//!
//! With k the ratio of the pages of a partition's tables to those of its buffer, and f the share of slots in use, which
//! is between .45 and .90:
//!
//! | operation | flash reads | flash writes | RAM |
//! |---|---|---|---|
//! | insert, remove | its share of a rewrite: k pages for a page of the buffer | the same, and the log | its slot |
//! | lookup, found or not | 1 page; none of a partition without tables | 0 | 4 to 8 bytes of directory for each table |
//! | rewrite | the partition's tables, once | the same, and a page for each split | five groups, a buffer's entries |
//! | split, join, doubling | none of their own | a page more or less | the partition's directory, copied |

pub(crate) mod config;
mod directory;
mod flush;
mod model;
mod rewrite;
pub(crate) mod stats;
mod structure;
#[cfg(feature = "testing")]
mod testing;
#[cfg(test)]
mod tests;

use crate::groups::GroupTable;

pub use config::Config;
pub(crate) use stats::RhikStats;

pub(crate) use structure::Directories;

/// The name of this kind in the catalog.
pub const KIND: &str = "rhik";

/// A growing hash table on flash from fixed-width keys to fixed-width values, which reads at most one page for a
/// lookup.
///
/// Lookups and inserts are cheap from any number of threads. Dropping it saves buffered updates, so that the
/// next open finds them. See the [module](self) for how it works and what it costs.
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
pub type Rhik = GroupTable<Directories>;

impl Rhik {
    /// Returns statistics of its directory and its tables now, and of their history, in the paper's terms.
    #[must_use]
    pub fn rhik_stats(&self) -> RhikStats {
        self.group_stats()
    }
}
