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
mod image;
mod iter;
pub mod model;
mod pool;
mod read;
mod recover;
mod rings;
mod stats;
mod table;
mod write;

#[cfg(test)]
mod tests;

use std::sync::atomic::Ordering::Acquire;
use std::sync::atomic::{AtomicBool, AtomicU64};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;

use nandex_store::entries::EntryLayout;
use nandex_store::hash::{KeyHash, KeyHasher};
use nandex_store::{Left, StructureId, Volume};

use crate::api::{Table, TableStats, Value};
use crate::{Error, Result};

pub(crate) use check::{check, refuse_chip};
pub use config::{Config, Placement, Policy, Priority, RuntimeOptions};
pub use iter::Iter;

use filter::Filter;
use pool::{BufferPool, LanePool, ScratchPool, WorkQueue};
use rings::Rings;
use stats::Counters;
use table::SuperTable;

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
    inner: Arc<Inner>,
    threads: Vec<JoinHandle<()>>,
    closed: bool,
}

/// What the handle, its threads and the volume's checkpoints share.
#[derive(Debug)]
pub(crate) struct Inner {
    volume: Volume,
    id: StructureId,
    config: Config,
    options: RuntimeOptions,
    layout: EntryLayout,
    hasher: KeyHasher,
    filter: Filter,
    rings: Rings,
    images: image::Images,
    tables: Vec<SuperTable>,
    pool: BufferPool,
    lanes: LanePool,
    scratches: ScratchPool,
    work: WorkQueue,
    counters: Counters,
    /// Evictions that partial discards may still make, in thousandths.
    cascade_credit: AtomicU64,
    /// The priority threshold, where the policy has one.
    threshold: AtomicU64,
    /// The log's place that recovery has reached; past every place once it has finished.
    replayed: AtomicU64,
    /// Were all log entries read and all background threads started?
    ready: AtomicBool,
    /// One `flush` at a time.
    flush_turn: Mutex<()>,
}

impl BufferHash {
    /// Creates a table in a volume, with default [`RuntimeOptions`].
    ///
    /// # Errors
    /// A configuration that cannot work, a name that is taken, no space, a failed write.
    pub fn create(volume: &Volume, name: &str, config: Config) -> Result<Self> {
        Self::create_with(volume, name, config, RuntimeOptions::default())
    }

    /// Creates a table of 8-byte keys and values for that many entries within that much RAM, with the
    /// parameters that the cost model of section 6 advises. See [`model::Need`] for other widths and
    /// wishes, and [`Config::advised`] for what becomes of them.
    ///
    /// # Errors
    /// A budget too small for the table, with the least that would do; else as [`create`](Self::create).
    pub fn with_budget(
        volume: &Volume,
        name: &str,
        model::Budget { entries, ram_bytes }: model::Budget,
    ) -> Result<Self> {
        let need = model::Need { ram_bytes: Some(ram_bytes), ..model::Need::new(entries, 8, 8) };
        Self::create(volume, name, Config::advised(&need.advise()?))
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
        recover::check_log(volume, &config)?;
        rings::grow_chip(volume, &config, &options)?;
        let pages = config.volume_ring_pages() + image::pages(&config)?;
        let structure = volume.create_structure(name, KIND, config.encode(), pages)?;
        recover::open(volume, structure, options)
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
        recover::open(volume, structure, options)
    }

    /// What it was created with.
    #[must_use]
    pub fn config(&self) -> &Config {
        &self.inner.config
    }

    /// Puts `value` under `key`, for tables of 8 + 8 bytes; numbers are stored little-endian.
    ///
    /// # Errors
    /// As [`Table::insert`].
    #[inline]
    pub fn insert_u64(&self, key: u64, value: u64) -> Result<()> {
        self.insert(&key.to_le_bytes(), &value.to_le_bytes())
    }

