//! The cascade filter (HotStorage'11): "is this key in the set?" for sets whose filter is larger than RAM.
//!
//! A filter cannot be kept on flash bit by bit: each insert would rewrite random pages. So fingerprints of
//! keys are collected in quotient filters in RAM, and because those are sorted lists, a full one is **merged**
//! with sorted lists on flash, its levels, in one pass from front to back. A level is a run: the page of a
//! fingerprint is found by arithmetic, so that a lookup reads one page per level and RAM holds nothing of it.
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
//! The deck has one buffer, which needs a second one beside it while it is merged. Here the universe is cut in
//! **parts**, each with a buffer and levels of its own, and the parts' buffers fill up one after another. So a
//! merge is short, takes one buffer out of many, and all the others' RAM holds fingerprints meanwhile.
//!
//! A key's count is the sum over its part's buffers and levels. A delete is a count of -1: it cancels what it
//! meets, in the buffer at once and on flash when the two are merged, and until then the sum is right. A
//! fingerprint that two keys share has both their counts, so taking one away never hides the other.
//!
//! Invariants
//! 1. A fingerprint stands for the same keys in all buffers and levels, so the rate of false positives is at
//!    most entries / universe, however many levels there are.
//! 2. What a lookup sees is one moment's: a part's buffers and list of runs are read under one lock, and a
//!    run that a lookup may still read keeps its pages.
//! 3. A part's updates before the cut that the checkpoint names are in its runs, each exactly once; those
//!    behind it are in the log and nowhere in its runs. So a replay counts nothing twice.
//! 4. A merge writes a new run beside the old ones. One checkpoint puts it in their place; only when that is
//!    durable are their pages used again.
//! 5. Tombstones end where nothing older is left below.
//! 6. Locks are taken in this order: a part's turn, the part, then the log, the spare buffers or the retired
//!    runs; nobody waits for a checkpoint, for the log's room or for a merge while holding a part.
//!
//! | act | flash reads | flash writes | RAM |
//! |---|---|---|---|
//! | insert, delete, add | 0 | its share of the log, (bits + 1) / 8 bytes, and of merges | the buffers |
//! | merge into a level | all runs it takes, once | the new run, once | three strokes for each of them |
//! | contains, count | one page for each level; none where a buffer says yes and nothing was deleted | 0 | one page |
//! | open | images of buffers, and the log from the oldest cut on | 0 | |

mod absorb;
mod buffer;
mod check;
mod config;
mod format;
mod iter;
mod levels;
mod merge;
pub mod model;
mod part;
mod read;
mod recover;
mod row;
mod stats;
mod sweep;
#[cfg(feature = "testing")]
mod testing;
#[cfg(test)]
mod tests;
mod work;
mod write;

use std::sync::atomic::AtomicU64;
use std::sync::{Arc, Mutex, MutexGuard};
use std::thread::JoinHandle;

use nandex_device::Device;
use nandex_store::fingerprint::{Split, Universe};
use nandex_store::hash::KeyHasher;
use nandex_store::run::Run;
use nandex_store::{Lsn, Shutdown, StructureId, Volume};

use crate::Result;
use crate::api::{Counter, Filter, FilterStats};
use crate::lookup::Lookups;

use check::check;
pub use config::{Config, FAN_OUT_MIN, PARTS_MAX, RuntimeOptions, WhenFull};
pub use iter::Fingerprints;
pub use nandex_store::run::Entry;
pub(crate) use row::ROW;

use buffer::Buffer;
use part::Part;
use work::{Pace, Work};

/// How the catalog names a cascade filter.
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
#[derive(Debug)]
pub struct Cascade {
    inner: Arc<Inner>,
    thread: Option<JoinHandle<()>>,
    closed: bool,
}

