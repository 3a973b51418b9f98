//! The update path: the buffer first, then the log, then the acknowledgement; and the handling of full buffers.

use std::sync::atomic::Ordering::{Acquire, SeqCst};
use std::sync::{Arc, MutexGuard, RwLockWriteGuard};
use std::time::Duration;

use nandex_store::Durability;
use nandex_store::log::Reservation;
use nandex_store::mutants::{Barrier, is_on};

use super::pool::Job;
use super::{
    BOUNDARY_BYTES, Boundary, Checkpoints, Core, Layout, LogCodec, Partition, PartitionState,
    Space, WriteBuffer,
};
use crate::Result;

/// The maximum number of full buffers of a partition that may wait before its updates wait too.
const FROZEN_MAX: usize = 2;

/// The maximum number of updates applied under one lock, which bounds the wait of lookups.
pub(crate) const LOCKED_MAX: usize = 512;

/// The number of updates of a batch that are sorted by partition at a time.
pub(crate) const BATCH: usize = 4096;

/// The maximum number of rounds of flushing everything that a close takes; usually one is enough.
const CLOSING_ROUNDS_MAX: usize = 8;

/// The longest wait for a buffer before the caller checks again.
const BUFFER_WAIT: Duration = Duration::from_millis(2);

/// The longest single wait of an update for a flush that is behind: about the time to merge ten thousand
/// fingerprints.
const PACE_WAIT: Duration = Duration::from_micros(400);

/// An update of a layout's buffer.
pub(super) type Update<'u, L> = <<L as Layout>::Buffer as WriteBuffer>::Update<'u>;

/// A partition's state, locked for updates.
pub(crate) type Locked<'a, L> = RwLockWriteGuard<'a, PartitionState<L>>;

/// Sorts items by partition, keeping their original order within each, and passes each partition its items.
///
/// # Errors
/// Those of `visit`, which ends the walk.
pub(crate) fn by_partition<T: Copy + Default>(
    partitions: usize,
    items: impl Iterator<Item = (usize, T)> + Clone,
    mut visit: impl FnMut(usize, &[T]) -> Result<()>,
) -> Result<()> {
    let mut ends = vec![0usize; partitions + 1];
    let mut count = 0;
    for (index, _) in items.clone() {
        ends[index + 1] += 1;
        count += 1;
    }
    for index in 1..ends.len() {
        ends[index] += ends[index - 1];
    }
    let mut sorted = vec![T::default(); count];
    // While items are placed, each partition's entry is its next position; at the end it is the end of its items.
    for (index, item) in items {
        sorted[ends[index]] = item;
        ends[index] += 1;
    }
    let mut start = 0;
    for (index, end) in ends[..partitions].iter().enumerate() {
        if start < *end {
            visit(index, &sorted[start..*end])?;
        }
        start = *end;
    }
    Ok(())
}