    /// The value under `key`, for tables of 8 + 8 bytes.
    ///
    /// # Errors
    /// As [`Table::get`].
    #[inline]
    pub fn get_u64(&self, key: u64) -> Result<Option<u64>> {
        Error::check_width("value", &[0; 8], self.inner.config.value_bytes)?;
        let number = |value: Value| nandex_store::bytes::get_u64(&value, 0);
        Ok(self.get(&key.to_le_bytes())?.map(number))
    }

    /// All entries, each key once with its newest value, in no order.
    ///
    /// Each super table is seen as it was when the iteration reached it, except that incarnations
    /// evicted while they are being read are missing. Reads the whole table once, sequentially, and
    /// one page for each entry that a newer version may hide.
    #[must_use]
    pub fn iter(&self) -> Iter<'_> {
        Iter::new(&self.inner)
    }

    /// Changes the threshold of [`Policy::Threshold`], from the next eviction on, until reopened.
    pub fn set_threshold(&self, priority: u64) {
        self.inner.threshold.store(priority, std::sync::atomic::Ordering::Relaxed);
    }

    /// Waits until the filters of a table that was just opened are loaded, so that no lookup has to.
    ///
    /// # Errors
    /// A failed read, or damage.
    pub fn load_filters(&self) -> Result<()> {
        (0..self.inner.tables.len()).try_for_each(|index| self.inner.load_filters(index))
    }

    /// Saves what is buffered and ends the background threads. Dropping does the same, and ignores
    /// failures.
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
        let saved = self.inner.save_buffers();
        self.inner.work.stop();
        for thread in self.threads.drain(..) {
            // A panic over there is a bug that its own message has told.
            let _ = thread.join();
        }
        // A checkpoint that still held the table would keep the volume, and its file, open.
        let whole =
            saved.is_ok() && self.inner.ready.load(Acquire) && !self.inner.volume.poison().is_set();
        let left = if whole { Left::Nothing } else { Left::Updates };
        self.inner.volume.deregister(self.inner.id, left);
        saved
    }
}

impl Drop for BufferHash {
    fn drop(&mut self) {
        // Nobody is left to be told; what was acknowledged as durable is in the log.
        let _ = self.shut_down();
    }
}

impl Table for BufferHash {
    fn key_bytes(&self) -> usize {
        self.inner.config.key_bytes
    }

    fn value_bytes(&self) -> usize {
        self.inner.config.value_bytes
    }

    #[inline]
    fn insert(&self, key: &[u8], value: &[u8]) -> Result<()> {
        self.inner.insert(key, value)
    }

    fn remove(&self, key: &[u8]) -> Result<()> {
        self.inner.remove(key)
    }

    #[inline]
    fn get(&self, key: &[u8]) -> Result<Option<Value>> {
        self.inner.get(key)
    }

    fn insert_many(&self, pairs: &[(&[u8], &[u8])]) -> Result<()> {
        self.inner.insert_many(pairs)
    }

    fn get_many(&self, keys: &[&[u8]]) -> Result<Vec<Option<Value>>> {
        self.inner.get_many(keys)
    }

    fn sync(&self) -> Result<()> {
        self.inner.sync()
    }

    fn flush(&self) -> Result<()> {
        self.inner.flush_all()
    }

    fn stats(&self) -> TableStats {
        self.inner.stats()
    }
}

impl Inner {
    /// The super table of a key: the first k1 bits of its hash (paper, section 5.2).
    #[inline]
    fn table_of(&self, hash: KeyHash) -> usize {
        super_table_of(hash, self.config.super_tables)
    }

    /// Entries that fit a buffer: what its filter is made for, and the stash.
    fn buffer_limit(&self) -> usize {
        self.config.filter.entries_max() as usize + nandex_store::buffer::STASH_LEN_MAX
    }
}

/// The super table of a key, of so many.
#[inline]
fn super_table_of(hash: KeyHash, super_tables: u32) -> usize {
    // The shift is split so that a single super table (0 bits) works too.
    (hash.place >> 1 >> (63 - super_tables.trailing_zeros())) as usize
}
