//! Boundaries: marks in the log that delimit the updates of a buffer or a snapshot.
//!
//! If updates add up, a replay must apply each exactly once. A position in the log cannot identify an update: it names
//! a block, and a buffer may end in the middle of one. So the end of each buffer is a record of its own, written under
//! the lock that its updates take. A snapshot of a buffer has one too. The checkpoint names, for each partition, the
//! last boundary whose updates are on flash.

use std::sync::atomic::Ordering::Relaxed;

use nandex_store::Lsn;
use nandex_store::bytes::{get_u32, get_u64};
use nandex_store::mutants::{Barrier, is_on};

use super::{Core, Layout, PartitionState, WriteBuffer};
use crate::{Error, Result};

/// Bytes of a boundary's record.
pub(crate) const BOUNDARY_BYTES: usize = 13;

/// A boundary of a partition: updates before it are on flash.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) struct Boundary {
    /// Its number, smaller than those of later boundaries; 0 for a boundary that is only a position in the log.
    pub number: u64,
    /// The start of its block in the log, or the position itself.
    pub at: Lsn,
}

/// A boundary as the log stores it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct BoundaryRecord {
    pub number: u64,
    pub partition: u32,
    /// Whether the buffer ends here. After a snapshot's boundary it continues.
    pub ends_buffer: bool,
}

impl BoundaryRecord {
    pub(crate) fn encode(self) -> [u8; BOUNDARY_BYTES] {
        let mut bytes = [0; BOUNDARY_BYTES];
        bytes[..8].copy_from_slice(&self.number.to_le_bytes());
        bytes[8..12].copy_from_slice(&self.partition.to_le_bytes());
        bytes[12] = u8::from(self.ends_buffer);
        bytes
    }

    /// Reads a record; `None` if the bytes are not a boundary.
    pub(crate) fn decode(bytes: &[u8]) -> Option<Self> {
        let (&[kind @ (0 | 1)], true) = (bytes.get(12..)?, bytes.len() == BOUNDARY_BYTES) else {
            return None;
        };
        let (number, partition) = (get_u64(bytes, 0), get_u32(bytes, 8));
        (number > 0).then_some(Self { number, partition, ends_buffer: kind == 1 })
    }
}

impl<L: Layout> Core<L> {
    /// Returns the boundary of a snapshot taken now; `None` while the log's space is needed for updates. The caller
    /// holds the partition's lock, as for [`log_boundary`](Self::log_boundary).
    ///
    /// No update waits for this record, so it takes none of the space that updates have reserved, and leaves one more
    /// block free: a checkpoint closes the block with the record, and checkpoints may follow each other immediately. If
    /// the log is too full for the record and nothing in it is reserved, the boundary is the end of the current block,
    /// which is closed: everything that the partition has logged so far precedes that position.
    pub(crate) fn snapshot_boundary(&self, index: usize) -> Result<Option<Boundary>> {
        if !L::Buffer::ADDS_UP {
            return Ok(Some(Boundary::default()));
        }
        let log = self.volume.log();
        let logged = match log.try_reserve_closely(BOUNDARY_BYTES as u64)? {
            Some(_space) => self.log_boundary(index, false),
            None if log.is_reserved() => return Ok(None),
            None => return self.closed_block(),
        };
        match logged {
            Err(Error::Store(nandex_store::Error::LogFull { .. })) => self.closed_block(),
            logged => logged.map(Some),
        }
    }

    /// Returns the end of the log's current block as a boundary.
    fn closed_block(&self) -> Result<Option<Boundary>> {
        let log = self.volume.log();
        log.sync()?;
        Ok(Some(Boundary { number: 0, at: log.next_lsn() }))
    }

    /// Logs a boundary if updates add up. The caller holds the partition's lock, so that every update is on the correct
    /// side of it.
    pub(super) fn log_boundary(&self, index: usize, ends_buffer: bool) -> Result<Boundary> {
        if !L::Buffer::ADDS_UP {
            return Ok(Boundary::default());
        }
        let number = self.next_boundary.fetch_add(1, Relaxed);
        let partition = u32::try_from(index).expect("at most 65,536 partitions");
        let record = BoundaryRecord { number, partition, ends_buffer };
        let log = self.volume.log();
        let at = if is_on(Barrier::BoundaryIsLogged) {
            log.append(self.id, &[&record.encode()])?
        } else {
            log.next_lsn()
        };
        Ok(Boundary { number, at })
    }

    /// Moves a partition's boundary to the log's end if that loses nothing and the log has space for it. The partition
    /// then no longer pins the log.
    pub(super) fn move_boundary(&self, index: usize, state: &mut PartitionState<L>) -> Result<()> {
        match (self.snapshot_boundary(index)?, &mut state.snapshot) {
            (None, _) => {}
            (Some(boundary), Some(snapshot)) => snapshot.boundary = boundary,
            (Some(boundary), None) => state.flushed = boundary,
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_boundary_reads_back_and_has_the_bytes_that_the_format_says() {
        for ends_buffer in [false, true] {
            let record = BoundaryRecord { number: 5, partition: 7, ends_buffer };
            assert_eq!(BoundaryRecord::decode(&record.encode()), Some(record));
        }
        let record = BoundaryRecord { number: 5, partition: 7, ends_buffer: true };
        let hex: String = record.encode().iter().map(|byte| format!("{byte:02x}")).collect();
        assert_eq!(hex, "05000000000000000700000001");
        assert_eq!(BoundaryRecord::decode(&[0; 13]), None);
        assert_eq!(BoundaryRecord::decode(&[1; 12]), None);
    }
}