impl<L: Layout> Core<L> {
    /// Waits until the log has space for updates of `bytes` bytes, before any lock is taken.
    #[inline]
    pub(crate) fn wait_for_log(&self, bytes: u64) -> Result<Option<Reservation<'_>>> {
        let boundary = if L::Buffer::ADDS_UP { BOUNDARY_BYTES as u64 } else { 0 };
        Ok(self.volume.wait_for_space(bytes + boundary)?)
    }

    /// Makes the updates as durable as the volume promises.
    #[inline]
    pub(crate) fn acknowledge(&self) -> Result<()> {
        Ok(self.volume.log().commit()?)
    }

    /// Applies updates of one partition, in order, and logs them; the caller holds a reservation for them.
    /// `records` is scratch memory.
    #[inline]
    pub(crate) fn apply(
        &self,
        index: usize,
        updates: &[Update<'_, L>],
        records: &mut Vec<u8>,
    ) -> Result<()> {
        for updates in updates.chunks(LOCKED_MAX) {
            self.wait_for_pace(updates.len());
            drop(self.apply_locked(index, self.partitions[index].write(), updates, records)?);
        }
        Ok(())
    }

    /// Waits for the log's space for updates of one partition, up to [`LOCKED_MAX`] at a time, and applies them as
    /// [`apply`](Self::apply) does.
    #[inline]
    pub(crate) fn reserve_and_apply(
        &self,
        index: usize,
        updates: &[Update<'_, L>],
        records: &mut Vec<u8>,
    ) -> Result<()> {
        for updates in updates.chunks(LOCKED_MAX) {
            let _reservation = self.wait_for_log(self.codec.logged_bytes(updates))?;
            self.apply(index, updates, records)?;
        }
        Ok(())
    }

    /// Waits a little before these updates if they are ahead of the flushes.
    #[inline]
    pub(crate) fn wait_for_pace(&self, updates: usize) {
        if self.pace.must_wait(updates) {
            self.pool.wait(PACE_WAIT);
        }
    }

    /// Like [`apply`](Self::apply), for a partition that the caller has locked. Replaces the buffer when it is full.
    #[inline]
    pub(crate) fn apply_locked<'a>(
        &'a self,
        index: usize,
        mut state: Locked<'a, L>,
        mut updates: &[Update<'_, L>],
        records: &mut Vec<u8>,
    ) -> Result<Locked<'a, L>> {
        loop {
            let count = state.active.apply(updates)?;
            let (applied, rest) = updates.split_at(count);
            self.note_updates(&mut state, count);
            // A full buffer's contents are logged before other threads can change it again.
            self.log_updates(index, &mut state, applied, records)?;
            if rest.is_empty() {
                return Ok(state);
            }
            updates = rest;
            if count > 0 {
                // The buffer is full, or the next update can never be applied. Applying that one first tells which.
                continue;
            }
            // A buffer that has any entries can be flushed, and an empty one accepts any update, if not now then after
            // the flushes whose carry-over it awaits.
            let changes =
                state.updates > 0 || state.active.entries() > 0 || !state.frozen.is_empty();
            assert!(changes, "an update fits");
            state = self.rotate(index, state)?;
        }
    }

    /// Applies and logs the updates of a partition that `may` allows, by their number, under the lock. `may` is called
    /// again if the partition was unlocked before the update could be applied.
    pub(crate) fn apply_where(
        &self,
        index: usize,
        updates: &[Update<'_, L>],
        mut may: impl FnMut(&PartitionState<L>, usize) -> bool,
    ) -> Result<()> {
        self.wait_for_pace(updates.len());
        let (mut applied, mut records) = (Vec::with_capacity(updates.len()), Vec::new());
        let mut state = self.partitions[index].write();
        for (number, update) in updates.iter().enumerate() {
            while may(&state, number) {
                let count = state.active.apply(&[*update]);
                if matches!(count, Ok(1)) {
                    self.note_updates(&mut state, 1);
                    applied.push(*update);
                    break;
                }
                self.log_updates(index, &mut state, &applied, &mut records)?;
                applied.clear();
                count?;
                state = self.rotate(index, state)?;
            }
        }
        self.log_updates(index, &mut state, &applied, &mut records)
    }

    #[inline]
    pub(crate) fn note_updates(&self, state: &mut PartitionState<L>, count: usize) {
        state.updates += count as u64;
        state.user_updates += count as u64;
        state.updates_taken += count as u64;
        self.pace.updated(count);
    }

    /// Logs updates that were applied to the active buffer.
    #[inline]
    pub(crate) fn log_updates(
        &self,
        index: usize,
        state: &mut PartitionState<L>,
        updates: &[Update<'_, L>],
        records: &mut Vec<u8>,
    ) -> Result<()> {
        if !self.logs() || updates.is_empty() {
            return Ok(());
        }
        self.note_since(state);
        self.codec.append(self.volume.log(), (self.id, index), updates, records)
    }

    /// Notes the log position before the updates that only the active buffer has, if the buffer was saved so far. This
    /// precedes the append, so that the position is not after the update's.
    #[inline]
    pub(super) fn note_since(&self, state: &mut PartitionState<L>) {
        if is_on(Barrier::BufferNotesItsPlace) {
            state.since.get_or_insert_with(|| self.volume.log().next_lsn());
        }
    }

    /// Replaces the full buffer by a fresh one. The full one is written in the background, or before this returns if
    /// there are no background threads; waits if there is no fresh buffer.
    #[cold]
    pub(crate) fn rotate<'a>(
        &'a self,
        index: usize,
        mut state: Locked<'a, L>,
    ) -> Result<Locked<'a, L>> {
        if self.volume.is_read_only() {
            self.keep_full(&mut state, Boundary::default());
            return Ok(state);
        }
        self.volume.poison().check()?;
        self.work.report_fault()?;
        if state.frozen.len() < FROZEN_MAX
            && !self.awaits_carry_over(&state)
            && self.try_freeze(index, &mut state, self.policy.spares_kept)?
            && self.options.flush_threads > 0
        {
            return Ok(state);
        }
        self.wait_for_buffer(index, state)
    }

    /// Lets flushes continue, in this thread or in the background, with the partition unlocked meanwhile.
    pub(crate) fn wait_for_buffer<'a>(
        &'a self,
        index: usize,
        state: Locked<'a, L>,
    ) -> Result<Locked<'a, L>> {
        drop(state);
        self.continue_flushes()?;
        Ok(self.partitions[index].write())
    }

    /// Lets flushes continue, in this thread or in the background, for a caller that needs a spare buffer. The caller
    /// holds no lock.
    pub(crate) fn continue_flushes(&self) -> Result<()> {
        self.volume.poison().check()?;
        self.work.report_fault()?;
        if !self.catch_up_or_help()? {
            self.pool.wait(BUFFER_WAIT);
            self.work.help_starving();
        }
        Ok(())
    }

    /// Freezes the active buffer if the pool has more buffers than it keeps, and the structure has space or need not
    /// wait to know.
    pub(crate) fn try_freeze(
        &self,
        index: usize,
        state: &mut PartitionState<L>,
        keep: usize,
    ) -> Result<bool> {
        self.freeze_with(index, state, keep, || self.log_boundary(index, true))
    }

    /// Like [`try_freeze`](Self::try_freeze), with the boundary that `mark` returns.
    pub(super) fn freeze_with(
        &self,
        index: usize,
        state: &mut PartitionState<L>,
        keep: usize,
        mark: impl FnOnce() -> Result<Boundary>,
    ) -> Result<bool> {
        let Some(fresh) = self.fresh_buffer(keep) else { return Ok(false) };
        let reserved = L::reserve(self, index, state).and_then(|space| match space {
            Space::Reserved(reserved) => Ok(Some((reserved, mark()?))),
            Space::Pending => Ok(None),
        });
        match reserved {
            Ok(Some((reserved, boundary))) => {
                state.freeze(fresh, boundary, reserved);
                self.limit_active(state);
                self.pace.full();
                self.work.push(Job::Flush(index));
                Ok(true)
            }
            not_frozen => {
                self.pool.give(fresh);
                not_frozen.map(|_| false)
            }
        }
    }
}

