//! Flushing a full buffer into its slicetable: merges, makes it durable, and then changes the map.

use nandex_store::IoChunks;
use std::sync::atomic::Ordering::Relaxed;

use nandex_device::{PAGE_BYTES, PageBuf};
use nandex_store::buffer::Buffer;
use nandex_store::entries::{Entry, EntryLayout, KeyState, SlotState};
use nandex_store::mutants::{Barrier, is_on};
use nandex_store::page::{PAGE_HEADER_BYTES, PageKind, RawPage};
use nandex_store::ring::SegmentId;
use nandex_store::shadow::{Block, DurableDraft, Rewriter};

use super::filter::{RecentMisses, SliceFilter};
use super::merge::{Incoming, Merge, Outcome};
use super::older::Base;
use super::overflow::Overflow;
use super::{Inner, Level, SlicetableJob, Slicetables, State};
use crate::write::absorb::Chosen;
use crate::write::format::PageSnapshotRef;
use crate::write::{
    Frozen, Layout, MergeLimit, MergedKeys, Space, Usage, WritePolicy, pool, snapshot_pages,
};
use crate::{Error, Result};

/// I/O chunks in memory: one is read, one merged, and two are written.
const CHUNKS: usize = 4;

/// Memory that flushes reuse.
pub(crate) struct Scratch {
    rewriter: Rewriter,
    /// The slice and the index of each entry to merge, sorted.
    order: Vec<(u32, u32)>,
}

impl Scratch {
    /// Frees the memory that only a merge of more than a buffer takes.
    pub(super) fn end_bulk(&mut self, buffer_entries: usize) {
        self.order.clear();
        self.order.shrink_to(buffer_entries);
    }
}

/// The sources of a merge: pages of runs, oldest first, then those of a buffer, then entries of other tables.
pub(super) struct Sources<'e> {
    pub(super) runs: &'e [PageBuf],
    pub(super) buffer: Option<&'e [u8]>,
    pub(super) chosen: Option<Chosen<'e>>,
    pub(super) layout: EntryLayout,
}

impl<'e> Sources<'e> {
    /// All pages, oldest first.
    fn pages(&self) -> impl Iterator<Item = &'e [u8]> + use<'e> {
        let of_runs = self.runs.iter().flat_map(|run| run.chunks_exact(PAGE_BYTES));
        of_runs.chain(self.buffer.into_iter().flat_map(|buffer| buffer.chunks_exact(PAGE_BYTES)))
    }

    /// Returns all entries with their indices, which ascend with age.
    fn entries(&self) -> impl Iterator<Item = (u32, Entry<'e>)> + use<'e> {
        let (layout, numbers) = (self.layout, self.layout.slot_numbers().end);
        let place = |number: usize| u32::try_from(number).expect("fewer than 2^32");
        let in_pages = self.pages().enumerate().flat_map(move |(page, bytes)| {
            let place = move |slot| place(page * numbers + slot);
            layout.entries(bytes).map(move |(slot, entry)| (place(slot), entry))
        });
        let first = self.first_chosen();
        let chosen = self.chosen.into_iter().flat_map(|chosen| chosen.entries());
        in_pages.chain(chosen.enumerate().map(move |(at, entry)| (place(first + at), entry)))
    }

    /// Returns whether each key occurs once, as entries of other tables are chosen to.
    fn is_unique(&self) -> bool {
        self.runs.is_empty() && self.buffer.is_none()
    }

    /// Returns the index of the first entry of other tables.
    fn first_chosen(&self) -> usize {
        let of_runs: usize = self.runs.iter().map(PageBuf::pages).sum();
        let of_buffer = self.buffer.map_or(0, |buffer| buffer.len() / PAGE_BYTES);
        (of_runs + of_buffer) * self.layout.slot_numbers().end
    }

    /// Returns the entry with an index.
    fn entry(&self, place: u32) -> Entry<'e> {
        let numbers = self.layout.slot_numbers().end;
        if let Some(chosen) = self.chosen {
            let at = (place as usize).checked_sub(self.first_chosen());
            if let Some(at) = at {
                return chosen.entry(at);
            }
        }
        let (page, slot) = (place as usize / numbers, place as usize % numbers);
        let of_runs = self.runs.len() * self.runs.first().map_or(0, PageBuf::pages);
        let bytes = match page.checked_sub(of_runs) {
            None => self.runs[page / self.runs[0].pages()].page(page % self.runs[0].pages()),
            Some(page) => {
                let buffer = self.buffer.expect("a place of a buffer has its buffer");
                &buffer[page * PAGE_BYTES..(page + 1) * PAGE_BYTES]
            }
        };
        self.layout.entry(bytes, slot).expect("a place of an entry has its entry")
    }
}

