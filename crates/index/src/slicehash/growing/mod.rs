//! A SliceHash that grows: a full table is followed by one of twice the partitions, which takes its entries over.
//!
//! Updates and lookups go to the newest table. A partition of it splits one of the older table with its first merge:
//! it reads that partition's slicetable, keeps its own half, and writes it with what its buffer holds. A merge reads
//! and writes a slicetable anyway, so growth costs no pass of its own, and at every moment a lookup reads one page: of
//! the newest table's slicetable, or of the older one's where the partition has not split yet. When all have split, the
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
//! 1. A partition of the newest table either has a slicetable, and needs no older table, or it has none, and what its
//!    buffers do not know is in the older table.
//! 2. Only the newest table takes updates. An update holds the lock of updates for reading, and a table is replaced
//!    while it is held for writing. So the older table never changes again, although its last merges may still move
//!    entries.
//! 3. What the older table had in RAM and a full slice has no space for stays in RAM as the partition's overflow. Only
//!    a checkpoint makes such a slicetable's place in the map durable, together with its overflow.
//! 4. A partition's first slicetable is durable before the map names it, as any other. Until then a crash leaves the
//!    partition without one, and the older table has its entries.
//! 5. There is at most one older table: it is dropped, in one checkpoint with the maps that replace it, before the next
//!    table is made.
//!
//! | operation | flash reads | flash writes | RAM |
//! |---|---|---|---|
//! | all operations | as a SliceHash's | as a SliceHash's | as a SliceHash's |
//! | growth | half of a merge's more for each partition | one checkpoint | buffers of both tables |

mod check;
pub mod config;
mod iter;
mod model;
mod read;
mod row;
mod tables;
#[cfg(feature = "testing")]
mod testing;
#[cfg(test)]
mod tests;

use std::sync::Arc;
use std::thread::JoinHandle;

use nandex_device::PageId;
use nandex_store::bytes::Reader;
use nandex_store::reads::ReadPool;
use nandex_store::schedule::Channels;
use nandex_store::{Durability, Shutdown, Structure, StructureId, Volume};

use super::{Inner as Core, RuntimeOptions};
use crate::api::{LookupStream, Table, TableStats, Value};
use crate::grow::{self, Root};
use crate::lookup::{self, Lookups};
use crate::{Error, Result};

pub use config::Config;
pub use iter::Iter;
pub(crate) use row::{ROW, TABLE_ROW};
use tables::Tables;

/// The name of this kind in the catalog.
pub const KIND: &str = "growing-slicehash";

/// The name of the kind of its tables in the catalog.
pub const TABLE_KIND: &str = "growing-slicehash-table";

/// A SliceHash that doubles as it fills, and reads one page for a lookup at every size.
///
/// It holds everything until its RAM or the device is full. See the [module](self) for how it works and what it
/// costs.
///
/// ```
/// use std::sync::Arc;
/// use nandex::slicehash::growing::{Config, Growing};
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
#[derive(Debug)]
pub struct Growing {
    inner: Inner,
    /// Makes tables; none where nothing runs in the background.
    thread: Option<JoinHandle<()>>,
    is_closed: bool,
}

#[derive(Debug)]
struct Inner {
    volume: Volume,
    id: StructureId,
    config: Config,
    tables: Arc<Tables>,
    lookups: Lookups,
    /// Tells the volume that the table is open.
    _root: Arc<Root>,
}

impl Growing {
    /// Creates a table in a volume, with default [`RuntimeOptions`].
    ///
    /// # Errors
    /// A configuration that cannot work, a name that is taken, no space, a failed write.
    pub fn create(volume: &Volume, name: &str, config: Config) -> Result<Self> {
        Self::create_with(volume, name, config, RuntimeOptions::default())
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
        let structure = volume.create_structure(name, KIND, config.encode(), 0)?;
        Self::start(volume, (name, &structure), None, options)
    }

