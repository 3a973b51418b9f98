//! Updates that change several partitions and are one entry of the log: after a crash all of them are there, or none.
//!
//! All partitions of such an update are locked together, in the rising order of their numbers. Each notes the entry's
//! place as needed before the entry is appended. A replay applies the entry to each partition that does not have it on
//! flash, so an update must do no harm where it is applied twice.

use nandex_store::mutants::{Barrier, is_on};

use super::update::Locked;
use super::{Core, Layout, PartitionState};
use crate::Result;

impl<L: Layout> Core<L> {
    /// Locks these partitions for updates. Their numbers rise, and none comes twice.
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

    /// Bytes of the log that updates of that many bytes reserve. After each flushed buffer a move, and a sync that
    /// frees a block, close the log's blocks early. So a batch reserves twice its bytes, and one block for every two
    /// buffers that already wait.
    pub(crate) fn reserved_bytes(&self, bytes: u64) -> u64 {
        if !self.policy.logs_moves {
            return bytes;
        }
        let log = self.volume.log();
        let waiting = u64::from(self.shape.spare_buffers) * log.block_bytes() / 2;
        2 * bytes + waiting.min(log.capacity_bytes() / 16)
    }
}
