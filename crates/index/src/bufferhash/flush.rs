//! From a full buffer to an incarnation: build the filter, write the segment, make it live.

use std::sync::Arc;
use std::sync::atomic::Ordering::{Acquire, Relaxed};
use std::time::Duration;

use nandex_device::{Op, OpKind, PAGE_BYTES, PageBuf, Queue};
use nandex_store::Threads;
use nandex_store::buffer::Buffer;
use nandex_store::entries::Entry;
use nandex_store::mutants::{Barrier, is_on};
use nandex_store::page::{PageKind, seal};
use nandex_store::ring::{SegmentId, SegmentTag};

use super::filter::{BuildScratch, FilterKind};
use super::format::encode_filter;
use super::pool::Job;
use super::table::{Frozen, Incarnation, TableState};
use super::{Inner, Policy};
use crate::Result;

/// What a background thread needs again and again.
pub(super) struct Scratch {
    queue: Box<dyn Queue>,
    segment: Option<PageBuf>,
    build: BuildScratch,
    hashes: Vec<u64>,
    bits: Vec<u64>,
    bumped: Vec<usize>,
}

/// A job on its way. Its end is told even when it ends in a panic, which also poisons the volume, so
/// that nobody waits for a thread that is gone.
struct Running<'i>(&'i Inner);

impl Drop for Running<'_> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.0.volume.poison().set(&"a background thread of a table has panicked");
        }
        self.0.work.done();
        self.0.pool.notify();
    }
}

/// The page and slot of an entry whose key its filter could not take.
type Place = (usize, usize);

impl Inner {
    /// A background thread: does one job after another until the table is closed.
    pub(super) fn work(&self) {
        let mut scratch = None;
        while let Some(job) = self.work.next() {
            // A failure has poisoned the volume; the next update reports it.
            let _ = self.run_job(job, &mut scratch);
        }
    }

    /// Without threads in the background, does all the jobs there are; tells whether there were any.
    /// The caller holds no lock.
    pub(super) fn catch_up_now(&self) -> Result<bool> {
        if self.options.flush_threads > 0 {
            return Ok(false);
        }
        let mut scratch = None;
        let mut busy = false;
        let mut result = Ok(());
        while let Some(job) = self.work.next_now() {
            scratch = scratch.or_else(|| self.scratches.take());
            // Each job of a poisoned volume refuses at once.
            result = result.and(self.run_job(job, &mut scratch));
            busy = true;
        }
        scratch.into_iter().for_each(|scratch| self.scratches.give(scratch));
        result.map(|()| busy)
    }

    fn run_job(&self, job: Job, scratch: &mut Option<Scratch>) -> Result<()> {
        let _running = Running(self);
        self.run(job, scratch).inspect_err(|error| self.volume.poison().set(error))
    }

    fn run(&self, job: Job, scratch: &mut Option<Scratch>) -> Result<()> {
        match job {
            Job::Flush(index) => {
                let scratch = match scratch {
                    Some(scratch) => scratch,
                    None => scratch.insert(self.new_scratch()?),
                };
                self.flush_frozen(index, scratch)
            }
            Job::Reinsert { table, key, value, source, newest_sequence } => {
                self.reinsert(table, &key, &value, (source, newest_sequence))
            }
            Job::LoadFilters(index) => self.load_filters(index),
        }
    }

    fn new_scratch(&self) -> Result<Scratch> {
        let segment_bytes = self.config.segment_pages() as usize * PAGE_BYTES;
        let per_key = size_of::<u64>() + 40;
        let keys = self.config.filter.entries_max() as usize;
        self.counters.scratch_bytes.fetch_add((segment_bytes + keys * per_key) as u64, Relaxed);
        Ok(Scratch {
            queue: self.rings.device().queue(1)?,
            segment: Some(PageBuf::zeroed(self.config.segment_pages() as usize)),
            build: BuildScratch::new(),
            hashes: Vec::new(),
            bits: Vec::new(),
            bumped: Vec::new(),
        })
    }

    /// Writes the frozen buffers of a super table, oldest first; one thread at a time does so.
    fn flush_frozen(&self, index: usize, scratch: &mut Scratch) -> Result<()> {
        loop {
            let frozen = {
                let mut state = self.tables[index].lock();
                if std::mem::replace(&mut state.flushing, true) {
                    return Ok(());
                }
                state.flushing = !state.frozen.is_empty();
                state.frozen.front().cloned()
            };
            let Some(frozen) = frozen else { return Ok(()) };
            let flushed = self.flush_one(index, frozen, scratch);
            self.tables[index].lock().flushing = false;
            flushed?;
        }
    }

