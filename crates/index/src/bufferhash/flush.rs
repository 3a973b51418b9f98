//! Flushing a full buffer into an incarnation: builds the filter, writes the segment, and makes it live.

use std::sync::Arc;
use std::sync::atomic::Ordering::{Acquire, Relaxed};
use std::time::Duration;

use nandex_device::{Completion, Op, OpKind, PAGE_BYTES, PageBuf, Queue};
use nandex_store::buffer::Buffer;
use nandex_store::entries::{Entry, SlotState};
use nandex_store::page::{PageKind, seal};
use nandex_store::ring::{SegmentId, SegmentTag};

use super::filter::{BuildScratch, Columns, FilterKind};
use super::format::encode_filter;
use super::table::{Frozen, Incarnation, Job, Level, State};
use super::{Incarnations, Inner, Policy};
use crate::write::{
    EntryUpdate, Layout, LogCodec, Space, Usage, WritePolicy, pool, snapshot_pages,
};
use crate::{Error, Result};

/// The longest wait for a checkpoint before the ring is checked again.
pub(super) const SPACE_WAIT: Duration = Duration::from_millis(20);
/// The maximum number of segments that are written at once with one scratch memory.
pub(super) const WRITES_MAX: usize = 3;
/// The maximum number of pages of a buffer that stays in RAM: 16 MiB.
const KEPT_PAGES_MAX: usize = 1 << 12;

/// Memory that flushes reuse.
pub(crate) struct Scratch {
    queue: Box<dyn Queue>,
    segment: Option<PageBuf>,
    build: BuildScratch,
    hashes: Vec<u64>,
    pub(super) bits: Vec<u64>,
    pub(super) bumped: Vec<usize>,
}

/// The page and slot of an entry whose key its filter could not take.
pub(super) type Place = (usize, usize);

impl Layout for Incarnations {
    type Buffer = Buffer;
    type Level = Level;
    type Unlocked = ();
    type Reserved = Option<SegmentId>;
    type Job = Job;
    type Scratch = Scratch;

    fn policy(&self) -> WritePolicy {
        let is_partial = self.config.policy.is_partial();
        WritePolicy {
            // A partial discard logs the entries that it puts back.
            logs_always: is_partial,
            // Evictions that put entries back have one spare buffer for themselves. Otherwise, with every buffer
            // waiting for a segment, none could be freed without dropping retained entries.
            spares_kept: usize::from(is_partial),
            forces_replayed: self.refuses(),
            forces_removals: self.config.cleans(),
            own_jobs: usize::from(self.config.cleans()),
            ..WritePolicy::default()
        }
    }

    fn new_buffer(&self) -> Buffer {
        self.shape.new_buffer(self.hasher)
    }

    /// Twice as large, so that a long log needs few buffers.
    fn new_buffer_behind(&self, full: &Buffer) -> Buffer {
        let pages = (2 * full.page_count()).min(KEPT_PAGES_MAX);
        Buffer::new(self.shape.layout, self.hasher, pages.max(full.page_count()))
    }

    fn new_retired_buffer(&self) -> Buffer {
        self.shape.new_small_buffer(self.hasher, self.config.carry_over_usual())
    }

    fn retire(core: &Inner) {
        let jobs = (0..core.partitions.len()).map(|index| pool::Job::Own(Job::Retire(index)));
        jobs.for_each(|job| core.work.push(job));
    }

    /// Without evictions, a buffer is frozen only when its segment is certain.
    fn reserve(core: &Inner, index: usize, state: &State) -> Result<Space<Option<SegmentId>>> {
        if core.evicts() {
            return Ok(Space::Reserved(None));
        }
        if core.layout.config.cleans() {
            return core.reserve_cleaned(index, state);
        }
        let waiting = state.frozen.len();
        // After a crash, segments that were being written are unused, and recovery writes them again elsewhere. The
        // reserve is for that. Recovery also fills buffers in another order, and may need one more.
        let is_ready = core.ready.load(Acquire);
        let reserve = if is_ready { core.layout.rings.reserve_segments() } else { 0 };
        let ring = core.layout.rings.of(index);
        // The last buffer of all may take it: buffers that a recovery fills after it stay in RAM.
        let kept = usize::from(is_ready && !core.pool.is_retired());
        let most = core.layout.config.incarnations_max as usize - kept;
        let space = state.level.window.len() + waiting < most && ring.free_segments() > reserve;
        let segment = if space { ring.reserve() } else { None };
        let full = || Error::Full {
            entries: core.counters.flushed_entries.load(Relaxed),
            flash_bytes: core.flash_bytes(),
        };
        segment.map(|id| Space::Reserved(Some(id))).ok_or_else(full)
    }

