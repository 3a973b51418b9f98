//! The carry-over of a flushed buffer: its stash, and the entries that the layout could not take.

use std::sync::atomic::Ordering::Acquire;

use nandex_store::Lsn;
use nandex_store::entries::{Entry, KeyState};
use nandex_store::log::Reservation;
use nandex_store::mutants::{Barrier, is_on};

use super::format::LOG_BACK_BYTES;
use super::{Core, Frozen, Layout, PartitionState, TableLayout, WriteBuffer};
use crate::Result;

impl<L: Layout> Core<L> {
    /// Limits the active buffer so that it has space for the carry-over of the buffers being written.
    pub(crate) fn limit_active(&self, state: &mut PartitionState<L>) {
        let limit = self.shape.buffer_entries_max.saturating_sub(self.carry_over_kept(state));
        state.active.limit(limit);
    }

    /// Returns whether the active buffer is full only because it reserves space for a carry-over. Then updates wait for
    /// the flush: flushing the buffer now would fill flash with buffers that are not full.
    pub(super) fn awaits_carry_over(&self, state: &PartitionState<L>) -> bool {
        let kept = self.carry_over_kept(state);
        kept > 0 && state.active.entries() + kept >= self.shape.buffer_entries_max
    }

    /// Returns the maximum number of entries that the buffers being written carry over, if the active one reserves
    /// space for them.
    fn carry_over_kept(&self, state: &PartitionState<L>) -> u64 {
        state.frozen.iter().map(|it| self.layout.carry_over_kept(state, it)).sum()
    }
}

impl<L: TableLayout> Core<L> {
    /// Puts entries of a flushed buffer back into the active one, unless RAM has a newer version of their key. The
    /// caller holds the lock under which the buffer left the partition.
    pub(crate) fn carry_over<'e>(
        &self,
        index: usize,
        state: &mut PartitionState<L>,
        frozen: &Frozen<L>,
        entries: impl Iterator<Item = Entry<'e>>,
    ) -> Result<()> {
        self.limit_active(state);
        let entries: Vec<_> = entries.collect();
        self.uncache_entries(&entries);
        if !entries.is_empty()
            && !self.logs()
            && frozen.snapshot.is_some()
            && is_on(Barrier::CarryOverKeepsSnapshot)
        {
            // Without logging, only the snapshot has these entries durably. This also holds for those that are not put
            // back, because their newer version may be in RAM alone. The next flush saves the buffer again.
            state.snapshot = state.snapshot.take().or_else(|| frozen.snapshot.clone());
            state.updates += 1;
        }
        let space = self.space_to_log(entries.len());
        let mut entries = entries.into_iter();
        entries.try_for_each(|entry| self.put_back((index, space.as_ref()), state, entry, frozen))
    }

    /// Drops these entries from the cache, which recorded them when their buffer was about to leave RAM. They are in a
    /// buffer again and not on flash, so a removal may leave no trace of them, and the cache would still have them.
    fn uncache_entries(&self, entries: &[Entry<'_>]) {
        let Some(cache) = self.lookups.cache.get().filter(|it| !it.entries.is_unused()) else {
            return;
        };
        let mut leaving = cache.leaving();
        for entry in entries {
            leaving.leave(self.hasher.hash(entry.key), entry.key, KeyState::Unknown);
        }
    }

    /// Reserves log space for `count` entries, unless others have reserved it. Reserves none during a replay: a record
    /// logged then would come after updates that are not replayed yet.
    fn space_to_log(&self, count: usize) -> Option<Reservation<'_>> {
        let entry_bytes = self.codec.entry_bytes() + LOG_BACK_BYTES;
        let bytes = if self.logs() { count * entry_bytes } else { 0 };
        let reserve = || self.volume.log().try_reserve(bytes as u64).ok().flatten();
        self.ready.load(Acquire).then(reserve).flatten()
    }

    fn put_back(
        &self,
        (index, space): (usize, Option<&Reservation<'_>>),
        state: &mut PartitionState<L>,
        entry: Entry<'_>,
        frozen: &Frozen<L>,
    ) -> Result<()> {
        let hash = self.hasher.hash(entry.key);
        if state.in_frozen(hash, entry.key) || !state.active.put_carried_over(hash, entry) {
            return Ok(());
        }
        state.updates += 1;
        if space.is_none() || self.log_put_back(state, entry, frozen).is_err() {
            // The entry's old position in the log, or its snapshot, is kept instead. By then the snapshot may have
            // older versions of what is on flash, so everything that followed it is replayed too, until the next
            // checkpoint, which saves the buffer.
            state.since = state.tail().into_iter().chain(frozen.since).min();
            state.snapshot = state.snapshot.take().or_else(|| frozen.snapshot.clone());
            self.snapshot_soon(index);
            self.volume.poison().check()?;
        }
        Ok(())
    }

    /// Logs an entry that was put back, with the log position of its buffer: a replay that begins there also finds the
    /// entry's first record. Applying both would put the key on flash twice, and a table that rejects inserts would
    /// have no space.
    fn log_put_back(
        &self,
        state: &mut PartitionState<L>,
        entry: Entry<'_>,
        frozen: &Frozen<L>,
    ) -> Result<()> {
        if !self.logs() {
            return Ok(());
        }
        // A snapshot of the buffer may have updates that were logged before the buffer's position.
        let before = u64::from(frozen.snapshot.is_some());
        let place = frozen.since.map_or(Lsn(0), |since| Lsn(since.0.saturating_sub(before)));
        self.note_since(state);
        self.codec.append_put_back(self.volume.log(), self.id, place, entry)
    }
}
