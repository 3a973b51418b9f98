//! Growth of a log: it continues in more pages.

use std::sync::atomic::Ordering;

use nandex_device::{PageBuf, PageId};

use super::format::seal;
use super::shared::{LOCKED, Shared};
use super::{Log, LogPart, LogParts, Lsn};
use crate::Result;
use crate::mutants::{Barrier, is_on};
use crate::space::Extent;

impl Log {
    /// Continues in `pages`. `parts` are the parts of the log so far. `note` makes the new parts durable and returns
    /// the generation of the superblock that names them.
    ///
    /// Blocks that were begun before are still written to their old places. No block is written to the new pages before
    /// `note` has returned; callers that append wait for that only if all block buffers are full.
    ///
    /// # Errors
    /// A failed write, or the error that `note` returns; the log cannot be used any more.
    pub(crate) fn grow(
        &self,
        parts: &LogParts,
        pages: Extent,
        note: &mut dyn FnMut(&LogParts) -> Result<u64>,
    ) -> Result<()> {
        let shared = &*self.shared;
        let mut writer = shared.writer.lock().expect(LOCKED);
        let (since, is_spare, grown) = {
            let mut staging = shared.staging();
            let since = shared.close_block(&mut staging);
            let is_spare = staging.fits_block() && parts.newest.since.0 < since;
            let grown = parts.grown(Lsn(since), pages);
            staging.go_on_in(grown.clone());
            (since, is_spare, grown)
        };
        shared.drain_until(&mut writer, since)?;
        self.note_superblock(note(&grown)?);
        if is_spare {
            shared.mark(writer.region.page(since), since, writer.prev_crc)?;
        }
        writer.region.parts = grown;
        shared.capacity.store(writer.region.bytes(), Ordering::Relaxed);
        shared.space_freed.notify_all();
        Ok(())
    }

    /// Writes a note to the first page of a part that is gone: a newer superblock exists.
    ///
    /// # Errors
    /// A failed write.
    pub(crate) fn mark_gone(&self, part: &LogPart) -> Result<()> {
        self.shared.mark(part.pages.start, part.since.0, 0)
    }
}

impl Shared {
    /// Writes an empty block to a place that the log used before it grew. Only an opening with a superblock of that
    /// time reads it, and learns that a newer superblock exists.
    fn mark(&self, page: PageId, lsn: u64, prev_crc: u32) -> Result<()> {
        if !is_on(Barrier::LeftLogNamesSuperblock) {
            return Ok(());
        }
        let mut buf = PageBuf::zeroed(1);
        seal(&mut buf, &self.header(lsn, 0, prev_crc));
        self.poison.guard(self.device.write(page, buf))?;
        Ok(())
    }
}
