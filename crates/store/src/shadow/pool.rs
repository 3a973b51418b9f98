//! The physical blocks without a logical block: free ones, drafts, and those that wait for a map update to
//! become durable.

use std::collections::VecDeque;
use std::sync::{Arc, Condvar, Mutex, MutexGuard};
use std::time::Duration;

use super::{Block, MapUpdate, ShadowShape};
use crate::Lsn;
use crate::generation::{generation, sequence};
use crate::mutants::{Barrier, is_on};

/// The pool of one shadow, shared with its drafts.
#[derive(Debug)]
pub(super) struct Pool {
    state: Mutex<PoolState>,
    space_freed: Condvar,
}

/// The state that the pool's lock guards. Changing the map requires it too.
#[derive(Debug)]
pub(super) struct PoolState {
    /// The sequence number of the next draft.
    pub next: u64,
    /// The number of map updates since the start.
    pub updates: u64,
    /// Free blocks of each device, the one that has been free for the longest first, so that readers of an old
    /// version have the longest time.
    free: Vec<VecDeque<u32>>,
    waiting: Vec<Waiting>,
    pub drafts: Vec<MapUpdate>,
}

/// A block that a map update has replaced; it may be reused once that map update is durable.
#[derive(Debug)]
struct Waiting {
    physical: u32,
    logical: u32,
    /// The number of the map update, in the order of all map updates.
    update: u64,
    /// The generation that replaced it.
    successor: u64,
    /// The place of the map update's record in the log, if it is there.
    record: Option<Lsn>,
}

impl Pool {
    pub fn new(shape: ShadowShape, next: u64, unused: impl Iterator<Item = u32>) -> Self {
        let free = vec![VecDeque::new(); shape.devices as usize];
        let mut state =
            PoolState { next, updates: 0, free, waiting: Vec::new(), drafts: Vec::new() };
        unused.for_each(|physical| state.give(physical));
        Self { state: Mutex::new(state), space_freed: Condvar::new() }
    }

    pub fn lock(&self) -> MutexGuard<'_, PoolState> {
        self.state.lock().expect("no holder of the shadow's lock panics")
    }

    /// Wakes the callers that wait for a free block.
    pub fn tell(&self) {
        self.space_freed.notify_all();
    }

    pub fn wait(&self, timeout: Duration) {
        let state = self.lock();
        if state.free_blocks() == 0 {
            // Whether time or a free block woke it, the caller tries again.
            drop(self.space_freed.wait_timeout(state, timeout));
        }
    }
}

impl PoolState {
    pub fn free_blocks(&self) -> usize {
        self.free.iter().map(VecDeque::len).sum()
    }

    pub fn waiting_blocks(&self) -> usize {
        self.waiting.len()
    }

    /// Returns whether a sync of the log would free a block.
    pub fn awaits_log(&self) -> bool {
        self.waiting.iter().any(|old| old.record.is_some())
    }

    pub fn ram_bytes(&self) -> usize {
        let free: usize = self.free.iter().map(VecDeque::capacity).sum();
        free * size_of::<u32>()
            + self.waiting.capacity() * size_of::<Waiting>()
            + self.drafts.capacity() * size_of::<MapUpdate>()
    }

    fn give(&mut self, physical: u32) {
        let devices = self.free.len();
        self.free[physical as usize % devices].push_back(physical);
    }

    /// Takes a free block of this device, or else of the device with the most.
    fn take(&mut self, device: usize) -> Option<u32> {
        if let Some(physical) = self.free[device].pop_front() {
            return Some(physical);
        }
        let richest = self.free.iter_mut().max_by_key(|device| device.len());
        richest.and_then(VecDeque::pop_front)
    }

    pub fn has_draft(&self, logical: u32) -> bool {
        self.drafts.iter().any(|draft| draft.logical == logical)
    }

    /// Opens a draft of a logical block in a free physical one.
    pub fn begin(&mut self, logical: u32, epoch: u16) -> Option<MapUpdate> {
        let physical = self.take(logical as usize % self.free.len())?;
        let epoch = if is_on(Barrier::ShadowTellsEpochs) { epoch } else { 0 };
        let block = Block { physical, generation: generation(self.next, epoch), entries: 0 };
        self.next += 1;
        let draft = MapUpdate { logical, block };
        self.drafts.push(draft);
        Some(draft)
    }

    /// Removes a draft from the list; its block is then unowned.
    pub fn end(&mut self, draft: MapUpdate) {
        self.drafts.retain(|open| open.block.generation != draft.block.generation);
    }

    pub fn abandon(&mut self, draft: MapUpdate) {
        self.end(draft);
        self.give(draft.block.physical);
    }

    /// Notes that a map update has replaced the block `old`.
    pub fn displace(&mut self, old: Block, by: MapUpdate) {
        if !is_on(Barrier::ShadowSparesOld) {
            return self.give(old.physical);
        }
        self.waiting.push(Waiting {
            physical: old.physical,
            logical: by.logical,
            update: self.updates,
            successor: by.block.generation,
            record: None,
        });
    }

    /// Notes the place of a map update in the log. The blocks that earlier map updates of the same logical block have
    /// replaced wait for this one at most, because replaying it alone restores none of them.
    pub fn logged(&mut self, update: MapUpdate, record: Lsn) {
        let newest = sequence(update.block.generation);
        for old in self.waiting.iter_mut().filter(|old| old.logical == update.logical) {
            if old.record.is_none() && sequence(old.successor) <= newest {
                old.record = Some(record);
            }
        }
    }

    /// Frees the blocks of map updates whose record is before `place`, up to which the log is durable.
    pub fn synced(&mut self, place: Lsn) {
        let strict = is_on(Barrier::ShadowSyncedBehindUpdate);
        let is_durable = |record: Lsn| record < place || !strict && record == place;
        self.free_if(|old| old.record.is_some_and(is_durable));
    }

    /// Frees the blocks of the first `updates` map updates.
    pub fn committed(&mut self, updates: u64) {
        let all = !is_on(Barrier::ShadowCommitsItsCapture);
        self.free_if(|old| old.update < updates || all);
    }

    fn free_if(&mut self, is_durable: impl Fn(&Waiting) -> bool) {
        for old in self.waiting.extract_if(.., |old| is_durable(old)).collect::<Vec<_>>() {
            self.give(old.physical);
        }
    }
}

/// A physical block that is being written to become the next version of a logical one.
///
/// Dropping it frees the block; writes to it must have ended by then. [`Shadow::publish`] makes it the
/// logical block's newest version.
///
/// [`Shadow::publish`]: super::Shadow::publish
#[derive(Debug)]
#[must_use = "dropped, it gives the block back"]
pub struct Draft {
    pub(super) pool: Arc<Pool>,
    pub(super) update: MapUpdate,
    pub(super) is_open: bool,
}

impl Draft {
    /// The logical block whose next version it is.
    #[must_use]
    pub fn logical(&self) -> u32 {
        self.update.logical
    }

    /// The block that is written, for [`Shadow::page`](super::Shadow::page) and
    /// [`Shadow::label`](super::Shadow::label). It counts no entries yet.
    #[must_use]
    pub fn block(&self) -> Block {
        self.update.block
    }
}

impl Drop for Draft {
    fn drop(&mut self) {
        if self.is_open {
            self.pool.lock().abandon(self.update);
            self.pool.tell();
        }
    }
}
