//! Entries of other tables: incarnations of whole buffers, past the super table's own buffer and the log.
//!
//! All chosen entries of a super table are known before the first is put. So a buffer is filled page by page, each page
//! with its part of what a buffer holds: no page is full before the others, and none is searched for older versions.

use std::sync::atomic::Ordering::SeqCst;

use nandex_device::PAGE_BYTES;
use nandex_store::buffer::{Buffer, page_bits, page_of};
use nandex_store::entries::{Entry, SlotState};
use nandex_store::hash::KeyHash;
use nandex_store::ring::SegmentId;

use super::flush::Scratch;
use super::{Incarnations, Inner};
use crate::Result;
use crate::write::WriteBuffer;
use crate::write::absorb::{BulkLayout, Chosen, Placed, Worker};

/// Memory of a worker that fills buffers.
#[derive(Default)]
pub(crate) struct Bulk {
    /// What is filled now.
    buffer: Option<Buffer>,
    pages: Pages,
    /// Keys and values that filters have left out.
    left_out: Vec<u8>,
}

/// Entries that wait for a buffer, by the page they belong to.
#[derive(Default)]
struct Pages {
    /// Page after page.
    placed: Vec<Placed>,
    /// Of each page, the first that waits, and the end.
    waiting: Vec<(u32, u32)>,
}

impl BulkLayout for Incarnations {
    /// On which side of the buffers it goes, and at its page.
    const PUT_BYTES: u64 = 2 * size_of::<Placed>() as u64;

    type Bulk = Bulk;

    /// A buffer, the numbers of its pages, and what its filter leaves out.
    fn bulk_bytes(core: &Inner) -> u64 {
        let page_bytes = PAGE_BYTES + size_of::<(u32, u32)>();
        let buffer_bytes = u64::from(core.layout.shape.buffer_pages) * page_bytes as u64;
        buffer_bytes + buffer_bytes / 16
    }

    fn row(hash: KeyHash) -> u32 {
        u32::from(page_bits(hash)) << 16
    }

    /// Fills buffers, and writes each full one as the newest incarnation. What fills none goes to the super table's own
    /// buffer, and so does what that would hide, and all of it where something must be evicted first.
    fn put_chosen(index: usize, chosen: &Chosen<'_>, worker: &mut Worker<'_, Self>) -> Result<()> {
        let core = worker.core;
        if chosen.len() <= core.layout.config.filter.entries_max() as usize {
            return core.put_each(index, chosen.scattered());
        }
        core.volume.poison().check()?;
        let (hidden, direct) = core.split_buffered(index, chosen);
        core.put_each(index, chosen.with(&hidden).scattered())?;
        let (scratch, bulk) = worker.memory()?;
        let direct = chosen.with(&direct);
        bulk.pages.sort(direct, core.layout.shape.buffer_pages as usize);
        core.put_whole_buffers(index, direct, scratch, bulk)?;
        core.put_each(index, direct.with(bulk.pages.rest()).scattered())
    }
}

impl Pages {
    /// Sorts entries by their pages. They come nearly in that order.
    fn sort(&mut self, chosen: Chosen<'_>, pages: usize) {
        let page = |place: u64| page_of(KeyHash { place, filter: 0 }, pages);
        self.waiting.clear();
        self.waiting.resize(pages, (0, 0));
        chosen.with_places().for_each(|(place, _)| self.waiting[page(place)].1 += 1);
        let mut start = 0;
        for (first, end) in &mut self.waiting {
            let entries = *end;
            // While entries are placed, each page's end is where its next one goes.
            (*first, *end) = (start, start);
            start += entries;
        }
        self.placed.clear();
        self.placed.resize(chosen.len(), Placed::default());
        for ((place, _), placed) in chosen.with_places().zip(chosen.placed()) {
            let end = &mut self.waiting[page(place)].1;
            self.placed[*end as usize] = *placed;
            *end += 1;
        }
    }

    /// How many of those that wait fit into the pages of one buffer, with that many slots each.
    fn fitting(&self, slots: usize) -> usize {
        self.waiting.iter().map(|(first, end)| slots.min((end - first) as usize)).sum()
    }

    /// Those that wait, together.
    fn rest(&mut self) -> &[Placed] {
        let mut kept = 0;
        for &(first, end) in &self.waiting {
            let (first, end) = (first as usize, end as usize);
            self.placed.copy_within(first..end, kept);
            kept += end - first;
        }
        &self.placed[..kept]
    }

