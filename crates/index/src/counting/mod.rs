//! The counting table ("Hash in a Flash"): the number of times that each key was added, for counts that are larger than
//! RAM.
//!
//! A hash table on flash cannot be updated in place: each update would rewrite a random page. So updates of a key are
//! added up in RAM, in a table H_R with a slot for each group of data blocks. A full slot is **staged**, written in one
//! piece to the change segment S_E, or **merged** with its data blocks, which are closed hash tables on flash: H_D. One
//! hash places a key in all three, s(x) = g(x) div r, so a merge reads and writes from front to back.
//!
//! ```text
//!     add, remove                                     count
//!          |                                            |
//!          +--> log                                     | 1. the partition's buffers (H_R)
//!          v                                            v
//!   partition 0    partition 1    partition 2    . . . . . . . . . . . . . . . . . . . . . . . . .
//!   [### ]         [#   ]         [####] full           | 2. S_E: a page of each staged segment
//!                                    |                  |    that its filter does not rule out
//!                           staged   |   merged         |
//!                     +--------------+------------+     |
//!                     v                           v     v 3. H_D: a page
//!   S_E  |..|  |..|  |..|             H_D  |........|........|........|   k data blocks
//! ```
//!
//! Three disciplines determine when a buffer is staged and when it is merged: `MB` never stages, `MDB` gives each `k`
//! data blocks a share of the change segment, and `MDB-L` has one log for all. A key's count is the sum over buffers,
//! staged segments and data segment. Negative sums are kept, so the order of additions and subtractions does not
//! matter. A removal sets the count to 0 whatever it was: it is a mark that travels with the sums and ends, with what
//! it removes, at the merge.
//!
//! Differences from the paper: keys are stored whole or as fingerprints; counts have up to 63 bits, and take a byte
//! each if they are small; a data segment is written with as many blocks as its keys need, so the table grows; blocks
//! are written next to the old ones and published by a checkpoint, so a crash loses nothing and counts nothing twice;
//! linear probing goes page by page, so a query reads one page; and a full change segment is merged one partition at a
//! time.
//!
//! Invariants
//! 1. A key's count is the sum over its partition's buffers, staged segments and data segment, from the newest back to
//!    a removal.
//! 2. A query sees one moment: a partition's buffers and list of segments are read under one lock, and a segment that a
//!    query may still read keeps its pages.
//! 3. Everything that the invariants of the write path say about partitions and about updates that add up.
//! 4. Staging and merging write new segments in addition to the old ones. One checkpoint replaces them; their pages are
//!    reused only when that is durable.
//! 5. A removal ends in the data segment, where nothing older is below it.
//! 6. Absorbed counts are newer than all buffers of their partition, which are merged with them.
//!
//! | act | flash reads | flash writes | RAM |
//! |---|---|---|---|
//! | add, remove | 0 | its share of the log, key + 1 bytes, of staging and of merges | the buffers |
//! | stage | 0 | the buffer, once | a sorted copy, and a filter of 10 bits a key |
//! | merge | the partition's segments, once | its data segment, once | three I/O chunks for each of them |
//! | count | a page; another for each staged segment with the key, 1 in 80 without | 0 | one page |
//! | open | what is staged, snapshots, and the log from the oldest boundary on | 0 | |

mod absent;
mod absorb;
mod absorb_sorted;
mod buffer;
pub(crate) mod change;
mod check;
mod config;
mod entries;
pub(crate) mod estimate;
mod format;
pub(crate) mod iter;
mod keys;
mod merge;
mod model;
mod page;
pub(crate) mod read;
mod recover;
mod segment;
mod segments;
mod snapshot;
mod stats;
mod structure;
#[cfg(feature = "testing")]
mod testing;
#[cfg(test)]
mod tests;
mod top;
mod update;

use std::ops::ControlFlow;
use std::sync::{Arc, MutexGuard};

use nandex_store::Lsn;
use nandex_store::mutants::{Barrier, is_on};
use nandex_store::space::Extent;

use crate::Result;
use crate::write::{
    CapturedMaps, Checkpoints, Core, Frozen, Handle, Layout, PartitionState, Space, Usage,
    WritePolicy,
};

pub use absorb_sorted::Absorbing;
pub(crate) use change::Change;
use check::check;
pub use config::{BLOCK_PAGES, CHANGE_PERMILLE, Config, Discipline};
pub(crate) use iter::Counts;
pub use keys::{KEY_BYTES_MAX, Keys};
pub(crate) use read::CountStream;
pub use stats::CountingStats;
pub use top::TopKeys;

use buffer::SumBuffer;
use keys::KeyPlacing;
use segments::PartitionSegments;
pub(crate) use structure::CountingLayout;