/// A merge that was written but not published.
pub(super) struct Merged<'e> {
    draft: DurableDraft,
    outcome: Outcome,
    /// The entries of buffers and runs that it took.
    taken: u64,
    /// The entries for which there was no space.
    pub(super) refused: Vec<Entry<'e>>,
    /// The entries that an older table had in RAM and that are nowhere on flash.
    overflow: Vec<Entry<'e>>,
    /// The keys that full slices have dropped, if there is a cache that may have them.
    evicted: Vec<Vec<u8>>,
    filter: Option<SliceFilter>,
    /// The partition's snapshot when the draft was synced.
    snapshot: Option<PageSnapshotRef>,
}

type FrozenBuffer = Frozen<Slicetables>;

impl Layout for Slicetables {
    type Buffer = Buffer;
    type Level = Level;
    /// The partition's false-positive reads, which determine where filters are built first.
    type Unlocked = RecentMisses;
    type Reserved = ();
    type Job = SlicetableJob;
    type Scratch = Scratch;

    fn policy(&self) -> WritePolicy {
        // A merged buffer is permanently on flash once the log says where.
        WritePolicy {
            logs_moves: true,
            forces_removals: true,
            forces_replayed: true,
            ..WritePolicy::default()
        }
    }

    fn new_buffer(&self) -> Buffer {
        self.shape.new_buffer(self.hasher)
    }

    /// Rejects another buffer for a full partition, unless a running merge may show that it is not full.
    fn reserve(core: &Inner, _index: usize, state: &State) -> Result<Space<()>> {
        let Some(limit) = core.layout.limit() else { return Ok(Space::Reserved(())) };
        let Level { entries, refused, .. } = state.level;
        limit.admit(state, entries, refused).ok_or_else(|| Error::Full {
            entries: core.counters.flushed_entries.load(Relaxed),
            flash_bytes: core.flash_bytes(),
        })
    }

    fn carry_over_kept(&self, state: &State, frozen: &FrozenBuffer) -> u64 {
        let limit = self.limit();
        limit.map_or(0, |it| it.carry_over_kept(state.level.refused, frozen.buffer.len() as u64))
    }

    /// Flushes a full buffer into its slicetable, or into the front table while merges are behind.
    fn flush(
        core: &Inner,
        index: usize,
        frozen: FrozenBuffer,
        scratch: &mut Scratch,
    ) -> Result<()> {
        let _lock = core.partitions[index].maintain();
        match core.place_in_front() {
            Some(id) => core.spill(index, frozen, id),
            None => core.merge(index, Some(frozen), scratch),
        }
    }

    fn new_scratch(core: &Inner) -> Result<Scratch> {
        // As few chunks as possible, all of about the same length.
        let block_pages = core.layout.config.block_pages();
        let io_chunk_pages = block_pages.div_ceil(block_pages.div_ceil(core.layout.io_chunk_pages));
        let chunks = IoChunks { chunk_pages: io_chunk_pages as usize, chunks: CHUNKS };
        let poison = std::sync::Arc::clone(core.volume.poison());
        let rewriter = Rewriter::new(&**core.volume.device(), poison, chunks)?;
        let buffers = chunks.ram_bytes() as u64;
        let order = Vec::with_capacity(core.layout.shape.entries_max as usize);
        core.scratches.count(buffers + (order.capacity() * size_of::<(u32, u32)>()) as u64);
        Ok(Scratch { rewriter, order })
    }

    fn run(core: &Inner, job: SlicetableJob, scratch: &mut Option<Scratch>) -> Result<()> {
        match job {
            SlicetableJob::BuildFilter(index) => core.build_filter(index),
            SlicetableJob::Drain(index) => {
                let scratch = match scratch {
                    Some(scratch) => scratch,
                    None => scratch.insert(Self::new_scratch(core)?),
                };
                let _lock = core.partitions[index].maintain();
                core.merge(index, None, scratch)
            }
        }
    }