    /// A table that rejects inserts must not flush buffers early: it may have no segment for them.
    fn carry_over_kept(&self, _state: &State, frozen: &Frozen) -> u64 {
        if self.refuses() { frozen.buffer.stash_len() as u64 + self.config.bumped_max() } else { 0 }
    }

    fn make_space(core: &Inner, index: usize) -> Result<bool> {
        core.make_space(index)
    }

    fn flush(core: &Inner, index: usize, frozen: Frozen, scratch: &mut Scratch) -> Result<()> {
        let left_out = core.build_filter(&frozen.buffer, scratch);
        let id = match frozen.reserved {
            Some(id) => id,
            None => core.reserve_segment(index)?,
        };
        if core.layout.config.counts_keys() {
            // Without filters its keys count as new at the same rate as earlier ones, which is also the case if filters
            // are damaged.
            let _ = core.load_filters(index);
        }
        let kept = frozen.buffer.len() - frozen.buffer.stash_len() - left_out.len();
        let incarnation = core.incarnation((index, id), frozen.buffer.bytes(), kept);
        let _lock = core.partitions[index].maintain();
        core.write_incarnation((index, id), &frozen.buffer, &left_out, scratch)?;
        // Otherwise the buffer would have another reference, and could not be returned to the pool.
        drop(frozen);
        let settled = core.settle(index, incarnation, &left_out);
        if core.layout.config.cleans() {
            core.layout.cleaning.landed();
        }
        settled
    }

    fn new_scratch(core: &Inner) -> Result<Scratch> {
        let segment_bytes = core.layout.config.segment_pages() as usize * PAGE_BYTES;
        let per_key = size_of::<u64>() + 40;
        let keys = core.layout.config.filter.entries_max() as usize;
        core.scratches.count((segment_bytes + keys * per_key) as u64);
        Ok(Scratch {
            queue: core.layout.rings.device().queue(WRITES_MAX)?,
            segment: Some(PageBuf::zeroed(core.layout.config.segment_pages() as usize)),
            build: BuildScratch::new(),
            hashes: Vec::new(),
            bits: Vec::new(),
            bumped: Vec::new(),
        })
    }

    fn run(core: &Inner, job: Job, scratch: &mut Option<Scratch>) -> Result<()> {
        match job {
            Job::Reinsert { table, key, value, source, newest_sequence } => {
                core.reinsert(table, &key, &value, (source, newest_sequence))
            }
            Job::LoadFilters(index) => core.load_filters(index),
            Job::Clean(index) => {
                let scratch = match scratch {
                    Some(scratch) => scratch,
                    None => scratch.insert(Self::new_scratch(core)?),
                };
                core.clean(index, scratch)
            }
            Job::Retire(index) => core.retire_buffer(index),
        }
    }

    fn usage(core: &Inner) -> Usage {
        Usage {
            ram_bytes: core.filter_bytes() + core.layout.rings.ram_bytes() as u64,
            flash_bytes: core.flash_bytes(),
        }
    }
}

impl Incarnations {
    /// Returns whether a full table rejects entries.
    fn refuses(&self) -> bool {
        self.config.policy == Policy::Reject
    }
}

impl Inner {
    /// Returns whether the policy may drop entries by itself.
    pub(super) fn evicts(&self) -> bool {
        !self.layout.refuses()
    }

    pub(super) fn flash_bytes(&self) -> u64 {
        let pages = self.layout.config.ring_pages() + snapshot_pages(&self.layout.shape);
        pages * PAGE_BYTES as u64
    }