/// The kind of a counting table in the catalog.
pub const KIND: &str = "counting";

/// A counting table in a volume.
///
/// ```
/// use std::sync::Arc;
/// use nandex::counting::Config;
/// use nandex::{Counter, Counting, Volume, VolumeOptions, device::MemoryDevice};
///
/// let volume = Volume::create(Arc::new(MemoryDevice::new()), VolumeOptions::tiny())?;
/// let words = Counting::create(&volume, "words", Config::tiny())?;
/// words.add(b"notebook", 3)?;
/// words.add(b"notebook", -1)?;
/// assert_eq!(words.count(b"notebook")?, 2);
/// words.remove(b"notebook")?;
/// assert_eq!(words.count(b"notebook")?, 0);
/// # Ok::<(), nandex::Error>(())
/// ```
pub type Counting = Handle<CountingLayout>;

type Inner = Core<CountingLayout>;
type State = PartitionState<CountingLayout>;

impl CountingLayout {
    fn hold_maps(&self) -> MutexGuard<'_, ()> {
        self.maps.lock().expect("no holder of the maps' lock panics")
    }
}

impl Inner {
    fn placing(&self) -> &KeyPlacing {
        &self.layout.segments.placing
    }
}

impl State {
    /// The partition's extents on flash: its segments, and the snapshot that recovery needs.
    fn extents(&self) -> impl Iterator<Item = Extent> {
        self.level.extents().chain(self.snapshot_extent())
    }
}

impl Layout for CountingLayout {
    type Buffer = SumBuffer;
    type Level = Arc<PartitionSegments>;
    type Unlocked = ();
    type Reserved = ();
    type Job = std::convert::Infallible;
    type Scratch = ();

    fn policy(&self) -> WritePolicy {
        WritePolicy {
            retries_flushes: true,
            pace_updates: Some(self.config.partition_entries()),
            ..WritePolicy::default()
        }
    }

    fn new_buffer(&self) -> SumBuffer {
        SumBuffer::new(&self.buffer_ram)
    }

    fn reserve(_core: &Inner, _index: usize, _state: &State) -> Result<Space<()>> {
        Ok(Space::Reserved(()))
    }

    fn flush(core: &Inner, index: usize, frozen: Frozen<Self>, (): &mut ()) -> Result<()> {
        core.put_on_flash(index, frozen.buffer)
    }

    fn new_scratch(_core: &Inner) -> Result<()> {
        Ok(())
    }

    fn run(_core: &Inner, job: Self::Job, _scratch: &mut Option<()>) -> Result<()> {
        match job {}
    }

    fn usage(core: &Inner) -> Usage {
        core.own_usage()
    }
}

impl Checkpoints for CountingLayout {
    fn lock_maps(&self) -> Option<MutexGuard<'_, ()>> {
        is_on(Barrier::CountsCaptureHoldsMaps).then(|| self.hold_maps())
    }

    fn capture(core: &Inner, _log_now: Lsn) -> CapturedMaps {
        core.capture_segments()
    }

    fn committed(_core: &Inner) {}

    fn recovered(core: &Inner) {
        core.layout.buffer_ram.recovered();
    }
}

impl Counting {
    /// Sets a key's count to 0, whatever it was. Reads nothing: the mark is applied when its data block is merged.
    ///
    /// # Errors
    /// A key of the wrong width, a poisoned volume.
    pub fn remove(&self, key: &[u8]) -> Result<()> {
        self.core.change_key(key, Change::REMOVE)
    }

    /// Sets the count of each key to 0.
    ///
    /// # Errors
    /// As [`remove`](Self::remove); keys before the failing one are removed, later ones may or may not be.
    pub fn remove_many(&self, keys: &[&[u8]]) -> Result<()> {
        self.core.change_keys(keys.iter().map(|key| (*key, Change::REMOVE)))
    }

    /// Returns the sum of all that was added to a key since it was last removed; below 0 if more was subtracted than
    /// added. Reads one page, and one more for each staged segment that has the key.
    ///
    /// # Errors
    /// A key of the wrong width, a failed read, a page that fails its check.
    pub fn sum(&self, key: &[u8]) -> Result<i64> {
        self.core.sum(key)
    }

    /// Returns the sums of all `keys`, in their order; the reads overlap.
    ///
    /// # Errors
    /// As [`sum`](Self::sum).
    pub fn sum_many(&self, keys: &[&[u8]]) -> Result<Vec<i64>> {
        self.core.sum_many(keys)
    }

