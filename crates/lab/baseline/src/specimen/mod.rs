//! The smallest structure that keeps its promises: a hash map that every checkpoint writes whole.
//!
//! It is made up, and only in builds for tests. It shows the cost of a new structure: this folder and one
//! row, which [`register`](crate::register) adds to the registry. Harnesses and the benchmark then know it.
//!
//! ```text
//!   insert, remove -> log -> map in RAM <- get
//!                             | checkpoint
//!                             v
//!                          catalog: count | key value | key value | ..
//! ```
//!
//! Invariants
//! 1. An update is in the log before it is in the map, both under one lock, which a capture takes too. So a
//!    capture has every update before the log position that it names.
//! 2. Replaying an update again changes nothing: the newest one of a key is replayed last.
//!
//! | operation | flash reads | flash writes | RAM |
//! |---|---|---|---|
//! | insert, remove | 0 | the log's entry; the whole map with each checkpoint | the entry |
//! | lookup | 0 | 0 | |

mod check;
mod config;
mod row;
#[cfg(test)]
mod tests;

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, Weak};

use nandex::raw::LookupStream;
use nandex::raw::oracle::MapTable;
use nandex::{Error, Result};
use nandex::{Table, TableStats, Value};
use nandex_device::PageId;
use nandex_store::bytes::Reader;
use nandex_store::{Captured, Checkpointed, Lsn, Shutdown, Structure, StructureId, Volume};

pub use config::{Config, ENTRIES_MAX};
pub(crate) use row::ROW;

/// The name of this kind in the catalog.
pub const KIND: &str = "specimen";

/// The first byte of a log entry that inserts a key and value.
const PUT: u8 = 1;
/// The first byte of a log entry that removes a key.
const REMOVE: u8 = 2;

/// A specimen in a volume.
#[derive(Debug)]
pub struct Specimen {
    inner: Arc<Inner>,
    is_closed: bool,
}

struct Inner {
    volume: Volume,
    id: StructureId,
    config: Config,
    map: MapTable,
    /// Locked while an update is logged and applied, and while the map is captured.
    updates: Mutex<()>,
    inserts: AtomicU64,
    hits: AtomicU64,
    misses: AtomicU64,
}

/// The content of a log entry.
pub(crate) struct Update<'a> {
    key: &'a [u8],
    /// `None` for a removal.
    value: Option<&'a [u8]>,
}

impl Specimen {
    /// Creates a specimen in a volume.
    ///
    /// # Errors
    /// Fails for an impossible configuration, a used name, and a failed write.
    pub fn create(volume: &Volume, name: &str, config: Config) -> Result<Self> {
        config.validate()?;
        let structure = volume.create_structure(name, KIND, config.encode(), 0)?;
        Self::restore(volume, &structure)
    }

    /// Opens a specimen of a volume.
    ///
    /// # Errors
    /// Fails if there is no structure of this name and kind, for damage, and on a failed read.
    pub fn open(volume: &Volume, name: &str) -> Result<Self> {
        Self::restore(volume, &volume.open_structure(name, KIND)?)
    }

    fn restore(volume: &Volume, structure: &Structure) -> Result<Self> {
        let mut reader = Reader::new(&structure.config, "specimen configuration", PageId(0));
        let config = Config::decode(&mut reader)?;
        let map = MapTable::new(config.key_bytes, config.value_bytes);
        let mut state = Reader::new(&structure.state, "specimen state", PageId(0));
        config.decode_state(&mut state, &mut |key, value| map.insert(key, value))?;
        volume.replay(structure, &mut |lsn, bytes| {
            let update = config.decode_update(lsn, bytes)?;
            apply(&map, &update).expect("its widths were checked");
            Ok(())
        })?;
        let (volume, updates) = (volume.clone(), Mutex::default());
        let (inserts, hits, misses) = Default::default();
        let id = structure.id;
        let inner = Arc::new(Inner { volume, id, config, map, updates, inserts, hits, misses });
        let shared: Arc<dyn Checkpointed> = Arc::clone(&inner) as _;
        let weak: Weak<dyn Checkpointed> = Arc::downgrade(&shared);
        inner.volume.register(inner.id, weak);
        Ok(Self { inner, is_closed: false })
    }

    /// Saves everything. Dropping does the same, and ignores failures.
    ///
    /// # Errors
    /// Fails on a failed write or sync.
    pub fn close(mut self) -> Result<()> {
        self.shut_down()
    }

    fn shut_down(&mut self) -> Result<()> {
        if std::mem::replace(&mut self.is_closed, true) {
            return Ok(());
        }
        let saved = self.flush();
        let shutdown = if saved.is_ok() { Shutdown::Clean } else { Shutdown::NeedsReplay };
        self.inner.volume.deregister(self.inner.id, || shutdown);
        saved
    }
}

impl Drop for Specimen {
    fn drop(&mut self) {
        // Drop cannot return this error; everything acknowledged as durable is in the log.
        let _ = self.shut_down();
    }
}

