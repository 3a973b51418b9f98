//! Writing batches: sealed pages, chunk by chunk.

use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

use nandex_device::{PageBuf, PageId};

use crate::Result;
use crate::mutants::{Barrier, is_on};
use crate::page::{PageKind, PageLabel};

use super::Inner;
use super::batch::Batch;
use super::format::SEQUENCE_BITS;

impl Inner {
    pub(super) fn commit(&self) -> Result<()> {
        let wanted = self.state().appended;
        let mut writer = self.writer.lock().expect("no holder of the writer's place panics");
        self.volume.poison().check()?;
        let (batch, target) = {
            let mut state = self.state();
            if state.durable >= wanted {
                return Ok(());
            }
            let Some(open) = state.open.take() else { return Ok(()) };
            let batch = Arc::new(open);
            state.closing = Some(Arc::clone(&batch));
            (batch, state.appended)
        };
        self.write(&batch, &mut writer)?;
        let mut state = self.state();
        state.segments.note_pages(batch.start.slot, batch.end_page());
        state.closing = None;
        state.durable = target;
        Ok(())
    }

    /// Writes a batch chunk by chunk, each synced before the next.
    fn write(&self, batch: &Batch, writer: &mut Option<PageBuf>) -> Result<()> {
        let first = self.page(batch.start.slot, 0);
        let (mut at, pages) = (0, batch.pages());
        while at < pages {
            let count = (pages - at).min(self.config.io_chunk_pages) as usize;
            let whole = writer.take().filter(|buf| buf.pages() == count);
            let mut buf = whole.unwrap_or_else(|| PageBuf::zeroed(count));
            batch.seal(at, &mut buf, |page| {
                self.label(batch.start.sequence, first.plus(page.into()))
            });
            let place = first.plus((batch.start.page + at).into());
            *writer = Some(self.write_pages(place, buf)?);
            at += count as u32;
        }
        Ok(())
    }

    /// Writes sealed pages and makes them durable.
    pub(super) fn write_pages(&self, page: PageId, buf: PageBuf) -> Result<PageBuf> {
        let poison = self.volume.poison();
        self.counters.written_bytes.fetch_add(buf.len() as u64, Relaxed);
        let buf = poison.guard(self.volume.device().write(page, buf))?;
        if is_on(Barrier::ValuesSynced) {
            poison.guard(self.volume.device().sync())?;
        }
        self.counters.syncs.fetch_add(1, Relaxed);
        // A failed sync of another caller may have been the one that covered these pages.
        poison.check().map(|()| buf)
    }

    /// The place of a page of a segment.
    pub(super) fn page(&self, slot: u32, index: u32) -> PageId {
        self.state().segments.extents().first_page(slot).plus(index.into())
    }

    /// Pages of a segment.
    pub(super) fn segment_pages(&self, slot: u32) -> u32 {
        self.state().segments.extents().segment_pages(slot)
    }

    /// Returns the label that a page of the segment of this number must have.
    pub(super) fn label(&self, sequence: u64, page: PageId) -> PageLabel {
        PageLabel {
            kind: PageKind::Value,
            structure: self.id,
            generation: self.mark << SEQUENCE_BITS | sequence,
            page,
        }
    }
}