    /// Opens a stream of queries: the device's queue stays full from the first key to the last, without pauses between
    /// batches. Each thread opens its own stream.
    ///
    /// ```
    /// # use std::sync::Arc;
    /// # use nandex::counting::Config;
    /// # use nandex::{Counter, Counting, Volume, VolumeOptions, device::MemoryDevice};
    /// # let volume = Volume::create(Arc::new(MemoryDevice::new()), VolumeOptions::tiny())?;
    /// let words = Counting::create(&volume, "words", Config::tiny())?;
    /// words.add(b"notebook", 2)?;
    /// let mut stream = words.stream();
    /// for (token, word) in (0..).zip([b"notebook", b"sketches"]) {
    ///     stream.push(word, token)?;
    /// }
    /// let mut sums = [0; 2];
    /// while let Some((token, sum)) = stream.pull()? {
    ///     sums[token as usize] = sum;
    /// }
    /// assert_eq!(sums, [2, 0]);
    /// # Ok::<(), nandex::Error>(())
    /// ```
    #[must_use]
    pub fn stream(&self) -> CountStream<'_> {
        CountStream::new(&self.core)
    }

    /// Returns all keys, as they are stored, with their sums other than 0, in the order of their hash. Each partition
    /// is seen as it was when the iteration reached it. Reads each segment once, in I/O chunks, and holds a copy of one
    /// partition's buffers in RAM.
    #[must_use]
    pub fn iter(&self) -> Counts {
        Counts::new(Arc::clone(&self.core))
    }

    /// Returns the `count` keys with the greatest counts, greatest first; among equal counts the smaller key first. The
    /// result is exact: it reads the whole table once. Holds `count` keys in RAM.
    ///
    /// # Errors
    /// A failed read, damage.
    pub fn top(&self, count: usize) -> Result<Vec<(Vec<u8>, u64)>> {
        Inner::top(&self.core, count)
    }

    /// Merges everything that is buffered and staged: afterwards a query reads one page. Reads and writes everything
    /// once. Updates and queries continue meanwhile. All updates acknowledged before it are durable when it returns.
    ///
    /// # Errors
    /// A failed read or write, damage, no space for a new data segment in addition to the old one.
    pub fn compact(&self) -> Result<()> {
        self.core.merge_each(merge::NO_EXTRA_OF_ANY)
    }

    /// Adds the contents of another table, on this volume or another one, in one pass that reads and writes each byte
    /// once. Removals that were acknowledged before this call precede it. The other table does not change. A crash may
    /// leave some partitions with the additions and others without: absorb into a table that can be recreated.
    ///
    /// # Errors
    /// [`Error::Config`](crate::Error::Config) unless both store keys alike and have one hash function with one key; as
    /// [`compact`](Self::compact).
    pub fn absorb(&self, other: &Self) -> Result<()> {
        self.absorb_watched(other, &|_| ControlFlow::Continue(()))
    }

    /// Like [`absorb`](Self::absorb), and reports the share that is done, 0 to 1, to `watch` every few thousand keys,
    /// which may cancel the operation. What was absorbed before stays.
    ///
    /// # Errors
    /// As [`absorb`](Self::absorb); [`Error::Stopped`](crate::Error::Stopped) if `watch` cancels it.
    pub fn absorb_watched(
        &self,
        other: &Self,
        watch: &(dyn Fn(f64) -> ControlFlow<()> + Sync),
    ) -> Result<()> {
        self.core.absorb(&other.core, watch)
    }

    /// Begins to add counts of keys in the order of their hash, which reads and writes each data segment once and logs
    /// nothing: the cheapest way to fill a table. Holds the counts of one partition in RAM, and adds them when the next
    /// partition's arrive, after all updates up to then. A crash may leave some partitions with the additions and
    /// others without, as with [`absorb`](Self::absorb).
    ///
    /// ```
    /// # use std::sync::Arc;
    /// # use nandex::{Counter, Counting, Volume, VolumeOptions, counting::Config, device::MemoryDevice};
    /// let volume = Volume::create(Arc::new(MemoryDevice::new()), VolumeOptions::tiny())?;
    /// let words = Counting::create(&volume, "words", Config::tiny())?;
    /// let mut sorted = vec![(*b"notebook", 3), (*b"keyboard", 2)];
    /// sorted.sort_by_key(|(key, _)| (volume.hasher().hash(key).place, *key));
    /// let mut absorbing = words.absorb_sorted();
    /// sorted.iter().try_for_each(|(key, amount)| absorbing.push(key, *amount))?;
    /// absorbing.finish()?;
    /// assert_eq!(words.count(b"notebook")?, 3);
    /// # Ok::<(), nandex::Error>(())
    /// ```
    #[must_use]
    pub fn absorb_sorted(&self) -> Absorbing<'_> {
        Absorbing::new(self)
    }

    /// Returns its stages and merges, in the paper's terms.
    #[must_use]
    pub fn counting_stats(&self) -> CountingStats {
        self.core.counting_stats()
    }
}