/// All updates of a partition at one moment, until they are on flash.
pub(crate) struct AllFrozen<'c, L: Layout> {
    /// The maintenance lock.
    pub(crate) lock: MutexGuard<'c, ()>,
    /// The buffers, oldest first.
    pub(crate) buffers: Vec<Arc<L::Buffer>>,
    /// The level below them.
    pub(crate) level: L::Level,
}

impl<L: Layout<Level: Clone>> Core<L> {
    /// Freezes a partition's active buffer if it, or a snapshot of it, has any entries, and blocks other flushes of the
    /// partition. Waits for a spare buffer for the updates that follow. The caller holds no lock.
    ///
    /// # Errors
    /// A failed flush, a poisoned volume, a full log.
    pub(crate) fn freeze_all(&self, index: usize) -> Result<AllFrozen<'_, L>> {
        let _reservation = self.volume.reserve(BOUNDARY_BYTES as u64)?;
        loop {
            let lock = self.partitions[index].maintain();
            let mut state = self.partitions[index].write();
            // If all of its updates have cancelled out, its snapshot may still have some.
            let is_stale = state.snapshot.is_some() && state.updates > state.saved_updates;
            let holds_anything = state.active.entries() > 0 || is_stale;
            if !holds_anything || self.try_freeze(index, &mut state, 0)? {
                let buffers = state.frozen.iter().map(|frozen| Arc::clone(&frozen.buffer));
                let (buffers, level) = (buffers.collect(), state.level.clone());
                return Ok(AllFrozen { lock, buffers, level });
            }
            drop((state, lock));
            self.continue_flushes()?;
        }
    }
}

