//! SliceLSH: an index of similar documents on flash: L hash tables from bucket keys to ids (ANCS'14, section 6).
//!
//! A family of hashes gives each document a bucket key in each of L tables, so that similar documents share some bucket
//! with a high probability. An insert adds the document's id to its L buckets; a lookup returns the ids of the L
//! buckets of a document. Each table is a SliceHash whose slots have several values: buckets are spread over partitions
//! by the hash of their key, a partition has one RAM buffer for all tables, and on flash a slicetable of each table. A
//! slice is a page that has all entries of its buckets, whichever buffer they came with. So a lookup reads one page of
//! each table, all L of them at once.
//!
//! ```text
//!              partition 0                              partition 1          ...
//!   RAM     +-----------------------+               +------------------+
//!           | buffer of all tables  | <- insert:    | buffer           |
//!           +-----------|-----------+    L entries  +------------------+
//!                       | full: all L slicetables are merged in one pass, and published together
//!   flash   +-----------v-----------+               +------------------+
//!   shadow  | table 0 | 1 | .. | L-1|               | table 0 | 1 | .. |
//!           |  slice  | s |    |  s | <- lookup:    |  slice  | s |    |    + spare groups
//!           |  slice  | s |    |  s |    a page of  |  slice  | s |    |
//!           +-----------------------+    each       +------------------+
//! ```
//!
//! If the channels of the device are known, each table's slices are on their own channels
//! ([`Placement`](placement::Placement)), so the L reads of a lookup never wait for one another. Otherwise tables are
//! striped, and the statistics say so.
//!
//! Rules
//! - A bucket keeps its [`bucket_ids_max`](Config::bucket_ids_max) oldest ids: thousands of equal documents share
//!   buckets, and the first of them find all others. A later id is dropped, and counted, when a merge finds the bucket
//!   full, or at once if the buffer alone is enough to fill it. An id that was dropped does not come back when others
//!   are removed.
//! - A full slice evicts its oldest entries, or a full partition rejects updates, according to its
//!   [`WhenFull`](crate::WhenFull).
//! - A removal is an entry too. It ends at the merge, together with the entry that it removes.
//!
//! Differences from the paper: a slice keeps its entries by age and without those that were removed, buckets are
//! bounded, a group of slicetables is rewritten to a spare place, and one entry of the log has a document's L updates.
//!
//! Invariants
//! 1. The state of an id in a bucket is in the newest of its partition's buffers that has the pair, else in its slice,
//!    once.
//! 2. An insert or removal is one entry in the log, and is in the buffers of its partitions as soon as it is there. So
//!    after a crash it is in all of its buckets or in none.
//! 3. A group of slicetables is durable before the map names it, and the map names it at the moment at which the merged
//!    buffer leaves RAM.
//! 4. A place on flash is written only when nothing durable refers to it any more (`shadow`).
//! 5. Everything that the invariants of the write path say about partitions. Applying an update twice changes nothing.
//!
//! With k the number of buffers that a group of slicetables holds:
//!
//! | operation | flash reads | flash writes | RAM |
//! |---|---|---|---|
//! | insert, remove | its share of L merges: about 22 k L bytes | the same, and 9 + 8 L bytes of log | 25 L / k bytes |
//! | lookup | a page of each table whose partition was ever merged, all at once | 0 | |
//! | lookup with a filter | a page of each table that has the bucket, and few others | 0 | 1/2 to 3/2 bytes an entry |
//! | merge of a buffer | one group of slicetables | one group of slicetables | four I/O chunks |
//! | open | snapshots, and the log's tail | 0 | |

mod buffer;
mod check;
pub(crate) mod config;
mod filter;
mod flush;
pub(crate) mod format;
mod keys;
mod merge;
mod model;
pub(crate) mod placement;
mod read;
mod recover;
mod saved_filter;
mod snapshot;
mod stats;
mod stream;
mod structure;
#[cfg(feature = "testing")]
mod testing;
#[cfg(test)]
mod tests;
mod update;