    /// Puts entries into an empty buffer until it has `entries_max`: the same number into each page, and then more into
    /// those that have entries and space.
    fn fill(&mut self, buffer: &mut Buffer, chosen: Chosen<'_>, entries_max: usize) {
        let pages = self.waiting.len();
        let mut left = entries_max;
        for round in 0..2 {
            for page in 0..pages {
                let evenly = entries_max * (page + 1) / pages - entries_max * page / pages;
                let most = if round == 0 { evenly } else { left };
                left -= self.fill_page(buffer, page, chosen, most);
            }
        }
    }

    /// Puts up to `most` entries into a page, as many as fit, and returns their number.
    fn fill_page(
        &mut self,
        buffer: &mut Buffer,
        page: usize,
        chosen: Chosen<'_>,
        most: usize,
    ) -> usize {
        let (first, end) = &mut self.waiting[page];
        let some = &self.placed[*first as usize..*end as usize];
        let some = chosen.with(&some[..most.min(some.len())]);
        let fits = |(place, entry): &(u64, Entry<'_>)| {
            buffer.put_absent(KeyHash { place: *place, filter: 0 }, *entry).is_ok()
        };
        let taken = some.with_places().take_while(fits).count();
        *first += taken as u32;
        taken
    }
}

impl Inner {
    /// Fills buffers and writes them, for as long as the entries that wait fill one and there is space for an
    /// incarnation. What filters leave out goes to the super table's own buffer.
    fn put_whole_buffers(
        &self,
        index: usize,
        chosen: Chosen<'_>,
        scratch: &mut Scratch,
        Bulk { buffer, pages, left_out }: &mut Bulk,
    ) -> Result<()> {
        let buffer = buffer.get_or_insert_with(|| self.layout.shape.new_buffer(self.hasher));
        let layout = self.entry_layout();
        let entries_max = self.layout.config.filter.entries_max() as usize;
        while pages.fitting(layout.slots()) >= entries_max {
            if !self.partitions[index].read().frozen.is_empty() {
                self.finish_flushes()?;
            }
            let lock = self.partitions[index].maintain();
            let Some(id) = self.segment_for_whole(index) else { break };
            buffer.reset();
            pages.fill(buffer, chosen, entries_max);
            self.write_whole((index, id), buffer, scratch, left_out)?;
            drop(lock);
            let pairs = left_out.chunks_exact(layout.entry_bytes());
            let pairs = pairs.map(|pair| pair.split_at(layout.key_bytes()));
            let state = SlotState::Live;
            self.put_each(index, pairs.map(|(key, value)| Entry { state, key, value }))?;
        }
        Ok(())
    }

    /// Makes a full buffer the newest incarnation, in a segment that was taken for it, and names the entries that are
    /// not in its filter. The caller holds the maintenance lock.
    fn write_whole(
        &self,
        (index, id): (usize, SegmentId),
        buffer: &Buffer,
        scratch: &mut Scratch,
        left_out: &mut Vec<u8>,
    ) -> Result<()> {
        let bumped = self.build_filter(buffer, scratch);
        let kept = buffer.len() - bumped.len();
        if let Some(cache) = self.lookups.cache.get() {
            buffer.leave(cache, self.hasher);
        }
        self.write_incarnation((index, id), buffer, &bumped, scratch)?;
        let mut state = self.partitions[index].write();
        self.push_incarnation((index, id), &mut state, kept);
        drop(state);
        self.moved.store(true, SeqCst);
        self.credit_flush(buffer, kept, 1000);
        left_out.clear();
        for entry in self.carried_over(buffer, &bumped) {
            left_out.extend_from_slice(entry.key);
            left_out.extend_from_slice(entry.value);
        }
        Ok(())
    }

    /// Takes the next segment, unless something must be evicted for it. The caller holds the maintenance lock. Where a
    /// buffer waits, its segment comes before this one, and so does its incarnation.
    fn segment_for_whole(&self, index: usize) -> Option<SegmentId> {
        let state = self.partitions[index].write();
        let ring = self.layout.rings.of(index);
        let has_space = state.frozen.is_empty()
            && state.level.window.len() + 1 < self.layout.config.incarnations_max as usize
            && ring.free_segments() > self.layout.rings.reserve_segments();
        if has_space { ring.reserve() } else { None }
    }
}