    fn usage(core: &Inner) -> Usage {
        let Slicetables { shadow, front, filters, .. } = &core.layout;
        let levels = core.partitions.iter().map(|partition| partition.read().level.ram_bytes());
        let maps = (shadow.ram_bytes() + front.ram_bytes()) as u64;
        Usage {
            ram_bytes: maps + filters.ram_bytes() + levels.sum::<u64>(),
            flash_bytes: core.flash_bytes(),
        }
    }
}

impl Slicetables {
    /// Returns the limit of a partition, if nothing is evicted.
    fn limit(&self) -> Option<MergeLimit> {
        let limit = MergeLimit {
            entries_max: self.config.entries_max.into(),
            buffer_entries_max: self.shape.buffer_limit() as u64,
        };
        (!self.config.policy.evicts()).then_some(limit)
    }
}

impl Inner {
    fn flash_bytes(&self) -> u64 {
        let config = &self.layout.config;
        let snapshots = snapshot_pages(&self.layout.shape);
        (config.slicetable_pages() + config.front_pages() + snapshots) * PAGE_BYTES as u64
    }

    /// Writes a buffer as a run of the front table. The caller holds the maintenance lock.
    fn spill(&self, index: usize, frozen: FrozenBuffer, id: SegmentId) -> Result<()> {
        let run = match self.write_run(id, &frozen.buffer) {
            Ok(run) => run,
            Err(error) => {
                self.abandon_run(id);
                return Err(error);
            }
        };
        let entries = u64::from(run.entries);
        let is_first = {
            let _maps = self.layout.hold_maps();
            let mut state = self.partitions[index].write();
            // Its snapshot may have been written again since. With one reference less the buffer can be returned to the
            // pool.
            let left = state.take_flushed();
            self.carry_over(index, &mut state, &left, frozen.buffer.stash_entries())?;
            drop(left);
            self.complete_run(index, &run);
            state.level.runs.push_back(run);
            state.level.runs.len() == 1
        };
        self.count_flush(entries, frozen.buffer.slots());
        self.recycle(frozen.buffer);
        if is_first {
            self.work.push(pool::Job::Own(SlicetableJob::Drain(index)));
        }
        Ok(())
    }

    /// Merges the runs of a partition, and its oldest frozen buffer if there is one, into its slicetable. The
    /// caller holds the maintenance lock.
    fn merge(
        &self,
        index: usize,
        frozen: Option<FrozenBuffer>,
        scratch: &mut Scratch,
    ) -> Result<()> {
        let runs: Vec<SegmentId> =
            self.partitions[index].read().level.runs.iter().map(|run| run.id).collect();
        if runs.is_empty() && frozen.is_none() {
            return Ok(());
        }
        let mut pages = runs.iter().map(|id| self.read_run(*id)).collect::<Result<Vec<_>>>()?;
        let older = self.older_of(index);
        let _held = older.as_ref().map(|older| self.hold_older(older, index));
        // They are older than the buffer; a table that takes over has no runs.
        pages.extend(self.inherited(older.as_deref(), index)?);
        let inherited = pages.get(runs.len());
        // They move from the older table's RAM to this one's flash.
        let of_page = |page| self.entry_layout().entries(page).map(|(_, entry)| entry.key);
        self.uncache(inherited.iter().flat_map(|it| it.chunks_exact(PAGE_BYTES).flat_map(of_page)));
        let base = self.base(older.as_deref(), index);
        let buffer = frozen.as_ref().map(|frozen| frozen.buffer.bytes());
        let sources = Sources { runs: &pages, buffer, chosen: None, layout: self.entry_layout() };
        let merged = self.write_merged(index, base, &sources, scratch)?;
        let merged = self.split_refused(frozen.as_ref(), inherited, merged);
        self.settle(index, &runs, frozen.as_ref(), merged)?;
        if let Some(frozen) = frozen {
            let entries = frozen.buffer.len() - frozen.buffer.stash_len();
            self.count_flush(entries as u64, frozen.buffer.slots());
            self.recycle(frozen.buffer);
        }
        Ok(())
    }

