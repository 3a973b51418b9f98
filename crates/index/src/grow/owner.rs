//! The owner of a growing table's parts: updates go to the newest part, and when that is full the next one follows.

use std::fmt::Debug;
use std::ops::Deref;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::{Arc, RwLockReadGuard};

use nandex_store::{Durability, Shutdown, Structure, StructureId, Volume};

use super::{Preparing, Requests, Root, prepare_in_background};
use crate::api::{TableStats, Value};
use crate::lookup::{self, Cached, Lookups, TableCache, TableLookup};
use crate::ram::SpareRam;
use crate::write::{Core, TableLayout};
use crate::{Error, OpenOptions, Result};

/// The parts of a growing table.
pub(crate) trait Parts: Debug + Send + Sync + Sized + 'static {
    /// The layout of each part.
    type Layout: TableLayout;
    /// The newest part.
    type Newest<'p>: Deref<Target = Core<Self::Layout>>;

    /// Returns the newest part, which stays the newest meanwhile.
    fn newest(&self) -> Newest<'_, Self::Newest<'_>>;

    /// Prepares growth, in the background. The update that needs it reports a failure, and tries again.
    fn prepare(&self);

    /// The requests for preparations.
    fn requests(&self) -> &Requests;

    /// Lets all parts report entries that leave them to a cache, before the first lookup.
    fn use_cache(&self, cache: TableCache);

    /// The RAM that it may take and does not take yet.
    fn spare(&self) -> &Arc<SpareRam>;

    /// Replaces the newest part, which is full, by the next one, unless that has already happened.
    ///
    /// # Errors
    /// Exhausted RAM, no space on the device or in the log, a failed read or write.
    fn grow(&self, full: StructureId) -> Result<()>;

    /// Removes a key from the newest part.
    ///
    /// # Errors
    /// As [`Table::remove`](crate::Table::remove).
    fn remove(&self, newest: &Core<Self::Layout>, key: &[u8]) -> Result<()> {
        newest.remove(key)
    }

    /// Flushes every buffered update.
    ///
    /// # Errors
    /// A failed read or write.
    fn flush(&self) -> Result<()>;

    /// Returns the statistics of all parts and the log, without lookups.
    fn stats(&self) -> TableStats;

    /// Closes all parts, oldest first.
    ///
    /// # Errors
    /// A failed write or sync.
    fn close(&self) -> Result<()>;
}

/// The newest part, for as long as it is the newest.
pub(crate) struct Newest<'p, C> {
    pub core: C,
    /// Updates hold it for reading; growth waits for them.
    pub _updates: RwLockReadGuard<'p, ()>,
}

/// The owner of a table's parts.
#[derive(Debug)]
pub(crate) struct Owner<P: Parts> {
    pub parts: Arc<P>,
    pub volume: Volume,
    pub lookups: Lookups,
    pub key_bytes: usize,
    pub value_bytes: usize,
    id: StructureId,
    /// The registration of the table as open with the volume.
    _root: Arc<Root>,
    /// The background job that prepares growth; `None` if nothing runs in the background.
    preparing: Option<Arc<Preparing<P>>>,
    is_closed: bool,
}

/// The parameters for opening a growing table.
pub(crate) struct GrowingOpening {
    pub key_bytes: usize,
    pub value_bytes: usize,
    pub options: OpenOptions,
    pub cache: Option<TableCache>,
}

impl<P: Parts> Owner<P> {
    /// Takes over parts that were opened.
    ///
    /// # Errors
    /// No background thread can start.
    pub fn start(
        volume: &Volume,
        structure: &Structure,
        parts: P,
        opening: GrowingOpening,
    ) -> Result<Self> {
        let mut owner = Self {
            parts: Arc::new(parts),
            volume: volume.clone(),
            lookups: Lookups::new(opening.options.reads(volume, volume.device())),
            key_bytes: opening.key_bytes,
            value_bytes: opening.value_bytes,
            id: structure.id,
            _root: Root::register(volume, structure.id),
            preparing: None,
            is_closed: false,
        };
        owner.lookups.use_cache(opening.cache);
        if opening.options.flush_threads != Some(0) {
            owner.preparing = Some(prepare_in_background(volume, &owner.parts)?);
        }
        Ok(owner)
    }

