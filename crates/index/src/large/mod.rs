//! Keys and values of any size, on any table of fixed width.
//!
//! The table maps a fingerprint of the key to the place of a record in a value log (ANCS'14, section 8). The record
//! holds the whole key next to the value. A lookup compares it, so it never returns another key's value. If the
//! fingerprint is not a hash of 128 bits, keys that share one share a record.
//!
//! ```text
//!   put(key, value)                                    get(key)
//!        | 1. the record, to the value log's batch        | 1. fingerprint: updates not published,
//!        | 2. the update, to those not published          |    else the table
//!        v                                                v
//!   acknowledged (Durability::Every, Never)            | 2. the record, one read of its pages
//!        | 3. commit: the batch is written and synced  | 3. compare the whole key
//!        | 4. publish: the table has the references    v
//!        v                                            value
//!   acknowledged (Durability::Always)
//! ```
//!
//! Invariants
//! 1. The table, and so its log, gets a reference only when its record is durable. So after a crash a key has its new
//!    value or its old one, complete, and never a dangling reference.
//! 2. An update is found from its acknowledgement on: in the unpublished updates until the table has it.
//! 3. Only the holder of a fingerprint's stripe replaces its record, so no update is lost between reading a record and
//!    replacing it.
//! 4. A record is live when the table, or an unpublished update, refers to it. Cleaning copies live records, makes the
//!    table durable, and only then frees the segment. A put does not search for the record that it replaces: cleaning
//!    determines what is live, by one pass over the table for several segments.
//! 5. Locks are taken in this order: the cleaner's, a stripe, the publisher's, then a shard's of the cache, and then
//!    those of the updates, the value log and the table. No thread waits for the publisher's lock while holding a
//!    stripe. A checkpoint needs only the value log's own, for a moment.
//!
//! | operation | flash reads | flash writes |
//! |---|---|---|
//! | what the cache of records knows | 0 | as below |
//! | get, found | the table's, and one operation of the pages its record touches | 0 |
//! | get, not found | the table's | 0 |
//! | put | 0 | the record, once; the table's |
//! | put, keys may share a fingerprint or the log evicts | the table's; one more if the key is present | the same |
//! | put of a batch of these | the same, looked up together before the first is put | the same |
//! | put if absent | as get | as put |
//! | remove | as put | the table's |
//! | growth of the value log | 0 | a checkpoint |
//! | change depending on the value | the table's, and the record's first page, or all of it | as put or remove |
//! | length of a value | the table's, and the record's first page | 0 |
//! | cleaning up to a quarter of the log | its segments, and all pages of the table once | what is live of them |
//! | cleaning a segment, few records or most in the cache | it, and the table's for each other record | the same |

mod ahead;
mod background;
mod batches;
mod cache;
pub(crate) mod change;
mod changes;
mod clean;
pub(crate) mod format;
pub(crate) mod group;
mod iter;
mod marks;
mod pace;
pub(crate) mod part;
mod past_damage;
mod publish;
mod read;
mod row;
mod stats;
#[cfg(feature = "testing")]
mod testing;
mod warm;
mod write;

use std::sync::atomic::{AtomicBool, AtomicU64};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock};

use nandex_store::hash::{HashKind, KeyHasher};
use nandex_store::values::{REF_BYTES, ValueLog};
use nandex_store::{Asker, Volume};

pub use nandex_store::values::ValuesConfig;
pub(crate) use row::ROW;
pub use stats::LargeStats;

use crate::any::AnyTable;
use crate::api::Table;
use crate::model::text;
use crate::ram::SpareRam;
use crate::{Error, Result, WhenFull};
use background::Background;
use batches::Batches;
pub(crate) use batches::PoolShare;
use cache::RecordCache;
use clean::Cleaning;
use format::{FINGERPRINT_BYTES, Fingerprint};
use publish::Updates;
use stats::LargeCounters;
use warm::WarmUp;

/// The longest key, in bytes.
pub const KEY_BYTES_MAX: usize = 64 << 10;

