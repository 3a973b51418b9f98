//! The layout of tables of groups: a full buffer rewrites groups of its partition, and a checkpoint stores the maps.

use std::sync::atomic::Ordering::{Relaxed, SeqCst};
use std::sync::atomic::{AtomicBool, AtomicU64};
use std::sync::{Arc, Mutex, MutexGuard};

use nandex_device::PAGE_BYTES;
use nandex_store::Lsn;
use nandex_store::buffer::Buffer;
use nandex_store::entries::Entry;
use nandex_store::hash::{KeyHash, KeyHasher};
use nandex_store::mutants::{Barrier, is_on};
use nandex_store::records::RecordLayout;
use nandex_store::space::Extent;

use super::checkpoint::capture_maps;
use super::writer::WriteQueue;
use super::{
    CHECKPOINT_SHARE, Group, GroupConfig, GroupMap, GroupModel, GroupReader, GroupRewrite,
    GroupScratch, GroupStructure, GroupWriter, Incoming, REPLACED_MIN, RewrittenMap,
    retired_ram_bytes,
};
use crate::model::text::bytes;
use crate::write::{
    CapturedMaps, Checkpoints, Core, Frozen, Layout, MergedKeys, PartitionState, Retired, Space,
    TableLayout, TableShape, Usage, WritePolicy, copy_entries,
};
use crate::{Error, Result};

/// The layout of tables of groups: a map of groups for each partition.
#[derive(Debug)]
pub struct Grouped<S: GroupStructure> {
    pub(crate) config: S::Config,
    /// The structure's own part.
    pub(crate) own: S,
    pub(crate) shape: TableShape,
    pub(crate) hasher: KeyHasher,
    pub(crate) records: RecordLayout,
    /// The number of entries at which its RAM is exhausted.
    pub(crate) entries_max: u64,
    /// The places for snapshots of buffers.
    pub(crate) snapshots: Extent,
    /// Held while a partition's buffers and map change together, or all of them are captured.
    pub(crate) maps: Mutex<()>,
    pub(crate) retired: Retired<Group>,
    pub(crate) counters: GroupCounters,
    /// Whether snapshots were loaded and the log was replayed.
    pub(crate) is_open: AtomicBool,
}

/// Counters of groups in addition to the write path's.
#[derive(Debug, Default)]
pub(crate) struct GroupCounters {
    /// The pages of all groups now.
    pub pages: AtomicU64,
    /// The pages of groups that were replaced since the last capture.
    pub replaced_pages: AtomicU64,
}

type Inner<S> = Core<Grouped<S>>;
type State<S> = PartitionState<Grouped<S>>;

impl<S: GroupStructure> Layout for Grouped<S> {
    type Buffer = Buffer;
    type Level = Arc<S::Map>;
    type Unlocked = ();
    type Reserved = ();
    type Job = std::convert::Infallible;
    type Scratch = GroupScratch<S::Scratch>;

    fn policy(&self) -> WritePolicy {
        WritePolicy {
            forces_removals: true,
            retries_flushes: true,
            pace_updates: Some(u64::from(self.shape.entries_max)),
            ..WritePolicy::default()
        }
    }

    /// Creates a buffer of the size that suits the current tables. Until a table is open its buffers have all their
    /// pages, since snapshots do.
    fn new_buffer(&self) -> Buffer {
        Buffer::new(self.shape.layout, self.hasher, self.buffer_pages())
    }

    /// Checks whether there is RAM for the map to grow by another buffer. Removals are admitted if there are enough of
    /// them.
    fn reserve(core: &Inner<S>, _index: usize, state: &State<S>) -> Result<Space<()>> {
        let few = u64::from(core.layout.shape.entries_max / 16).max(1);
        let entries = core.counters.flushed_entries.load(Relaxed);
        // Updates of a replay were accepted before.
        let is_replay = !core.layout.is_open.load(Relaxed);
        if entries < core.layout.entries_max || state.forced >= few || is_replay {
            return Ok(Space::Reserved(()));
        }
        Err(Error::Full { entries, flash_bytes: core.layout.flash_bytes() })
    }

    fn flush(
        core: &Inner<S>,
        index: usize,
        frozen: Frozen<Self>,
        scratch: &mut Self::Scratch,
    ) -> Result<()> {
        let flushed = core.put_on_flash(index, &frozen.buffer, scratch);
        if flushed.as_ref().is_err_and(Error::is_no_space) {
            // Replaced groups are free after a checkpoint: the next attempt may find space.
            core.volume.checkpoint()?;
        }
        flushed?;
        let entries = frozen.buffer.len() - frozen.buffer.stash_len();
        core.count_flush(entries as u64, frozen.buffer.slots());
        if frozen.buffer.page_count() == core.layout.buffer_pages() {
            core.recycle(frozen.buffer);
        } else {
            // Its RAM is freed before the new one takes its own.
            drop(frozen);
            core.pool.give(core.layout.new_buffer());
        }
        core.checkpoint_if_much_replaced()
    }

