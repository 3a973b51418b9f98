//! Moves in the log: records that a buffer has gone to flash, and where.

use nandex_store::mutants::{Barrier, is_on};
use nandex_store::{Lsn, Structure, Volume};

use super::format::{Moved, PageSnapshotRef, WriteState};
use super::into_store;
use super::replay::not_an_entry;
use crate::Result;

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
