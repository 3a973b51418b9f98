//! Taking over from an older table: how a table of twice the partitions continues where a full one ended.
//!
//! The older table takes no updates any more. A partition of the newer one has no slicetable until its first merge,
//! which reads the slicetable of the older table's partition, keeps what is its own, and adds what the older table
//! still has in RAM. Until then a lookup that the partition's buffers cannot answer asks the older table: its
//! buffers, and one page.
//!
//! ```text
//!   older     | partition 0             | partition 1             |     full, only read
//!             |   keeps its slicetable  |   keeps its slicetable  |
//!                  /           \             /           \
//!   newer     | partition 0 | partition 1 | partition 2 | partition 3 |   first merge: half of the older slicetable
//! ```
//!
//! So no entry is written for the growth alone: the first merge would have written a slicetable anyway.

use std::sync::{Arc, MutexGuard, RwLock};
use std::time::Duration;

use nandex_device::PageBuf;
use nandex_store::entries::Entry;
use nandex_store::hash::KeyHash;
use nandex_store::reads::LookupStep;
use nandex_store::shadow::{Block, Shadow};

use super::slice::SliceLayout;
use super::{Inner, Slicetables, State};
use crate::Result;
use crate::api::Value;
use crate::write::TableLayout;

/// The longest wait for a merge before looking again.
const MERGE_WAIT: Duration = Duration::from_millis(2);

/// The table that one of a growing table's takes over from, until it has everything.
#[derive(Default)]
pub(crate) struct Older(RwLock<Option<Arc<Inner>>>);

/// A slicetable of this table, or of the older one.
#[derive(Clone, Debug)]
pub(super) struct SlicetablePlace {
    pub block: Block,
    /// `None` if it is this table's own.
    pub older: Option<Arc<Inner>>,
}

/// The slicetable that a merge rewrites.
#[derive(Clone, Copy)]
pub(super) struct Base<'b> {
    /// `None` if there is none yet.
    pub slicetable: Option<(&'b Shadow, Block)>,
    /// Is it an older table's, of which only the partition's own entries stay?
    pub is_older: bool,
}

impl std::fmt::Debug for Older {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("Older").field(&self.get().map(|older| older.id)).finish()
    }
}

impl Older {
    pub(super) fn new(older: Arc<Inner>) -> Self {
        Self(RwLock::new(Some(older)))
    }

    fn get(&self) -> Option<Arc<Inner>> {
        self.0.read().expect("no holder of the older table's lock panics").clone()
    }

    fn set(&self, older: Option<Arc<Inner>>) {
        *self.0.write().expect("no holder of the older table's lock panics") = older;
    }
}

impl Slicetables {
    fn older(&self) -> &Older {
        self.older.as_ref().expect("a growing table's")
    }
}

impl Inner {
    /// Continues where an older table ended, which takes no updates from now on. This one has taken none yet.
    pub(super) fn take_over_from(&self, older: &Arc<Inner>) {
        self.counters.new_keys.set(older.counters.new_keys.get());
        self.layout.older().set(Some(Arc::clone(older)));
    }

    /// Is every partition independent of the older table?
    pub(super) fn has_taken_over(&self) -> bool {
        (0..self.partitions.len()).all(|index| self.older_of(index).is_none())
    }

    /// Takes over what is left. Without it each partition does so when its buffer is full.
    ///
    /// # Errors
    /// A failed read or write, damage.
    pub(super) fn take_over_all(&self) -> Result<()> {
        for index in 0..self.partitions.len() {
            let mut state = self.partitions[index].write();
            while self.older_of(index).is_some()
                && state.frozen.is_empty()
                && !self.try_freeze(index, &mut state, 0)?
            {
                state = self.wait_for_buffer(index, state)?;
                self.volume.poison().check()?;
            }
        }
        // Updates may keep the flushes busy all the time, so this does not wait until nothing is queued.
        while !self.has_taken_over() {
            self.volume.poison().check()?;
            self.work.report_fault()?;
            if !self.catch_up_or_help()? {
                self.pool.wait(MERGE_WAIT);
            }
        }
        Ok(())
    }

    /// Entries of the older table that this one has not taken over yet, about.
    pub(super) fn entries_to_take_over(&self, older: &Inner) -> u64 {
        let waiting = (0..self.partitions.len()).filter(|index| self.older_of(*index).is_some());
        let entries = waiting.map(|index| {
            let state = older.partitions[self.index_in(older, index)].read();
            Slicetables::keys(older, &state)
        });
        entries.sum::<u64>() * older.partitions.len() as u64 / self.partitions.len() as u64
    }

    /// Ends its use of the older table, which may be dropped then.
    pub(super) fn forget_older(&self) {
        assert!(self.has_taken_over(), "a table that was taken over is forgotten");
        self.layout.older().set(None);
    }