    fn new_scratch(core: &Inner<S>) -> Result<Self::Scratch> {
        let device = &**core.volume.device();
        let reader = GroupReader::new(device, core.layout.group_pages())?;
        let writes = WriteQueue::new(device)?;
        core.scratches.count(core.layout.config.ram().flush_bytes());
        Ok(GroupScratch { reader, writes, own: S::Scratch::default() })
    }

    fn run(_core: &Inner<S>, job: Self::Job, _scratch: &mut Option<Self::Scratch>) -> Result<()> {
        match job {}
    }

    fn usage(core: &Inner<S>) -> Usage {
        let layout = &core.layout;
        let mut ram_bytes = layout.config.ram().snapshot_bytes() + layout.own.ram_bytes();
        let mut largest = 0;
        for partition in &core.partitions {
            let map = Arc::clone(&partition.read().level);
            largest = map.ram_bytes().max(largest);
            ram_bytes += map.ram_bytes() + map.checkpoint_ram_bytes();
        }
        // Each thread builds the next map of a partition. Replaced maps are kept until a checkpoint.
        let next = largest * core.options.flush_threads.max(1) as u64;
        let replaced = layout.counters.replaced_pages.load(Relaxed);
        let group_pages = layout.config.common().group_pages;
        let ram_bytes = ram_bytes + next + retired_ram_bytes(replaced, group_pages);
        Usage { ram_bytes, flash_bytes: layout.flash_bytes() }
    }
}

impl<S: GroupStructure> Grouped<S> {
    /// Groups and the places for snapshots.
    fn flash_bytes(&self) -> u64 {
        (self.counters.pages.load(Relaxed) + self.snapshots.pages) * PAGE_BYTES as u64
    }

    /// Returns the current pages of a write buffer.
    fn buffer_pages(&self) -> usize {
        if self.is_open.load(Relaxed) {
            self.config.buffer_pages_for(self.counters.pages.load(Relaxed))
        } else {
            self.shape.buffer_pages as usize
        }
    }

    fn group_pages(&self) -> usize {
        self.config.common().group_pages as usize
    }

    fn hold_maps(&self) -> MutexGuard<'_, ()> {
        self.maps.lock().expect("no holder of the maps' lock panics")
    }
}

impl GroupCounters {
    /// Notes that the map of a partition was replaced.
    fn note<M: GroupMap>(&self, before: &M, after: &M, replaced: &[Arc<Group>]) {
        self.pages.fetch_add(after.pages().wrapping_sub(before.pages()), Relaxed);
        let replaced: u64 = replaced.iter().map(|it| it.place.extent.pages).sum();
        self.replaced_pages.fetch_add(replaced, Relaxed);
    }
}

impl<S: GroupStructure> Inner<S> {
    /// Rewrites the groups of a partition with a buffer's updates, and installs the new map.
    fn put_on_flash(
        &self,
        index: usize,
        buffer: &Buffer,
        GroupScratch { reader, writes, own }: &mut GroupScratch<S::Scratch>,
    ) -> Result<()> {
        let layout = &self.layout;
        let _lock = self.partitions[index].maintain();
        let before = Arc::clone(&self.partitions[index].read().level);
        let next_number = || self.take_generation();
        let owner = (&self.volume, self.id);
        let updates = self.sorted_updates(buffer);
        let taken = updates.len() as u64;
        let rewrite = GroupRewrite {
            updates,
            records: layout.records,
            hasher: self.hasher,
            buffer_entries_max: layout.shape.buffer_limit(),
            reader,
            writer: GroupWriter::new(owner, layout.group_pages(), &next_number, writes),
            scratch: own,
            progress: &|share| self.pace.progress(share),
        };
        let RewrittenMap { map, replaced, pages_written } = layout.own.rewrite(&before, rewrite)?;
        self.count_written(pages_written * PAGE_BYTES as u64);
        layout.counters.note(&*before, &map, &replaced);
        let (before, after) = (before.entries(), map.entries());
        let merged = MergedKeys { before, after, entries: taken, slots: buffer.slots() };
        // The map is replaced at the same moment at which the flushed buffer leaves RAM.
        let _maps = layout.hold_maps();
        self.note_merged(merged);
        self.replace_flushed(index, Arc::new(map));
        layout.retired.retire(replaced.into_iter());
        Ok(())
    }