    /// Drops keys from the cache, if there is one.
    pub(super) fn uncache<'k>(&self, keys: impl Iterator<Item = &'k [u8]>) {
        let Some(cache) = self.lookups.cache.get() else { return };
        if cache.entries.is_unused() {
            return;
        }
        let mut leaving = cache.entries.leaving();
        keys.for_each(|key| leaving.leave(self.hasher.hash(key), key, KeyState::Unknown));
    }

    /// Writes the new version of a slicetable and makes it durable.
    pub(super) fn write_merged<'e>(
        &self,
        index: usize,
        base: Base<'_>,
        sources: &Sources<'e>,
        Scratch { rewriter, order }: &mut Scratch,
    ) -> Result<Merged<'e>> {
        let (layout, logical) = (&self.layout, index as u32);
        let slice = |entry: Entry<'_>| layout.slicing.slice_of_key(self.hasher.hash(entry.key));
        order.clear();
        order.extend(sources.entries().map(|(place, entry)| (slice(entry), place)));
        // Each slice's oldest entry comes first.
        order.sort_unstable();
        let draft = self.begin_draft(&layout.shadow, logical)?;
        let evicts = layout.config.policy.evicts();
        let incoming =
            order.iter().map(|&(slice, place)| Incoming { slice, entry: sources.entry(place) });
        let mut merge = Merge::new(layout.slices, layout.slicing, evicts, incoming);
        if self.lookups.cache.get().is_some() {
            merge = merge.naming_evicted();
        }
        if sources.is_unique() {
            merge = merge.of_unique_keys();
        }
        let mut filter = self.wanted_filter(index);
        let mut change = |page: u64, body: &mut [u8]| {
            if base.is_older {
                self.keep_own(index, layout.slices, body);
            }
            let (shadow, block) = base.slicetable.unwrap_or((&layout.shadow, draft.block()));
            merge.page((page, shadow.page(block, page)), body)?;
            filter.iter_mut().for_each(|filter| self.add_page(filter, page, body));
            Ok(())
        };
        let (shadow, old) = (&layout.shadow, base.slicetable);
        let costs = rewriter.rewrite(shadow, old, &draft, PageKind::Slice, &mut change)?;
        self.count_written(costs.pages_written * PAGE_BYTES as u64);
        let evicted = merge.evicted();
        let (outcome, refused) = merge.finish();
        let snapshot = self.partitions[index].read().needed_snapshot().map(|it| it.place);
        let draft = layout.shadow.make_durable(&self.journal(&[]), draft)?;
        // Entries of other tables say nothing about the entries that wait.
        let is_own = sources.chosen.is_none();
        let taken = if is_own { order.len() - refused.len() } else { 0 } as u64;
        let overflow = Vec::new();
        Ok(Merged { draft, outcome, taken, refused, overflow, evicted, filter, snapshot })
    }

    /// Installs a durable slicetable as the partition's, at the moment at which the merged entries leave buffers and
    /// runs. The carry-over is logged before the move: a recovery that finds the move also finds the carry-over.
    pub(super) fn settle(
        &self,
        index: usize,
        runs: &[SegmentId],
        frozen: Option<&FrozenBuffer>,
        merged: Merged<'_>,
    ) -> Result<()> {
        let Merged { draft, outcome, taken, refused, overflow, evicted, filter, snapshot } = merged;
        let _maps = self.layout.hold_maps();
        let mut state = self.partitions[index].write();
        if state.needed_snapshot().map(|it| it.place) != snapshot
            && is_on(Barrier::MoveSyncsItsSnapshot)
        {
            // The move will name a snapshot that was written after the sync, while runs were merged.
            self.volume.poison().guard(self.volume.device().sync())?;
        }
        assert!(refused.is_empty() || runs.is_empty(), "a table that refuses has no front");
        self.uncache(evicted.iter().map(|key| &key[..]));
        // Its snapshot may have been written again since the merge began.
        let frozen = frozen.map(|_| state.take_flushed());
        state.level.runs.drain(..runs.len());
        let before = std::mem::replace(&mut state.level.entries, outcome.entries);
        self.counters.flushed_entries.fetch_add(outcome.entries, Relaxed);
        self.counters.flushed_entries.fetch_sub(before, Relaxed);
        let slots = frozen.as_ref().map_or(0, |it| it.buffer.slots());
        let Outcome { before, entries, evicted: dropped } = outcome;
        self.note_merged(MergedKeys { before, after: entries + dropped, entries: taken, slots });
        state.level.refused = refused.len() as u64;
        state.level.overflow = Overflow::new(overflow.into_iter());
        let filter = filter.filter(|_| self.layout.filters.wants(index));
        self.swap_filter(&mut state.level, filter);
        if is_on(Barrier::MergeCarriesOver) {
            self.leave_behind(index, &mut state, frozen.as_ref(), &refused)?;
        }
        self.publish(index, &state, runs, draft, outcome)?;
        self.counters.evicted.fetch_add(outcome.evicted, Relaxed);
        Ok(())
    }

    /// Separates refused entries of this buffer from those that an older table had in RAM. If updates are not logged, a
    /// refused entry goes back to RAM alone, so the inherited entry of its key stays too: it may be durable.
    fn split_refused<'e>(
        &self,
        frozen: Option<&FrozenBuffer>,
        inherited: Option<&'e PageBuf>,
        merged: Merged<'e>,
    ) -> Merged<'e> {
        let is_in = |key, buffer: &Buffer| buffer.get(self.hasher.hash(key), key).is_known();
        let is_own = |it: &Entry<'e>| frozen.is_some_and(|own| is_in(it.key, &own.buffer));
        let (refused, mut overflow): (Vec<_>, Vec<_>) =
            merged.refused.into_iter().partition(is_own);
        if !self.logs() && is_on(Barrier::RefusedKeepsInherited) {
            let sources = Sources {
                runs: inherited.map(std::slice::from_ref).unwrap_or_default(),
                buffer: None,
                chosen: None,
                layout: self.entry_layout(),
            };
            let newest =
                |key| sources.entries().map(|(_, it)| it).filter(|it| it.key == key).last();
            let kept = refused.iter().filter_map(|it| newest(it.key));
            overflow.extend(kept.filter(|it| it.state == SlotState::Live));
        }
        Merged { refused, overflow, ..merged }
    }

    /// Puts back the entries that a merge of this buffer did not take.
    fn leave_behind(
        &self,
        index: usize,
        state: &mut State,
        frozen: Option<&FrozenBuffer>,
        refused: &[Entry<'_>],
    ) -> Result<()> {
        let Some(frozen) = frozen else { return Ok(()) };
        // The stash has the newer version of a key.
        let carry_over = frozen.buffer.stash_entries().chain(refused.iter().copied());
        self.carry_over(index, state, frozen, carry_over)
    }

    fn publish(
        &self,
        index: usize,
        state: &State,
        runs: &[SegmentId],
        draft: DurableDraft,
        outcome: Outcome,
    ) -> Result<()> {
        let entries = u32::try_from(outcome.entries).expect("a configuration says at most 2^32");
        let prefix = self.move_prefix(index, state);
        let merged_runs = runs.last().map_or(0, |id| id.generation());
        let journal = self.journal(&prefix);
        let share = self.counters.new_keys.get().to_bytes();
        let suffix = [&merged_runs.to_le_bytes()[..], &share].concat();
        let shadow = &self.layout.shadow;
        if state.level.overflow.is_empty() {
            shadow.publish_durable(&journal, draft, entries, &suffix)?;
        } else {
            // Only a checkpoint has space for overflow.
            shadow.publish_with_checkpoint(draft, entries);
        }
        self.layout.front.merged(runs.iter().copied());
        Ok(())
    }

    /// Passes each verified page of a slicetable to `visit`, in I/O chunks.
    pub(super) fn each_page(
        &self,
        block: Block,
        kind: PageKind,
        visit: &mut dyn FnMut(u64, &[u8]) -> Result<()>,
    ) -> Result<()> {
        let pages = u64::from(self.layout.config.block_pages());
        let io_chunk_pages = u64::from(self.layout.io_chunk_pages);
        for first in (0..pages).step_by(self.layout.io_chunk_pages as usize) {
            let count = usize::try_from(io_chunk_pages.min(pages - first)).expect("fits in memory");
            let place = self.layout.shadow.page(block, first);
            let buf = self.volume.device().read(place, PageBuf::zeroed(count))?;
            for (index, page) in (first..).zip(0..buf.pages()) {
                let label = self.layout.shadow.label(block, index, kind);
                RawPage::new(buf.page(page)).check(label)?;
                visit(index, &buf.page(page)[PAGE_HEADER_BYTES..])?;
            }
        }
        Ok(())
    }
}
