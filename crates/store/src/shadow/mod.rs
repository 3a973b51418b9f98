//! The shadow: logical blocks that are rewritten whole, each time in another physical block.
//!
//! Papers rewrite a slicetable (ANCS'14 section 4), a data segment or a record page in place: read it, change it, write
//! it back. A power cut in the middle leaves neither the old version nor the new. The block is read and written whole
//! anyway, so writing it elsewhere and then changing the map costs no more.
//!
//! ```text
//!  logical      0     1     2     3          rewrite of 2:   begin    takes 4, which is free
//!               |     |     |     |                          write    its pages
//!               v     v     v     v                          publish  sync, update the map and log that
//!  physical  +-----+-----+-----+-----+-----+-----+
//!            |  0  |  1  |  2  |  3  |  4  |  5  |           then 2 waits: it is free once the map update is
//!            +-----+-----+-----+-----+-----+-----+           durable, in the log or in a checkpoint
//!              current blocks          free ones
//! ```
//!
//! Invariants
//! 1. A block's pages are durable before anything refers to them that may become durable: neither a
//!    checkpoint nor the log, whose blocks may reach flash at any time, names a block before a sync.
//! 2. Whatever state of checkpoints and log a power cut leaves, no block that its map names was reused. A block that a
//!    map update has replaced is free only when the log is synced past the map update's record, or a checkpoint that
//!    holds the map update is durable.
//! 3. A physical block is one of four things: a logical block's newest version, a draft, free, or waiting
//!    for a map update to become durable. After a recovery it is one of two: newest version or free.
//! 4. Generations are unique: numbers grow, and those that a crash resets have another epoch.
//!
//! A lookup reads a page of the block that [`Shadow::block`] returns, and may find another version: two rewrites were
//! faster. The page then fails verification, and [`Shadow::is_current`] returns false: look up again. If it returns
//! true, the page is damaged.
//!
//! | act | flash | memory |
//! |---|---|---|
//! | `block` | none | three loads |
//! | a rewrite from the old version | reads and writes each page of a block once; one sync | a few chunks |
//! | `capture` | none | 16 bytes a logical block |

mod map;
#[cfg(test)]
mod model;
mod pool;
mod publish;
mod recover;
mod rewrite;
mod slot;
#[cfg(test)]
mod tests;

use std::sync::Arc;
use std::time::Duration;

use nandex_device::PageId;

pub use map::{Block, MAP_UPDATE_BYTES, MapUpdate, SHADOW_VERSION, ShadowMap};
pub use pool::Draft;
pub use publish::{DurableDraft, Journal, Published};
pub use recover::ShadowRecovery;
pub use rewrite::{RewriteCosts, Rewriter};

use crate::generation;
use crate::mutants::{Barrier, is_on};
use crate::page::{PageKind, PageLabel, StructureId};
use crate::space::Extent;
use crate::{Error, Lsn, Result};
use pool::Pool;
use slot::{Changing, Slot};

/// The sizes of a shadow.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ShadowShape {
    /// Pages in a block.
    pub block_pages: u32,
    /// The number of logical blocks.
    pub logical: u32,
    /// The number of physical blocks beyond the logical ones. At most this many can be drafts, or wait for their map
    /// updates to become durable, at the same time.
    pub spares: u32,
    /// The first block begins at a multiple of this many pages; 1 if that does not matter.
    pub align_pages: u32,
    /// The number of devices that alternate block by block: physical block p is on device p mod `devices`. A logical
    /// block stays on the device of its number as long as that has a free block. 1 for a single device.
    pub devices: u32,
}

impl ShadowShape {
    /// Rejects impossible sizes.
    ///
    /// # Errors
    /// [`Error::Config`].
    pub fn validate(&self) -> Result<()> {
        let fields = [
            ("block_pages", self.block_pages),
            ("logical_blocks", self.logical),
            ("spare_blocks", self.spares),
            ("align_pages", self.align_pages),
            ("devices", self.devices),
        ];
        if let Some((field, _)) = fields.iter().find(|(_, value)| *value == 0) {
            return Err(Error::config(field, "0 is too small; a shadow needs at least 1"));
        }
        if self.physical() > u64::from(u32::MAX) {
            let (found, most) = (self.physical(), u32::MAX);
            let reason = format!("{found} blocks with the spares, and at most {most} are numbered");
            return Err(Error::config("logical_blocks", reason));
        }
        Ok(())
    }