    /// Returns the updates of a buffer in the order of the tables.
    fn sorted_updates<'b>(&self, buffer: &'b Buffer) -> Vec<Incoming<'b>> {
        let of_pages = buffer.page_entries().map(|(_, _, entry)| entry);
        let all = of_pages.chain(buffer.stash_entries());
        let incoming = |entry: Entry<'b>| Incoming { hash: self.hasher.hash(entry.key), entry };
        // The vector always has the same length, so that the allocator can reuse memory of that length.
        let most = self.layout.config.ram().sorted_buffers * self.layout.shape.buffer_limit();
        let mut sorted = Vec::with_capacity(most.max(buffer.len()));
        sorted.extend(all.map(incoming));
        sorted.sort_unstable_by_key(|update| update.hash.filter);
        sorted
    }

    /// Replaces the level of a partition as the flushed buffer leaves RAM. The caller holds the lock of the maps.
    fn replace_flushed(&self, index: usize, after: Arc<S::Map>) {
        let mut state = self.partitions[index].write();
        // The buffer returns to the pool once its last reference, the caller's, is dropped.
        drop(state.take_flushed());
        let (entries, before) = (after.entries(), std::mem::replace(&mut state.level, after));
        drop(state);
        self.counters.flushed_entries.fetch_add(entries, Relaxed);
        self.counters.flushed_entries.fetch_sub(before.entries(), Relaxed);
        self.moved.store(true, SeqCst);
    }

    /// Requests a checkpoint, after which replaced groups are free, if there are many; takes it if there are too many.
    fn checkpoint_if_much_replaced(&self) -> Result<()> {
        let counters = &self.layout.counters;
        let most = (counters.pages.load(Relaxed) / CHECKPOINT_SHARE).max(REPLACED_MIN);
        match counters.replaced_pages.load(Relaxed) {
            // The background has fallen behind; updates wait for it, as they wait for a rewrite.
            replaced if replaced >= 2 * most => Ok(self.volume.checkpoint()?),
            replaced if replaced >= most => self.ask_for_checkpoint(),
            _ => Ok(()),
        }
    }
}

impl<S: GroupStructure> Checkpoints for Grouped<S> {
    fn lock_maps(&self) -> Option<MutexGuard<'_, ()>> {
        is_on(Barrier::RecordsCaptureHoldsMaps).then(|| self.hold_maps())
    }

    fn capture(core: &Inner<S>, _log_now: Lsn) -> CapturedMaps {
        let layout = &core.layout;
        let captured = capture_maps(core, layout.snapshots, &layout.retired);
        layout.counters.replaced_pages.store(0, Relaxed);
        captured
    }

    fn committed(_core: &Inner<S>) {}

    /// Replaces buffers that have more pages than suit the current tables, and copies their entries.
    fn recovered(core: &Inner<S>) {
        let layout = &core.layout;
        layout.is_open.store(true, Relaxed);
        let (entries, least) = (layout.shape.layout, layout.buffer_pages());
        if least == layout.shape.buffer_pages as usize {
            return;
        }
        for partition in &core.partitions {
            let mut state = partition.write();
            // Three quarters of a page's slots: that number fits whatever the hashes are, with the stash.
            let held = state.active_mut().len().div_ceil(entries.slots() * 3 / 4);
            let pages = least.max(held);
            if pages < state.active_mut().page_count() {
                let mut small = Buffer::new(entries, core.hasher, pages);
                copy_entries(state.active_mut(), &mut small, core.hasher);
                *state.active_mut() = small;
            }
        }
        let spares = (0..core.shape.spare_buffers).map_while(|_| core.pool.take(0)).count();
        (0..spares).for_each(|_| core.pool.give(layout.new_buffer()));
    }
}

impl<S: GroupStructure> TableLayout for Grouped<S> {
    fn may_be_older(
        core: &Inner<S>,
        _index: usize,
        state: &State<S>,
        hash: KeyHash,
        key: &[u8],
    ) -> bool {
        state.in_frozen(hash, key) || core.layout.own.may_have(&state.level, hash)
    }

    fn entries_below(state: &State<S>) -> u64 {
        state.level.entries()
    }

    fn refusal(core: &Inner<S>, entries: u64, _flash_bytes: u64) -> Error {
        let most = core.layout.config.common().ram_bytes_max.map_or("its RAM".into(), bytes);
        let map = S::Map::NAME;
        let reason =
            format!("{map} would outgrow {most}, which it may take; open it with more RAM");
        Error::GrowthStopped { entries, reason }
    }
}
