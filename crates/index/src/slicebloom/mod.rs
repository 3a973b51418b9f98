//! SliceBloom: a Bloom filter of the most recent keys on flash, which answers whether a key was seen lately (ANCS'14,
//! section 6).
//!
//! Keys are spread over partitions by their hash. Each partition collects keys in a Bloom filter in RAM, its buffer,
//! and has one slicetable on flash. A full buffer becomes an **incarnation**: its bits are a column of the slicetable,
//! and the bits of one position in all incarnations are a slice. So a lookup reads one slice for each of the key's
//! positions, however many incarnations there are, and their AND tells which of them have the key. A flush rewrites the
//! slicetable, and overwrites the column of the oldest incarnation. That makes the filter a sliding window: old keys
//! expire, and there are no deletes.
//!
//! ```text
//!     insert                                   lookup of positions 1, 4, 6
//!        |                                        |
//!        +--> log                                 | 1. the buffer, and full ones that are being written
//!        v                                        v
//!   RAM     position   0 1 2 3 4 5 6 7          no
//!           buffer     . # . . # . . .            |
//!                          | full: a column       | 2. one slice of each position, all read at once
//!   flash                  v                      v
//!           slice 0    . # . .|.|
//!           slice 1    # . # .|#|  ----------> # . # . #
//!           slice 4    # . . #|#|  ----------> # . . # #     AND: # . . . #, there in two incarnations
//!           slice 6    # # . .|#|  ----------> # # . . #
//! ```
//!
//! Differences from the paper: a slicetable is rewritten to a spare place, so a power cut leaves the old one or the new
//! one whole; keys are logged as fingerprints, and each is replayed exactly once, because a key that counted twice
//! would push another one out of the window; and partitions fill in turn, so that they are not flushed together.
//!
//! Invariants
//! 1. A key's bits are in the active buffer of its partition, else in a frozen one, else in one column of its
//!    slicetable, as long as no more than k n keys of the partition came after it.
//! 2. A slicetable is durable before the map names it, and the map names it at the moment at which the flushed buffer
//!    leaves RAM. A checkpoint holds both from before or both from after.
//! 3. A place on flash is written only when nothing durable refers to it any more (`shadow`).
//! 4. Column `i` of a slicetable has incarnation `j` with `j mod k = i`, the newest such.
//! 5. Everything that the invariants of the write path say about partitions, and about updates that add up: a buffer is
//!    not a set, since it counts its keys.
//!
//! With k incarnations, m bits and h hash functions for n keys of a buffer:
//!
//! | act | flash reads | flash writes | RAM |
//! |---|---|---|---|
//! | insert | its share of a flush: m/n k / 8 bytes | the same, and 8 bytes of log | m/n/k bits for each key |
//! | lookup | h pages at once, or fewer if positions share some; none if a buffer has the key | 0 | |
//! | flush of a buffer | one slicetable | one slicetable | four I/O chunks |
//! | open | snapshots of buffers, and the log from the oldest boundary on | 0 | |

mod absent;
mod buffer;
mod check;
mod config;
mod flush;
mod format;
pub(crate) mod model;
mod read;
mod recover;
mod snapshot;
mod stats;
pub(crate) mod stream;
mod structure;
#[cfg(feature = "testing")]
mod testing;
#[cfg(test)]
mod tests;
mod update;

use crate::write::{Core, Handle, PartitionState};

use check::check;
pub use config::{Config, HASHES_MAX, INCARNATIONS_MAX, PARTITIONS_MAX};
pub(crate) use stream::ContainsStream;

use format::{BitPlacing, Fingerprint};
pub(crate) use structure::BloomSlicetables;

/// The kind of a SliceBloom in the catalog.
pub const KIND: &str = "slicebloom";

/// A Bloom filter of the most recent keys in a volume.
///
/// It is guaranteed to have the most recent [`Config::window_keys`] inserts; older ones may be present or not. It
/// supports neither deletes nor counts. Each insert counts, including those of keys that are present:
/// [`insert_if_absent`](crate::Filter::insert_if_absent) keeps the window for different keys, and does not make an old
/// key young.
///
/// ```
/// use std::sync::Arc;
/// use nandex::slicebloom::Config;
/// use nandex::{Filter, SliceBloom, Volume, VolumeOptions, device::MemoryDevice};
///
/// let volume = Volume::create(Arc::new(MemoryDevice::new()), VolumeOptions::tiny())?;
/// let seen = SliceBloom::create(&volume, "seen", Config::tiny())?;
/// seen.insert(b"a packet's hash")?;
/// assert!(seen.contains(b"a packet's hash")?);
/// assert!(seen.delete(b"a packet's hash").is_err());
/// # Ok::<(), nandex::Error>(())
/// ```
pub type SliceBloom = Handle<BloomSlicetables>;

/// A partition's data below its buffers, protected by its lock.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) struct SliceLevel {
    /// The number of incarnations that its slicetable has taken, including those that were overwritten.
    incarnations: u64,
}

type Inner = Core<BloomSlicetables>;
type State = PartitionState<BloomSlicetables>;

impl Inner {
    /// Returns the partition of a key, and its fingerprint.
    fn place(&self, key: &[u8]) -> (usize, Fingerprint) {
        let fingerprint = BitPlacing::fingerprint(self.hasher, key);
        (self.codec.0.partition(fingerprint), fingerprint)
    }
}

impl SliceBloom {
    /// Opens a stream of lookups: keys go in and answers come out while the device's queue stays full. All reads of a
    /// key are in flight together.
    #[must_use]
    pub fn stream(&self) -> ContainsStream<'_> {
        ContainsStream::new(&self.core)
    }
}
