//! Absorbing entries of other tables: incarnations of whole buffers, which bypass the super table's own buffer and the
//! log.
//!
//! All chosen entries of a super table are known before the first is inserted. So a segment is filled page by page,
//! each page with its part of a buffer's contents: no page is full before the others, and none is searched for older
//! versions. Its filter is built first, so that entries that a filter leaves out wait for the next segment. While some
//! segments are being written, the next one is filled.

use std::collections::VecDeque;
use std::sync::atomic::Ordering::SeqCst;

use nandex_device::{Completion, PAGE_BYTES, PageBuf};
use nandex_store::buffer::{page_bits, page_of};
use nandex_store::entries::{Entry, EntryLayout};
use nandex_store::hash::{KeyHash, KeyHasher};
use nandex_store::ring::SegmentId;

use super::flush::{Scratch, WRITES_MAX};
use super::table::Incarnation;
use super::{Incarnations, Inner};
use crate::Result;
use crate::write::absorb::{BulkLayout, Chosen, Placed, Worker};
use crate::write::leave;

/// The number of slots of a page for each one that stays empty: with fewer empty slots a key may find none.
const SLOTS_PER_SPARE: usize = 32;

/// The memory of a worker that fills segments.
#[derive(Default)]
pub(crate) struct Bulk {
    pages: Pages,
    writes: Writes,
}

/// Entries that wait for a segment, by the page they belong to.
#[derive(Default)]
struct Pages {
    /// The entries, page after page.
    placed: Vec<Placed>,
    pages: Vec<Waiting>,
    /// The entries of a page that its segment does not take.
    left: Vec<Placed>,
}

/// The waiting entries of one page.
#[derive(Clone, Copy, Default)]
struct Waiting {
    /// The first waiting entry, and the end.
    first: u32,
    end: u32,
    /// The number of entries that the next segment may take.
    next: u32,
}

impl Waiting {
    fn len(self) -> usize {
        (self.end - self.first) as usize
    }
}

/// Segments that are being written, in order.
#[derive(Default)]
struct Writes {
    in_flight: VecDeque<InFlight>,
    /// The number of segments that are no longer in flight, which is also the number of the first that is.
    ended: u64,
    done: Vec<Completion>,
    /// Memory for reuse: of segments, and of their filters.
    segments: Vec<PageBuf>,
    filters: Vec<Vec<u64>>,
}

/// A segment in flight.
struct InFlight {
    incarnation: Incarnation,
    /// Its filter.
    bits: Vec<u64>,
    is_written: bool,
}

impl BulkLayout for Incarnations {
    /// Whether the entry goes to a buffer, and its position in its page.
    const PUT_BYTES: u64 = 2 * size_of::<Placed>() as u64;

    type Bulk = Bulk;

    /// The segment being filled, those being written and their filters, and the numbers of pages.
    fn bulk_bytes(core: &Inner) -> u64 {
        let filter_pages = core.layout.config.segment_pages() - core.layout.config.buffer_pages;
        let segment_pages = u64::from(core.layout.config.segment_pages() + filter_pages);
        let pages = (WRITES_MAX as u64 + 1) * segment_pages;
        pages * PAGE_BYTES as u64 + segment_pages * size_of::<Waiting>() as u64
    }

    fn row(hash: KeyHash) -> u32 {
        u32::from(page_bits(hash)) << 16
    }

    /// Fills segments, and writes each as the newest incarnation. Entries that fill no segment go to the super table's
    /// own buffer, and so do entries that it would shadow, and all of them if something must be evicted first.
    fn put_chosen(index: usize, chosen: &Chosen<'_>, worker: &mut Worker<'_, Self>) -> Result<()> {
        let core = worker.core;
        if chosen.len() <= core.layout.config.filter.entries_max() as usize {
            return core.put_each(index, chosen.scattered());
        }
        core.volume.poison().check()?;
        if !core.partitions[index].read().frozen.is_empty() {
            core.finish_flushes()?;
        }
        let (scratch, bulk) = worker.memory()?;
        let hidden = core.put_past_buffers(index, *chosen, scratch, bulk)?;
        core.put_each(index, chosen.with(&hidden).scattered())?;
        core.put_each(index, chosen.with(bulk.pages.rest()).scattered())
    }
}

