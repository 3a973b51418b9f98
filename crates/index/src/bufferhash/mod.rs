//! BufferHash: a hash table on flash that writes only whole buffers, one after another (NSDI'10).
//!
//! Keys are spread over super tables by their hash. Each super table collects inserts in a RAM buffer;
//! a full buffer goes to flash in one sequential write and is called an incarnation. All super tables
//! share one ring of segments, so the whole device sees a single sequential stream; only on a raw flash
//! chip each has a ring of its own (`rings`). Filters in RAM,
//! one per incarnation, tell which incarnations may hold a key; a lookup reads one page of each of
//! those, newest first, and nearly always that is one page or none.
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
//! 3. Every logged update is in a written segment, in an image, or at or after the log tail that the
//!    next checkpoint will hold.
//! 4. Incarnations come and go, and columns are written, only in the super table's turn.
//! 5. Locks are taken in this order: a turn, a super table's state, ring or log or pool; nobody waits
//!    for a checkpoint or a free buffer while holding one.
//!
//! | operation | flash reads | flash writes | RAM |
//! |---|---|---|---|
//! | insert, remove | 0 | its share of a segment: entry bytes / fill, and of the log | `buffer / k` |
//! | lookup, found | 1 + at most the filters' rate | 0 | filter bits per entry |
//! | lookup, not found | the filters' rate, see `advise` | 0 | |
//! | flush of a buffer | 0 (partial discard: one segment) | one segment | |

mod check;
pub mod config;
mod evict;
pub mod filter;
mod flush;
pub mod format;
mod iter;
pub mod model;
mod read;
mod recover;
mod rings;
mod row;
mod table;
#[cfg(feature = "testing")]
mod testing;

#[cfg(test)]
mod tests;

use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::{Acquire, Relaxed};

use nandex_device::PAGE_BYTES;
use nandex_store::hash::KeyHash;
use nandex_store::ring::SegmentId;
use nandex_store::{Lsn, Volume};

use crate::intake::{self, Handle, Intake, Room};
use crate::{Error, Result};

use check::{check, refuse_chip};
pub use config::{Config, Placement, Policy, Priority, RuntimeOptions};
pub use iter::Iter;
pub(crate) use row::ROW;

use filter::{Filter, Slices};
use rings::Rings;
use table::{Frozen, Job, Level, State};

/// How the catalog names this room.
pub const KIND: &str = "bufferhash";

/// A hash table on flash from fixed-width keys to fixed-width values.
///
/// Cheap to look up in and to insert into from any number of threads; dropping it saves what is
/// buffered, so that the next open finds it. See the [module](self) for how it works and what it costs.
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
#[derive(Debug)]
pub struct BufferHash {
    handle: Handle<Incarnations>,
}

intake::delegate_table!(BufferHash);

/// What BufferHash adds to the intake.
#[derive(Debug)]
pub(crate) struct Incarnations {
    config: Config,
    options: RuntimeOptions,
    filter: Filter,
    rings: Rings,
    /// Evictions that partial discards may still make, in thousandths.
    cascade_credit: AtomicU64,
    /// The priority threshold, where the policy has one.
    threshold: AtomicU64,
}

type Inner = Intake<Incarnations>;

impl BufferHash {
    /// Creates a table in a volume, with default [`RuntimeOptions`].
    ///
    /// # Errors
    /// A configuration that cannot work, a name that is taken, no space, a failed write.
    pub fn create(volume: &Volume, name: &str, config: Config) -> Result<Self> {
        Self::create_with(volume, name, config, RuntimeOptions::default())
    }

    /// Creates a table of 8-byte keys and values for that many entries within that much RAM, with the
    /// parameters that the cost model of section 6 advises. See [`Config::advised`] for other widths and
    /// requirements.
    ///
    /// # Errors
    /// A budget too small for the table, with the least that would do; else as [`create`](Self::create).
    pub fn with_budget(volume: &Volume, name: &str, budget: model::Budget) -> Result<Self> {
        Self::create(volume, name, Config::advised(&budget.into())?)
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
        let shape = config.shape()?;
        intake::check_log(volume, &shape)?;
        rings::grow_chip(volume, &config, &options)?;
        let pages = config.volume_ring_pages() + intake::image::pages(&shape);
        let structure = volume.create_structure(name, KIND, config.encode(), pages)?;
        recover::open(volume, &structure, options)
    }

