//! A growing SliceHash: a full table is followed by one with twice the partitions, which takes over its entries.
//!
//! Updates and lookups go to the newest table. A partition of it splits one of the older table with its first merge: it
//! reads that partition's slicetable, keeps its own half, and writes it with the contents of its buffer. A merge reads
//! and writes a slicetable anyway, so growth needs no pass of its own, and at every moment a lookup reads one page: of
//! the newest table's slicetable, or of the older one's if the partition has not split yet. When all have split, the
//! older table is dropped.
//!
//! ```text
//!   insert, remove, get                                      the next one is made in the background
//!        |                                                   when the newest is 7/8 full
//!        v                                                   . . . . . . . . . . . . . . . . .
//!   newest   | p0 | p1 | p2 | p3 |  buffers in RAM           . p0 p1 p2 p3 p4 p5 p6 p7       .
//!            | ## | ## |    |    |  slicetables              . . . . . . . . . . . . . . . . .
//!                          \  |
//!   older    | ####### | #######  |  its partition 1 still answers for p2 and p3
//! ```
//!
//! Invariants
//! 1. A partition of the newest table either has a slicetable, and does not need the older table, or it has none, and
//!    what its buffers do not know is in the older table.
//! 2. Only the newest table takes updates. An update holds the lock of updates for reading, and a table is replaced
//!    while it is held for writing. So the older table never changes again, although its last merges may still move
//!    entries.
//! 3. Entries that the older table had in RAM, and for which a full slice has no space, stay in RAM as the partition's
//!    overflow. Only a checkpoint makes the place of such a slicetable in the map durable, together with its overflow.
//! 4. A partition's first slicetable is durable before the map names it, like any other. Until then a crash leaves the
//!    partition without one, and the older table has its entries.
//! 5. There is at most one older table: it is dropped, in one checkpoint with the maps that replace it, before the next
//!    table is created.
//!
//! | operation | flash reads | flash writes | RAM |
//! |---|---|---|---|
//! | all operations | as a SliceHash's | as a SliceHash's | as a SliceHash's |
//! | growth | half of a merge's more for each partition | one checkpoint | buffers of both tables |

mod check;
pub(crate) mod config;
mod model;
mod read;
mod structure;
mod tables;
#[cfg(feature = "testing")]
mod testing;
#[cfg(test)]
mod tests;
mod versions;

use super::Inner as Core;

pub use config::Config;
pub(crate) use structure::TABLE_ROW;
pub use tables::Tables;

/// The name of this kind in the catalog.
pub const KIND: &str = "growing-slicehash";

/// The name of the kind of its tables in the catalog.
pub const TABLE_KIND: &str = "growing-slicehash-table";

/// A SliceHash that doubles as it fills, and reads one page for a lookup at every size.
///
/// It holds everything until its RAM or the device is full.
///
/// ```
/// use std::sync::Arc;
/// use nandex::raw::slicehash::growing::{Config, Growing};
/// use nandex::{Table, Volume, VolumeOptions, device::MemoryDevice};
///
/// let volume = Volume::create(Arc::new(MemoryDevice::new()), VolumeOptions::tiny())?;
/// let table = Growing::create(&volume, "seen", Config::tiny())?;
/// for key in 0..10_000u64 {
///     table.insert(&key.to_le_bytes(), &[1; 8])?;
/// }
/// assert!(table.partitions() > 1);
/// assert_eq!(table.get(&17u64.to_le_bytes())?.as_deref(), Some(&[1; 8][..]));
/// # Ok::<(), nandex::Error>(())
/// ```
pub type Growing = crate::grow::Growing<Tables>;

impl Growing {
    /// Returns the number of partitions of its newest table.
    #[must_use]
    pub fn partitions(&self) -> usize {
        self.owner.parts.core().partitions.len()
    }

    /// Returns the number of tables so far; at most two exist at a time, plus one that is created before it is needed.
    #[must_use]
    pub fn tables(&self) -> usize {
        self.owner.parts.number()
    }
}
