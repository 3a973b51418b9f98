//! Snapshots: buffers that are saved before they are full.
//!
//! Closing a structure, `flush`, and a log that is nearly full must not flush a half-empty buffer: that would evict
//! entries, or rewrite a level, for little. Instead the buffer's contents are saved separately, and the buffer stays in
//! RAM and continues to fill. The next opening loads the snapshot and replays only the log after it.
//!
//! Snapshots are written only while a checkpoint prepares, so the one that the last durable checkpoint refers to is
//! never overwritten. A buffer's [`SnapshotStore`] determines how it is stored on flash: pages in fixed places for
//! entries, a run for fingerprints.

use std::collections::BTreeSet;
use std::fmt::Debug;
use std::sync::atomic::AtomicUsize;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::{Mutex, MutexGuard};
use std::thread::{self, ScopedJoinHandle};

use nandex_device::PageId;
use nandex_store::Lsn;
use nandex_store::buffer::page_of;
use nandex_store::bytes::Reader;
use nandex_store::hash::KeyHash;
use nandex_store::mutants::{Barrier, is_on};

use super::{Boundary, Checkpoints, Core, Layout, PartitionState, WriteBuffer};
use crate::{Damage, Error, Result, damage};

/// The number of threads that load snapshots when a table is opened; each has one read in flight.
const LOADERS: usize = 4;

/// Stores snapshots of buffers on flash.
pub(crate) trait SnapshotStore<B>: Debug + Send + Sync {
    /// A buffer's contents, copied under the partition's lock.
    type Copy: Send;
    /// The location of a snapshot.
    type Ref: Clone + Debug + Send + Sync;

    /// Returns whether a snapshot can hold all of this buffer. Otherwise the buffer is flushed.
    fn fits(&self, _buffer: &B) -> bool {
        true
    }

    /// Copies a buffer's contents, without I/O.
    fn copy(&self, buffer: &B) -> Self::Copy;

    /// Writes a snapshot of a partition's buffer, and also returns its size in bytes. `durable` is the snapshot that
    /// the last durable checkpoint refers to; `next_generation` returns numbers that were never used before.
    ///
    /// # Errors
    /// A failed write, no space.
    fn write(
        &self,
        index: usize,
        durable: Option<&Self::Ref>,
        next_generation: &dyn Fn() -> u64,
        copy: Self::Copy,
    ) -> Result<(Self::Ref, u64)>;

    /// Reads a snapshot into an empty buffer.
    ///
    /// # Errors
    /// A failed read, damage.
    fn load(&self, index: usize, from: &Self::Ref, buffer: &mut B) -> Result<()>;

    /// Reads the pages of a snapshot that can be verified into an empty buffer, and returns those that cannot. A store
    /// that can only load a snapshot as a whole reads all of it.
    ///
    /// # Errors
    /// As [`load`](Self::load).
    fn load_past(&self, index: usize, from: &Self::Ref, buffer: &mut B) -> Result<Vec<LostPage>> {
        self.load(index, from, buffer).map(|()| Vec::new())
    }

    /// Returns whether writing `newer` has overwritten `older`.
    fn overwrites(newer: &Self::Ref, older: &Self::Ref) -> bool;

    /// Discards a snapshot whose buffer has left meanwhile.
    fn discard(&self, _snapshot: Self::Ref) {}

    /// Encodes a reference.
    fn encode(reference: Option<&Self::Ref>, out: &mut Vec<u8>);

    /// Reads a reference from untrusted bytes.
    ///
    /// # Errors
    /// Corruption, reported by the reader.
    fn decode(&self, reader: &mut Reader<'_>) -> Result<Option<Self::Ref>>;
}

/// A page of a snapshot that cannot be read or verified, in a volume opened read-only.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct LostPage {
    /// Its index among the pages of the snapshot.
    pub index: usize,
    /// The pages of the buffer; the snapshot's further pages are those of its stash.
    pub buffer_pages: usize,
    pub page: PageId,
}

impl LostPage {
    /// Handles a snapshot that is unusable as a whole, because of the page that `error` is about. The buffer that it
    /// was read into is emptied again.
    ///
    /// # Errors
    /// The error itself, if it is not about a page.
    pub(crate) fn whole<B: WriteBuffer>(error: Error, buffer: &mut B) -> Result<Vec<Self>> {
        let Some(page) = damage::page_of(&error) else { return Err(error) };
        buffer.clear();
        Ok(vec![Self { index: 0, buffer_pages: 0, page }])
    }

    /// Returns the damage of this page, given the slots of a buffer's page.
    pub(crate) fn as_damage(&self, slots: usize) -> Damage {
        Damage::new(self.page, slots, self.error())
    }

    /// Fails for a key that the lost page may have had.
    pub(super) fn refuse(&self, hash: KeyHash) -> Result<()> {
        let is_stash = self.index >= self.buffer_pages;
        let may_hold = is_stash || page_of(hash, self.buffer_pages) == self.index;
        if may_hold { Err(self.error()) } else { Ok(()) }
    }