fn apply(map: &MapTable, update: &Update<'_>) -> Result<()> {
    match update.value {
        Some(value) => map.insert(update.key, value),
        None => map.remove(update.key),
    }
}

impl Inner {
    fn lock(&self) -> MutexGuard<'_, ()> {
        self.updates.lock().expect("no holder of this lock panics")
    }

    fn update(&self, update: &Update<'_>) -> Result<()> {
        self.update_unless(update, |_| false).map(drop)
    }

    /// Updates a key unless its present value forbids it, and returns the present value.
    fn update_unless(
        &self,
        update: &Update<'_>,
        is_kept: impl FnOnce(&Option<Value>) -> bool,
    ) -> Result<Option<Value>> {
        Error::check_width("key", update.key, self.config.key_bytes)?;
        if let Some(value) = update.value {
            Error::check_width("value", value, self.config.value_bytes)?;
        }
        self.volume.poison().check()?;
        let tag = if update.value.is_some() { PUT } else { REMOVE };
        let value = update.value.unwrap_or_default();
        let _reservation = self.volume.reserve((1 + update.key.len() + value.len()) as u64)?;
        let _lock = self.lock();
        let found = self.map.get(update.key)?;
        if is_kept(&found) {
            return Ok(found);
        }
        let entries = self.map.stats().entries;
        let is_full = entries >= u64::from(self.config.entries_max);
        if is_full && update.value.is_some() && found.is_none() {
            return Err(Error::Full { entries, flash_bytes: 0 });
        }
        self.volume.log().append(self.id, &[&[tag], update.key, value])?;
        self.inserts.fetch_add(1, Ordering::Relaxed);
        apply(&self.map, update)?;
        Ok(found)
    }

    fn commit(&self) -> Result<()> {
        Ok(self.volume.log().commit()?)
    }

    fn count(&self, found: Option<Value>) -> Option<Value> {
        let counter = if found.is_some() { &self.hits } else { &self.misses };
        counter.fetch_add(1, Ordering::Relaxed);
        found
    }
}

impl std::fmt::Debug for Inner {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Inner").field("config", &self.config).finish_non_exhaustive()
    }
}

impl Checkpointed for Inner {
    fn prepare(&self) -> nandex_store::Result<()> {
        Ok(())
    }

    fn capture(&self) -> Captured {
        let _lock = self.lock();
        let state = self.config.encode_state(&self.map.entries());
        Captured { state, tail: self.volume.log().next_lsn(), extents: None }
    }

    fn committed(&self) {}

    fn flush_before(&self, _before: Lsn) -> nandex_store::Result<()> {
        Ok(())
    }

    fn run_deferred(&self) -> nandex_store::Result<()> {
        Ok(())
    }
}

impl Table for Specimen {
    fn key_bytes(&self) -> usize {
        self.inner.config.key_bytes
    }

    fn value_bytes(&self) -> usize {
        self.inner.config.value_bytes
    }

    fn insert(&self, key: &[u8], value: &[u8]) -> Result<()> {
        self.insert_many(&[(key, value)])
    }

    fn remove(&self, key: &[u8]) -> Result<()> {
        self.inner.update(&Update { key, value: None })?;
        self.inner.commit()
    }

    fn get(&self, key: &[u8]) -> Result<Option<Value>> {
        Ok(self.inner.count(self.inner.map.get(key)?))
    }

    fn insert_many(&self, pairs: &[(&[u8], &[u8])]) -> Result<()> {
        for (key, value) in pairs {
            self.inner.update(&Update { key, value: Some(value) })?;
        }
        self.inner.commit()
    }

    fn get_or_insert_many(&self, pairs: &[(&[u8], &[u8])]) -> Result<Vec<Option<Value>>> {
        let put = |(key, value): &(&[u8], &[u8])| {
            let update = Update { key, value: Some(value) };
            Ok(self.inner.count(self.inner.update_unless(&update, Option::is_some)?))
        };
        let found = pairs.iter().map(put).collect::<Result<_>>()?;
        self.inner.commit()?;
        Ok(found)
    }

    fn get_many(&self, keys: &[&[u8]]) -> Result<Vec<Option<Value>>> {
        keys.iter().map(|key| self.get(key)).collect()
    }

    fn stream(&self) -> Result<Box<dyn LookupStream + '_>> {
        self.inner.map.stream()
    }

    fn sync(&self) -> Result<()> {
        Ok(self.inner.volume.log().sync()?)
    }

    fn flush(&self) -> Result<()> {
        Ok(self.inner.volume.checkpoint()?)
    }

    fn stats(&self) -> TableStats {
        let Inner { config, map, inserts, hits, misses, .. } = &*self.inner;
        let entries = map.stats().entries;
        let mut stats = TableStats::default();
        stats.entries = entries;
        stats.ram_bytes = entries * (config.key_bytes + config.value_bytes) as u64;
        stats.inserts = inserts.load(Ordering::Relaxed);
        stats.hits = hits.load(Ordering::Relaxed);
        stats.misses = misses.load(Ordering::Relaxed);
        stats
    }
}
