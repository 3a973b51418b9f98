//! Flushing a full buffer into the slicetables of its partition: merges, makes them durable, and then changes the map.

use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

use nandex_device::PAGE_BYTES;
use nandex_store::IoChunks;
use nandex_store::mutants::{Barrier, is_on};
use nandex_store::page::PageKind;
use nandex_store::shadow::{DurableDraft, Rewriter};

use super::buffer::BucketBuffer;
use super::config::merge_bytes;
use super::filter::BucketFilter;
use super::keys::Pair;
use super::merge::{IncomingPair, MergeOutcome, PairMerge, Rules};
use super::{GroupLevel, Inner, SlicetableGroups, State};
use crate::write::format::PageSnapshotRef;
use crate::write::{Frozen, Layout, MergeLimit, Space, Usage, WriteBuffer, WritePolicy};
use crate::{Error, Result};

/// I/O chunks in memory: one is read, one merged, and two are written.
const CHUNKS: usize = 4;

/// Background work: read the slicetables of this partition into the filter.
#[derive(Debug)]
pub(crate) struct FillFilter(pub usize);

/// Memory that flushes reuse.
pub(crate) struct MergeScratch {
    rewriter: Rewriter,
    /// The page and the index in the buffer of each entry to merge, sorted.
    order: Vec<(u32, u32)>,
}

/// A merge that was written but not published.
struct MergedGroup {
    draft: DurableDraft,
    outcome: MergeOutcome,
    /// The entries for which there was no space.
    refused: Vec<Pair>,
    /// The partition's snapshot when the draft was synced.
    snapshot: Option<PageSnapshotRef>,
}

type FrozenBuffer = Frozen<SlicetableGroups>;

impl Layout for SlicetableGroups {
    type Buffer = BucketBuffer;
    type Level = GroupLevel;
    type Unlocked = ();
    type Reserved = ();
    type Job = FillFilter;
    type Scratch = MergeScratch;

    fn policy(&self) -> WritePolicy {
        WritePolicy {
            // A document is in all tables or in none, even if updates need not be durable.
            logs_always: is_on(Barrier::DocumentsAreLogged),
            // A merged buffer is permanently on flash once the log says where.
            logs_moves: true,
            forces_removals: true,
            forces_replayed: true,
            ..WritePolicy::default()
        }
    }

    fn new_buffer(&self) -> BucketBuffer {
        BucketBuffer::new(self.config.buffer_entries, self.config.bucket_ids_max)
    }

    /// Rejects another buffer for a full partition, unless a running merge may show that it is not full.
    fn reserve(core: &Inner, _index: usize, state: &State) -> Result<Space<()>> {
        let Some(limit) = core.layout.limit() else { return Ok(Space::Reserved(())) };
        let GroupLevel { entries, refused, .. } = state.level;
        limit.admit(state, entries, refused).ok_or_else(|| Error::Full {
            entries: core.counters.flushed_entries.load(Relaxed),
            flash_bytes: core.flash_bytes(),
        })
    }

    fn carry_over_kept(&self, state: &State, frozen: &FrozenBuffer) -> u64 {
        let limit = self.limit();
        limit.map_or(0, |it| it.carry_over_kept(state.level.refused, frozen.buffer.entries()))
    }

    fn flush(
        core: &Inner,
        index: usize,
        frozen: FrozenBuffer,
        scratch: &mut MergeScratch,
    ) -> Result<()> {
        let _lock = core.partitions[index].maintain();
        let merged = core.write_merged(index, &frozen.buffer, scratch)?;
        core.settle(index, merged)?;
        core.count_flush(frozen.buffer.entries(), frozen.buffer.slots());
        core.recycle(frozen.buffer);
        Ok(())
    }

    fn new_scratch(core: &Inner) -> Result<MergeScratch> {
        let Self { config, io_chunk_pages, .. } = &core.layout;
        // As few chunks as possible, all of about the same length.
        let block_pages = config.block_pages();
        let io_chunk_pages = block_pages.div_ceil(block_pages.div_ceil(*io_chunk_pages));
        let chunks = IoChunks { chunk_pages: io_chunk_pages as usize, chunks: CHUNKS };
        let poison = Arc::clone(core.volume.poison());
        let rewriter = Rewriter::new(&**core.volume.device(), poison, chunks)?;
        let order = Vec::with_capacity(config.buffer_entries as usize);
        core.scratches.count(merge_bytes(config, io_chunk_pages));
        Ok(MergeScratch { rewriter, order })
    }

    fn run(
        core: &Inner,
        FillFilter(partition): FillFilter,
        _scratch: &mut Option<MergeScratch>,
    ) -> Result<()> {
        // A failed read leaves the partition as it is: its lookups continue to read, and report the failure.
        let _ = core.fill_filter(partition);
        Ok(())
    }

    fn usage(core: &Inner) -> Usage {
        let filter = core.layout.filter.as_ref().map_or(0, BucketFilter::ram_bytes);
        let ram_bytes = core.layout.shadow.ram_bytes() as u64 + filter;
        Usage { ram_bytes, flash_bytes: core.flash_bytes() }
    }
}

impl SlicetableGroups {
    /// Returns the limit of a partition, if nothing is evicted.
    fn limit(&self) -> Option<MergeLimit> {
        let limit = MergeLimit {
            entries_max: self.config.entries_max.into(),
            buffer_entries_max: self.config.buffer_entries.into(),
        };
        (!self.config.policy.evicts()).then_some(limit)
    }
}

