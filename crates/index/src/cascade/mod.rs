//! The cascade filter (HotStorage'11): "is this key in the set?" for sets whose filter is larger than RAM.
//!
//! A filter cannot be stored on flash bit by bit: each insert would rewrite random pages. So fingerprints of keys are
//! collected in buffers in RAM. A full one is sorted and **merged** with sorted lists on flash, its levels, in one pass
//! from front to back. A level is a run: the page of a fingerprint is computed, so a lookup reads one page per level,
//! and RAM needs no index.
//!
//! ```text
//!     insert, delete, add                  contains, count
//!          |                                 |
//!          +--> log                          | 1. the part's buffers: the sum of what they say
//!          v                                 v
//!   part 0     part 1     part 2      . . . . . . . . . . . . . . . . . . . . . . . . . . .
//!   [### ]     [#   ]     [####] full        | 2. one page of each of the part's levels
//!                            |               v
//!                            |   merged with level 0   |....|
//!                            +-> one pass    level 1   |........|     its page by arithmetic:
//!                                            level 2   |................|  f * pages / universe
//! ```
//!
//! The deck has one buffer, and needs a second one while the first is merged. Here the universe is divided into
//! **parts**, each with its own buffer and levels, and the parts' buffers fill up one after another. So a merge is
//! short and takes one buffer of many, while the RAM of all others holds fingerprints.
//!
//! A key's count is the sum over its part's buffers and levels. A delete is a count of -1: it cancels an insert at once
//! in the buffer, and on flash when the two are merged; until then the sum is correct. A fingerprint that two keys
//! share has both their counts, so deleting one key never hides the other.
//!
//! Invariants
//! 1. A fingerprint stands for the same keys in all buffers and levels, so the rate of false positives is at
//!    most entries / universe, however many levels there are.
//! 2. A lookup sees one moment: a part's buffers and list of runs are read under one lock, and a run that a
//!    lookup may still read keeps its pages.
//! 3. Everything that the invariants of the write path say about partitions, which are the parts here, and about
//!    updates that add up.
//! 4. A merge writes a new run in addition to the old ones. One checkpoint replaces them; their pages are
//!    reused only when that is durable.
//! 5. Tombstones end where nothing older is below them.
//!
//! | act | flash reads | flash writes | RAM |
//! |---|---|---|---|
//! | insert, delete, add | 0 | its share of the log, (bits + 1) / 8 bytes, and of merges | the buffers |
//! | merge into a level | all runs it takes, once | the new run, once | three I/O chunks for each of them |
//! | contains, count | one page for each level; none if a buffer has the key and nothing was deleted | 0 | one page |
//! | open | snapshots of buffers, and the log from the oldest boundary on | 0 | |

mod absent;
mod absorb;
mod buffer;
mod check;
mod config;
mod format;
pub(crate) mod iter;
mod levels;
mod merge;
pub(crate) mod model;
mod read;
mod recover;
mod runs;
mod snapshot;
mod stats;
mod structure;
mod sweep;
#[cfg(feature = "testing")]
mod testing;
#[cfg(test)]
mod tests;
mod update;

use std::ops::Range;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::{Arc, MutexGuard};

use nandex_store::Lsn;
use nandex_store::fingerprint::Universe;
use nandex_store::mutants::{Barrier, is_on};
use nandex_store::space::Extent;

use crate::Result;
use crate::write::{
    CapturedMaps, Checkpoints, Core, Frozen, Handle, Layout, PartitionState, Space, Usage,
    WritePolicy,
};

use check::check;
pub use config::{Config, FAN_OUT_MIN, PARTS_MAX};
pub(crate) use iter::Fingerprints;
pub(crate) use nandex_store::run::Entry;

use buffer::FingerprintBuffer;
use levels::Levels;
pub(crate) use structure::CascadeLayout;

/// The kind of a cascade filter in the catalog.
pub const KIND: &str = "cascade";

/// A cascade filter in a volume.
///
/// ```
/// use std::sync::Arc;
/// use nandex::cascade::Config;
/// use nandex::{Cascade, Counter, Filter, Volume, VolumeOptions, device::MemoryDevice};
///
/// let volume = Volume::create(Arc::new(MemoryDevice::new()), VolumeOptions::tiny())?;
/// let seen = Cascade::create(&volume, "seen", Config::tiny())?;
/// seen.insert(b"a page's address")?;
/// assert!(seen.contains(b"a page's address")?);
/// assert_eq!(seen.count(b"a page's address")?, 1);
/// seen.delete(b"a page's address")?;
/// assert!(!seen.contains(b"a page's address")?);
/// # Ok::<(), nandex::Error>(())
/// ```
pub type Cascade = Handle<CascadeLayout>;

type Inner = Core<CascadeLayout>;
type Part = PartitionState<CascadeLayout>;

impl Inner {
    fn fingerprint(&self, key: &[u8]) -> u64 {
        self.layout.universe.of(self.hasher.hash(key).place)
    }

    /// Returns the part of a key, and its fingerprint counted from the part's first.
    fn place(&self, key: &[u8]) -> (usize, u64) {
        let fingerprint = self.fingerprint(key);
        let part = self.layout.split.quotient(fingerprint) as usize;
        (part, fingerprint - self.partitions[part].unlocked)
    }
}

impl CascadeLayout {
    /// The fingerprints of a part.
    fn fingerprints(&self, part: usize) -> Range<u64> {
        self.split.first(part as u64)..self.split.first(part as u64 + 1)
    }

    /// Fingerprints stored, each once per buffer and run that has it.
    fn entries(&self) -> u64 {
        self.buffer_ram.entries() + self.counters.level_entries.load(Relaxed)
    }