    /// Opens a table of a volume, with default [`RuntimeOptions`].
    ///
    /// # Errors
    /// No table of that name, another kind of structure, damage, a failed read.
    pub fn open(volume: &Volume, name: &str) -> Result<Self> {
        Self::open_within(volume, name, None, RuntimeOptions::default())
    }

    /// Opens a table of a volume, which from now on may take this RAM in bytes; if `None`, what it was created with.
    ///
    /// # Errors
    /// As [`open`](Self::open).
    pub fn open_within(
        volume: &Volume,
        name: &str,
        ram_bytes_max: Option<u64>,
        options: RuntimeOptions,
    ) -> Result<Self> {
        let structure = volume.open_structure(name, KIND)?;
        Self::start(volume, (name, &structure), ram_bytes_max, options)
    }

    fn start(
        volume: &Volume,
        (name, structure): (&str, &Structure),
        ram_bytes_max: Option<u64>,
        options: RuntimeOptions,
    ) -> Result<Self> {
        let mut reader = Reader::new(&structure.config, "growing configuration", PageId(0));
        let config = Config::decode(&mut reader)?;
        let config = Config { ram_bytes_max: ram_bytes_max.or(config.ram_bytes_max), ..config };
        let device = Arc::clone(volume.device());
        let channels = options.channels.unwrap_or_else(|| Channels::of(&device.geometry()));
        let lookups = Lookups::new(ReadPool::new(device, channels, options.read_depth));
        let in_background = options.flush_threads > 0;
        let tables = Arc::new(Tables::open(volume, name, config, options)?);
        let (volume, id) = (volume.clone(), structure.id);
        let root = Root::register(&volume, id);
        let inner = Inner { volume, id, config, tables, lookups, _root: root };
        let mut table = Self { inner, thread: None, is_closed: false };
        if in_background {
            let tables = &table.inner.tables;
            table.thread = Some(grow::start_thread(tables, Tables::requests, Tables::prepare)?);
        }
        Ok(table)
    }

    /// What it was created with; its RAM is that of this opening.
    #[must_use]
    pub fn config(&self) -> &Config {
        &self.inner.config
    }

    /// The partitions of its newest table.
    #[must_use]
    pub fn partitions(&self) -> usize {
        self.inner.tables.core().partitions.len()
    }

    /// How many tables there have been; there are at most two at a time, and one that is made before it is needed.
    #[must_use]
    pub fn tables(&self) -> usize {
        self.inner.tables.number()
    }

    /// All entries, each key once with its newest value, in no order.
    ///
    /// Each partition is seen as it was when the iteration reached it. Reads the whole table once, sequentially, and
    /// holds the buffers and one slicetable's keys in memory.
    #[must_use]
    pub fn iter(&self) -> Iter<'_> {
        Iter::new(&self.inner.tables)
    }

    /// Saves what is buffered and ends the background threads. Dropping does the same, and ignores failures.
    ///
    /// # Errors
    /// A failed write or sync. What was acknowledged as durable is in the log nevertheless.
    pub fn close(mut self) -> Result<()> {
        self.shut_down()
    }

    fn shut_down(&mut self) -> Result<()> {
        if std::mem::replace(&mut self.is_closed, true) {
            return Ok(());
        }
        self.inner.tables.requests().stop();
        if let Some(thread) = self.thread.take() {
            // A panic of the thread is a bug, and has printed its own message.
            let _ = thread.join();
        }
        let closed = self.inner.tables.close();
        self.inner.volume.deregister(self.inner.id, || Shutdown::Clean);
        closed
    }
}

impl Drop for Growing {
    fn drop(&mut self) {
        // Nobody can receive this error; what was acknowledged as durable is in the log.
        let _ = self.shut_down();
    }
}

impl Inner {
    /// Updates the newest table. If it is full, the next one follows.
    #[inline]
    fn update<R>(&self, act: impl Fn(&Core) -> Result<R>) -> Result<R> {
        loop {
            let newest = self.tables.newest();
            match act(&newest.core) {
                Err(Error::Full { .. }) => {
                    let full = Arc::clone(&newest.core);
                    drop(newest);
                    self.tables.grow(&full)?;
                }
                result => {
                    self.tables.look_ahead(&newest.core);
                    return result;
                }
            }
        }
    }