    /// The number of physical blocks, including spares.
    #[must_use]
    pub fn physical(&self) -> u64 {
        u64::from(self.logical) + u64::from(self.spares)
    }

    /// The number of pages that the extent must have, wherever it begins.
    #[must_use]
    pub fn pages(&self) -> u64 {
        // Less than 2^64 for a valid shape.
        self.physical() * u64::from(self.block_pages) + u64::from(self.align_pages - 1)
    }
}

/// Logical blocks that are rewritten copy-on-write.
#[derive(Debug)]
pub struct Shadow {
    structure: StructureId,
    /// The start of physical block 0.
    start: PageId,
    shape: ShadowShape,
    epoch: u16,
    slots: Box<[Slot]>,
    pool: Arc<Pool>,
}

/// A map at one moment.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ShadowCapture {
    /// Its bytes for the checkpoint.
    pub bytes: Vec<u8>,
    /// The number of map updates that it holds: pass it to [`Shadow::committed`] once the checkpoint is durable.
    pub mark: u64,
    /// The place from which on the log has map updates that it does not hold: the structure's tail is no later.
    pub tail: Lsn,
}

impl Shadow {
    /// Creates a shadow without written blocks, on an extent of [`ShadowShape::pages`] pages.
    ///
    /// # Panics
    /// If the extent is shorter, or the shape is invalid.
    #[must_use]
    pub fn create(structure: StructureId, extent: Extent, shape: ShadowShape, epoch: u64) -> Self {
        ShadowRecovery::blank(structure, extent, shape, epoch).finish()
    }

    fn assemble(recovery: ShadowRecovery) -> Self {
        let ShadowRecovery { structure, extent, shape, epoch, map, used } = recovery;
        assert!(shape.validate().is_ok(), "the structure has validated its shape");
        assert!(extent.pages >= shape.pages(), "a shadow fits its extent");
        let start = PageId(extent.start.0.next_multiple_of(u64::from(shape.align_pages)));
        let slots = map.blocks.iter().map(|block| Slot::new(*block)).collect();
        let pool = Arc::new(Pool::new(shape, map.next, used.unused()));
        Self { structure, start, shape, epoch: generation::low(epoch), slots, pool }
    }

    /// Its sizes.
    #[must_use]
    pub fn shape(&self) -> ShadowShape {
        self.shape
    }

    /// Returns the newest whole version of a logical block; `None` if none was ever written. Costs three loads and no
    /// lock, except while this very block is updated.
    ///
    /// # Panics
    /// If there is no such block.
    #[inline]
    #[must_use]
    pub fn block(&self, logical: u32) -> Option<Block> {
        let slot = &self.slots[logical as usize];
        slot.get().unwrap_or_else(|Changing| {
            // A thread that changes it holds the lock.
            let _lock = self.pool.lock();
            self.settled(logical)
        })
    }

    /// Returns the content of a slot; the caller holds the lock.
    fn settled(&self, logical: u32) -> Option<Block> {
        let settled = self.slots[logical as usize].get();
        settled.unwrap_or_else(|Changing| unreachable!("slots are changed under the lock"))
    }

    /// Returns whether this is still the newest version. A reader asks when a page of it fails verification.
    ///
    /// # Panics
    /// If there is no such logical block.
    #[must_use]
    pub fn is_current(&self, logical: u32, block: Block) -> bool {
        self.block(logical).is_some_and(|newest| newest.generation == block.generation)
    }