    fn flush_one(&self, index: usize, frozen: Frozen, scratch: &mut Scratch) -> Result<()> {
        self.volume.poison().check()?;
        let left_out = self.build_filter(&frozen.buffer, scratch);
        let id = match frozen.segment {
            Some(id) => id,
            None => self.reserve(index)?,
        };
        let _turn = self.tables[index].take_turn();
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
        self.filter.build_into(build, hashes, bits, bumped);
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
        let ring = self.rings.of(index);
        loop {
            self.volume.poison().check()?;
            if ring.granted_segments() <= self.rings.reserve_segments() / 2 {
                self.ask_for_checkpoint()?;
            }
            if let Some(id) = ring.reserve() {
                return Ok(id);
            }
            ring.wait_for_room(Duration::from_millis(20));
        }
    }

    /// Asks the background for a checkpoint, or takes it where the flush or the checkpoints have no
    /// thread of their own.
    fn ask_for_checkpoint(&self) -> Result<()> {
        if self.options.flush_threads == 0 || self.volume.threads() == Threads::Inline {
            return Ok(self.volume.checkpoint()?);
        }
        self.volume.request_checkpoint();
        Ok(())
    }

    /// The column that the next incarnation takes. A super table that has all it may have, although
    /// the ring has room, loses its oldest.
    fn free_column(&self, index: usize) -> usize {
        let table = &self.tables[index];
        let mut state = table.lock();
        if let Some(oldest) = state.oldest().filter(|_| state.window.is_full()) {
            self.rings.of(index).complete(oldest.id, SegmentTag::default());
            self.drop_oldest(index, &mut state);
            let dropped = u64::from(oldest.entries);
            self.counters.evicted.fetch_add(dropped, Relaxed);
            if self.config.policy.is_partial() {
                self.counters.forced_evictions.fetch_add(dropped, Relaxed);
            }
        }
        state.window.next_column()
    }

    /// Takes the oldest incarnation out of a super table; the caller has its turn. Bloom columns are
    /// reset a group at a time (paper, section 5.1.3).
    pub(super) fn drop_oldest(&self, index: usize, state: &mut TableState) {
        let Some(oldest) = state.oldest() else { return };
        let Some(column) = state.window.pop_oldest() else { return };
        state.dropped += 1;
        self.counters.flushed_entries.fetch_sub(u64::from(oldest.entries), Relaxed);
        let group = state.window.group_left_by(column);
        if let Some(group) = group.filter(|_| self.config.filter.kind() == FilterKind::Bloom) {
            self.tables[index].slices.reset_columns(group);
        }
    }

