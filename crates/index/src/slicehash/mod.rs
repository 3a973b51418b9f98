//! SliceHash: a hash table on flash that reads one page per lookup, found or not (ANCS'14).
//!
//! Keys are spread over partitions by their hash. Each partition collects updates in a RAM buffer, a small cuckoo
//! table, and has one slicetable on flash. A slice is a page that holds the entries of all incarnations of the buffer
//! for one bucket of keys. So a lookup that RAM cannot answer reads exactly one page, and needs neither filters nor an
//! index in RAM. The price is paid by inserts: a full buffer is merged into its whole slicetable, which is read and
//! written in large I/O chunks.
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
//! - A slice keeps each key once. The merge sees all versions of a key, so updates remove the older one and removals
//!   leave nothing; the paper keeps stale versions until their incarnation is evicted.
//! - Entries of a slice are in the order of their age instead of in a slot for each incarnation, so a page wastes no
//!   space when an incarnation has few entries for it. Full slices drop their oldest entries.
//! - Both cuckoo choices of a key are in one page of the buffer, and its slice is one page: the paper reads
//!   two if the first does not hold the key.
//! - A slicetable is rewritten to a spare place, so a power cut leaves the old one or the new one whole.
//!
//! Invariants
//! 1. A key's newest version is in the active buffer, else in the newest frozen buffer that has it, else in
//!    the newest run of the front table that has it, else in its slice, once.
//! 2. A slicetable is durable before the map names it, and the map names it at the moment at which the merged buffers
//!    leave RAM.
//! 3. A place on flash is written only when nothing durable refers to it any more (`shadow`).
//! 4. Everything that the invariants of the write path say about partitions.
//!
//! With k the number of buffers that a slicetable holds, and s the bytes of an entry in a full slice:
//!
//! | operation | flash reads | flash writes | RAM |
//! |---|---|---|---|
//! | insert, remove | its share of a merge: k s bytes | k s bytes, and the log | s / (k + 1) per entry |
//! | lookup, found or not | 1 page, in one or more parts | 0 | |
//! | the same, with a filter | found 1, not found about 0.01 | 0 | 10 bits per entry more |
//! | merge of a buffer | one slicetable | one slicetable | four I/O chunks |

mod bulk;
mod check;
pub(crate) mod config;
mod filter;
mod flush;
pub(crate) mod format;
mod front;
pub(crate) mod growing;
mod layout;
mod merge;
pub(crate) mod model;
mod older;
mod overflow;
mod read;
mod recover;
mod scan;
mod structure;
#[cfg(feature = "testing")]
mod testing;

#[cfg(test)]
mod tests;

use nandex_store::Volume;
pub(crate) use nandex_store::slice;

use crate::Result;
use crate::model::Budget;
use crate::write::{Core, Handle, PartitionState};

use check::check;
pub use config::Config;

pub(crate) use structure::Slicetables;

/// The name of this kind in the catalog.
pub const KIND: &str = "slicehash";

/// A hash table on flash from fixed-width keys to fixed-width values, with one page read per lookup.
///
/// Lookups and inserts are cheap from any number of threads. Dropping it saves buffered updates, so that the
/// next open finds them. See the [module](self) for how it works and what it costs.
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
pub type SliceHash = Handle<Slicetables>;

/// A partition's data below its buffers, protected by its lock.
#[derive(Debug, Default)]
pub(crate) struct Level {
    /// Runs of the front table that are not merged yet, oldest first.
    runs: std::collections::VecDeque<front::Run>,
    /// A filter for the keys of the slicetable, if there is memory for it.
    filter: Option<filter::SliceFilter>,
    /// Entries in the slicetable.
    entries: u64,
    /// The entries that the last merge left in RAM, if nothing is evicted.
    refused: u64,
    /// The entries among these that an older table had in RAM.
    overflow: overflow::Overflow,
}

/// Background work other than merging full buffers.
#[derive(Debug)]
pub(crate) enum SlicetableJob {
    /// Merge the runs of a partition when no other job is queued.
    Drain(usize),
    /// Build the filter of a partition.
    BuildFilter(usize),
}

type Inner = Core<Slicetables>;
type State = PartitionState<Slicetables>;

impl SliceHash {
    /// Creates a table of 8-byte keys and values for the entries and the RAM of `budget`, with the parameters that the
    /// cost model recommends. See [`Config::advised`] for other widths and requirements.
    ///
    /// # Errors
    /// A budget too small for the table, with the least that is enough; otherwise as [`create`](Self::create).
    pub fn with_budget(volume: &Volume, name: &str, budget: Budget) -> Result<Self> {
        Self::create(volume, name, Config::advised(&budget.into())?)
    }
}