/// What the handle, the merging thread and the volume's checkpoints share.
struct Inner {
    volume: Volume,
    id: StructureId,
    config: Config,
    options: RuntimeOptions,
    universe: Universe,
    /// How it is cut in parts, and what each part's fingerprints are counted in, from its first.
    split: Split,
    part_universe: Universe,
    hasher: KeyHasher,
    device: Arc<dyn Device>,
    /// Bytes of an update in the log.
    update_bytes: usize,
    /// Where the log began when the filter was opened: its tail before the first cut.
    tail: Lsn,
    parts: Vec<Part>,
    /// Empty buffers, for parts whose own is full.
    spares: Mutex<Vec<Buffer>>,
    next_cut: AtomicU64,
    next_run: AtomicU64,
    unmatched: AtomicU64,
    /// Runs that are out of the list and may still be read.
    retired: Mutex<Vec<Arc<Run>>>,
    work: Work,
    pace: Pace,
    lookups: Lookups,
    counters: stats::Counters,
}

impl Inner {
    fn fingerprint(&self, key: &[u8]) -> u64 {
        self.universe.of(self.hasher.hash(key).place)
    }

    /// The part of a key, and its fingerprint counted from the part's first.
    fn place(&self, key: &[u8]) -> (usize, u64) {
        let fingerprint = self.fingerprint(key);
        let number = self.split.quotient(fingerprint) as usize;
        (number, fingerprint - self.parts[number].first)
    }

    fn spares(&self) -> MutexGuard<'_, Vec<Buffer>> {
        self.spares.lock().expect("no holder of the spare buffers panics")
    }

    fn retired(&self) -> MutexGuard<'_, Vec<Arc<Run>>> {
        self.retired.lock().expect("no holder of the retired runs panics")
    }
}

impl std::fmt::Debug for Inner {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let mut out = f.debug_struct("Inner");
        out.field("id", &self.id).field("config", &self.config).field("parts", &self.parts);
        out.finish_non_exhaustive()
    }
}

impl Cascade {
    /// Creates a cascade filter in a volume, with the options that suit it. It takes its pages as it grows.
    ///
    /// # Errors
    /// [`Error::Config`](crate::Error::Config), a name that is taken, a failed write.
    pub fn create(volume: &Volume, name: &str, config: Config) -> Result<Self> {
        config.validate()?;
        Self::create_with(volume, name, config, RuntimeOptions::suited(&config)?)
    }

    /// Creates a cascade filter in a volume.
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
        recover::check_log(volume, &config)?;
        let structure = volume.create_structure(name, KIND, config.encode(), 0)?;
        recover::open(volume, &structure, options)
    }

    /// Opens a cascade filter of a volume by its name, with the options that suit it: loads images of its
    /// buffers and replays the log's updates.
    ///
    /// # Errors
    /// No structure of that name and kind, one that is open already, damage, a failed read.
    pub fn open(volume: &Volume, name: &str) -> Result<Self> {
        let structure = volume.open_structure(name, KIND)?;
        let options = RuntimeOptions::suited(&recover::config_of(&structure)?)?;
        recover::open(volume, &structure, options)
    }

    /// Opens a cascade filter of a volume by its name.
    ///
    /// # Errors
    /// As [`open`](Self::open).
    pub fn open_with(volume: &Volume, name: &str, options: RuntimeOptions) -> Result<Self> {
        options.validate()?;
        let structure = volume.open_structure(name, KIND)?;
        recover::open(volume, &structure, options)
    }

    /// What it was created with.
    #[must_use]
    pub fn config(&self) -> &Config {
        &self.inner.config
    }

    /// The fingerprints there are; all parts of it have this universe.
    #[must_use]
    pub fn universe(&self) -> Universe {
        self.inner.universe
    }

    /// All fingerprints with their counts, in ascending order. What is buffered is saved first, as by
    /// [`Filter::flush`]; updates that come later are not in it. Reads each run once, in strokes.
    ///
    /// # Errors
    /// A failed write or sync of what is buffered.
    pub fn iter(&self) -> Result<Fingerprints> {
        self.inner.iterate()
    }

    /// The counts of all of `keys`, in their order, by reading the whole filter once from front to back: for so
    /// many keys at once that their pages, read one by one, would take longer. That is about half as many as the
    /// filter has pages, on a drive that reads 60,000 of them a second at random and 1 GB/s in strokes. Takes 32
    /// bytes of RAM for each key. In [`FilterStats::reads_histogram`] such lookups count as reading none.
    ///
    /// # Errors
    /// A failed read, damage.
    pub fn sweep(&self, keys: &[&[u8]]) -> Result<Vec<u64>> {
        self.inner.sweep(keys)
    }

    /// Makes one run of all levels and buffers, so that a lookup reads one page, deletes are gone, and no page
    /// is kept that is not needed: what shrinks a filter of which much was deleted. Reads and writes all of it
    /// once, twice where much cancels out. Inserts and lookups go on.
    ///
    /// # Errors
    /// A failed read or write, damage, no space for the new run beside the old ones.
    pub fn compact(&self) -> Result<()> {
        self.inner.compact()
    }

    /// Adds all that another filter holds, on this volume or another one. It saves the buffers of both, then
    /// merges all runs in one pass, reading and writing each byte once. The other one stays as it is.
    ///
    /// # Errors
    /// [`Error::Config`](crate::Error::Config) unless both have one universe and one hash function with one
    /// key; as [`compact`](Self::compact).
    pub fn absorb(&self, other: &Self) -> Result<()> {
        self.absorb_all(&[other])
    }

    /// Adds all that some other filters hold, as [`absorb`](Self::absorb), in one pass over all of them: no
    /// byte is written more than once, however many there are.
    ///
    /// # Errors
    /// As [`absorb`](Self::absorb); nothing was added then.
    pub fn absorb_all(&self, others: &[&Self]) -> Result<()> {
        let others: Vec<&Inner> = others.iter().map(|other| &*other.inner).collect();
        self.inner.absorb(&others)
    }

    /// Saves what is buffered and ends the merging thread. Dropping does the same, and ignores failures.
    ///
    /// # Errors
    /// A failed write or sync. What was acknowledged as durable is in the log nevertheless.
    pub fn close(mut self) -> Result<()> {
        self.shut_down()
    }

    fn shut_down(&mut self) -> Result<()> {
        if std::mem::replace(&mut self.closed, true) {
            return Ok(());
        }
        let saved = self.inner.save();
        self.inner.work.stop();
        if let Some(thread) = self.thread.take() {
            // A panic over there is a bug that its own message has told.
            let _ = thread.join();
        }
        let whole = saved.is_ok() && !self.inner.volume.poison().is_set();
        let left = if whole { Shutdown::Clean } else { Shutdown::NeedsReplay };
        self.inner.volume.deregister(self.inner.id, left);
        saved
    }
}