/// The longest value, in bytes; if segments are smaller, a segment minus the key is the limit.
pub const VALUE_BYTES_MAX: usize = 16 << 20;

/// The width of the keys of the underlying table: a fingerprint.
pub const TABLE_KEY_BYTES: usize = FINGERPRINT_BYTES;

/// The width of the values of the underlying table: a reference.
pub const TABLE_VALUE_BYTES: usize = REF_BYTES;

/// Returns the name of the underlying table of the table of large values with this name.
#[must_use]
pub fn table_name(name: &str) -> String {
    format!("{name}-keys")
}

/// The number of locks over which fingerprints are spread.
const STRIPES: usize = 64;

/// A hash table from keys of 0 bytes to 64 KiB to values of 0 bytes to 16 MiB, over a table of fixed width and
/// a value log of the same volume.
///
/// All calls may come from any thread. Dropping it publishes what was put and closes both. Updates that are not durable
/// wait in RAM: at most an I/O chunk of records, plus the record that exceeds it. See the [module](self) for how it
/// works and what it costs.
///
/// A table that evicts by its policy drops keys here too. So may a value log with [`WhenFull::EvictOldest`]: lookups no
/// longer find its oldest records. One with [`WhenFull::Grow`], over a growing table, takes everything until the
/// table's RAM or the device is exhausted.
///
/// [`WhenFull::EvictOldest`]: crate::WhenFull::EvictOldest
/// [`WhenFull::Grow`]: crate::WhenFull::Grow
///
/// ```
/// use std::sync::Arc;
/// use nandex::bufferhash::Config;
/// use nandex::large::{TABLE_KEY_BYTES, TABLE_VALUE_BYTES, ValuesConfig};
/// use nandex::{BufferHash, LargeTable, Volume, VolumeOptions, device::MemoryDevice};
///
/// let volume = Volume::create(Arc::new(MemoryDevice::new()), VolumeOptions::default())?;
/// let widths = Config { key_bytes: TABLE_KEY_BYTES, value_bytes: TABLE_VALUE_BYTES, ..Config::tiny() };
/// let places = BufferHash::create(&volume, "places", widths)?;
/// let pages = LargeTable::create(&volume, "pages", places, ValuesConfig::tiny())?;
/// pages.put(b"https://example.org/", b"<html>...")?;
/// assert_eq!(pages.get(b"https://example.org/")?.as_deref(), Some(&b"<html>..."[..]));
/// # Ok::<(), nandex::Error>(())
/// ```
#[derive(Debug)]
pub struct LargeTable<T: Table> {
    inner: Arc<Inner<T>>,
    /// Its background work; `None` if the calling threads do it all.
    background: Option<Background<T>>,
}

#[derive(Debug)]
struct Inner<T: Table> {
    volume: Volume,
    hasher: KeyHasher,
    /// The number of first bytes of a key that its fingerprint keeps.
    group_bytes: usize,
    /// Dropped before the value log, because the table's last checkpoint still needs that.
    table: T,
    values: ValueLog,
    updates: Mutex<Updates>,
    /// Held while committing and publishing.
    publisher: Mutex<()>,
    stripes: Vec<Mutex<()>>,
    /// Whether a put replaces the record of its fingerprint without reading it.
    replaces_unread: bool,
    /// Whether a put has done so since all live records were counted, or may have before the log was opened.
    has_unread: AtomicBool,
    /// The latest segment of the value log when the log was last told how many records are live.
    told: AtomicU64,
    /// Whether this handle created it.
    is_new: bool,
    /// The cache that saves lookups and updates repeated reads, if it was given one.
    cache: OnceLock<Arc<RecordCache>>,
    warm_up: OnceLock<WarmUp<T>>,
    /// Requests a background thread; not set if there are none.
    asker: OnceLock<Asker>,
    /// The number of updates at the end of the last period.
    synced: AtomicU64,
    is_closing: AtomicBool,
    batches: Batches,
    /// The RAM that its cache may take from a pool, unless its table manages that.
    spare: OnceLock<Arc<SpareRam>>,
    cleaning: Cleaning,
    /// The updates that had changed its keys by the latest count of them, and that count.
    counted: Mutex<Option<(u64, u64)>>,
    counters: LargeCounters,
    /// The end of the last period of [`nandex_store::Durability::Every`], by the device's clock.
    period_start_ns: AtomicU64,
}