    /// The older table, if this partition still needs it. Under the partition's lock it needs it until the lock is
    /// released.
    #[inline]
    pub(super) fn older_of(&self, index: usize) -> Option<Arc<Inner>> {
        if self.layout.shadow.block(index as u32).is_some() {
            return None;
        }
        self.older()
    }

    /// The older table, until all partitions have what is theirs and it is forgotten.
    #[inline]
    pub(super) fn older(&self) -> Option<Arc<Inner>> {
        self.layout.older.as_ref()?.get()
    }

    /// Does a key belong to this partition?
    pub(super) fn is_own(&self, index: usize, key: &[u8]) -> bool {
        self.partition_of(self.hasher.hash(key)) == index
    }

    /// The older table's partition that holds the entries of one of this table.
    pub(super) fn index_in(&self, older: &Inner, index: usize) -> usize {
        index / (self.partitions.len() / older.partitions.len())
    }

    /// What the older table knows of a key, without a read.
    ///
    /// # Errors
    /// A lost page that may have the key.
    pub(super) fn known_in_older(
        older: Arc<Inner>,
        hash: KeyHash,
        key: &[u8],
    ) -> Result<LookupStep<SlicetablePlace, Option<Value>>> {
        let index = older.partition_of(hash);
        let state = older.partitions[index].read();
        let known = Self::known(&state, hash, key)?;
        if known.is_known() {
            return Ok(LookupStep::Answer(known.value()));
        }
        let block = older.block_for(index, &state, hash);
        drop(state);
        Ok(match block {
            Some(block) => LookupStep::Read(SlicetablePlace { block, older: Some(older) }),
            None => LookupStep::Answer(None),
        })
    }

    /// The slicetable of a partition, if it may hold a key.
    pub(super) fn block_for(&self, index: usize, state: &State, hash: KeyHash) -> Option<Block> {
        let slice = self.layout.slicing.slice_of_key(hash);
        let filter = state.level.filter.as_ref();
        let block = self.layout.shadow.block(index as u32);
        block.filter(|_| filter.is_none_or(|filter| filter.may_hold(slice, hash)))
    }

    /// The older table's partition, which nothing writes while this is held.
    pub(super) fn hold_older<'o>(&self, older: &'o Inner, index: usize) -> MutexGuard<'o, ()> {
        older.partitions[self.index_in(older, index)].maintain()
    }

    /// What a merge of a partition begins with; its own, or that of an older table which the caller holds.
    pub(super) fn base<'b>(&'b self, older: Option<&'b Inner>, index: usize) -> Base<'b> {
        let from = older.map_or(index, |older| self.index_in(older, index));
        let shadow = &older.unwrap_or(self).layout.shadow;
        let slicetable = shadow.block(from as u32).map(|block| (shadow, block));
        Base { slicetable, is_older: older.is_some() }
    }

    /// What an older table has of a partition in RAM, oldest first; without one, the overflow of the partition's split.
    ///
    /// # Errors
    /// A page of the older table's buffers that is lost.
    pub(super) fn inherited(&self, older: Option<&Inner>, index: usize) -> Result<Option<PageBuf>> {
        let Some(older) = older else {
            let state = self.partitions[index].read();
            return Ok(self.in_pages(state.level.overflow.entries().collect()));
        };
        let state = older.partitions[self.index_in(older, index)].read();
        let buffered = state.buffers()?.rev().flat_map(|buffer| {
            let in_pages = buffer.page_entries().map(|(_, _, entry)| entry);
            in_pages.chain(buffer.stash_entries())
        });
        let all = state.level.overflow.entries().chain(buffered);
        Ok(self.in_pages(all.filter(|entry| self.is_own(index, entry.key)).collect()))
    }

    fn in_pages(&self, entries: Vec<Entry<'_>>) -> Option<PageBuf> {
        if entries.is_empty() {
            return None;
        }
        let layout = self.entry_layout();
        let mut pages = PageBuf::zeroed(entries.len().div_ceil(layout.slots()));
        for (number, entry) in entries.into_iter().enumerate() {
            let slot = layout.slot_number(number % layout.slots());
            layout.put(pages.page_mut(number / layout.slots()), slot, entry);
        }
        Some(pages)
    }

    /// Removes the entries of a page that another partition takes over.
    pub(super) fn keep_own(&self, index: usize, layout: SliceLayout, body: &mut [u8]) {
        // A page that says more than it holds is told by the merge.
        let count = layout.count(body).unwrap_or(0);
        let is_others = |at: &usize| !self.is_own(index, layout.key(body, *at));
        let others: Vec<_> = (0..count).filter(is_others).collect();
        layout.remove(body, &others);
    }
}