    /// Builds the filter of a buffer's pages. Returns the entries that it could not take.
    fn build_filter(&self, buffer: &Buffer, scratch: &mut Scratch) -> Vec<Place> {
        self.build_filter_of(buffer.page_entries().map(|(_, _, entry)| entry), scratch);
        if scratch.bumped.is_empty() {
            return Vec::new();
        }
        let mut wanted = scratch.bumped.iter().peekable();
        let places = buffer.page_entries().enumerate().filter_map(|(number, (page, slot, _))| {
            wanted.next_if(|bumped| **bumped == number).map(|_| (page, slot))
        });
        places.collect()
    }

    /// Builds the filter of entries in the scratch memory, and leaves the numbers of those that it could not take
    /// there.
    pub(super) fn build_filter_of<'e>(
        &self,
        entries: impl Iterator<Item = Entry<'e>>,
        scratch: &mut Scratch,
    ) {
        let Scratch { build, hashes, bits, bumped, .. } = scratch;
        hashes.clear();
        entries.for_each(|entry| hashes.push(self.hasher.hash(entry.key).filter));
        self.layout.filter.build_into(build, hashes, bits, bumped);
    }

    /// Takes the next segment. Waits for a checkpoint if there are no free segments ahead of the head.
    fn reserve_segment(&self, index: usize) -> Result<SegmentId> {
        let ring = self.layout.rings.of(index);
        loop {
            self.volume.poison().check()?;
            if ring.writable_segments() <= self.layout.rings.reserve_segments() / 2 {
                self.ask_for_checkpoint()?;
            }
            if let Some(id) = ring.reserve() {
                return Ok(id);
            }
            ring.wait_for_space(1, SPACE_WAIT);
        }
    }

    /// Ensures that there is a column for the next incarnation. If a super table has its maximum, although the ring has
    /// space, its oldest incarnation is dropped.
    pub(super) fn ensure_column(&self, index: usize) {
        let table = &self.partitions[index];
        let mut state = table.write();
        if let Some(oldest) = state.level.oldest().filter(|_| state.level.window.is_full()) {
            self.layout.rings.of(index).complete(oldest.id, SegmentTag::default());
            self.drop_oldest(index, &mut state);
            let dropped = u64::from(oldest.entries);
            self.counters.evicted.fetch_add(dropped, Relaxed);
            if self.layout.config.policy.is_partial() {
                self.counters.forced_evictions.fetch_add(dropped, Relaxed);
            }
        }
        drop(state);
        self.widen_filters(index);
    }

    /// Removes the oldest incarnation of a super table; the caller holds its maintenance lock.
    pub(super) fn drop_oldest(&self, index: usize, state: &mut State) {
        let Some(oldest) = state.level.oldest() else { return };
        self.drop_cached(index, &state.level);
        if state.level.drop_oldest() {
            self.counters.flushed_entries.fetch_sub(u64::from(oldest.entries), Relaxed);
        }
    }

    /// Drops the oldest incarnation's entries from the cache, found by its filter.
    fn drop_cached(&self, index: usize, level: &Level) {
        let Some(cache) = self.lookups.cache.get() else { return };
        let mut oldest: Columns = [0; 4];
        level.window.oldest().into_iter().for_each(|it| oldest[it / 64] |= 1 << (it % 64));
        let filter = &self.layout.filter;
        cache.entries.drop_of((index, self.partitions.len()), |key| {
            let hash = self.hasher.hash(key);
            self.partition_of(hash) == index
                && filter.candidates(&level.slices, hash.filter, &oldest) != [0; 4]
        });
    }

    /// Writes the next column, which is not live; the caller holds the maintenance lock. Bloom columns are cleared
    /// together (paper, section 5.1.3).
    pub(super) fn write_column(&self, index: usize, bits: &[u64]) {
        let table = &self.partitions[index];
        let (column, slices) = {
            let level = &table.read().level;
            (level.window.next_column(), Arc::clone(&level.slices))
        };
        match self.layout.config.filter.kind() {
            FilterKind::Bloom => {
                let unclear = table.write().level.window.take_unclear();
                unclear.iter().for_each(|columns| slices.reset_columns(columns));
                slices.or_column(column, bits);
            }
            FilterKind::Fuse => slices.write_column(column, bits),
        }
    }

    /// Widens the filters of a super table if all columns are live; the caller holds the maintenance lock. Lookups
    /// continue while they are copied.
    fn widen_filters(&self, index: usize) {
        let table = &self.partitions[index];
        let (window, slices) = {
            let level = &table.read().level;
            (level.window.clone(), Arc::clone(&level.slices))
        };
        if table.read().level.released.is_some() {
            table.write().level.take_back(&self.layout.config.filter);
        } else if window.is_circle_full() {
            let wider = Arc::new(Level::wider(&window, &slices));
            table.write().level.put_wider(wider);
        }
    }

    /// Writes a buffer's pages to a segment, and its filter, which [`build_filter`](Self::build_filter) has left in the
    /// scratch memory, also to the next column. The caller holds the maintenance lock.
    fn write_incarnation(
        &self,
        (index, id): (usize, SegmentId),
        buffer: &Buffer,
        left_out: &[Place],
        scratch: &mut Scratch,
    ) -> Result<()> {
        self.ensure_column(index);
        self.start_segment((index, id), buffer, left_out, scratch)?;
        // The filter is installed while the segment is being written.
        self.write_column(index, &scratch.bits);
        self.finish_segment(scratch)
    }

    fn start_segment(
        &self,
        (table, id): (usize, SegmentId),
        buffer: &Buffer,
        left_out: &[Place],
        scratch: &mut Scratch,
    ) -> Result<()> {
        let pages = self.layout.config.segment_pages() as usize;
        let mut buf = scratch.segment.take().unwrap_or_else(|| PageBuf::zeroed(pages));
        buf[..buffer.bytes().len()].copy_from_slice(buffer.bytes());
        for &(page, slot) in left_out {
            self.entry_layout().clear(buf.page_mut(page), slot);
        }
        self.push_segment((table, id), 0, buf, scratch)
    }

    /// Puts the filter in the scratch memory after the data pages of a segment, seals all pages, and starts the write.
    /// [`await_segments`](Self::await_segments) waits for it.
    pub(super) fn push_segment(
        &self,
        (table, id): (usize, SegmentId),
        token: u64,
        mut buf: PageBuf,
        scratch: &mut Scratch,
    ) -> Result<()> {
        let data_pages = self.layout.config.buffer_pages as usize;
        let filter = &mut buf[data_pages * PAGE_BYTES..];
        filter.fill(0);
        encode_filter(filter, &scratch.bits);
        let ring = self.layout.rings.of(table);
        for index in 0..buf.pages() {
            let kind = if index < data_pages { PageKind::Data } else { PageKind::Filter };
            seal(buf.page_mut(index), ring.label(id, index as u64, kind));
        }
        self.count_written(buf.len() as u64);
        self.volume.poison().guard(self.layout.rings.prepare(table, id))?;
        let op = Op { token, kind: OpKind::Write, page: ring.page(id, 0), buf };
        Ok(self.volume.poison().guard(scratch.queue.push(op))?)
    }

    /// Waits until at least one of the segments in flight was written, or has failed.
    pub(super) fn await_segments(
        &self,
        scratch: &mut Scratch,
        done: &mut Vec<Completion>,
    ) -> Result<()> {
        Ok(self.volume.poison().guard(scratch.queue.wait(1, done))?)
    }

    fn finish_segment(&self, scratch: &mut Scratch) -> Result<()> {
        let mut done = Vec::with_capacity(1);
        self.await_segments(scratch, &mut done)?;
        for completion in done {
            scratch.segment = Some(completion.buf);
            self.volume.poison().guard(completion.result)?;
        }
        Ok(self.volume.poison().guard(self.layout.rings.sync())?)
    }

    /// Makes a written segment the newest incarnation, and carries the entries that it lacks over to the active buffer.
    /// The caller holds the maintenance lock.
    fn settle(&self, index: usize, incarnation: Incarnation, left_out: &[Place]) -> Result<()> {
        let mut state = self.partitions[index].write();
        let frozen = state.take_flushed();
        let left = self.carried_over(&frozen.buffer, left_out);
        let put_back = self.carry_over(index, &mut state, &frozen, left);
        self.push_incarnation(index, &mut state, incarnation);
        drop(state);
        let users = frozen.user_updates.min(frozen.buffer.len() as u64) * 1000;
        let slots = frozen.buffer.slots();
        self.credit_flush(slots, incarnation.entries, users / (frozen.buffer.len() as u64).max(1));
        self.recycle(frozen.buffer);
        put_back
    }

    /// Returns the entries of a buffer that its incarnation lacks.
    fn carried_over<'b>(
        &self,
        buffer: &'b Buffer,
        left_out: &[Place],
    ) -> impl Iterator<Item = Entry<'b>> {
        let (bytes, layout) = (buffer.bytes(), self.entry_layout());
        let page = move |page: usize| &bytes[page * PAGE_BYTES..(page + 1) * PAGE_BYTES];
        let bumped = left_out.iter().filter_map(move |&(at, slot)| layout.entry(page(at), slot));
        bumped.chain(buffer.stash_entries())
    }

    /// Makes a written segment the newest incarnation.
    pub(super) fn push_incarnation(
        &self,
        index: usize,
        state: &mut State,
        incarnation: Incarnation,
    ) {
        state.level.came(incarnation);
        self.layout.cleaning.came(&incarnation);
        self.layout.rings.of(index).complete(incarnation.id, incarnation.tag(index));
    }

    /// Counts a written buffer of `slots` slots, and adds to the credit of partial discards, by the share of the user's
    /// own entries in thousandths.
    pub(super) fn credit_flush(&self, slots: usize, kept: u32, share: u64) {
        let counters = &self.counters;
        self.count_flush(kept.into(), slots);
        counters.flushed_entries.fetch_add(kept.into(), Relaxed);
        let limit = u64::from(self.layout.config.cascade_limit);
        let most = limit * 1000 * u64::from(self.layout.config.super_tables);
        let add = |credit: u64| Some((credit + limit * share).min(most));
        // The closure always returns a value, so the update cannot fail.
        let _ = self.layout.cascade_credit.fetch_update(Relaxed, Relaxed, add);
    }

    /// Puts an entry found on flash back into the buffer, unless something newer may exist. Updates since the lookup
    /// began are in a buffer, or in a newer incarnation, or on their way past the buffers. A removal leaves no trace
    /// only if the incarnation of the entry is gone.
    fn reinsert(
        &self,
        index: usize,
        key: &[u8],
        value: &[u8],
        (source, newest_sequence): (SegmentId, u64),
    ) -> Result<()> {
        let hash = self.hasher.hash(key);
        let entry = Entry { state: SlotState::Live, key, value };
        let update = EntryUpdate { hash, entry };
        // The space that waiting updates have reserved is not used: the next use of the key tries again.
        let Some(_reservation) =
            self.volume.log().try_reserve(self.codec.logged_bytes(&[update]))?
        else {
            return Ok(());
        };
        let mut state = self.partitions[index].write();
        let newer = state.level.absorbs || state.buffered(hash, key)?.is_known();
        if newer || state.level.newest_sequence() != newest_sequence || !state.level.holds(source) {
            return Ok(());
        }
        if state.active_mut().put(hash, entry).is_err() {
            // The buffer is full and cannot be flushed now: the next use of the key tries again.
            let frozen = state.frozen.is_empty()
                && self.try_freeze(index, &mut state, self.policy.spares_kept)?;
            if !frozen || state.active_mut().put(hash, entry).is_err() {
                return Ok(());
            }
        }
        state.updates += 1;
        self.counters.retained.fetch_add(1, Relaxed);
        match self.log_entry(index, &mut state, update) {
            // Without its log entry the copy is no better than its original on flash.
            Err(crate::Error::Store(nandex_store::Error::LogFull { .. })) => Ok(()),
            other => other,
        }
    }
}
