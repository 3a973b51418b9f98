//! Reading the log back for the structures that need it.
//!
//! The log is read once at open to find its end and prove it whole, and once more by each structure
//! that is opened, which picks its own updates.

use crate::log::{LogEnd, LogRegion, replay};
use crate::superblock::Superblock;
use crate::{Error, Lsn, Result};

use super::Structure;

/// The log as it was when the volume was opened.
#[derive(Debug)]
pub(super) struct Source {
    region: LogRegion,
    volume_id: u128,
    end: Lsn,
}

impl Source {
    pub(super) fn new(region: LogRegion, volume_id: u128, end: Lsn) -> Self {
        Self { region, volume_id, end }
    }

    /// Reads the log from its tail to its end.
    pub(super) fn find_end(region: &LogRegion, superblock: &Superblock) -> Result<LogEnd> {
        let found_pages = region.device.page_count();
        let needed = superblock.log.end().0;
        if found_pages < needed {
            let reason = format!("its log has {needed} pages, the device given has {found_pages}");
            return Err(Error::LogDevice { reason });
        }
        let Superblock { volume_id, log_tail, log_synced, .. } = *superblock;
        replay(region, volume_id, log_tail, log_synced, &mut |_, _, _, _| Ok(()))
    }

    /// Visits the updates of one structure that were in the log when the volume was opened.
    pub(super) fn of(
        &self,
        structure: &Structure,
        visit: &mut dyn FnMut(Lsn, &[u8]) -> Result<()>,
    ) -> Result<()> {
        if structure.tail >= self.end {
            return Ok(());
        }
        let mut pick = |lsn: Lsn, id, entry_bytes: usize, entries: &[u8]| {
            if id != structure.id || lsn >= self.end || entry_bytes == 0 {
                return Ok(());
            }
            entries.chunks_exact(entry_bytes).try_for_each(|entry| visit(lsn, entry))
        };
        replay(&self.region, self.volume_id, structure.tail, self.end, &mut pick).map(|_| ())
    }
}