impl Pages {
    /// Sorts entries by their pages. They arrive nearly in that order.
    fn sort(&mut self, chosen: Chosen<'_>, pages: usize) {
        let page = |place: u64| page_of(KeyHash { place, filter: 0 }, pages);
        self.pages.clear();
        self.pages.resize(pages, Waiting::default());
        chosen.places().for_each(|place| self.pages[page(place)].end += 1);
        let mut start = 0;
        for Waiting { first, end, .. } in &mut self.pages {
            let entries = *end;
            // While entries are placed, each page's end is its next position.
            (*first, *end) = (start, start);
            start += entries;
        }
        self.placed.clear();
        self.placed.resize(chosen.len(), Placed::default());
        for (place, placed) in chosen.places().zip(chosen.placed()) {
            let end = &mut self.pages[page(place)].end;
            self.placed[*end as usize] = *placed;
            *end += 1;
        }
    }

    /// Chooses `entries_max` of the entries that wait for the next segment: the same number of each page, and then more
    /// of pages that have more. Returns whether there are enough.
    fn choose(&mut self, entries_max: usize, slots: usize) -> bool {
        let (pages, most) = (self.pages.len(), slots - slots / SLOTS_PER_SPARE);
        let mut left = entries_max;
        for (number, page) in self.pages.iter_mut().enumerate() {
            let evenly = entries_max * (number + 1) / pages - entries_max * number / pages;
            let next = page.len().min(most).min(evenly);
            page.next = next as u32;
            left -= next;
        }
        for page in &mut self.pages {
            let more = left.min(page.len().min(most) - page.next as usize);
            page.next += more as u32;
            left -= more;
        }
        left == 0
    }

    /// Returns the chosen entries, page after page.
    fn next<'a>(&'a self, chosen: Chosen<'a>) -> impl Iterator<Item = Entry<'a>> {
        let of_page = |page: &Waiting| &self.placed[page.first as usize..][..page.next as usize];
        self.pages.iter().flat_map(move |page| chosen.with(of_page(page)).entries())
    }

    /// Fills the empty pages of a segment with the chosen entries, and returns how many it took. Those whose ascending
    /// numbers are in `left_out`, and those for which there is no space, wait for the next segment.
    fn fill(
        &mut self,
        segment: &mut PageBuf,
        chosen: Chosen<'_>,
        (layout, hasher): (EntryLayout, KeyHasher),
        left_out: &[usize],
    ) -> usize {
        let Self { placed, pages, left } = self;
        let mut left_out = left_out.iter().peekable();
        let (mut number, mut kept) = (0, 0);
        for (at, page) in pages.iter_mut().enumerate() {
            let next = &mut placed[page.first as usize..][..page.next as usize];
            let bytes = segment.page_mut(at);
            left.clear();
            for (which, (place, entry)) in next.iter().zip(chosen.with(next).with_places()) {
                let is_left_out = left_out.next_if_eq(&&number).is_some();
                number += 1;
                let hash = KeyHash { place, filter: 0 };
                if is_left_out || !layout.put_absent(bytes, hash, entry, &hasher) {
                    left.push(*which);
                }
            }
            let taken = next.len() - left.len();
            next[taken..].copy_from_slice(left);
            page.first += taken as u32;
            kept += taken;
        }
        kept
    }

    /// Returns all waiting entries together.
    fn rest(&mut self) -> &[Placed] {
        let mut kept = 0;
        for page in &self.pages {
            self.placed.copy_within(page.first as usize..page.end as usize, kept);
            kept += page.len();
        }
        &self.placed[..kept]
    }
}

impl Inner {
    /// Inserts whole segments of entries that no buffer would shadow, and returns the others. Nothing older gets into a
    /// buffer meanwhile: evictions wait for the maintenance lock, and entries that lookups have used are not put back.
    fn put_past_buffers(
        &self,
        index: usize,
        chosen: Chosen<'_>,
        scratch: &mut Scratch,
        bulk: &mut Bulk,
    ) -> Result<Vec<Placed>> {
        let table = &self.partitions[index];
        let _lock = table.maintain();
        table.write().level.absorbs = true;
        let put = self.split_buffered(index, &chosen).and_then(|(hidden, direct)| {
            let direct = chosen.with(&direct);
            bulk.pages.sort(direct, self.layout.shape.buffer_pages as usize);
            self.put_whole_segments(index, direct, scratch, bulk)?;
            Ok(hidden)
        });
        table.write().level.absorbs = false;
        put
    }

