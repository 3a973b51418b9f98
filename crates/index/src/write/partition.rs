//! A partition: the buffer that takes updates, the buffers being written, and the level below them.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, RwLock, RwLockReadGuard, RwLockWriteGuard};

use nandex_device::PageId;
use nandex_store::Lsn;
use nandex_store::mutants::{Barrier, is_on};
use nandex_store::space::Extent;

use super::{Boundary, Layout, LostPage, OnFlash, Snapshot, SnapshotStore, WriteBuffer};
use crate::Result;

/// A partition; BufferHash calls it a super table, the cascade filter a part.
#[derive(Debug)]
pub(crate) struct Partition<L: Layout> {
    state: RwLock<PartitionState<L>>,
    /// The state that the structure reads without the lock.
    pub(crate) unlocked: L::Unlocked,
    /// Held by a thread that changes what the partition has on flash; taken before `state`.
    maintenance: Mutex<()>,
}

/// The mutable state of a partition.
#[derive(Debug)]
pub(crate) struct PartitionState<L: Layout> {
    /// The buffer that takes updates. Code outside the write path reads it through [`buffers`](Self::buffers), which
    /// checks for lost pages.
    pub(super) active: L::Buffer,
    /// The log position before the first update that only this buffer has. Unused if updates add up.
    pub(crate) since: Option<Lsn>,
    /// Counts the buffers of this partition; it names the active one.
    pub(crate) number: u64,
    /// The number of updates applied to the active buffer, which shows whether it has changed.
    pub(crate) updates: u64,
    /// The number of these that are in its snapshot.
    pub(crate) saved_updates: u64,
    /// The number of these that came from the user rather than the structure.
    pub(crate) user_updates: u64,
    /// The number of removals that were put into the full active buffer.
    pub(crate) forced: u64,
    /// The number of the user's updates since the structure was opened.
    pub(crate) updates_taken: u64,
    /// The number of buffers that have left for flash since the structure was opened.
    pub(crate) buffers_left: u64,
    /// Whether a background thread is working on the frozen buffers.
    pub(crate) flushing: bool,
    /// The snapshot that has part of the active buffer.
    pub(crate) snapshot: Option<Snapshot<L::Buffer>>,
    /// The end of the last flushed buffer in the log.
    pub(crate) flushed: Boundary,
    /// The pages of the snapshot that the active buffer lacks, if damage does not stop an opening.
    pub(super) lost: Vec<LostPage>,
    /// The full buffers, oldest first, until they are on flash. There are none if a page is lost.
    pub(crate) frozen: VecDeque<Frozen<L>>,
    /// The level below.
    pub(crate) level: L::Level,
}

/// A full buffer that is being written.
#[derive(Debug)]
pub(crate) struct Frozen<L: Layout> {
    pub(crate) buffer: Arc<L::Buffer>,
    pub(crate) since: Option<Lsn>,
    pub(crate) snapshot: Option<Snapshot<L::Buffer>>,
    pub(crate) user_updates: u64,
    /// The end of the buffer in the log.
    pub(crate) boundary: Boundary,
    /// The space that the structure reserved when the buffer was frozen.
    pub(crate) reserved: L::Reserved,
}

impl<L: Layout> Clone for Frozen<L> {
    fn clone(&self) -> Self {
        Self {
            buffer: Arc::clone(&self.buffer),
            since: self.since,
            snapshot: self.snapshot.clone(),
            user_updates: self.user_updates,
            boundary: self.boundary,
            reserved: self.reserved.clone(),
        }
    }
}

impl<L: Layout> Partition<L> {
    pub(super) fn new(state: PartitionState<L>, unlocked: L::Unlocked) -> Self {
        Self { state: RwLock::new(state), unlocked, maintenance: Mutex::default() }
    }

    #[inline]
    pub(crate) fn read(&self) -> RwLockReadGuard<'_, PartitionState<L>> {
        self.state.read().expect("no holder of a partition's lock panics")
    }

    #[inline]
    pub(crate) fn write(&self) -> RwLockWriteGuard<'_, PartitionState<L>> {
        self.state.write().expect("no holder of a partition's lock panics")
    }

    /// Returns whether a thread has panicked while it held one of the locks, so that their data may be half changed.
    pub(super) fn is_broken(&self) -> bool {
        self.state.is_poisoned() || self.maintenance.is_poisoned()
    }

    pub(crate) fn maintain(&self) -> MutexGuard<'_, ()> {
        self.maintenance.lock().expect("no holder of a maintenance lock panics")
    }
}

impl<L: Layout> PartitionState<L> {
    pub(super) fn new(active: L::Buffer, level: L::Level, flushed: Boundary) -> Self {
        Self {
            active,
            since: None,
            number: 0,
            updates: 0,
            saved_updates: 0,
            user_updates: 0,
            forced: 0,
            updates_taken: 0,
            buffers_left: 0,
            flushing: false,
            snapshot: None,
            flushed,
            lost: Vec::new(),
            frozen: VecDeque::new(),
            level,
        }
    }

