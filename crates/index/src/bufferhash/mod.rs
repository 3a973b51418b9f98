//! BufferHash: a hash table on flash that writes only whole buffers, one after another (NSDI'10).
//!
//! Keys are spread over super tables by their hash. Each super table collects inserts in a RAM buffer; a full
//! buffer goes to flash in one sequential write and is called an incarnation. All super tables share one ring
//! of segments, so the whole device sees a single sequential stream; on a raw flash chip each has a ring of
//! its own (`rings`). Filters in RAM, one per incarnation, tell which incarnations may hold a key. A lookup
//! reads one page of each of those, newest first: nearly always one page or none.
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
//! 3. Every logged update is in a written segment, in a snapshot, or at or after the log tail that the
//!    next checkpoint will hold.
//! 4. Incarnations are added and evicted, and columns are written, only under the maintenance lock.
//! 5. Locks are taken in this order: a maintenance lock, a super table's state, ring or log or pool;
//!    nobody waits for a checkpoint or a free buffer while holding one.
//!
//! | operation | flash reads | flash writes | RAM |
//! |---|---|---|---|
//! | insert, remove | 0 | its share of a segment: entry bytes / fill, and of the log | `buffer / k` |
//! | lookup, found | 1 + at most the filters' rate | 0 | filter bits per entry |
//! | lookup, not found | the filters' rate, see `advise` | 0 | |
//! | flush of a buffer | 0 (partial discard: one segment) | one segment | |

mod bulk;
mod check;
pub mod config;
mod evict;
pub mod filter;
mod flush;
pub mod format;
pub mod growing;
pub mod model;
mod read;
mod recover;
mod retire;
mod rings;
mod row;
pub(crate) mod scan;
mod space;
mod table;
#[cfg(feature = "testing")]
mod testing;

#[cfg(test)]
mod tests;

use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;

use nandex_store::hash::KeyHasher;
use nandex_store::{Structure, Volume};

use crate::Result;
use crate::scan::{Entries, EntriesPastDamage};
use crate::write::absorb::{AbsorbOptions, Absorbed, Versions, Watch, absorb, unwatched};
use crate::write::{self, Core, Handle, TableShape};

use check::{check, refuse_chip};
pub use config::{Config, Placement, Policy, Priority, RuntimeOptions};
pub(crate) use row::ROW;

use filter::IncarnationFilter;
use rings::Rings;
use scan::SuperTables;

/// The name of this kind in the catalog.
pub const KIND: &str = "bufferhash";

/// A hash table on flash from fixed-width keys to fixed-width values.
///
/// Lookups and inserts are cheap from any number of threads. Dropping it saves what is buffered, so that the
/// next open finds it. See the [module](self) for how it works and what it costs.
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

write::delegate_table!(BufferHash);

/// What BufferHash adds to the write path: incarnations in a ring, and their filters.
#[derive(Debug)]
pub(crate) struct Incarnations {
    config: Config,
    options: RuntimeOptions,
    shape: TableShape,
    hasher: KeyHasher,
    filter: IncarnationFilter,
    rings: Rings,
    /// Evictions that partial discards may still make, in thousandths.
    cascade_credit: AtomicU64,
    /// The priority threshold, if the policy has one.
    threshold: AtomicU64,
}

