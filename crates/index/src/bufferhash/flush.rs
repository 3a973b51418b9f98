//! From a full buffer to an incarnation: build the filter, write the segment, make it live.

use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

use nandex_device::{Op, OpKind, PAGE_BYTES, PageBuf, Queue};
use nandex_store::buffer::Buffer;
use nandex_store::entries::Entry;
use nandex_store::page::{PageKind, seal};
use nandex_store::ring::{SegmentId, SegmentTag};

use super::Inner;
use super::filter::{BuildScratch, FilterKind};
use super::format::encode_filter;
use super::table::{Frozen, Incarnation, Job, State};
use crate::Result;
use crate::intake::Room;

/// What a background thread needs again and again.
pub(crate) struct Scratch {
    queue: Box<dyn Queue>,
    segment: Option<PageBuf>,
    build: BuildScratch,
    hashes: Vec<u64>,
    bits: Vec<u64>,
    bumped: Vec<usize>,
}

/// The page and slot of an entry whose key its filter could not take.
type Place = (usize, usize);

impl Inner {
    pub(super) fn run(&self, job: Job) -> Result<()> {
        match job {
            Job::Reinsert { table, key, value, source, newest_sequence } => {
                self.reinsert(table, &key, &value, (source, newest_sequence))
            }
            Job::LoadFilters(index) => self.load_filters(index),
        }
    }

    pub(super) fn new_scratch(&self) -> Result<Scratch> {
        let segment_bytes = self.room.config.segment_pages() as usize * PAGE_BYTES;
        let per_key = size_of::<u64>() + 40;
        let keys = self.room.config.filter.entries_max() as usize;
        self.counters.scratch_bytes.fetch_add((segment_bytes + keys * per_key) as u64, Relaxed);
        Ok(Scratch {
            queue: self.room.rings.device().queue(1)?,
            segment: Some(PageBuf::zeroed(self.room.config.segment_pages() as usize)),
            build: BuildScratch::new(),
            hashes: Vec::new(),
            bits: Vec::new(),
            bumped: Vec::new(),
        })
    }

    /// Writes a frozen buffer as an incarnation.
    pub(super) fn flush_one(
        &self,
        index: usize,
        frozen: Frozen,
        scratch: &mut Scratch,
    ) -> Result<()> {
        let left_out = self.build_filter(&frozen.buffer, scratch);
        let id = match frozen.held {
            Some(id) => id,
            None => self.reserve(index)?,
        };
        let _turn = self.partitions[index].take_turn();
        let column = self.free_column(index);
        self.start_segment((index, id), &frozen.buffer, &left_out, scratch)?;
        // The filter goes into place while the segment is on its way to flash.
        self.write_column(index, column, &scratch.bits);
        self.finish_segment(scratch)?;
        let kept = frozen.buffer.len() - frozen.buffer.stash_len() - left_out.len();
        // Else the buffer would have a holder more, and could not go back to the pool.
        drop(frozen);
        self.settle(index, id, kept, &left_out)
    }

    /// Builds the filter of a buffer's pages; gives the entries it could not take.
    fn build_filter(&self, buffer: &Buffer, scratch: &mut Scratch) -> Vec<Place> {
        scratch.hashes.clear();
        let hash = |entry: Entry<'_>| self.hasher.hash(entry.key).filter;
        scratch.hashes.extend(buffer.page_entries().map(|(_, _, entry)| hash(entry)));
        let Scratch { build, hashes, bits, bumped, .. } = scratch;
        self.room.filter.build_into(build, hashes, bits, bumped);
        if bumped.is_empty() {
            return Vec::new();
        }
        let mut wanted = bumped.iter().peekable();
        let places = buffer.page_entries().enumerate().filter_map(|(number, (page, slot, _))| {
            wanted.next_if(|bumped| **bumped == number).map(|_| (page, slot))
        });
        places.collect()
    }

    /// Takes the next segment, waiting for a checkpoint where the head has caught up with it.
    fn reserve(&self, index: usize) -> Result<SegmentId> {
        let ring = self.room.rings.of(index);
        loop {
            self.volume.poison().check()?;
            if ring.writable_segments() <= self.room.rings.reserve_segments() / 2 {
                self.ask_for_checkpoint()?;
            }
            if let Some(id) = ring.reserve() {
                return Ok(id);
            }
            ring.wait_for_space(Duration::from_millis(20));
        }
    }

    /// The column that the next incarnation takes. A super table that has all it may have, although
    /// the ring has room, loses its oldest.
    fn free_column(&self, index: usize) -> usize {
        let table = &self.partitions[index];
        let mut state = table.lock();
        if let Some(oldest) = state.level.oldest().filter(|_| state.level.window.is_full()) {
            self.room.rings.of(index).complete(oldest.id, SegmentTag::default());
            self.drop_oldest(index, &mut state);
            let dropped = u64::from(oldest.entries);
            self.counters.evicted.fetch_add(dropped, Relaxed);
            if self.room.config.policy.is_partial() {
                self.counters.forced_evictions.fetch_add(dropped, Relaxed);
            }
        }
        state.level.window.next_column()
    }

    /// Takes the oldest incarnation out of a super table; the caller has its turn. Bloom columns are
    /// reset a group at a time (paper, section 5.1.3).
    pub(super) fn drop_oldest(&self, index: usize, state: &mut State) {
        let Some(oldest) = state.level.oldest() else { return };
        let Some(column) = state.level.window.pop_oldest() else { return };
        state.level.dropped += 1;
        self.counters.flushed_entries.fetch_sub(u64::from(oldest.entries), Relaxed);
        let group = state.level.window.group_left_by(column);
        if let Some(group) = group.filter(|_| self.room.config.filter.kind() == FilterKind::Bloom) {
            self.partitions[index].beside.reset_columns(group);
        }
    }