    fn write_column(&self, index: usize, column: usize, bits: &[u64]) {
        let slices = &self.tables[index].slices;
        match self.config.filter.kind() {
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
        let pages = self.config.segment_pages() as usize;
        let mut buf = scratch.segment.take().unwrap_or_else(|| PageBuf::zeroed(pages));
        let (data, filter) = buf.split_at_mut(buffer.bytes().len());
        data.copy_from_slice(buffer.bytes());
        filter.fill(0);
        encode_filter(filter, &scratch.bits);
        for &(page, slot) in left_out {
            self.layout.clear(&mut data[page * PAGE_BYTES..(page + 1) * PAGE_BYTES], slot);
        }
        let ring = self.rings.of(table);
        for index in 0..pages {
            let kind = if index < buffer.page_count() { PageKind::Data } else { PageKind::Filter };
            seal(buf.page_mut(index), ring.label(id, index as u64, kind));
        }
        self.counters.data_bytes_written.fetch_add(buf.len() as u64, Relaxed);
        self.volume.poison().guard(self.rings.prepare(table, id))?;
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
        Ok(self.volume.poison().guard(self.rings.sync())?)
    }

    /// Makes a written segment the newest incarnation, and puts what stayed behind of its buffer into
    /// the active one. The caller has the super table's turn.
    fn settle(&self, index: usize, id: SegmentId, kept: usize, left_out: &[Place]) -> Result<()> {
        let table = &self.tables[index];
        let entries = u32::try_from(kept).expect("a buffer has fewer than 2^28 entries");
        let mut state = table.lock();
        let column = state.window.push();
        state.incarnations[column] = Incarnation { id, entries };
        let frozen = state.frozen.pop_front().expect("the buffer that was flushed");
        let put_back = self.put_left_over(&mut state, &frozen, left_out);
        self.rings.of(index).complete(id, SegmentTag { owner: index as u32, entries });
        drop(state);
        self.count_flush(&frozen, u64::from(entries));
        self.recycle(frozen.buffer);
        put_back
    }

    fn put_left_over(
        &self,
        state: &mut TableState,
        frozen: &Frozen,
        left_out: &[Place],
    ) -> Result<()> {
        let buffer = &frozen.buffer;
        let any = !left_out.is_empty() || buffer.stash_len() > 0;
        if any && !self.logs() && frozen.image.is_some() && is_on(Barrier::LeftOverKeepsImage) {
            // Where nothing is logged, only the image has them for good; also those that are not put
            // back, since a newer version may be in RAM alone. The next flush saves the buffer anew.
            state.image = state.image.or(frozen.image);
            state.puts += 1;
        }
        let page = |page: usize| &buffer.bytes()[page * PAGE_BYTES..(page + 1) * PAGE_BYTES];
        let bumped = left_out.iter().filter_map(|&(at, slot)| self.layout.entry(page(at), slot));
        for entry in bumped.chain(buffer.stash_entries()) {
            self.put_back(state, entry, frozen)?;
        }
        Ok(())
    }

    fn put_back(&self, state: &mut TableState, entry: Entry<'_>, frozen: &Frozen) -> Result<()> {
        let hash = self.hasher.hash(entry.key);
        if state.in_frozen(hash, entry.key)
            || !state.active.put_left_over(&self.hasher, hash, entry)
        {
            return Ok(());
        }
        state.puts += 1;
        let replaying = !self.ready.load(Acquire);
        if replaying || self.log_entry(state, entry).is_err() {
            // Logged again it would come after updates that are not replayed yet; and a full log takes
            // nothing. Either way its old place in the log, or its image, is kept instead.
            state.since = [state.since, frozen.since].into_iter().flatten().min();
            state.image = state.image.or(frozen.image);
            self.volume.poison().check()?;
        }
        Ok(())
    }

    /// Adds to the credit that partial discards draw on, by the share of the user's own entries.
    fn count_flush(&self, frozen: &Frozen, entries: u64) {
        let counters = &self.counters;
        counters.flushes.fetch_add(1, Relaxed);
        counters.flush_entries.fetch_add(entries, Relaxed);
        counters.flushed_entries.fetch_add(entries, Relaxed);
        counters.flush_slots.fetch_add(frozen.buffer.slots() as u64, Relaxed);
        let users = frozen.user_puts.min(frozen.buffer.len() as u64) * 1000;
        let share = users / (frozen.buffer.len() as u64).max(1);
        let limit = u64::from(self.config.cascade_limit);
        let most = limit * 1000 * u64::from(self.config.super_tables);
        let add = |credit: u64| Some((credit + limit * share).min(most));
        // The closure never refuses, so the update cannot fail.
        let _ = self.cascade_credit.fetch_update(Relaxed, Relaxed, add);
    }

    fn recycle(&self, buffer: Arc<Buffer>) {
        let buffer = Arc::into_inner(buffer)
            // An iteration still reads the old one.
            .unwrap_or_else(|| Buffer::new(self.layout, self.config.buffer_pages as usize));
        self.pool.give(buffer);
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
        let mut state = self.tables[index].lock();
        let newer = state.buffered(hash, key).is_some();
        if newer || state.newest_sequence() != newest_sequence || !state.holds(source) {
            return Ok(());
        }
        let entry = Entry { state: nandex_store::entries::SlotState::Live, key, value };
        if state.active.put(&self.hasher, hash, entry).is_err() {
            // A full buffer that nobody can take now: the next use of the key tries again.
            let frozen = state.frozen.is_empty()
                && self.try_freeze(index, &mut state, self.left_to_evictions())?;
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

    /// May the policy drop what nobody asked it to drop?
    pub(super) fn evicts(&self) -> bool {
        self.config.policy != Policy::Reject
    }
}