impl<T: Table + 'static> LargeTable<T> {
    /// Creates a value log with this name in the volume, for a new `table` of the same volume with keys of
    /// [`TABLE_KEY_BYTES`] and values of [`TABLE_VALUE_BYTES`].
    ///
    /// # Errors
    /// A table of other widths, a configuration that cannot work, a name that is taken, no space, a failed
    /// write.
    pub fn create(volume: &Volume, name: &str, table: T, config: ValuesConfig) -> Result<Self> {
        check_widths(&table)?;
        let values = ValueLog::create(volume, name, config)?;
        Self::start(volume, table, (values, true), 0)
    }

    /// Opens a value log, for the `table` it was created with.
    ///
    /// # Errors
    /// A table of other widths, no value log of that name, damage, a failed read.
    pub fn open(volume: &Volume, name: &str, table: T) -> Result<Self> {
        check_widths(&table)?;
        let values = ValueLog::open(volume, name)?;
        Self::start(volume, table, (values, false), 0)
    }

    fn start(
        volume: &Volume,
        table: T,
        (values, is_new): (ValueLog, bool),
        group_bytes: usize,
    ) -> Result<Self> {
        let batches = Batches::new(*values.config());
        let replaces_unread = group_bytes == 0 && replaces_unread(volume, &table, &values);
        let inner = Arc::new(Inner {
            volume: volume.clone(),
            hasher: volume.hasher(),
            group_bytes,
            table,
            values,
            updates: Mutex::default(),
            publisher: Mutex::default(),
            stripes: (0..STRIPES).map(|_| Mutex::default()).collect(),
            replaces_unread,
            has_unread: AtomicBool::new(replaces_unread && !is_new),
            told: AtomicU64::new(0),
            is_new,
            cache: OnceLock::new(),
            warm_up: OnceLock::new(),
            asker: OnceLock::new(),
            synced: AtomicU64::new(0),
            is_closing: AtomicBool::new(false),
            batches,
            spare: OnceLock::new(),
            cleaning: Cleaning::default(),
            counted: Mutex::default(),
            counters: LargeCounters::default(),
            period_start_ns: AtomicU64::new(volume.device().now()),
        });
        let background = Background::start(&inner)?;
        Ok(Self { inner, background })
    }

    /// Puts `value` under `key`, replacing any earlier value.
    ///
    /// # Errors
    /// A key or value that is too long, a full table or value log that keeps everything, a volume that is poisoned or
    /// opened read-only, a failed read or write.
    pub fn put(&self, key: &[u8], value: &[u8]) -> Result<()> {
        self.inner.put(key, value)
    }

    /// Puts `value` under `key` if the key is absent, and returns whether it did. Atomic: if several threads do this
    /// with one absent key at the same time, exactly one puts.
    ///
    /// # Errors
    /// As [`put`](Self::put) and [`get`](Self::get).
    pub fn put_if_absent(&self, key: &[u8], value: &[u8]) -> Result<bool> {
        self.inner.put_if_absent(key, value)
    }

    /// Removes `key`. Does nothing if the key is absent.
    ///
    /// # Errors
    /// As [`put`](Self::put).
    pub fn remove(&self, key: &[u8]) -> Result<()> {
        self.inner.remove(key)
    }

    /// Returns the value of `key`.
    ///
    /// # Errors
    /// A key that is too long, a failed read, a page that fails its check.
    pub fn get(&self, key: &[u8]) -> Result<Option<Vec<u8>>> {
        self.inner.get(key)
    }

    /// Returns the values of all `keys`, in their order; the reads overlap. All of them are in memory at once.
    ///
    /// # Errors
    /// As [`get`](Self::get).
    pub fn get_many(&self, keys: &[&[u8]]) -> Result<Vec<Option<Vec<u8>>>> {
        self.inner.get_many(keys)
    }

    /// Puts each pair, in order; if every acknowledgement is durable, they share one. Their lookups overlap.
    ///
    /// # Errors
    /// As [`put`](Self::put); pairs before the failing one may or may not be put, later ones are not.
    pub fn put_many(&self, pairs: &[(&[u8], &[u8])]) -> Result<()> {
        self.inner.put_many(pairs)
    }

    /// Makes everything acknowledged so far durable, whatever the durability mode.
    ///
    /// # Errors
    /// A failed write or sync, after which the volume is poisoned; a table that is full.
    pub fn sync(&self) -> Result<()> {
        self.inner.publish_all()?;
        self.inner.table.sync()
    }

    /// Flushes every buffered entry of the table, and every record, and makes them durable.
    ///
    /// # Errors
    /// As [`sync`](Self::sync).
    pub fn flush(&self) -> Result<()> {
        self.inner.publish_all()?;
        self.inner.table.flush()
    }

    /// The underlying table.
    #[must_use]
    pub fn table(&self) -> &T {
        &self.inner.table
    }

    /// The longest value for a key of this many bytes.
    #[must_use]
    pub fn value_bytes_max(&self, key_bytes: usize) -> usize {
        self.inner.value_bytes_max(key_bytes)
    }

    /// Returns its statistics.
    #[must_use]
    pub fn stats(&self) -> LargeStats {
        self.inner.stats()
    }

    /// Returns a value log for its current records, of the length that they need.
    pub(crate) fn compacted_values(&self) -> ValuesConfig {
        let own = *self.inner.values.config();
        let live_bytes = self.inner.values_stats().live_bytes;
        // As long as it began, if that is enough with a third to spare.
        if live_bytes / 2 * 3 <= own.payload_bytes() {
            return own;
        }
        let config = ValuesConfig::holding(live_bytes, own.when_full);
        // Its batches keep their size, or have that of its segments if it makes no longer ones.
        let most = if config.when_full == WhenFull::Grow { u32::MAX } else { config.segment_pages };
        ValuesConfig { io_chunk_pages: own.io_chunk_pages.min(most), ..config }
    }

    /// Makes everything durable, ends its background work and closes the table. Dropping does the same, and ignores
    /// failures.
    ///
    /// # Errors
    /// A failed write or sync, a table that is full. Updates acknowledged as durable stay durable.
    pub fn close(mut self) -> Result<()> {
        self.shut_down()?;
        let volume = self.inner.volume.clone();
        // The table and the value log take their last checkpoints. One that fails poisons the volume.
        drop(self);
        Ok(volume.poison().check()?)
    }
}

