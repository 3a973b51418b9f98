//! The carry-over of a flushed buffer: its stash, and what the layout could not take.

use std::sync::atomic::Ordering::Acquire;

use nandex_store::entries::Entry;
use nandex_store::mutants::{Barrier, is_on};

use super::{Core, EntryUpdate, Frozen, PartitionState, TableLayout};
use crate::Result;

impl<L: TableLayout> Core<L> {
    /// Puts entries of a flushed buffer into the active one, unless RAM has a newer version of their key. The
    /// caller holds the lock under which the buffer left the partition.
    pub(crate) fn carry_over<'e>(
        &self,
        index: usize,
        state: &mut PartitionState<L>,
        frozen: &Frozen<L>,
        entries: impl Iterator<Item = Entry<'e>>,
    ) -> Result<()> {
        let mut entries = entries.peekable();
        let any = entries.peek().is_some();
        if any
            && !self.logs()
            && frozen.snapshot.is_some()
            && is_on(Barrier::CarryOverKeepsSnapshot)
        {
            // Without logging, only the snapshot has these entries for good. This also holds for those that
            // are not put back, because their newer version may be in RAM alone. The next flush saves the
            // buffer again.
            state.snapshot = state.snapshot.take().or_else(|| frozen.snapshot.clone());
            state.updates += 1;
        }
        entries.try_for_each(|entry| self.put_back(index, state, entry, frozen))
    }

    fn put_back(
        &self,
        index: usize,
        state: &mut PartitionState<L>,
        entry: Entry<'_>,
        frozen: &Frozen<L>,
    ) -> Result<()> {
        let hash = self.hasher.hash(entry.key);
        if state.in_frozen(hash, entry.key) || !state.active.put_carried_over(hash, entry) {
            return Ok(());
        }
        state.updates += 1;
        let replaying = !self.ready.load(Acquire);
        if replaying || self.log_entry(index, state, EntryUpdate { hash, entry }).is_err() {
            // A record logged now would come after updates that are not replayed yet, and a full log takes
            // nothing. In both cases the entry's old place in the log, or its snapshot, is kept instead.
            state.since = [state.since, frozen.since].into_iter().flatten().min();
            state.snapshot = state.snapshot.take().or_else(|| frozen.snapshot.clone());
            self.volume.poison().check()?;
        }
        Ok(())
    }
}