impl Inner {
    pub(super) fn flash_bytes(&self) -> u64 {
        self.layout.config.pages() * PAGE_BYTES as u64
    }

    /// Writes the new version of a partition's slicetables and makes it durable. The caller holds the maintenance lock.
    fn write_merged(
        &self,
        index: usize,
        buffer: &BucketBuffer,
        MergeScratch { rewriter, order }: &mut MergeScratch,
    ) -> Result<MergedGroup> {
        let layout = &self.layout;
        let logical = u32::try_from(index).expect("at most 65,536 partitions");
        self.order(buffer, order);
        let draft = self.begin_draft(&layout.shadow, logical)?;
        let incoming = order.iter().map(|&(page, place)| {
            let (pair, removes) = buffer.get(place as usize);
            IncomingPair { page: page.into(), pair, removes }
        });
        let rules = Rules {
            bucket_ids_max: layout.config.bucket_ids_max as usize,
            evicts: layout.config.policy.evicts(),
        };
        let mut merge = PairMerge::new(layout.slices, layout.placement, rules, incoming);
        let block = layout.shadow.block(logical);
        let named = block.unwrap_or(draft.block());
        let mut change =
            |page: u64, body: &mut [u8]| merge.page((page, layout.shadow.page(named, page)), body);
        let old = block.map(|block| (&layout.shadow, block));
        let costs = rewriter.rewrite(&layout.shadow, old, &draft, PageKind::Slice, &mut change)?;
        self.count_written(costs.pages_written * PAGE_BYTES as u64);
        let (outcome, refused) = merge.finish();
        let snapshot = self.partitions[index].read().needed_snapshot().map(|it| it.place);
        let draft = layout.shadow.make_durable(&self.journal(&[]), draft)?;
        Ok(MergedGroup { draft, outcome, refused, snapshot })
    }

    /// Sorts the entries of a buffer by their pages, and those of a page by age. Afterwards the filter has their
    /// buckets.
    fn order(&self, buffer: &BucketBuffer, order: &mut Vec<(u32, u32)>) {
        let layout = &self.layout;
        order.clear();
        order.extend((0..).zip(buffer.pairs()).map(|(place, (pair, _))| {
            let hash = layout.placing.hash(pair.key);
            if let Some(filter) = &layout.filter {
                filter.insert(pair.table, hash);
            }
            let slice = layout.placing.slice_of(hash);
            let page = layout.placement.page(pair.table, slice);
            (u32::try_from(page).expect("a configuration says at most 2^32 pages"), place)
        }));
        order.sort_unstable();
    }

    /// Installs durable slicetables as the partition's, at the moment at which the merged entries leave its buffers.
    fn settle(&self, index: usize, merged: MergedGroup) -> Result<()> {
        let MergedGroup { draft, outcome, refused, snapshot } = merged;
        let mut state = self.partitions[index].write();
        if state.needed_snapshot().map(|it| it.place) != snapshot
            && is_on(Barrier::DocumentsSyncTheirSnapshot)
        {
            // The move will name a snapshot that was written after the sync: no snapshot is begun while a buffer is
            // being merged, but one that was begun before may end meanwhile, and the refused entries need it.
            self.volume.poison().guard(self.volume.device().sync())?;
        }
        // Its snapshot may have been written again since the merge began.
        let frozen = state.take_flushed();
        let before = std::mem::replace(&mut state.level.entries, outcome.entries);
        self.counters.flushed_entries.fetch_add(outcome.entries, Relaxed);
        self.counters.flushed_entries.fetch_sub(before, Relaxed);
        state.level.refused = refused.len() as u64;
        self.limit_active(&mut state);
        if is_on(Barrier::DocumentsCarryOver) {
            self.leave_behind(&mut state, &frozen, &refused);
        }
        self.publish(index, &state, draft, outcome)?;
        self.counters.evicted.fetch_add(outcome.evicted, Relaxed);
        self.count_dropped(outcome.dropped);
        Ok(())
    }

    /// Puts back the entries that a merge of this buffer refused, unless RAM has a newer version of them. They keep
    /// their place in the log, and their snapshot, until the next snapshot has them. A replay then repeats everything
    /// that followed, in order, and what is already on flash stays as it is.
    fn leave_behind(&self, state: &mut State, frozen: &FrozenBuffer, refused: &[Pair]) {
        let mut kept = false;
        for &pair in refused {
            let hash = self.layout.placing.hash(pair.key);
            let is_newer = state.frozen.iter().any(|it| it.buffer.version(pair, hash).is_some());
            kept |= !is_newer && state.active_mut().put_back(pair, hash);
        }
        if kept {
            state.updates += 1;
            state.since = state.tail().into_iter().chain(frozen.since).min();
            state.snapshot = state.snapshot.take().or_else(|| frozen.snapshot.clone());
        }
    }

    fn publish(
        &self,
        index: usize,
        state: &State,
        draft: DurableDraft,
        outcome: MergeOutcome,
    ) -> Result<()> {
        let entries = u32::try_from(outcome.entries).expect("a configuration says at most 2^32");
        let prefix = self.move_prefix(index, state);
        self.layout.shadow.publish_durable(&self.journal(&prefix), draft, entries, &[])?;
        Ok(())
    }
}
