//! A BufferHash that grows: generations of rising size, each a BufferHash that is filled and then only read.
//!
//! Inserts go to the newest generation. When one of its super tables is full, the next generation follows, with
//! as many super tables as all before it together. So the table doubles each time, no entry is ever written again,
//! and nothing is evicted. A lookup asks the buffers and filters of all generations, newest first: they are in
//! RAM, and their buffers and filters have the same shape, so a key's places are computed once. An update or a
//! removal of an older entry goes to the newest generation and hides it.
//!
//! ```text
//!   insert, remove ------------------------------+        the next one is made in the background
//!                                                v        when the newest is 7/8 full
//!   generation 1   generation 2   generation 3         . . . . . . . . . . . . .
//!   +--------+     +--------+     +--------+--------+  .                       .
//!   |super t.|     |super t.|     |super t.|super t.|  .  4 super tables       .
//!   +--------+     +--------+     +--------+--------+  . . . . . . . . . . . . .
//!        ^              ^              ^
//!        3              2              1. get: the first generation that knows the key
//! ```
//!
//! Invariants
//! 1. A key's newest version is in the newest generation that knows it, as a value or as a tombstone.
//! 2. Only the newest generation takes updates. An update holds the lock of updates for reading, and a generation is
//!    added while it is held for writing. So when the newer one takes its first update, the older one has its last.
//! 3. Each generation is crash-safe by itself, and all share the volume's log, in the order of the updates. So a
//!    crash loses none, and no older version comes back.
//! 4. All generations have buffers and filters of the same shape.
//!
//! With g generations, at most about log2 of the table's growth:
//!
//! | operation | flash reads | flash writes | RAM |
//! |---|---|---|---|
//! | insert, remove | 0 | as a BufferHash's | as a BufferHash's |
//! | lookup, found | 1 + at most the filters' rate, of all generations | 0 | |
//! | lookup, not found | the filters' rate, of all generations: g times that of one | 0 | |
//! | growth | 0 | two checkpoints | buffers and filters of the next generation |

mod check;
pub mod config;
mod generations;
mod iter;
mod model;
mod read;
mod row;
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
use generations::{Generations, Newest, generation_name};
pub use iter::Iter;
pub(crate) use row::{GENERATION_ROW, ROW};

/// The name of this kind in the catalog.
pub const KIND: &str = "growing";

/// The name of the kind of its generations in the catalog.
pub const GENERATION_KIND: &str = "generation";

/// A hash table on flash from fixed-width keys to fixed-width values, which grows as it fills.
///
/// It holds everything until its RAM or the device is full. See the [module](self) for how it works and what it
/// costs.
///
/// ```
/// use std::sync::Arc;
/// use nandex::bufferhash::growing::{Config, Growing};
/// use nandex::{Table, Volume, VolumeOptions, device::MemoryDevice};
///
/// let volume = Volume::create(Arc::new(MemoryDevice::new()), VolumeOptions::tiny())?;
/// let table = Growing::create(&volume, "seen", Config::tiny())?;
/// for key in 0..10_000u64 {
///     table.insert(&key.to_le_bytes(), &[1; 8])?;
/// }
/// assert!(table.generations() > 1);
/// assert_eq!(table.get(&17u64.to_le_bytes())?.as_deref(), Some(&[1; 8][..]));
/// # Ok::<(), nandex::Error>(())
/// ```
#[derive(Debug)]
pub struct Growing {
    inner: Inner,
    /// Makes generations; none where nothing runs in the background.
    thread: Option<JoinHandle<()>>,
    is_closed: bool,
}

