//! Reading the log for the structures that need it.
//!
//! The log is read once at open to find its end and verify it, and once more by each structure that is opened, which
//! selects its own updates.

use std::collections::{HashMap, HashSet};

use crate::StructureId;
use crate::checkpoint::Catalog;
use crate::log::{AnchorSource, LogAnchor, LogEnd, LogRegion, replay, replay_until};
use crate::superblock::Superblock;
use crate::{Error, Lsn, Result};

use super::Structure;

/// The log at the time when the volume was opened.
#[derive(Debug)]
pub(super) struct LogReplay {
    region: LogRegion,
    volume_id: u128,
    end: LogEnd,
}

impl LogReplay {
    pub(super) fn new(region: LogRegion, volume_id: u128, end: LogEnd) -> Self {
        Self { region, volume_id, end }
    }

    /// Reads the log from its tail to its end; also returns the structures that need nothing of it.
    pub(super) fn find_end(
        region: &LogRegion,
        superblock: &Superblock,
        anchor: LogAnchor,
        catalog: &Catalog,
    ) -> Result<(LogEnd, HashSet<StructureId>)> {
        let found_pages = region.device.page_count();
        let needed = superblock.log.end().0;
        if found_pages < needed {
            let reason = format!("its log has {needed} pages, the device given has {found_pages}");
            return Err(Error::LogDevice { reason });
        }
        let tails: HashMap<_, _> = catalog.entries.iter().map(|e| (e.id, e.tail)).collect();
        let mut idle: HashSet<_> = tails.keys().copied().collect();
        let mut note = |lsn: Lsn, id: StructureId, _: usize, _: &[u8]| {
            if tails.get(&id).is_some_and(|tail| lsn >= *tail) {
                idle.remove(&id);
            }
            Ok(())
        };
        let end = replay(region, superblock.volume_id, anchor, &mut note)?;
        Ok((end, idle))
    }

    /// Visits the updates of one structure that were in the log when the volume was opened.
    pub(super) fn of(
        &self,
        structure: &Structure,
        visit: &mut dyn FnMut(Lsn, &[u8]) -> Result<()>,
    ) -> Result<()> {
        let LogEnd { next: end, epoch, .. } = self.end;
        if structure.tail >= end {
            return Ok(());
        }
        let mut pick = |lsn: Lsn, id, entry_bytes: usize, entries: &[u8]| {
            if id != structure.id || entry_bytes == 0 {
                return Ok(());
            }
            entries.chunks_exact(entry_bytes).try_for_each(|entry| visit(lsn, entry))
        };
        let source = AnchorSource::Unnamed;
        let anchor = LogAnchor { tail: structure.tail, synced: end, epoch, source };
        replay_until(&self.region, self.volume_id, anchor, end, &mut pick)
    }
}