    /// Returns all buffers, newest first.
    ///
    /// # Errors
    /// A page of their snapshot is lost, so that they lack its entries.
    pub(crate) fn buffers(&self) -> Result<impl DoubleEndedIterator<Item = &L::Buffer>> {
        match self.lost.first() {
            Some(lost) => Err(lost.error()),
            None => Ok(self.all_buffers()),
        }
    }

    /// Returns all buffers, newest first, and the pages whose entries they lack.
    pub(crate) fn buffers_past_damage(
        &self,
    ) -> (impl DoubleEndedIterator<Item = &L::Buffer>, &[LostPage]) {
        (self.all_buffers(), &self.lost)
    }

    /// Returns all buffers, newest first, whether or not they lack pages.
    pub(crate) fn all_buffers(&self) -> impl DoubleEndedIterator<Item = &L::Buffer> {
        std::iter::once(&self.active).chain(self.frozen.iter().rev().map(|it| &*it.buffer))
    }

    /// Returns the pages whose entries the buffers lack.
    pub(crate) fn lost_pages(&self) -> impl Iterator<Item = PageId> + '_ {
        self.lost.iter().map(|lost| lost.page)
    }

    /// Returns the buffer that takes updates. A buffer that can be written has lost nothing.
    pub(crate) fn active_mut(&mut self) -> &mut L::Buffer {
        &mut self.active
    }

    /// Prefetches what a lookup will read of the active buffer.
    #[inline]
    pub(crate) fn prefetch_active(&self, fetch: impl FnOnce(&L::Buffer)) {
        fetch(&self.active);
    }

    /// Prefetches what a lookup will read of the buffers.
    #[inline]
    pub(crate) fn prefetch(&self, fetch: impl FnMut(&L::Buffer)) {
        self.all_buffers().for_each(fetch);
    }

    /// Returns the number of entries in its buffers, without those of lost pages.
    pub(crate) fn entries_buffered(&self) -> u64 {
        self.all_buffers().map(WriteBuffer::entries).sum()
    }

    /// Returns the RAM of its buffers, in bytes.
    pub(crate) fn buffer_bytes(&self) -> u64 {
        self.all_buffers().map(WriteBuffer::ram_bytes).sum()
    }

    /// Returns the snapshot that recovery loads before it replays the log.
    pub(crate) fn needed_snapshot(&self) -> Option<&Snapshot<L::Buffer>> {
        match self.frozen.iter().find_map(|frozen| frozen.snapshot.as_ref()) {
            Some(snapshot) => Some(snapshot),
            None => self.snapshot.as_ref(),
        }
    }

    /// Returns the extent of that snapshot, in a structure that allocates one for each.
    pub(crate) fn snapshot_extent<T: OnFlash>(&self) -> Option<Extent>
    where
        L::Buffer: WriteBuffer<Snapshots: SnapshotStore<L::Buffer, Ref = Option<Arc<T>>>>,
    {
        let snapshot = self.needed_snapshot().filter(|_| is_on(Barrier::SnapshotOwnsItsPages));
        snapshot.and_then(|snapshot| Some(snapshot.place.as_ref()?.extent()))
    }

    /// Returns the last boundary whose updates are on flash.
    pub(super) fn covered(&self) -> Boundary {
        self.needed_snapshot().map_or(self.flushed, |snapshot| snapshot.boundary)
    }

    /// Returns the oldest log position that this partition still needs; `None` if it needs none of the log.
    pub(crate) fn tail(&self) -> Option<Lsn> {
        if L::Buffer::ADDS_UP {
            return Some(self.covered().at);
        }
        let frozen = self.frozen.iter().filter_map(|frozen| frozen.since);
        frozen.chain(self.since).min()
    }

    /// Replaces the snapshot of a frozen buffer after its place was written again. The frozen buffer now refers to the
    /// newer snapshot of the same buffer, and to the log after it.
    pub(super) fn replace_snapshot(&mut self, newer: &Snapshot<L::Buffer>) {
        type Store<L> = <<L as Layout>::Buffer as WriteBuffer>::Snapshots;
        let frozen = self.frozen.iter_mut().map(|frozen| &mut frozen.snapshot);
        let stale = frozen.chain([&mut self.snapshot]).flatten();
        let is_stale = |old: &&mut Snapshot<_>| Store::<L>::overwrites(&newer.place, &old.place);
        stale.filter(is_stale).for_each(|old| *old = newer.clone());
    }

    /// Replaces the active buffer by a fresh one.
    pub(super) fn freeze(&mut self, fresh: L::Buffer, boundary: Boundary, reserved: L::Reserved) {
        let buffer = Arc::new(std::mem::replace(&mut self.active, fresh));
        self.frozen.push_back(Frozen {
            buffer,
            since: self.since.take(),
            snapshot: self.snapshot.take(),
            user_updates: std::mem::take(&mut self.user_updates),
            boundary,
            reserved,
        });
        self.number += 1;
        self.updates = 0;
        self.forced = 0;
        self.saved_updates = 0;
    }

    /// Removes the oldest frozen buffer; its entries are on flash now.
    pub(crate) fn take_flushed(&mut self) -> Frozen<L> {
        let frozen = self.frozen.pop_front().expect("the buffer that was flushed");
        self.flushed = frozen.boundary;
        self.buffers_left += 1;
        frozen
    }
}