    /// Fills segments and writes them, as long as the waiting entries fill one and there is space for an incarnation.
    /// One is filled while earlier ones are being written. The caller holds the maintenance lock.
    fn put_whole_segments(
        &self,
        index: usize,
        chosen: Chosen<'_>,
        scratch: &mut Scratch,
        Bulk { pages, writes }: &mut Bulk,
    ) -> Result<()> {
        let entries_max = self.layout.config.filter.entries_max() as usize;
        while pages.choose(entries_max, self.entry_layout().slots()) {
            let Some(id) = self.segment_for_whole(index, writes.in_flight.len()) else { break };
            let (segment, kept) = self.fill_segment(pages, chosen, scratch, writes.segments.pop());
            if writes.in_flight.len() == WRITES_MAX {
                self.end_first(index, writes, scratch)?;
            }
            let data_bytes = self.layout.config.buffer_pages as usize * PAGE_BYTES;
            let incarnation = self.incarnation((index, id), &segment[..data_bytes], kept);
            let token = writes.ended + writes.in_flight.len() as u64;
            self.push_segment((index, id), token, segment, scratch)?;
            let bits =
                std::mem::replace(&mut scratch.bits, writes.filters.pop().unwrap_or_default());
            writes.in_flight.push_back(InFlight { incarnation, bits, is_written: false });
        }
        while !writes.in_flight.is_empty() {
            self.end_first(index, writes, scratch)?;
        }
        Ok(())
    }

    /// Fills a segment with the entries chosen for it, and leaves its filter in the scratch memory. Returns the segment
    /// and the number of its entries.
    fn fill_segment(
        &self,
        pages: &mut Pages,
        chosen: Chosen<'_>,
        scratch: &mut Scratch,
        segment: Option<PageBuf>,
    ) -> (PageBuf, usize) {
        self.build_filter_of(pages.next(chosen), scratch);
        let all = self.layout.config.segment_pages() as usize;
        let mut segment = segment.unwrap_or_else(|| PageBuf::zeroed(all));
        segment.fill(0);
        let layout = self.entry_layout();
        let kept = pages.fill(&mut segment, chosen, (layout, self.hasher), &scratch.bumped);
        if let Some(cache) = self.lookups.cache.get() {
            let data = segment.chunks_exact(PAGE_BYTES).take(pages.pages.len());
            let entries = data.flat_map(|page| layout.entries(page).map(|(_, entry)| entry));
            leave(cache, self.hasher, entries);
        }
        (segment, kept)
    }

    /// Waits for the first of the segments in flight, and makes it the newest incarnation. The caller holds the
    /// maintenance lock.
    fn end_first(&self, index: usize, writes: &mut Writes, scratch: &mut Scratch) -> Result<()> {
        let Writes { in_flight, ended, done, segments, filters } = writes;
        while in_flight.front().is_some_and(|first| !first.is_written) {
            self.await_segments(scratch, done)?;
            for Completion { token, result, buf, .. } in done.drain(..) {
                self.volume.poison().guard(result)?;
                let at = usize::try_from(token - *ended).expect("it is in flight");
                in_flight[at].is_written = true;
                segments.push(buf);
            }
        }
        let Some(InFlight { incarnation, bits, .. }) = in_flight.pop_front() else { return Ok(()) };
        *ended += 1;
        self.volume.poison().guard(self.layout.rings.sync())?;
        self.ensure_column(index);
        self.write_column(index, &bits);
        filters.push(bits);
        let mut state = self.partitions[index].write();
        self.push_incarnation(index, &mut state, incarnation);
        drop(state);
        self.moved.store(true, SeqCst);
        let slots = self.layout.config.buffer_pages as usize * self.entry_layout().slots();
        self.credit_flush(slots, incarnation.entries, 1000);
        Ok(())
    }

    /// Takes the next segment, unless something must be evicted for it or for those in flight. The caller holds the
    /// maintenance lock. If a buffer waits, its segment precedes this one, and so does its incarnation.
    fn segment_for_whole(&self, index: usize, in_flight: usize) -> Option<SegmentId> {
        let state = self.partitions[index].write();
        let ring = self.layout.rings.of(index);
        let incarnations = state.level.window.len() + in_flight;
        let has_space = state.frozen.is_empty()
            && incarnations + 1 < self.layout.config.incarnations_max as usize
            && ring.free_segments() > self.layout.rings.reserve_segments();
        if has_space { ring.reserve() } else { None }
    }
}