    /// Pairs that are inserted at a time. Refuses those of other widths than the table's.
    fn batch_len(&self, pairs: &[(&[u8], &[u8])]) -> Result<usize> {
        let core = self.tables.core();
        core.check_pairs(pairs)?;
        Ok(core.batch_len())
    }

    fn insert_many(&self, pairs: &[(&[u8], &[u8])]) -> Result<()> {
        let mut batches = pairs.chunks(self.batch_len(pairs)?);
        batches.try_for_each(|batch| self.update(|newest| newest.insert_batch(batch)))?;
        Ok(self.volume.log().commit()?)
    }

    fn get_or_insert_many(&self, pairs: &[(&[u8], &[u8])]) -> Result<Vec<Option<Value>>> {
        let batch_len = self.batch_len(pairs)?;
        let mut found = vec![None; pairs.len()];
        for (pairs, found) in pairs.chunks(batch_len).zip(found.chunks_mut(batch_len)) {
            let mut waiting: Vec<_> = (0..pairs.len()).collect();
            while !waiting.is_empty() {
                waiting = self.insert_absent(pairs, &waiting, found)?;
            }
        }
        self.volume.log().commit()?;
        Ok(found)
    }

    /// Inserts those of the pairs at these positions whose keys are absent, and returns the positions of which it
    /// is not known yet.
    fn insert_absent(
        &self,
        pairs: &[(&[u8], &[u8])],
        positions: &[usize],
        found: &mut [Option<Value>],
    ) -> Result<Vec<usize>> {
        let newest = self.tables.newest();
        let look_up = |keys: &[&[u8]]| lookup::batch(self, keys);
        let undecided = newest.core.insert_absent(pairs, positions, found, look_up)?;
        self.tables.look_ahead(&newest.core);
        let full = Arc::clone(&newest.core);
        drop(newest);
        if undecided.full.is_some() {
            self.tables.grow(&full)?;
        }
        Ok(undecided.positions)
    }

    fn flush(&self) -> Result<()> {
        self.volume.poison().check()?;
        self.tables.flush()
    }
}

impl Table for Growing {
    fn key_bytes(&self) -> usize {
        self.inner.config.first.key_bytes
    }

    fn value_bytes(&self) -> usize {
        self.inner.config.first.value_bytes
    }

    fn insert(&self, key: &[u8], value: &[u8]) -> Result<()> {
        self.inner.update(|newest| newest.insert(key, value))
    }

    fn remove(&self, key: &[u8]) -> Result<()> {
        self.inner.update(|newest| newest.remove(key))
    }

    fn get(&self, key: &[u8]) -> Result<Option<Value>> {
        lookup::single(&self.inner, key)
    }

    fn insert_many(&self, pairs: &[(&[u8], &[u8])]) -> Result<()> {
        self.inner.insert_many(pairs)
    }

    fn get_or_insert_many(&self, pairs: &[(&[u8], &[u8])]) -> Result<Vec<Option<Value>>> {
        self.inner.get_or_insert_many(pairs)
    }

    fn get_many(&self, keys: &[&[u8]]) -> Result<Vec<Option<Value>>> {
        lookup::batch(&self.inner, keys)
    }

    fn stream(&self) -> Result<Box<dyn LookupStream + '_>> {
        Ok(lookup::stream(&self.inner))
    }

    fn sync(&self) -> Result<()> {
        if self.inner.volume.durability() == Durability::Never {
            // No update is in the log: only flash makes it durable.
            return self.inner.flush();
        }
        Ok(self.inner.volume.log().sync()?)
    }

    fn flush(&self) -> Result<()> {
        self.inner.flush()
    }

    fn stats(&self) -> TableStats {
        self.inner.tables.stats().with_lookups(&self.inner.lookups)
    }
}