#[derive(Debug)]
struct Inner {
    volume: Volume,
    id: StructureId,
    config: Config,
    generations: Arc<Generations>,
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
        Self::open_with(volume, name, RuntimeOptions::default())
    }

    /// Opens a table of a volume.
    ///
    /// # Errors
    /// As [`open`](Self::open).
    pub fn open_with(volume: &Volume, name: &str, options: RuntimeOptions) -> Result<Self> {
        Self::open_within(volume, name, None, options)
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
        let channels = Channels::of(&device.geometry());
        let lookups = Lookups::new(ReadPool::new(device, channels, options.read_depth));
        let in_background = options.flush_threads > 0;
        let generations = Generations::open(volume, name, config.clone(), options)?;
        let generations = Arc::new(generations);
        let (volume, id) = (volume.clone(), structure.id);
        let root = Root::register(&volume, id);
        let inner = Inner { volume, id, config, generations, lookups, _root: root };
        let mut table = Self { inner, thread: None, is_closed: false };
        if in_background {
            let generations = &table.inner.generations;
            let start =
                grow::start_thread(generations, Generations::requests, Generations::prepare);
            table.thread = Some(start?);
        }
        Ok(table)
    }

    /// What it was created with; its RAM is that of this opening.
    #[must_use]
    pub fn config(&self) -> &Config {
        &self.inner.config
    }

    /// How many generations it has.
    #[must_use]
    pub fn generations(&self) -> usize {
        self.inner.generations.len()
    }

    /// All entries, each key once with its newest value, in no order. A key that is updated meanwhile may come twice,
    /// with its old and its new value.
    ///
    /// Reads all generations once, sequentially, and a page for each entry that a newer version may hide.
    #[must_use]
    pub fn iter(&self) -> Iter<'_> {
        Iter::new(&self.inner)
    }

    /// Loads the filters of a table that was just opened, so that no lookup has to.
    ///
    /// # Errors
    /// A failed read, or damage.
    pub fn load_filters(&self) -> Result<()> {
        self.inner.generations.cores().try_for_each(|core| {
            (0..core.partitions.len()).try_for_each(|index| core.load_filters(index))
        })
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
        self.inner.generations.requests().stop();
        if let Some(thread) = self.thread.take() {
            // A panic of the thread is a bug, and has printed its own message.
            let _ = thread.join();
        }
        let closed = self.inner.generations.close();
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
    /// Updates the newest generation. If it is full, the next one follows.
    #[inline]
    fn update<R>(&self, act: impl Fn(&Newest<'_>) -> Result<R>) -> Result<R> {
        loop {
            let newest = self.generations.newest();
            match act(&newest) {
                Err(Error::Full { .. }) => {
                    let count = newest.count;
                    drop(newest);
                    self.generations.grow(count)?;
                }
                result => {
                    self.generations.look_ahead(newest.core);
                    return result;
                }
            }
        }
    }

    /// Removes a key. An older generation that may hold it is hidden by a tombstone.
    fn remove(&self, key: &[u8]) -> Result<()> {
        lookup::KeyLookup::check_key(self, key)?;
        self.update(|newest| {
            let hash = newest.core.hasher.hash(key);
            let mut older = (0..newest.count - 1).map(|number| self.generations.core(number));
            newest.core.remove_over(key, older.any(|core| core.may_hold(hash, key)))
        })
    }

    /// Pairs that are inserted at a time. Refuses those of other widths than the table's.
    fn batch_len(&self, pairs: &[(&[u8], &[u8])]) -> Result<usize> {
        let core = self.generations.core(0);
        core.check_pairs(pairs)?;
        Ok(core.batch_len())
    }

    fn insert_many(&self, pairs: &[(&[u8], &[u8])]) -> Result<()> {
        let batches = pairs.chunks(self.batch_len(pairs)?);
        batches
            .into_iter()
            .try_for_each(|batch| self.update(|newest| newest.core.insert_batch(batch)))?;
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
        let newest = self.generations.newest();
        let look_up = |keys: &[&[u8]]| lookup::batch(self, keys);
        let undecided = newest.core.insert_absent(pairs, positions, found, look_up)?;
        self.generations.look_ahead(newest.core);
        let count = newest.count;
        drop(newest);
        if undecided.full.is_some() {
            self.generations.grow(count)?;
        }
        Ok(undecided.positions)
    }

    fn flush(&self) -> Result<()> {
        self.volume.poison().check()?;
        let unsaved = self.generations.cores().filter(|core| !core.is_saved());
        unsaved.into_iter().try_for_each(Core::flush_all)
    }

    /// The sum of the generations' figures, and its own lookups.
    fn stats(&self) -> TableStats {
        let log_ram_bytes = self.volume.log().stats().ram_bytes;
        let mut sum = TableStats::default();
        for core in self.generations.cores() {
            sum.add_part(&core.stats(), log_ram_bytes);
        }
        sum.ram_bytes += log_ram_bytes;
        sum.with_lookups(&self.lookups)
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
        self.inner.update(|newest| newest.core.insert(key, value))
    }

    fn remove(&self, key: &[u8]) -> Result<()> {
        self.inner.remove(key)
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
        self.inner.stats()
    }
}