    /// Saves buffered updates and ends the background work.
    ///
    /// # Errors
    /// A failed write or sync.
    pub fn shut_down(&mut self) -> Result<()> {
        if std::mem::replace(&mut self.is_closed, true) {
            return Ok(());
        }
        self.parts.requests().stop();
        self.preparing = None;
        let closed = self.parts.close();
        self.volume.deregister(self.id, || Shutdown::Clean);
        closed
    }

    /// Updates the newest part. If it is full, the next one follows.
    #[inline]
    pub fn update<R>(&self, act: impl Fn(&Core<P::Layout>) -> Result<R>) -> Result<R> {
        loop {
            let newest = self.parts.newest();
            match act(&newest.core) {
                Err(Error::Full { .. }) => {
                    let full = newest.core.id;
                    drop(newest);
                    self.parts.grow(full)?;
                }
                result => {
                    self.look_ahead(&newest.core);
                    return result;
                }
            }
        }
    }

    #[inline]
    fn look_ahead(&self, newest: &Core<P::Layout>) {
        self.parts.requests().look_ahead(newest.counters.flushed_entries.load(Relaxed));
    }

    /// Uses the RAM that the parts do not take yet as a cache, unless there is a cache. Must be called before the first
    /// lookup.
    pub fn use_spare_ram(&self) {
        if self.lookups.cache.get().is_some() {
            return;
        }
        let widths = (self.key_bytes, self.value_bytes);
        if let Some(cache) = TableCache::lent(self.parts.spare(), widths) {
            self.parts.use_cache(cache.clone());
            self.lookups.use_cache(Some(cache));
        }
    }

    pub fn remove(&self, key: &[u8]) -> Result<()> {
        self.update(|newest| self.parts.remove(newest, key))
    }

    /// Returns the number of pairs inserted at a time. Fails for pairs of other widths than the table's.
    fn batch_len(&self, pairs: &[(&[u8], &[u8])]) -> Result<usize> {
        let core = self.parts.newest().core;
        core.check_pairs(pairs)?;
        Ok(core.batch_len())
    }

    pub fn insert_many(&self, pairs: &[(&[u8], &[u8])]) -> Result<()> {
        let mut batches = pairs.chunks(self.batch_len(pairs)?);
        batches.try_for_each(|batch| self.update(|newest| newest.insert_batch(batch)))?;
        Ok(self.volume.log().commit()?)
    }

    pub fn flush(&self) -> Result<()> {
        self.volume.poison().check()?;
        self.parts.flush()
    }

    pub fn sync(&self) -> Result<()> {
        if self.volume.durability() == Durability::Never {
            // No update is in the log: only flash makes it durable.
            return self.flush();
        }
        Ok(self.volume.log().sync()?)
    }

    pub fn stats(&self) -> TableStats {
        self.parts.stats().with_lookups(&self.lookups)
    }
}

impl<P: Parts> Owner<P>
where
    Self: TableLookup,
{
    pub fn get_or_insert_many(&self, pairs: &[(&[u8], &[u8])]) -> Result<Vec<Option<Value>>> {
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

    /// Inserts those of the pairs at these positions whose keys are absent, and returns the positions that are still
    /// undecided.
    fn insert_absent(
        &self,
        pairs: &[(&[u8], &[u8])],
        positions: &[usize],
        found: &mut [Option<Value>],
    ) -> Result<Vec<usize>> {
        let newest = self.parts.newest();
        let look_up = |keys: &[&[u8]]| lookup::batch(&Cached::new(self), keys);
        let undecided = newest.core.insert_absent(pairs, positions, found, look_up)?;
        self.look_ahead(&newest.core);
        let full = newest.core.id;
        drop(newest);
        if undecided.full.is_some() {
            self.parts.grow(full)?;
        }
        Ok(undecided.positions)
    }
}

impl<P: Parts> Drop for Owner<P> {
    fn drop(&mut self) {
        // This error cannot be returned; updates acknowledged as durable are in the log.
        let _ = self.shut_down();
    }
}