    /// Returns the damage as an error.
    pub(crate) fn error(&self) -> Error {
        damage::lost_page(self.page)
    }
}

/// The snapshot store of a buffer.
pub(super) type Store<B> = <B as WriteBuffer>::Snapshots;
/// A reference to a snapshot of a buffer.
pub(crate) type SnapshotRef<B> = <Store<B> as SnapshotStore<B>>::Ref;

/// A snapshot of a partition's buffer.
#[derive(Debug)]
pub(crate) struct Snapshot<B: WriteBuffer> {
    pub(crate) place: SnapshotRef<B>,
    /// The updates that it covers, if updates add up.
    pub(crate) boundary: Boundary,
}

impl<B: WriteBuffer> Clone for Snapshot<B> {
    fn clone(&self) -> Self {
        Self { place: self.place.clone(), boundary: self.boundary }
    }
}

/// A structure's snapshots, and the buffers that the next checkpoint must save.
#[derive(Debug)]
pub(super) struct Snapshots<B: WriteBuffer> {
    pub store: Store<B>,
    state: Mutex<SnapshotsState<B>>,
}

#[derive(Debug)]
struct SnapshotsState<B: WriteBuffer> {
    next_generation: u64,
    /// Each partition's snapshot in the last durable checkpoint.
    durable: Vec<Option<SnapshotRef<B>>>,
    captured: Vec<Option<SnapshotRef<B>>>,
    /// Requests saving buffers with updates that were logged before this position.
    before: Option<Lsn>,
    /// The partitions that a flush still has to save.
    unsaved: BTreeSet<usize>,
}

/// The condition on which the next checkpoint saves a buffer.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum SaveIf {
    /// The buffer has updates that were logged before this position.
    LoggedBefore(Lsn),
    /// The buffer has changed since its last snapshot.
    Changed,
}

/// A snapshot to be written.
struct Draft<B: WriteBuffer> {
    copy: <Store<B> as SnapshotStore<B>>::Copy,
    boundary: Boundary,
    /// The number of the buffer and of its updates, and the log position when it was copied.
    number: u64,
    updates: u64,
    next_lsn: Lsn,
}

impl<B: WriteBuffer> Snapshots<B> {
    pub(super) fn new(store: Store<B>, partitions: usize, next_generation: u64) -> Self {
        let none = vec![None; partitions];
        let state = SnapshotsState {
            next_generation,
            durable: none.clone(),
            captured: none,
            before: None,
            unsaved: BTreeSet::new(),
        };
        Self { store, state: Mutex::new(state) }
    }

    fn lock(&self) -> MutexGuard<'_, SnapshotsState<B>> {
        self.state.lock().expect("no holder of the snapshots' lock panics")
    }

    pub(super) fn next_generation(&self) -> u64 {
        self.lock().next_generation
    }

    /// Takes the requests: for each partition the stronger one. Saving a buffer's changes also saves everything older.
    fn take_requests(&self) -> Vec<(usize, SaveIf)> {
        let mut state = self.lock();
        let mut requests = vec![state.before.take().map(SaveIf::LoggedBefore); state.durable.len()];
        for index in std::mem::take(&mut state.unsaved) {
            requests[index] = Some(SaveIf::Changed);
        }
        requests.into_iter().enumerate().filter_map(|(index, it)| Some((index, it?))).collect()
    }

    /// Notes the snapshots that the current checkpoint refers to.
    pub(super) fn capture(&self, snapshots: Vec<Option<SnapshotRef<B>>>) {
        self.lock().captured = snapshots;
    }

    /// Notes that the checkpoint is durable.
    pub(super) fn committed(&self) {
        let mut state = self.lock();
        state.durable = state.captured.clone();
    }

    /// Returns a number that no snapshot or run has had before.
    pub(super) fn take_generation(&self) -> u64 {
        let mut state = self.lock();
        state.next_generation += 1;
        state.next_generation - 1
    }

    fn write(
        &self,
        index: usize,
        copy: <Store<B> as SnapshotStore<B>>::Copy,
    ) -> Result<(SnapshotRef<B>, u64)> {
        let durable = self.lock().durable[index].clone();
        self.store.write(index, durable.as_ref(), &|| self.take_generation(), copy)
    }
}

impl<L: Layout> Core<L> {
    /// Returns a generation for the structure's pages that no snapshot or other page has had before.
    pub(crate) fn take_generation(&self) -> u64 {
        self.snapshots.take_generation()
    }

    /// Requests that the next checkpoints save every buffer, until all are saved.
    pub(crate) fn snapshot_all(&self) {
        self.snapshots.lock().unsaved = (0..self.partitions.len()).collect();
    }

    /// Requests that the next checkpoints save a partition's buffer.
    pub(super) fn snapshot_soon(&self, index: usize) {
        self.snapshots.lock().unsaved.insert(index);
    }

    /// Requests that the next checkpoint saves buffers with updates that were logged before this position.
    pub(crate) fn snapshot_before(&self, before: Lsn) {
        self.snapshots.lock().before = Some(before);
    }

