//! BufferHash: a hash table on flash that writes only whole buffers, one after another (NSDI'10).
//!
//! Keys are spread over super tables by their hash. Each super table collects inserts in a RAM buffer; a full buffer
//! goes to flash in one sequential write and is called an incarnation. All super tables share one ring of segments, so
//! the whole device sees a single sequential stream; on a raw flash chip each has its own ring (`rings`). Filters in
//! RAM, one per incarnation, determine which incarnations may hold a key. A lookup reads one page of each of those,
//! newest first: nearly always one page or none.
//!
//! ```text
//!           super table 0                super table 1            ...
//!   RAM   +----------------+           +----------------+
//!         | buffer         | <- insert | buffer         |
//!         +----------------+           +----------------+
//!         | filters, one   |           | filters, one   |
//!         | per incarnation|           | per incarnation|
//!         +---|----|-----|-+           +--|------|------+
//!             |    |     |                |      |
//!   flash  +--v-+--v-+---+|--+----+----+--v-+----v+
//!   ring   | 7  | 8  | 9  v  | 10 |    | 12 | 13  |  -> head: the next segment to be written
//!          +----+----+-------+----+----+----+-----+
//!           oldest: the next to be evicted
//! ```
//!
//! Invariants
//! 1. A super table's incarnations are ordered by segment number; a key's newest version is in the
//!    active buffer, else in the newest frozen buffer that has it, else in the newest such incarnation.
//! 2. An entry leaves RAM only for a segment whose write has completed and whose filter is live.
//! 3. Every logged update is in a written segment, in a snapshot, or at or after the log tail that the next checkpoint
//!    will have.
//! 4. Incarnations are added and evicted, and columns are written, only under the maintenance lock.
//! 5. Locks are taken in this order: a maintenance lock, a super table's state, ring or log or pool. No thread waits
//!    for a checkpoint or a free buffer while holding one.
//!
//! | operation | flash reads | flash writes | RAM |
//! |---|---|---|---|
//! | insert, remove | 0 | its share of a segment: entry bytes / fill, and of the log | `buffer / k` |
//! | lookup, found | 1 + at most the filters' rate | 0 | filter bits per entry |
//! | lookup, not found | the filters' rate, see `advise` | 0 | |
//! | flush of a buffer | 0 (partial discard: one segment) | one segment | |

mod bulk;
mod check;
mod clean;
mod columns;
pub(crate) mod config;
mod evict;
pub(crate) mod filter;
mod flush;
pub(crate) mod format;
pub(crate) mod growing;
mod keys;
pub(crate) mod model;
pub(crate) mod older;
mod read;
mod recover;
mod retire;
mod rewrite;
mod rings;
pub(crate) mod scan;
mod space;
mod structure;
mod table;
#[cfg(feature = "testing")]
mod testing;

#[cfg(test)]
mod lives_tests;
#[cfg(test)]
mod tests;

use std::sync::atomic::Ordering::Relaxed;

use nandex_store::Volume;

use crate::Result;
use crate::write::{Core, Handle};

use check::{check, refuse_chip};
pub(crate) use config::Placement;
pub use config::{Config, Policy};

pub(crate) use structure::Incarnations;

/// The name of this kind in the catalog.
pub const KIND: &str = "bufferhash";

/// A hash table on flash from fixed-width keys to fixed-width values.
///
/// Lookups and inserts are cheap from any number of threads. Dropping it saves buffered updates, so that the
/// next open finds them. See the [module](self) for how it works and what it costs.
///
/// ```
/// use std::sync::Arc;
/// use nandex::bufferhash::Config;
/// use nandex::{BufferHash, Table, Volume, VolumeOptions, device::MemoryDevice};
///
/// let volume = Volume::create(Arc::new(MemoryDevice::new()), VolumeOptions::tiny())?;
/// let table = BufferHash::create(&volume, "seen", Config::tiny())?;
/// table.insert_u64(17, 4)?;
/// assert_eq!(table.get_u64(17)?, Some(4));
/// table.remove(&17u64.to_le_bytes())?;
/// assert_eq!(table.get_u64(17)?, None);
/// # Ok::<(), nandex::Error>(())
/// ```
pub type BufferHash = Handle<Incarnations>;

type Inner = Core<Incarnations>;

impl BufferHash {
    /// Creates a table of 8-byte keys and values for the entries and the RAM of `budget`, with the parameters that the
    /// cost model of section 6 recommends. See [`Config::advised`] for other widths and requirements.
    ///
    /// # Errors
    /// A budget too small for the table, with the least that is enough; otherwise as [`create`](Self::create).
    pub fn with_budget(volume: &Volume, name: &str, budget: model::Budget) -> Result<Self> {
        Self::create(volume, name, Config::advised(&budget.into())?)
    }

    /// Changes the threshold of [`Policy::Threshold`], from the next eviction on, until the table is reopened.
    pub fn set_threshold(&self, priority: u64) {
        self.core.layout.threshold.store(priority, Relaxed);
    }

    /// Waits until the filters of a newly opened table are loaded, so that lookups need not load them.
    ///
    /// # Errors
    /// A failed read, or damage.
    pub fn load_filters(&self) -> Result<()> {
        self.core.load_all_filters()
    }
}