    fn write_column(&self, index: usize, column: usize, bits: &[u64]) {
        let slices = &self.partitions[index].beside;
        match self.room.config.filter.kind() {
            FilterKind::Bloom => slices.or_column(column, bits),
            FilterKind::Fuse => slices.write_column(column, bits),
        }
    }

    fn start_segment(
        &self,
        (table, id): (usize, SegmentId),
        buffer: &Buffer,
        left_out: &[Place],
        scratch: &mut Scratch,
    ) -> Result<()> {
        let pages = self.room.config.segment_pages() as usize;
        let mut buf = scratch.segment.take().unwrap_or_else(|| PageBuf::zeroed(pages));
        let (data, filter) = buf.split_at_mut(buffer.bytes().len());
        data.copy_from_slice(buffer.bytes());
        filter.fill(0);
        encode_filter(filter, &scratch.bits);
        for &(page, slot) in left_out {
            self.layout.clear(&mut data[page * PAGE_BYTES..(page + 1) * PAGE_BYTES], slot);
        }
        let ring = self.room.rings.of(table);
        for index in 0..pages {
            let kind = if index < buffer.page_count() { PageKind::Data } else { PageKind::Filter };
            seal(buf.page_mut(index), ring.label(id, index as u64, kind));
        }
        self.count_written(buf.len() as u64);
        self.volume.poison().guard(self.room.rings.prepare(table, id))?;
        let op = Op { token: 0, kind: OpKind::Write, page: ring.page(id, 0), buf };
        Ok(self.volume.poison().guard(scratch.queue.push(op))?)
    }

    fn finish_segment(&self, scratch: &mut Scratch) -> Result<()> {
        let mut done = Vec::with_capacity(1);
        self.volume.poison().guard(scratch.queue.wait(1, &mut done))?;
        for completion in done {
            scratch.segment = Some(completion.buf);
            self.volume.poison().guard(completion.result)?;
        }
        Ok(self.volume.poison().guard(self.room.rings.sync())?)
    }

    /// Makes a written segment the newest incarnation, and puts what stayed behind of its buffer into
    /// the active one. The caller has the super table's turn.
    fn settle(&self, index: usize, id: SegmentId, kept: usize, left_out: &[Place]) -> Result<()> {
        let table = &self.partitions[index];
        let entries = u32::try_from(kept).expect("a buffer has fewer than 2^28 entries");
        let mut state = table.lock();
        let column = state.level.window.push();
        state.level.incarnations[column] = Incarnation { id, entries };
        let frozen = state.frozen.pop_front().expect("the buffer that was flushed");
        let bytes = frozen.buffer.bytes();
        let page = |page: usize| &bytes[page * PAGE_BYTES..(page + 1) * PAGE_BYTES];
        let bumped = left_out.iter().filter_map(|&(at, slot)| self.layout.entry(page(at), slot));
        let left = bumped.chain(frozen.buffer.stash_entries());
        let put_back = self.put_left_over(&mut state, &frozen, left);
        self.room.rings.of(index).complete(id, SegmentTag { owner: index as u32, entries });
        drop(state);
        self.credit_flush(&frozen, u64::from(entries));
        self.recycle(frozen.buffer);
        put_back
    }

    /// Adds to the credit that partial discards draw on, by the share of the user's own entries.
    fn credit_flush(&self, frozen: &Frozen, entries: u64) {
        let counters = &self.counters;
        self.count_flush(entries, frozen.buffer.slots());
        counters.flushed_entries.fetch_add(entries, Relaxed);
        let users = frozen.user_puts.min(frozen.buffer.len() as u64) * 1000;
        let share = users / (frozen.buffer.len() as u64).max(1);
        let limit = u64::from(self.room.config.cascade_limit);
        let most = limit * 1000 * u64::from(self.room.config.super_tables);
        let add = |credit: u64| Some((credit + limit * share).min(most));
        // The closure never refuses, so the update cannot fail.
        let _ = self.room.cascade_credit.fetch_update(Relaxed, Relaxed, add);
    }

    /// Puts an entry that was found on flash back into the buffer, if nothing newer can be there.
    /// What came since the lookup began is in a buffer, or in a newer incarnation; and a removal leaves
    /// no trace only where the incarnation of the entry is gone.
    fn reinsert(
        &self,
        index: usize,
        key: &[u8],
        value: &[u8],
        (source, newest_sequence): (SegmentId, u64),
    ) -> Result<()> {
        let hash = self.hasher.hash(key);
        let mut state = self.partitions[index].lock();
        let newer = state.buffered(hash, key).is_some();
        if newer || state.level.newest_sequence() != newest_sequence || !state.level.holds(source) {
            return Ok(());
        }
        let entry = Entry { state: nandex_store::entries::SlotState::Live, key, value };
        if state.active.put(&self.hasher, hash, entry).is_err() {
            // A full buffer that nobody can take now: the next use of the key tries again.
            let frozen = state.frozen.is_empty()
                && self.try_freeze(index, &mut state, self.room.spares_left())?;
            if !frozen || state.active.put(&self.hasher, hash, entry).is_err() {
                return Ok(());
            }
        }
        state.puts += 1;
        self.counters.retained.fetch_add(1, Relaxed);
        match self.log_entry(&mut state, entry) {
            // Without its log entry the copy is as good as its original on flash.
            Err(crate::Error::Store(nandex_store::Error::LogFull { .. })) => Ok(()),
            other => other,
        }
    }
}