    /// Returns whether there are partitions that no checkpoint could save yet, because a full buffer was being written.
    pub(super) fn has_unsaved(&self) -> bool {
        !self.snapshots.lock().unsaved.is_empty()
    }

    /// Saves the requested buffers. Called only while a checkpoint prepares.
    ///
    /// Saves each at most once: a second snapshot could overwrite the first, and a move logged in between may name the
    /// first.
    pub(crate) fn write_snapshots(&self) -> Result<()> {
        let mut unsaved = Vec::new();
        for (index, request) in self.snapshots.take_requests() {
            if !self.write_snapshot(index, request)? && request == SaveIf::Changed {
                unsaved.push(index);
            }
        }
        self.snapshots.lock().unsaved.extend(unsaved);
        Ok(())
    }

    /// Saves one active buffer if requested; returns whether all of it is saved.
    fn write_snapshot(&self, index: usize, request: SaveIf) -> Result<bool> {
        let draft = {
            let mut state = self.partitions[index].write();
            if !state.frozen.is_empty() {
                return Ok(false);
            }
            if !is_wanted(&state, request) {
                return Ok(true);
            }
            if L::Buffer::ADDS_UP && state.updates == state.saved_updates {
                self.move_boundary(index, &mut state)?;
                return Ok(true);
            }
            if !self.snapshots.store.fits(&state.active) {
                return match self.try_freeze(index, &mut state, 0) {
                    // A replay has filled it past its limits, and flash has no space for it: the log keeps its updates.
                    Err(Error::Full { .. }) if self.logs() => Ok(true),
                    frozen => frozen.map(|_| false),
                };
            }
            let Some(draft) = self.draft(index, &state)? else { return Ok(false) };
            draft
        };
        let Draft { copy, boundary, number, updates, next_lsn } = draft;
        let (place, bytes) = self.snapshots.write(index, copy)?;
        self.count_written(bytes);
        let snapshot = Snapshot { place, boundary };
        let mut state = self.partitions[index].write();
        if state.number != number {
            state.replace_snapshot(&snapshot);
            drop(state);
            self.snapshots.store.discard(snapshot.place);
            return Ok(false);
        }
        state.snapshot = Some(snapshot);
        state.saved_updates = updates;
        // Updates that arrived meanwhile were logged at or after this position.
        state.since = (state.updates != updates).then_some(next_lsn);
        Ok(true)
    }

    /// Copies the active buffer; returns `None` while the log has no space for its boundary.
    fn draft(&self, index: usize, state: &PartitionState<L>) -> Result<Option<Draft<L::Buffer>>> {
        let Some(boundary) = self.snapshot_boundary(index)? else { return Ok(None) };
        Ok(Some(Draft {
            boundary,
            copy: self.snapshots.store.copy(&state.active),
            number: state.number,
            updates: state.updates,
            next_lsn: self.log_now(),
        }))
    }
}

impl<L: Checkpoints> Core<L> {
    /// Loads the snapshots that the checkpoint refers to into empty buffers, several at a time.
    pub(super) fn load_snapshots(
        &self,
        snapshots: Vec<Option<SnapshotRef<L::Buffer>>>,
    ) -> Result<()> {
        let loaders =
            if self.options.flush_threads == 0 { 1 } else { LOADERS.min(snapshots.len()) };
        let next = AtomicUsize::new(0);
        let load = || {
            loop {
                let index = next.fetch_add(1, Relaxed);
                match snapshots.get(index) {
                    None => return Ok(()),
                    Some(None) => {}
                    Some(Some(place)) => self.load_snapshot(index, place)?,
                }
            }
        };
        thread::scope(|scope| {
            let others: Vec<_> = (1..loaders).map(|_| scope.spawn(load)).collect();
            let join = |other: ScopedJoinHandle<'_, Result<()>>| {
                other.join().expect("a loader returns its errors and does not panic")
            };
            others.into_iter().map(join).fold(load(), Result::and)
        })?;
        self.snapshots.capture(snapshots);
        self.snapshots.committed();
        Ok(())
    }

    fn load_snapshot(&self, index: usize, place: &SnapshotRef<L::Buffer>) -> Result<()> {
        let mut state = self.partitions[index].write();
        let store = &self.snapshots.store;
        if self.volume.is_read_only() {
            state.lost = store.load_past(index, place, &mut state.active)?;
        } else {
            store.load(index, place, &mut state.active)?;
        }
        let boundary = state.flushed;
        state.snapshot = Some(Snapshot { place: place.clone(), boundary });
        Ok(())
    }
}

fn is_wanted<L: Layout>(state: &PartitionState<L>, request: SaveIf) -> bool {
    match request {
        SaveIf::LoggedBefore(lsn) => state.tail().is_some_and(|tail| tail < lsn),
        SaveIf::Changed => state.updates > state.saved_updates,
    }
}

/// Returns which of two places a snapshot is written to, so that the durable one stays.
pub(super) fn other_slot(durable: Option<u8>) -> u8 {
    let other = |slot| if is_on(Barrier::SnapshotsAlternate) { 1 - slot } else { slot };
    durable.map_or(0, other)
}
