//! Updates that change several partitions with one log entry: after a crash either all of the changes are present, or
//! none.
//!
//! All partitions of such an update are locked together, in ascending order of their numbers. Each notes the entry's
//! position as needed before the entry is appended. A replay applies the entry to each partition that does not have it
//! on flash, so applying an update twice must be harmless.

use nandex_store::mutants::{Barrier, is_on};

use super::update::Locked;
use super::{Core, Layout, PartitionState};
use crate::Result;

impl<L: Layout> Core<L> {
    /// Locks these partitions for updates. Their numbers are in strictly ascending order.
    pub(crate) fn lock_all(&self, indices: impl Iterator<Item = usize>) -> Vec<Locked<'_, L>> {
        indices.map(|index| self.partitions[index].write()).collect()
    }

    /// Notes that a locked partition, whose active buffer has changed, needs the log from the next entry on.
    pub(crate) fn note_place(&self, state: &mut PartitionState<L>) {
        if self.logs() && is_on(Barrier::EachPartitionNotesItsPlace) {
            state.since.get_or_insert_with(|| self.volume.log().next_lsn());
        }
    }

    /// Logs the entry of an update, while all of its partitions are locked and have noted its place.
    pub(crate) fn log_spanning(&self, entry: &[u8]) -> Result<()> {
        if self.logs() {
            self.volume.log().append(self.id, &[entry])?;
        }
        Ok(())
    }

    /// Returns the bytes of the log that updates of `bytes` bytes reserve. A move after each flushed buffer, and a sync
    /// that frees a block, close the log's blocks early. So a batch reserves twice its bytes, plus one block for every
    /// two buffers that already wait.
    pub(crate) fn reserved_bytes(&self, bytes: u64) -> u64 {
        if !self.policy.logs_moves {
            return bytes;
        }
        let log = self.volume.log();
        let waiting = u64::from(self.shape.spare_buffers) * log.block_bytes() / 2;
        2 * bytes + waiting.min(log.capacity_bytes() / 16)
    }
}