    fn hold_maps(&self) -> MutexGuard<'_, ()> {
        self.maps.lock().expect("no holder of the maps' lock panics")
    }
}

impl Part {
    /// Returns the count of a fingerprint in the buffers.
    fn buffered(&self, fingerprint: u64) -> Result<i64> {
        let add =
            |sum: i64, buffer: &FingerprintBuffer| sum.saturating_add(buffer.count(fingerprint));
        Ok(self.buffers()?.fold(0, add))
    }

    /// Returns whether lookups may meet tombstones. Then they must read all levels.
    fn may_have_tombstones(&self) -> Result<bool> {
        Ok(self.buffers()?.any(|buffer| buffer.has_tombstones)
            || self.level.readable().any(|run| run.tombstones() > 0))
    }

    /// The part's extents on flash: its levels, and the snapshot that recovery needs.
    fn extents(&self) -> impl Iterator<Item = Extent> {
        self.level.extents().chain(self.snapshot_extent())
    }
}

impl Layout for CascadeLayout {
    type Buffer = FingerprintBuffer;
    type Level = Arc<Levels>;
    /// The part's first fingerprint; its buffers and runs count from there.
    type Unlocked = u64;
    type Reserved = ();
    type Job = std::convert::Infallible;
    type Scratch = ();

    fn policy(&self) -> WritePolicy {
        WritePolicy {
            retries_flushes: true,
            pace_updates: Some(self.config.part_entries()),
            ..WritePolicy::default()
        }
    }

    fn new_buffer(&self) -> FingerprintBuffer {
        FingerprintBuffer::new(&self.buffer_ram)
    }

    fn reserve(_core: &Inner, _part: usize, _state: &Part) -> Result<Space<()>> {
        Ok(Space::Reserved(()))
    }

    fn flush(core: &Inner, part: usize, frozen: Frozen<Self>, (): &mut ()) -> Result<()> {
        core.merge_frozen(part, frozen.buffer)
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

impl Checkpoints for CascadeLayout {
    fn lock_maps(&self) -> Option<MutexGuard<'_, ()>> {
        is_on(Barrier::RunsCaptureHoldsMaps).then(|| self.hold_maps())
    }

    fn capture(core: &Inner, _log_now: Lsn) -> CapturedMaps {
        core.capture_levels()
    }

    fn committed(_core: &Inner) {}

    fn recovered(core: &Inner) {
        core.layout.buffer_ram.recovered();
    }
}

impl Cascade {
    /// The universe of the fingerprints; every part has a share of it.
    #[must_use]
    pub fn universe(&self) -> Universe {
        self.core.layout.universe
    }

    /// Returns the pages of all levels on flash, which is what a [`sweep`](Self::sweep) reads. Takes the lock of each
    /// part for a moment.
    #[must_use]
    pub fn level_pages(&self) -> u64 {
        self.core.level_pages()
    }

    /// Returns all fingerprints with their counts, in ascending order. Each part is seen as it was when the iteration
    /// reached it. Reads each run once, in I/O chunks, and holds a copy of one part's buffers in RAM.
    #[must_use]
    pub fn iter(&self) -> Fingerprints {
        Fingerprints::new(Arc::clone(&self.core))
    }

    /// Returns the counts of all `keys`, in their order, by reading the whole filter once from front to back. It pays
    /// off if reading the keys' pages one by one would take longer: from about half as many keys on as the filter has
    /// pages, on a drive with 60,000 random reads a second and 1 GB/s in I/O chunks. Takes 24 bytes of RAM for each
    /// key. In [`FilterStats::reads_histogram`](crate::FilterStats::reads_histogram) these lookups count as reading no
    /// page.
    ///
    /// # Errors
    /// A failed read, damage.
    pub fn sweep(&self, keys: &[&[u8]]) -> Result<Vec<u64>> {
        self.core.sweep(keys)
    }

    /// Returns of each key whether it is absent and no earlier one of `keys` has its fingerprint: what a caller inserts
    /// who wants each key once. Reads the whole filter once, as [`sweep`](Self::sweep) does, if that takes less time
    /// than a page for each key. Takes 17 bytes of RAM for each key, and up to 24 more if it reads pages.
    ///
    /// # Errors
    /// A failed read, damage.
    pub fn first_absent(&self, keys: &[&[u8]]) -> Result<Vec<bool>> {
        self.core.first_absent(keys)
    }

    /// Merges all levels and buffers into one run: afterwards a lookup reads one page, deletes are gone, and no page is
    /// wasted. Use it to shrink a filter after many deletes. Reads and writes everything once, or twice if much cancels
    /// out. Inserts and lookups continue meanwhile. All updates acknowledged before it are durable when it returns.
    ///
    /// # Errors
    /// A failed read or write, damage, no space for the new run in addition to the old ones.
    pub fn compact(&self) -> Result<()> {
        self.core.compact()
    }

    /// Adds the contents of another filter, on this volume or another one: merges all runs, and the other's buffers, in
    /// one pass that reads and writes each byte once. The other filter does not change.
    ///
    /// # Errors
    /// [`Error::Config`](crate::Error::Config) unless both have one universe and one hash function with one
    /// key; as [`compact`](Self::compact).
    pub fn absorb(&self, other: &Self) -> Result<()> {
        self.absorb_all(&[other])
    }

    /// Adds the contents of several filters, like [`absorb`](Self::absorb), in one pass over all of them: no byte is
    /// written more than once, however many there are.
    ///
    /// # Errors
    /// As [`absorb`](Self::absorb). Nothing is added if the filters do not match; parts that were merged before a
    /// failed read or write keep what was added.
    pub fn absorb_all(&self, others: &[&Self]) -> Result<()> {
        let others: Vec<&Inner> = others.iter().map(|other| &*other.core).collect();
        self.core.absorb(&others)
    }
}