impl<T: Table> LargeTable<T> {
    fn shut_down(&mut self) -> Result<()> {
        self.inner.end_background();
        self.background = None;
        self.inner.publish_all()?;
        self.inner.table.sync()
    }
}

impl<T: Table> Drop for LargeTable<T> {
    fn drop(&mut self) {
        // This error cannot be returned; updates acknowledged as durable are already durable.
        let _ = self.shut_down();
    }
}

impl LargeTable<AnyTable> {
    /// Gives it a cache of records of at most `cache_bytes`: keys that are in it are read, and updated, without a read
    /// of flash. It allocates its RAM as it fills.
    ///
    /// # Errors
    /// [`Error::Config`] for a value log that evicts, and for more bytes than the machine has.
    pub fn with_cache(self, cache_bytes: u64) -> Result<Self> {
        let refuse = |reason| Err(Error::Config { field: "cache_bytes", reason });
        if self.inner.values.config().when_full == WhenFull::EvictOldest {
            return refuse("a map that evicts has no cache of records; state 0".to_owned());
        }
        let most = nandex_device::ram_bytes();
        if cache_bytes > most {
            let (asked, most) = (text::bytes(cache_bytes), text::bytes(most));
            return refuse(format!("{asked}; this machine has {most} of RAM"));
        }
        let new = || Arc::new(RecordCache::new(cache_bytes, self.inner.is_empty()));
        self.inner.cache.get_or_init(new);
        self.inner.plan_warm_up();
        Ok(self)
    }