type Inner = Core<Incarnations>;

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
    /// A budget too small for the table, with the least that is enough; else as [`create`](Self::create).
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
        let create = |config, pages| Ok(volume.create_structure(name, KIND, config, pages)?);
        Self::create_as(volume, create, config, options)
    }

    /// Creates one as `create` makes its entry in the catalog, from its configuration and number of pages.
    fn create_as(
        volume: &Volume,
        create: impl FnOnce(Vec<u8>, u64) -> Result<Structure>,
        config: Config,
        options: RuntimeOptions,
    ) -> Result<Self> {
        config.validate()?;
        let shape = config.shape()?;
        write::check_log(volume, &shape)?;
        rings::grow_chip(volume, &config, &options)?;
        let pages = config.volume_ring_pages() + write::snapshot_pages(&shape);
        recover::open(volume, &create(config.encode(), pages)?, options)
    }

    /// Opens a table of a volume, with default [`RuntimeOptions`].
    ///
    /// Reads snapshots of buffers and the log's tail; filters are loaded in the background, or when the first
    /// lookup needs them.
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
        Self::open_as(volume, (name, KIND), options)
    }

    /// Opens one that the catalog knows under a kind of its own.
    fn open_as(
        volume: &Volume,
        (name, kind): (&str, &str),
        options: RuntimeOptions,
    ) -> Result<Self> {
        let structure = volume.open_structure(name, kind)?;
        recover::open(volume, &structure, options)
    }

    /// What it was created with.
    #[must_use]
    pub fn config(&self) -> &Config {
        &self.handle.core.layout.config
    }

    /// All entries, each key once with its newest value, in no order.
    ///
    /// Some pages of a super table are read at a time, in all of its incarnations, and seen as they were when the
    /// iteration reached them; but incarnations that are evicted while they are read are missing. Needs no filters.
    /// Reads the whole table once, at least 64 KiB of each incarnation at a time, and holds the keys of 4 MiB in
    /// memory, or of these 64 KiB of each incarnation of a super table if that is more.
    #[must_use]
    pub fn iter(&self) -> Entries<'_> {
        Entries::new(SuperTables::new(vec![&*self.handle.core]))
    }

    /// As [`iter`](Self::iter), but a page that cannot be read or proven ends nothing: it is an item, and all other
    /// entries come. A key whose newest version was on such a page may come with an older one, or although it was
    /// removed.
    ///
    /// Reads and holds as much as [`iter`](Self::iter).
    #[must_use]
    pub fn iter_past_damage(&self) -> EntriesPastDamage<'_> {
        EntriesPastDamage::new(SuperTables::new(vec![&*self.handle.core]))
    }

    /// Adds all entries of other tables, in the order of the hash: all are read in long runs, and what is new fills
    /// one buffer after another, so that each incarnation is written once. Of entries with one key the options say
    /// which stays. What was added is durable when this returns.
    ///
    /// Nobody can update this table meanwhile, which is why it is borrowed exclusively. Others may be in use: of
    /// updates that come to them meanwhile some are added and some are not. They may be in the same volume or in
    /// others. Tables whose volumes hash keys as this one's does are read once, others as often as
    /// [`Absorbed::passes`] says.
    ///
    /// # Errors
    /// Tables of other widths; too little RAM for their entries; a full table that may not evict, a failed read or
    /// write, damage. What was added before stays.
    ///
    /// ```
    /// use std::sync::Arc;
    /// use nandex::bufferhash::Config;
    /// use nandex::{AbsorbOptions, BufferHash, Volume, VolumeOptions, device::MemoryDevice};
    ///
    /// let table = |name| {
    ///     let volume = Volume::create(Arc::new(MemoryDevice::new()), VolumeOptions::tiny())?;
    ///     BufferHash::create(&volume, name, Config::tiny())
    /// };
    /// let (mut ours, theirs) = (table("ours")?, table("theirs")?);
    /// ours.insert_u64(1, 10)?;
    /// theirs.insert_u64(1, 11)?;
    /// theirs.insert_u64(2, 20)?;
    /// let absorbed = ours.absorb(&[theirs.versions()], &AbsorbOptions::default())?;
    /// assert_eq!((absorbed.shared, absorbed.put), (1, 1));
    /// assert_eq!((ours.get_u64(1)?, ours.get_u64(2)?), (Some(10), Some(20)));
    /// # Ok::<(), nandex::Error>(())
    /// ```
    pub fn absorb(&mut self, others: &[Versions<'_>], options: &AbsorbOptions) -> Result<Absorbed> {
        self.absorb_watched(others, options, &unwatched)
    }

    /// As [`absorb`](Self::absorb); tells `watch` from time to time the share that is done, which may end it.
    ///
    /// # Errors
    /// As [`absorb`](Self::absorb), and [`Error::Stopped`](crate::Error::Stopped).
    pub fn absorb_watched(
        &mut self,
        others: &[Versions<'_>],
        options: &AbsorbOptions,
        watch: &Watch<'_>,
    ) -> Result<Absorbed> {
        absorb(&self.handle.core, others, options, watch)
    }

    /// Its versions of keys, for another table to [`absorb`](Self::absorb) or for
    /// [`count_shared`](crate::count_shared).
    #[must_use]
    pub fn versions(&self) -> Versions<'_> {
        Versions(&*self.handle.core)
    }

    /// Changes the threshold of [`Policy::Threshold`], from the next eviction on, until reopened.
    pub fn set_threshold(&self, priority: u64) {
        self.handle.core.layout.threshold.store(priority, Relaxed);
    }

    /// Waits until the filters of a table that was just opened are loaded, so that no lookup has to.
    ///
    /// # Errors
    /// A failed read, or damage.
    pub fn load_filters(&self) -> Result<()> {
        let inner = &self.handle.core;
        (0..inner.partitions.len()).try_for_each(|index| inner.load_filters(index))
    }
}
