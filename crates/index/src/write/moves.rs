//! Moves in the log: records that a buffer has moved to flash, and where.

use nandex_store::mutants::{Barrier, is_on};
use nandex_store::{Lsn, Structure, Volume};

use super::format::{Moved, PageSnapshotRef, WriteState};
use super::into_store;
use super::replay::not_an_entry;
use super::{Core, Layout, PartitionState, SnapshotStore, WriteBuffer};
use crate::Result;

impl<L: Layout> Core<L>
where
    L::Buffer: WriteBuffer<Snapshots: SnapshotStore<L::Buffer, Ref = PageSnapshotRef>>,
{
    /// Encodes the log's record that a partition's oldest buffer has moved to flash, without the layout's own bytes:
    /// the position from which the log is still needed, and the snapshot. The caller holds the lock under which the
    /// buffer has left.
    pub(crate) fn move_prefix(&self, index: usize, state: &PartitionState<L>) -> Vec<u8> {
        let now = self.log_now();
        let tail = state.tail().map_or(now, |since| since.min(now));
        let partition = u32::try_from(index).expect("at most 65,536 partitions");
        let snapshot = state.needed_snapshot().map(|snapshot| snapshot.place);
        Moved { partition, tail, snapshot }.encode()
    }
}

/// Reads the moves that were logged since the checkpoint. A buffer that has moved to flash needs neither its
/// snapshot nor its part of the log: both are older than what is on flash.
///
/// `moved` applies the layout's own bytes of a move, in the log's order, and returns whether the move came
/// after the checkpoint.
///
/// # Errors
/// A failed read, or records that contradict each other.
pub(crate) fn apply_moves(
    volume: &Volume,
    structure: &Structure,
    state: &mut WriteState<PageSnapshotRef>,
    mut moved: impl FnMut(u32, &[u8]) -> Result<bool>,
) -> Result<()> {
    let mut apply = |lsn: Lsn, bytes: &[u8]| -> Result<()> {
        let Some((record, own)) = Moved::decode(bytes) else { return Ok(()) };
        let Some(partition) = state.partitions.get_mut(record.partition as usize) else {
            return Err(not_an_entry(lsn, bytes).into());
        };
        let is_news = moved(record.partition, own)?;
        let counts = is_news || !is_on(Barrier::MovesMustBeNews);
        if counts && is_on(Barrier::MoveForgetsWhatItTook) {
            partition.tail = partition.tail.max(record.tail);
            partition.snapshot = record.snapshot;
        }
        Ok(())
    };
    Ok(volume.replay(structure, &mut |lsn, bytes| apply(lsn, bytes).map_err(into_store))?)
}
