//! Rewriting a super table: the newest version of each key, read from all incarnations, goes into new ones.
//!
//! A key has its page at the same index in every incarnation. So pages with some indices, read from all of them, have all
//! versions of their keys, and what lives of these goes to pages with the same indices. The new segments are in RAM until
//! all pages have been read; then their filters are built and they are written.

use nandex_device::{Completion, PAGE_BYTES, PageBuf};
use nandex_store::buffer::page_of;
use nandex_store::entries::{Entry, SlotState};
use nandex_store::hash::KeyHash;
use nandex_store::page::PageKind;
use nandex_store::ring::SegmentTag;

use super::flush::{Scratch, WRITES_MAX};
use super::table::Incarnation;
use super::{Incarnations, Inner};
use crate::Result;
use crate::scan::{Reads, read};
use crate::write::absorb::{Batch, BulkLayout, Rule, Share};

/// Pages of all incarnations that are in RAM at a time, if one of each is not more.
pub(super) const READ_PAGES: usize = 64;

/// New segments of a super table.
pub(super) struct Rewriting {
    segments: Vec<NewSegment>,
    /// The one that takes the next entry.
    next: usize,
    /// Entries that found no space in any, with the places of their keys.
    left: Vec<(u64, Vec<u8>)>,
}

struct NewSegment {
    pages: PageBuf,
    entries: usize,
}

/// An incarnation that was written, and its filter.
pub(super) type Written = (Incarnation, Vec<u64>);

impl Inner {
    fn new_segment(&self) -> NewSegment {
        let pages = PageBuf::zeroed(self.layout.config.segment_pages() as usize);
        NewSegment { pages, entries: 0 }
    }

    /// Reads a super table, and places the newest version of each key in about that many new segments.
    ///
    /// # Errors
    /// A failed read, damage.
    pub(super) fn newest_versions(
        &self,
        index: usize,
        newest_first: &[Incarnation],
        segments: usize,
    ) -> Result<Rewriting> {
        let all = self.layout.config.buffer_pages as usize;
        let bits = self.partitions.len().trailing_zeros();
        let share = Share::nth(index, bits).expect("a super table is a share");
        let at_once = (READ_PAGES / newest_first.len().max(1)).clamp(1, all);
        let versions = at_once * newest_first.len() * self.entry_layout().slots();
        let mut batch = Batch::new(self.entry_layout(), (versions, versions), (bits, bits));
        let segments = (0..segments.max(1)).map(|_| self.new_segment()).collect();
        let mut rewriting = Rewriting { segments, next: 0, left: Vec::new() };
        let (ring, device) = (self.layout.rings.of(index), self.layout.rings.device());
        for first in (0..all).step_by(at_once) {
            batch.begin(share);
            batch.begin_table();
            let pages = first..all.min(first + at_once);
            let label = |id| move |page| ring.label(id, page as u64, PageKind::Data);
            let labels = newest_first.iter().flat_map(|it| pages.clone().map(label(it.id)));
            let labels: Vec<_> = labels.collect();
            read(&**device, &labels, Reads::Ahead, &mut |_, page| {
                for (_, entry) in self.entry_layout().entries(page?.bytes()) {
                    let hash = self.hasher.hash(entry.key);
                    batch.push(hash, Incarnations::row(hash), entry)?;
                }
                Ok(())
            })?;
            batch.choose(Rule::NEWEST);
            let chosen = batch.chosen();
            chosen.with_places().for_each(|it| self.place_again(it, &mut rewriting));
        }
        Ok(rewriting)
    }