impl<L: Layout> Core<L> {
    /// Keeps the full active buffer in RAM, behind a fresh one: in a read-only volume nothing is flushed. So the fresh
    /// one has no limit, and reserves no space for the carry-over of a flush.
    pub(super) fn keep_full(&self, state: &mut PartitionState<L>, boundary: Boundary) {
        let fresh = self.layout.new_buffer_behind(&state.active);
        state.freeze(fresh, boundary, L::Reserved::default());
    }

    /// Takes a buffer from the pool, unless only `keep` remain. If no more inserts follow, creates one for the
    /// carry-over alone.
    fn fresh_buffer(&self, keep: usize) -> Option<L::Buffer> {
        if self.pool.is_retired() {
            return Some(self.layout.new_retired_buffer());
        }
        self.pool.take(keep)
    }
}

impl<L: Checkpoints> Core<L> {
    /// Makes all acknowledged updates durable.
    pub(crate) fn sync(&self) -> Result<()> {
        if self.volume.durability() == Durability::Never {
            // No update of the user is in the log: only flushing makes it durable.
            return self.flush_all();
        }
        Ok(self.volume.log().sync()?)
    }

    /// Flushes every buffered update: full buffers through the layout, the others as snapshots.
    pub(crate) fn flush_all(&self) -> Result<()> {
        if self.volume.is_read_only() {
            return Ok(());
        }
        let _lock = self.flush_lock.lock().expect("no holder of the flush lock panics");
        // The tail stops at the start of the open block. Replaying that block would fill buffers a second time. Without
        // durability it would also shadow newer entries: it has entries put back from flash, but not the user's
        // updates.
        self.volume.log().sync()?;
        self.snapshot_all();
        loop {
            self.volume.poison().check()?;
            self.work.report_fault()?;
            self.finish_flushes()?;
            self.volume.checkpoint()?;
            if !self.has_unsaved() {
                // Other structures may use the memory until the next flush.
                self.scratches.free_idle();
                return Ok(());
            }
        }
    }

    /// Flushes every buffered update if something is not saved. Returns the memory of flushes to the pool in any case.
    pub(crate) fn flush_unsaved(&self) -> Result<()> {
        if !self.is_saved() {
            return self.flush_all();
        }
        self.scratches.free_idle();
        Ok(())
    }

    /// Waits for the flushes that are due, or does them.
    pub(crate) fn finish_flushes(&self) -> Result<()> {
        loop {
            while self.catch_up_or_help()? {}
            if self.work.wait_idle() || self.volume.poison().is_set() {
                return self.work.report_fault();
            }
        }
    }

    /// Saves the buffers when the structure is closed. Before recovery has finished there is nothing to save:
    /// everything is in the log.
    pub(super) fn save_buffers(&self) -> Result<()> {
        if !self.ready.load(Acquire) {
            return Ok(());
        }
        if self.partitions.iter().any(Partition::is_broken) {
            self.volume.poison().set(&"a thread has panicked while it changed a structure");
        }
        self.volume.poison().check()?;
        // The checkpoint that saves the last buffer may put entries that an eviction retains back into others. Each
        // round evicts less; what remains is in the log.
        for _ in 0..CLOSING_ROUNDS_MAX {
            self.flush_all()?;
            if self.is_saved() {
                break;
            }
        }
        Ok(())
    }

    /// Returns whether a checkpoint has all of every buffer, and all data on flash. Call this only while nothing
    /// changes them.
    pub(crate) fn is_saved(&self) -> bool {
        let is_saved = |partition: &Partition<L>| {
            let state = partition.read();
            state.frozen.is_empty() && state.updates == state.saved_updates
        };
        let is_captured = !self.moved.load(SeqCst) && self.partitions.iter().all(is_saved);
        is_captured || !is_on(Barrier::CleanCloseSavedAll)
    }
}
