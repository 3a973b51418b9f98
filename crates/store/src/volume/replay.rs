//! Reading the log back for the structures that need it.
//!
//! The log is read once at open to find its end and prove it whole, and once more by each structure
//! that is opened, which picks its own updates.

use std::collections::HashMap;

use crate::log::{LogAnchor, LogEnd, LogRegion, replay, replay_until};
use crate::superblock::Superblock;
use crate::{Error, Lsn, Result, StructureId};

use super::Structure;

/// The log as it was when the volume was opened.
#[derive(Debug)]
pub(super) struct Source {
    region: LogRegion,
    volume_id: u128,
    found: Found,
}

/// What was found in the log.
#[derive(Clone, Debug)]
pub(super) struct Found {
    /// Its end.
    pub end: LogEnd,
    /// The newest block with entries of each structure.
    pub last: HashMap<StructureId, Lsn>,
}

impl Found {
    /// Are there entries of a structure from its part of the log on?
    fn holds(&self, structure: &Structure) -> bool {
        self.last.get(&structure.id).is_some_and(|last| *last >= structure.tail)
    }
}

impl Source {
    pub(super) fn new(region: LogRegion, volume_id: u128, found: Found) -> Self {
        Self { region, volume_id, found }
    }

    /// Reads the log from its tail to its end.
    pub(super) fn find(region: &LogRegion, superblock: &Superblock) -> Result<Found> {
        let found_pages = region.device.page_count();
        let needed = superblock.log.end().0;
        if found_pages < needed {
            let reason = format!("its log has {needed} pages, the device given has {found_pages}");
            return Err(Error::LogDevice { reason });
        }
        let mut last = HashMap::new();
        let mut visit = |lsn, id, _, _: &[u8]| {
            last.insert(id, lsn);
            Ok(())
        };
        let end = replay(region, superblock.volume_id, superblock.log_anchor(), &mut visit)?;
        Ok(Found { end, last })
    }

    /// Visits the updates of one structure that were in the log when the volume was opened.
    pub(super) fn of(
        &self,
        structure: &Structure,
        visit: &mut dyn FnMut(Lsn, &[u8]) -> Result<()>,
    ) -> Result<()> {
        let LogEnd { next: end, epoch, .. } = self.found.end;
        // A part that holds nothing is not kept either, so it may be another's by now.
        if structure.tail >= end || !self.found.holds(structure) {
            return Ok(());
        }
        let mut pick = |lsn: Lsn, id, entry_bytes: usize, entries: &[u8]| {
            if id != structure.id || entry_bytes == 0 {
                return Ok(());
            }
            entries.chunks_exact(entry_bytes).try_for_each(|entry| visit(lsn, entry))
        };
        let anchor = LogAnchor { tail: structure.tail, synced: end, epoch };
        replay_until(&self.region, self.volume_id, anchor, end, &mut pick)
    }
}