    /// Takes a free physical block for the next version of a logical one. `log_synced` is
    /// [`Log::synced`](crate::Log::synced), so that blocks whose map updates have become durable count as free. Returns
    /// `None` when none is free: see [`make_space`](Self::make_space).
    ///
    /// # Panics
    /// If there is no such logical block, or it has a draft already.
    pub fn begin(&self, logical: u32, log_synced: Lsn) -> Option<Draft> {
        assert!(logical < self.shape.logical, "block {logical} of {}", self.shape.logical);
        let has_draft = self.pool.lock().has_draft(logical);
        assert!(!has_draft, "a logical block has one draft at a time, and {logical} has one");
        let mut state = self.pool.lock();
        state.synced(log_synced);
        let update = state.begin(logical, self.epoch)?;
        Some(Draft { pool: Arc::clone(&self.pool), update, is_open: true })
    }

    /// Makes the map name the draft, which is durable.
    fn update_map(&self, mut draft: Draft, entries: u32) -> MapUpdate {
        assert!(Arc::ptr_eq(&self.pool, &draft.pool), "a draft is published where it was begun");
        draft.is_open = false;
        let mut update = draft.update;
        let mut state = self.pool.lock();
        state.end(update);
        update.block.entries = entries;
        let old = self.settled(update.logical);
        self.slots[update.logical as usize].set(update.block);
        old.into_iter().for_each(|old| state.displace(old, update));
        state.updates += 1;
        update
    }

    /// Notes the place of a map update in the log.
    fn logged(&self, update: MapUpdate, record: Lsn) {
        self.pool.lock().logged(update, record);
    }

    /// Notes that the log is durable up to a place, and frees the blocks that earlier map updates have replaced.
    pub fn synced(&self, log_synced: Lsn) {
        self.pool.lock().synced(log_synced);
        self.pool.tell();
    }

    /// Captures the map for the checkpoint, without the drafts. `log_next` is [`Log::next_lsn`](crate::Log::next_lsn)
    /// before this call, not after it: a map update that came between would be in neither.
    #[must_use]
    pub fn capture(&self, log_next: Lsn) -> ShadowCapture {
        let state = self.pool.lock();
        let blocks = (0..self.shape.logical).map(|logical| self.settled(logical)).collect();
        let mut map = ShadowMap { next: state.next, blocks };
        if !is_on(Barrier::ShadowHidesDrafts) {
            state
                .drafts
                .iter()
                .for_each(|open| map.blocks[open.logical as usize] = Some(open.block));
        }
        ShadowCapture { bytes: map.encode(), mark: state.updates, tail: log_next }
    }

    /// Notes that the checkpoint with the capture of this mark is durable, and frees the blocks that it no longer
    /// names.
    pub fn committed(&self, mark: u64) {
        self.pool.lock().committed(mark);
        self.pool.tell();
    }

    /// Waits at most `timeout` for a block to become free.
    pub fn wait_for_space(&self, timeout: Duration) {
        self.pool.wait(timeout);
    }

    /// The number of blocks that can be taken now.
    #[must_use]
    pub fn free_blocks(&self) -> usize {
        self.pool.lock().free_blocks()
    }

    /// The number of blocks that a sync of the log, or a checkpoint, will free.
    #[must_use]
    pub fn waiting_blocks(&self) -> usize {
        self.pool.lock().waiting_blocks()
    }

    /// The place of page `index` of a block.
    ///
    /// # Panics
    /// If a block has no such page.
    #[inline]
    #[must_use]
    pub fn page(&self, block: Block, index: u64) -> PageId {
        let block_pages = u64::from(self.shape.block_pages);
        assert!(index < block_pages, "page {index} of a block of {block_pages}");
        self.start.plus(u64::from(block.physical) * block_pages + index)
    }

    /// Returns the label that page `index` of a block must have.
    ///
    /// # Panics
    /// If a block has no such page.
    #[inline]
    #[must_use]
    pub fn label(&self, block: Block, index: u64, kind: PageKind) -> PageLabel {
        let page = self.page(block, index);
        PageLabel { kind, structure: self.structure, generation: block.generation, page }
    }

    /// The RAM that the shadow uses, in bytes.
    #[must_use]
    pub fn ram_bytes(&self) -> usize {
        self.slots.len() * size_of::<Slot>() + self.pool.lock().ram_bytes()
    }
}