impl Drop for Cascade {
    fn drop(&mut self) {
        // Nobody is left to be told; what was acknowledged as durable is in the log.
        let _ = self.shut_down();
    }
}

impl Filter for Cascade {
    fn insert(&self, key: &[u8]) -> Result<()> {
        self.inner.update_keys(&[key], false)
    }

    fn delete(&self, key: &[u8]) -> Result<()> {
        self.inner.update_keys(&[key], true)
    }

    fn contains(&self, key: &[u8]) -> Result<bool> {
        self.inner.contains(key)
    }

    fn insert_many(&self, keys: &[&[u8]]) -> Result<()> {
        self.inner.update_keys(keys, false)
    }

    fn delete_many(&self, keys: &[&[u8]]) -> Result<()> {
        self.inner.update_keys(keys, true)
    }

    fn contains_many(&self, keys: &[&[u8]]) -> Result<Vec<bool>> {
        self.inner.contains_many(keys)
    }

    fn sync(&self) -> Result<()> {
        self.inner.sync()
    }

    fn flush(&self) -> Result<()> {
        self.inner.save()
    }

    fn stats(&self) -> FilterStats {
        self.inner.stats()
    }
}

impl Counter for Cascade {
    fn add(&self, key: &[u8], amount: i64) -> Result<()> {
        self.inner.add_keys(&[(key, amount)])
    }

    fn count(&self, key: &[u8]) -> Result<u64> {
        self.inner.count(key)
    }

    fn add_many(&self, amounts: &[(&[u8], i64)]) -> Result<()> {
        self.inner.add_keys(amounts)
    }

    fn count_many(&self, keys: &[&[u8]]) -> Result<Vec<u64>> {
        self.inner.count_many(keys)
    }

    fn sync(&self) -> Result<()> {
        self.inner.sync()
    }

    fn flush(&self) -> Result<()> {
        self.inner.save()
    }

    fn stats(&self) -> FilterStats {
        self.inner.stats()
    }
}