    /// Opens a table of a volume, with default [`RuntimeOptions`].
    ///
    /// Reads images of buffers and the log's tail; filters are loaded in the background, or when the
    /// first lookup needs them.
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
        let structure = volume.open_structure(name, KIND)?;
        recover::open(volume, &structure, options)
    }

    /// What it was created with.
    #[must_use]
    pub fn config(&self) -> &Config {
        &self.handle.inner.room.config
    }

    /// All entries, each key once with its newest value, in no order.
    ///
    /// Each super table is seen as it was when the iteration reached it, except that incarnations
    /// evicted while they are being read are missing. Reads the whole table once, sequentially, and
    /// one page for each entry that a newer version may hide.
    #[must_use]
    pub fn iter(&self) -> Iter<'_> {
        Iter::new(&self.handle.inner)
    }

    /// Changes the threshold of [`Policy::Threshold`], from the next eviction on, until reopened.
    pub fn set_threshold(&self, priority: u64) {
        self.handle.inner.room.threshold.store(priority, Relaxed);
    }

    /// Waits until the filters of a table that was just opened are loaded, so that no lookup has to.
    ///
    /// # Errors
    /// A failed read, or damage.
    pub fn load_filters(&self) -> Result<()> {
        let inner = &self.handle.inner;
        (0..inner.partitions.len()).try_for_each(|index| inner.load_filters(index))
    }
}

impl Room for Incarnations {
    type Level = Level;
    type Beside = Slices;
    type Held = Option<SegmentId>;
    type Job = Job;
    type Scratch = flush::Scratch;

    fn may_be_older(inner: &Inner, index: usize, state: &State, hash: KeyHash, key: &[u8]) -> bool {
        inner.may_be_older(index, state, hash, key)
    }

    /// Where nothing is evicted, a buffer is frozen only once its segment is certain.
    fn hold(inner: &Inner, index: usize, state: &State) -> Result<Option<SegmentId>> {
        if inner.evicts() { Ok(None) } else { inner.reserve_or_full(index, state).map(Some) }
    }

    fn flush(
        inner: &Inner,
        index: usize,
        frozen: Frozen,
        scratch: &mut flush::Scratch,
    ) -> Result<()> {
        inner.flush_one(index, frozen, scratch)
    }

    fn new_scratch(inner: &Inner) -> Result<flush::Scratch> {
        inner.new_scratch()
    }

    fn run(inner: &Inner, job: Job, _scratch: &mut Option<flush::Scratch>) -> Result<()> {
        inner.run(job)
    }

    /// A partial discard logs what it puts back.
    fn logs_always(&self) -> bool {
        self.config.policy.is_partial()
    }

    /// Where evictions put entries back, one is theirs: else, with every buffer waiting for a segment,
    /// none could be freed without dropping what is to stay.
    fn spares_left(&self) -> usize {
        usize::from(self.config.policy.is_partial())
    }

    fn entries_below(state: &State) -> u64 {
        state.level.entries()
    }

    fn ram_bytes(inner: &Inner) -> u64 {
        let slices = inner.partitions.iter().map(|table| table.beside.ram_bytes());
        (slices.sum::<usize>() + inner.room.rings.ram_bytes()) as u64
    }

    fn flash_bytes(inner: &Inner) -> u64 {
        let images = intake::image::pages(&inner.shape);
        (inner.room.config.ring_pages() + images) * PAGE_BYTES as u64
    }

    fn prepare(inner: &Inner) -> Result<()> {
        inner.evict_ahead()
    }

    fn capture(inner: &Inner, _log_now: Lsn) -> Vec<u8> {
        inner.room.rings.capture()
    }

    fn committed(inner: &Inner) {
        inner.room.rings.committed();
    }

    fn recovered(inner: &Inner) {
        inner.queue_filter_loads();
    }
}

impl Inner {
    /// May the policy drop what nobody asked it to drop?
    fn evicts(&self) -> bool {
        self.room.config.policy != Policy::Reject
    }

    fn reserve_or_full(&self, index: usize, state: &State) -> Result<SegmentId> {
        let waiting = state.frozen.len();
        // A crash leaves segments that were being written unused, and recovery writes them again
        // elsewhere: the reserve is for that.
        let reserve = if self.ready.load(Acquire) { self.room.rings.reserve_segments() } else { 0 };
        let ring = self.room.rings.of(index);
        let most = self.room.config.incarnations_max as usize;
        let room = state.level.window.len() + waiting < most && ring.free_segments() > reserve;
        let segment = if room { ring.reserve() } else { None };
        segment.ok_or_else(|| Error::Full {
            entries: self.counters.flushed_entries.load(Relaxed),
            flash_bytes: Incarnations::flash_bytes(self),
        })
    }
}
