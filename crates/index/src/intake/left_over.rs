//! What stays behind of a buffer that was flushed: its stash, and what its room could not take.

use std::sync::atomic::Ordering::Acquire;

use nandex_store::entries::Entry;
use nandex_store::mutants::{Barrier, is_on};

use super::{Frozen, Intake, PartitionState, Room};
use crate::Result;

impl<R: Room> Intake<R> {
    /// Puts entries of a flushed buffer into the active one, where nothing newer is known of their keys.
    /// The caller holds the lock under which the buffer left the partition.
    pub(crate) fn put_left_over<'e>(
        &self,
        state: &mut PartitionState<R>,
        frozen: &Frozen<R>,
        entries: impl Iterator<Item = Entry<'e>>,
    ) -> Result<()> {
        let mut entries = entries.peekable();
        let any = entries.peek().is_some();
        if any && !self.logs() && frozen.image.is_some() && is_on(Barrier::LeftOverKeepsImage) {
            // Where nothing is logged, only the image has them for good; also those that are not put
            // back, since a newer version may be in RAM alone. The next flush saves the buffer anew.
            state.image = state.image.or(frozen.image);
            state.puts += 1;
        }
        entries.try_for_each(|entry| self.put_back(state, entry, frozen))
    }

    fn put_back(
        &self,
        state: &mut PartitionState<R>,
        entry: Entry<'_>,
        frozen: &Frozen<R>,
    ) -> Result<()> {
        let hash = self.hasher.hash(entry.key);
        if state.in_frozen(hash, entry.key)
            || !state.active.put_left_over(&self.hasher, hash, entry)
        {
            return Ok(());
        }
        state.puts += 1;
        let replaying = !self.ready.load(Acquire);
        if replaying || self.log_entry(state, entry).is_err() {
            // Logged again it would come after updates that are not replayed yet; and a full log takes
            // nothing. Either way its old place in the log, or its image, is kept instead.
            state.since = [state.since, frozen.since].into_iter().flatten().min();
            state.image = state.image.or(frozen.image);
            self.volume.poison().check()?;
        }
        Ok(())
    }
}
