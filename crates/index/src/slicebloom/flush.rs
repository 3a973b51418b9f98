//! Flushing a full buffer into a column of its partition's slicetable: rewrites it, makes it durable, and then changes
//! the map.

use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};
use std::sync::{Arc, MutexGuard};

use nandex_device::PAGE_BYTES;
use nandex_store::Lsn;
use nandex_store::mutants::{Barrier, is_on};
use nandex_store::page::PageKind;
use nandex_store::shadow::{Block, DurableDraft, Rewriter};

use super::buffer::BloomBuffer;
use super::format::encode_state;
use super::{BloomSlicetables, Inner, SliceLevel, State};
use crate::Result;
use crate::write::{
    CapturedMaps, Checkpoints, Frozen, Layout, Space, Usage, WriteBuffer, WritePolicy,
};

/// I/O chunks in memory: one is read, one changed, and two are written.
pub(super) const CHUNKS: usize = 4;

impl Layout for BloomSlicetables {
    type Buffer = BloomBuffer;
    type Level = SliceLevel;
    type Unlocked = ();
    type Reserved = ();
    type Job = std::convert::Infallible;
    type Scratch = Rewriter;

    fn policy(&self) -> WritePolicy {
        WritePolicy {
            retries_flushes: true,
            pace_updates: Some(self.config.buffer_keys.into()),
            ..WritePolicy::default()
        }
    }

    fn new_buffer(&self) -> BloomBuffer {
        BloomBuffer::new(self.config.placing(), self.config.buffer_keys.into())
    }

    fn reserve(_core: &Inner, _index: usize, _state: &State) -> Result<Space<()>> {
        Ok(Space::Reserved(()))
    }

    fn flush(
        core: &Inner,
        index: usize,
        frozen: Frozen<Self>,
        rewriter: &mut Rewriter,
    ) -> Result<()> {
        core.put_on_flash(index, &frozen.buffer, rewriter)?;
        core.count_flush(frozen.buffer.entries(), core.layout.config.buffer_keys as usize);
        core.recycle(frozen.buffer);
        if core.layout.shadow.free_blocks() == 0 {
            // Replaced slicetables are free after a checkpoint.
            core.volume.checkpoint()?;
        }
        Ok(())
    }

    fn new_scratch(core: &Inner) -> Result<Rewriter> {
        let (chunks, poison) = (core.layout.chunks, Arc::clone(core.volume.poison()));
        let rewriter = Rewriter::new(&**core.volume.device(), poison, chunks)?;
        core.scratches.count(chunks.ram_bytes() as u64);
        Ok(rewriter)
    }

    fn run(_core: &Inner, job: Self::Job, _scratch: &mut Option<Rewriter>) -> Result<()> {
        match job {}
    }

    fn usage(core: &Inner) -> Usage {
        Usage {
            ram_bytes: core.layout.shadow.ram_bytes() as u64,
            flash_bytes: core.layout.config.pages() * PAGE_BYTES as u64,
        }
    }
}

impl BloomSlicetables {
    fn hold_maps(&self) -> MutexGuard<'_, ()> {
        self.maps.lock().expect("no holder of the maps' lock panics")
    }
}

impl Checkpoints for BloomSlicetables {
    fn lock_maps(&self) -> Option<MutexGuard<'_, ()>> {
        is_on(Barrier::SlicesCaptureHoldsMaps).then(|| self.hold_maps())
    }

    fn capture(core: &Inner, log_now: Lsn) -> CapturedMaps {
        let capture = core.layout.shadow.capture(log_now);
        core.layout.captured.store(capture.mark, Release);
        let incarnations = core.partitions.iter().map(|it| it.read().level.incarnations);
        CapturedMaps { bytes: encode_state(&capture.bytes, incarnations), extents: None }
    }

    fn committed(core: &Inner) {
        core.layout.shadow.committed(core.layout.captured.load(Acquire));
    }
}

impl Inner {
    /// Writes a buffer's bits over the oldest column of its partition's slicetable, in a new place, and installs the
    /// new slicetable.
    fn put_on_flash(
        &self,
        index: usize,
        buffer: &BloomBuffer,
        rewriter: &mut Rewriter,
    ) -> Result<()> {
        let _lock = self.partitions[index].maintain();
        let (layout, logical) = (&self.layout, index as u32);
        let column = layout.config.next_column(self.partitions[index].read().level.incarnations);
        let draft = self.begin_draft(&layout.shadow, logical)?;
        let (old, bits) = (layout.shadow.block(logical), &buffer.content().bitmap);
        let pages = f64::from(layout.config.block_pages());
        let mut change = |page: u64, body: &mut [u8]| {
            layout.slices.set_column(page, body, column, bits);
            self.pace.progress((page + 1) as f64 / pages);
            Ok(())
        };
        let from = old.map(|block| (&layout.shadow, block));
        let costs = rewriter.rewrite(&layout.shadow, from, &draft, PageKind::Slice, &mut change)?;
        self.count_written(costs.pages_written * PAGE_BYTES as u64);
        layout.bytes_read.fetch_add(costs.pages_read * PAGE_BYTES as u64, Relaxed);
        let draft = layout.shadow.make_durable(&self.journal(&[]), draft)?;
        self.swap(index, old, draft, buffer.entries());
        Ok(())
    }

    /// Replaces a partition's slicetable at the moment at which the flushed buffer leaves RAM. A crash finds the new
    /// one from the next checkpoint on, and until then the buffer's keys in the log.
    fn swap(&self, index: usize, old: Option<Block>, draft: DurableDraft, taken: u64) {
        let _maps = self.layout.hold_maps();
        let mut state = self.partitions[index].write();
        // The buffer returns to the pool once its last reference, the caller's, is dropped.
        drop(state.take_flushed());
        state.level.incarnations += 1;
        let keys = self.layout.config.keys_after(old.map_or(0, |block| block.entries), taken);
        self.layout.shadow.publish_with_checkpoint(draft, keys);
    }
}
