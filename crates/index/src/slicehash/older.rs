//! Taking over from an older table: a table with twice the partitions continues where a full one ended.
//!
//! The older table no longer takes updates. A partition of the newer one has no slicetable until its first merge, which
//! reads the slicetable of the older table's partition, keeps its own entries, and adds those that the older table
//! still has in RAM. Until then a lookup that the partition's buffers cannot answer searches the older table: its
//! buffers, and one page.
//!
//! ```text
//!   older     | partition 0             | partition 1             |     full, only read
//!             |   keeps its slicetable  |   keeps its slicetable  |
//!                  /           \             /           \
//!   newer     | partition 0 | partition 1 | partition 2 | partition 3 |   first merge: half of the older slicetable
//! ```
//!
//! So no entry is written for growth alone: the first merge would have written a slicetable anyway.

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

/// The longest wait for a merge before the caller checks again.
const MERGE_WAIT: Duration = Duration::from_millis(2);

/// The table that one of a growing table's parts takes over from, until it has everything.
#[derive(Default)]
pub(crate) struct Older(RwLock<Option<Arc<Inner>>>);

/// A slicetable of this table, or of the older one.
#[derive(Clone, Debug)]
pub(super) struct SlicetablePlace {
    pub block: Block,
    /// The older table, or `None` if the slicetable is this table's own.
    pub older: Option<Arc<Inner>>,
}

/// The slicetable that a merge rewrites.
#[derive(Clone, Copy)]
pub(super) struct Base<'b> {
    /// The slicetable; `None` if there is none yet.
    pub slicetable: Option<(&'b Shadow, Block)>,
    /// Whether it is an older table's, from which only the partition's own entries are kept.
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
    /// Continues where an older table ended, which takes no updates from now on. This table has not taken any yet.
    pub(super) fn take_over_from(&self, older: &Arc<Inner>) {
        self.counters.new_keys.set(older.counters.new_keys.get());
        self.layout.older().set(Some(Arc::clone(older)));
    }

    /// Returns whether every partition is independent of the older table.
    pub(super) fn has_taken_over(&self) -> bool {
        (0..self.partitions.len()).all(|index| self.older_of(index).is_none())
    }

    /// Takes over the rest. Without this call each partition does so when its buffer is full.
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

    /// Returns the approximate number of entries of the older table that this one has not taken over yet.
    pub(super) fn entries_to_take_over(&self, older: &Inner) -> u64 {
        let waiting = (0..self.partitions.len()).filter(|index| self.older_of(*index).is_some());
        let entries = waiting.map(|index| {
            let state = older.partitions[self.index_in(older, index)].read();
            Slicetables::keys(older, &state)
        });
        entries.sum::<u64>() * older.partitions.len() as u64 / self.partitions.len() as u64
    }

    /// Stops using the older table, which may then be dropped.
    pub(super) fn forget_older(&self) {
        assert!(self.has_taken_over(), "a table that was taken over is forgotten");
        self.layout.older().set(None);
    }

    /// Returns the older table, if this partition still needs it. Under the partition's lock the answer is valid until
    /// the lock is released.
    #[inline]
    pub(super) fn older_of(&self, index: usize) -> Option<Arc<Inner>> {
        if self.layout.shadow.block(index as u32).is_some() {
            return None;
        }
        self.older()
    }

    /// Returns the older table, until all partitions have their entries and it is forgotten.
    #[inline]
    pub(super) fn older(&self) -> Option<Arc<Inner>> {
        self.layout.older.as_ref()?.get()
    }

    /// Returns whether a key belongs to this partition.
    pub(super) fn is_own(&self, index: usize, key: &[u8]) -> bool {
        self.partition_of(self.hasher.hash(key)) == index
    }

    /// Returns the older table's partition with the entries of a partition of this table.
    pub(super) fn index_in(&self, older: &Inner, index: usize) -> usize {
        index / (self.partitions.len() / older.partitions.len())
    }

    /// Returns the older table's answer about a key, without a read.
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

    /// Locks the older table's partition against writes.
    pub(super) fn hold_older<'o>(&self, older: &'o Inner, index: usize) -> MutexGuard<'o, ()> {
        older.partitions[self.index_in(older, index)].maintain()
    }

    /// Returns what a merge of a partition starts from: its own slicetable, or that of an older table, which the caller
    /// holds.
    pub(super) fn base<'b>(&'b self, older: Option<&'b Inner>, index: usize) -> Base<'b> {
        let from = older.map_or(index, |older| self.index_in(older, index));
        let shadow = &older.unwrap_or(self).layout.shadow;
        let slicetable = shadow.block(from as u32).map(|block| (shadow, block));
        Base { slicetable, is_older: older.is_some() }
    }

    /// Returns the entries of an older table in RAM for a partition, oldest first; without one, the overflow of the
    /// partition's split.
    ///
    /// # Errors
    /// A page of the older table's buffers is lost.
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

    /// Removes the entries of a page that belong to another partition.
    pub(super) fn keep_own(&self, index: usize, layout: SliceLayout, body: &mut [u8]) {
        // The merge reports a page that claims more than it holds.
        let count = layout.count(body).unwrap_or(0);
        let is_others = |at: &usize| !self.is_own(index, layout.key(body, *at));
        let others: Vec<_> = (0..count).filter(is_others).collect();
        layout.remove(body, &others);
    }
}