    /// Writes records as soon as `bytes` wait, and sooner if durability is requested: less than an I/O chunk, which is
    /// also the maximum, takes less RAM, but more writes.
    #[must_use]
    pub fn with_batch_bytes(self, bytes: u64) -> Self {
        self.inner.batches.limit(bytes);
        self
    }

    /// Claims the RAM of its batches from a pool: more while it writes much, and little while it writes nothing.
    ///
    /// # Errors
    /// [`Error::TooLittleRam`] if the pool has less than the smallest batches take.
    pub(crate) fn with_batches_of(self, share: PoolShare) -> Result<Self> {
        self.inner.batches.claim_of(share)?;
        Ok(self)
    }

    /// Makes it use the RAM that its table may take but does not take yet as a [cache](Self::with_cache): as the table
    /// grows, the cache returns that RAM. Without a RAM limit of the table the cache gets 64 MiB. Does nothing if the
    /// table does not grow.
    #[must_use]
    pub fn with_spare_ram(self) -> Self {
        let evicts = self.inner.values.config().when_full == WhenFull::EvictOldest;
        if let Some(spare) = self.inner.table.spare().filter(|it| it.bytes() > 0 && !evicts) {
            self.borrow(spare);
        }
        self
    }

    /// Makes it use RAM lent by a pool as a [cache](Self::with_cache).
    pub(crate) fn with_spare_of(self, spare: Arc<SpareRam>) -> Self {
        self.borrow(&spare);
        let _ = self.inner.spare.set(spare);
        self
    }

    fn borrow(&self, spare: &SpareRam) {
        let new = || Arc::new(RecordCache::new(spare.bytes(), self.inner.is_empty()));
        spare.lend_to(self.inner.cache.get_or_init(new));
        self.inner.plan_warm_up();
    }
}

fn check_widths(table: &impl Table) -> Result<()> {
    let refuse = |field, expected: usize, found: usize| {
        if expected == found {
            return Ok(());
        }
        let reason = format!("the table under large values has {found}, it must have {expected}");
        Err(Error::Config { field, reason })
    };
    refuse("key_bytes", TABLE_KEY_BYTES, table.key_bytes())?;
    refuse("value_bytes", TABLE_VALUE_BYTES, table.value_bytes())
}

/// Returns whether no two keys share a fingerprint, so that the record of one can be replaced unread: all 128 bits of
/// it must come from a hash of the whole key. Two of 2^40 keys share one with a probability of 2^-49, or if someone has
/// chosen them for a hash without a secret key. The number of dead records then follows from the number of keys in the
/// table, if it counts keys; a log that evicts counts what it overwrites, and so must know each record that is
/// replaced.
fn replaces_unread(volume: &Volume, table: &impl Table, values: &ValueLog) -> bool {
    is_hash(&volume.hasher()) && table.counts_keys() && !values.config().when_full.evicts()
}

/// Returns whether a fingerprint is a hash of the whole key.
fn is_hash(hasher: &KeyHasher) -> bool {
    hasher.kind() != HashKind::Identity
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().expect("no holder of a lock of large values panics")
}

impl<T: Table> Inner<T> {
    fn fingerprint(&self, key: &[u8]) -> Fingerprint {
        format::grouped_fingerprint(self.hasher.hash(key), key, self.group_bytes)
    }

    /// Returns whether no two keys share a record, because all 128 bits of a fingerprint come from a hash of the key.
    fn has_a_key_a_record(&self) -> bool {
        self.group_bytes == 0 && is_hash(&self.hasher)
    }

    /// Returns whether it was created by this handle and nothing was put yet.
    fn is_empty(&self) -> bool {
        self.is_new && lock(&self.updates).is_unused()
    }

    /// Prevents other threads from replacing the record of a fingerprint.
    fn stripe(&self, fingerprint: &Fingerprint) -> MutexGuard<'_, ()> {
        let index = nandex_store::hash::mix(nandex_store::bytes::get_u64(fingerprint, 0)) as usize;
        lock(&self.stripes[index % STRIPES])
    }
}