use crate::api::{CandidateStream, Neighbors, NeighborsStats};
use crate::write::{Core, Handle, PartitionState};
use crate::{Error, Result};

use check::check;
pub use config::{Config, FAMILY_BYTES_MAX, TABLES_MAX};
use stream::RowStream;
pub(crate) use structure::ROW;
pub(crate) use structure::SlicetableGroups;

/// The name of this kind in the catalog.
pub const KIND: &str = "slicelsh";

/// An index of documents by bucket keys, on flash, that reads one page of each table for a lookup.
///
/// Lookups and inserts are cheap from any number of threads. Dropping it saves buffered updates, so that the
/// next open finds them. See the [module](self) for how it works and what it costs.
///
/// ```
/// use std::sync::Arc;
/// use nandex::slicelsh::Config;
/// use nandex::{Neighbors, SliceLsh, Volume, VolumeOptions, device::MemoryDevice};
///
/// let volume = Volume::create(Arc::new(MemoryDevice::new()), VolumeOptions::tiny())?;
/// let alike = SliceLsh::create(&volume, "alike", Config::tiny())?;
/// alike.insert(17, &[100, 200, 300])?;
/// assert_eq!(alike.candidates(&[100, 201, 301])?, [17]);
/// alike.remove(17, &[100, 200, 300])?;
/// assert_eq!(alike.candidates(&[100, 200, 300])?, []);
/// # Ok::<(), nandex::Error>(())
/// ```
pub type SliceLsh = Handle<SlicetableGroups>;

/// A partition's data below its buffers, protected by its lock.
#[derive(Debug, Default)]
pub(crate) struct GroupLevel {
    /// Entries in its slicetables.
    entries: u64,
    /// The entries that the last merge left in RAM, if nothing is evicted.
    refused: u64,
}

type Inner = Core<SlicetableGroups>;
type State = PartitionState<SlicetableGroups>;

impl SliceLsh {}

impl Neighbors for SliceLsh {
    fn tables(&self) -> u32 {
        self.config().tables
    }

    fn insert(&self, id: u64, keys: &[u64]) -> Result<()> {
        self.insert_many(&[id], keys)
    }

    fn insert_many(&self, ids: &[u64], keys: &[u64]) -> Result<()> {
        self.core.insert_documents(ids, keys)
    }

    fn candidates(&self, keys: &[u64]) -> Result<Vec<u64>> {
        self.core.check_keys(1, keys)?;
        Ok(self.candidates_many(keys)?.into_iter().next().unwrap_or_default())
    }

    fn candidates_many(&self, keys: &[u64]) -> Result<Vec<Vec<u64>>> {
        self.core.candidates_of(keys)
    }

    fn stream(&self) -> Result<Box<dyn CandidateStream + '_>> {
        Ok(Box::new(RowStream::new(&self.core)))
    }

    fn candidates_then_insert_many(&self, ids: &[u64], keys: &[u64]) -> Result<Vec<Vec<u64>>> {
        self.core.candidates_then_insert(ids, keys)
    }

    fn remove_many(&self, ids: &[u64], keys: &[u64]) -> Result<()> {
        self.core.remove_documents(ids, keys)
    }

    fn sync(&self) -> Result<()> {
        self.core.sync()
    }

    fn flush(&self) -> Result<()> {
        self.core.flush_all()
    }

    fn stats(&self) -> NeighborsStats {
        self.core.stats()
    }
}

impl Inner {
    /// Fails unless the keys are one row for each of the `documents`.
    fn check_keys(&self, documents: usize, keys: &[u64]) -> Result<()> {
        let tables = self.layout.config.tables;
        if documents.checked_mul(tables as usize) == Some(keys.len()) {
            return Ok(());
        }
        let reason = format!(
            "{} for {documents} documents; an index of {tables} tables takes {tables} for each",
            keys.len()
        );
        Err(Error::Config { field: "keys", reason })
    }
}