    /// Places an entry in the next segment that has space for it on its page.
    fn place_again(&self, (place, entry): (u64, Entry<'_>), rewriting: &mut Rewriting) {
        let Rewriting { segments, next, left } = rewriting;
        let count = segments.len();
        let mut in_turn = (0..count).map(|more| (*next + more) % count);
        let found = in_turn.find(|at| self.put_in(&mut segments[*at], place, entry));
        *next = (found.unwrap_or(*next) + 1) % count;
        if found.is_some() {
            return;
        }
        let few = self.layout.config.filter.entries_max() as usize / 8;
        if left.len() >= few {
            // There are more keys than was estimated.
            let mut segment = self.new_segment();
            self.put_in(&mut segment, place, entry);
            segments.push(segment);
        } else {
            left.push((place, [entry.key, entry.value].concat()));
        }
    }

    fn put_in(&self, segment: &mut NewSegment, place: u64, entry: Entry<'_>) -> bool {
        let hash = KeyHash { place, filter: 0 };
        let page = page_of(hash, self.layout.config.buffer_pages as usize);
        let has_space = segment.entries < self.layout.config.filter.entries_max() as usize;
        let page = segment.pages.page_mut(page);
        let is_put = has_space && self.entry_layout().put_absent(page, hash, entry, &self.hasher);
        segment.entries += usize::from(is_put);
        is_put
    }

    /// Writes the new segments, and more for what they leave. `None` if the ring has too few; what was written is dead
    /// then.
    ///
    /// # Errors
    /// A failed write.
    pub(super) fn write_again(
        &self,
        index: usize,
        rewriting: Rewriting,
        scratch: &mut Scratch,
    ) -> Result<Option<Vec<Written>>> {
        let Rewriting { segments, mut left, .. } = rewriting;
        let mut writing = Writing { core: self, index, scratch, written: Vec::new(), in_flight: 0 };
        let mut is_enough = true;
        for segment in segments {
            is_enough = is_enough && writing.push(segment, &mut left)?;
        }
        while is_enough && !left.is_empty() {
            let mut segment = self.new_segment();
            left.retain(|(place, bytes)| {
                let (key, value) = bytes.split_at(self.layout.config.key_bytes);
                !self.put_in(&mut segment, *place, Entry { state: SlotState::Live, key, value })
            });
            is_enough = writing.push(segment, &mut left)?;
        }
        writing.wait_for(0)?;
        if is_enough {
            return Ok(Some(writing.written));
        }
        let dead = writing.written.iter().map(|(it, _)| (it.id, SegmentTag::default()));
        self.layout.rings.of(index).complete_all(dead);
        Ok(None)
    }
}

/// New segments on their way to flash.
struct Writing<'w> {
    core: &'w Inner,
    index: usize,
    scratch: &'w mut Scratch,
    written: Vec<Written>,
    in_flight: usize,
}

impl Writing<'_> {
    /// Builds the filter of a segment and begins to write both. What the filter cannot take is left. Returns whether the
    /// ring has a segment.
    fn push(&mut self, mut segment: NewSegment, left: &mut Vec<(u64, Vec<u8>)>) -> Result<bool> {
        let Self { core, index, .. } = *self;
        if segment.entries == 0 {
            return Ok(true);
        }
        let Some(id) = core.layout.rings.of(index).reserve() else { return Ok(false) };
        let data = ..core.layout.config.buffer_pages as usize * PAGE_BYTES;
        let layout = core.entry_layout();
        let entries = |pages| {
            let pages = <[u8]>::chunks_exact(pages, PAGE_BYTES).enumerate();
            pages.flat_map(move |(at, page)| {
                layout.entries(page).map(move |(slot, it)| (at, slot, it))
            })
        };
        core.build_filter_of(entries(&segment.pages[data]).map(|(.., entry)| entry), self.scratch);
        let mut refused = self.scratch.bumped.iter().peekable();
        let mut places = Vec::new();
        for (number, (page, slot, entry)) in entries(&segment.pages[data]).enumerate() {
            if refused.next_if_eq(&&number).is_some() {
                let place = core.hasher.hash(entry.key).place;
                left.push((place, [entry.key, entry.value].concat()));
                places.push((page, slot));
            }
        }
        places.iter().for_each(|&(page, slot)| layout.clear(segment.pages.page_mut(page), slot));
        self.wait_for(WRITES_MAX - 1)?;
        core.push_segment((index, id), 0, segment.pages, self.scratch)?;
        self.in_flight += 1;
        let incarnation = Incarnation::clean(id, segment.entries - places.len());
        self.written.push((incarnation, self.scratch.bits.clone()));
        Ok(true)
    }

    /// Waits until no more than `most` segments are in flight.
    fn wait_for(&mut self, most: usize) -> Result<()> {
        let mut done = Vec::with_capacity(WRITES_MAX);
        while self.in_flight > most {
            self.core.await_segments(self.scratch, &mut done)?;
            for Completion { result, .. } in done.drain(..) {
                self.in_flight -= 1;
                self.core.volume.poison().guard(result)?;
            }
        }
        Ok(())
    }
}
