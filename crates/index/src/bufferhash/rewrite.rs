//! Rewriting a super table: the newest version of each key, read from all incarnations, goes into new ones.
//!
//! A key has its page at the same index in every incarnation. So pages with some indices, read from all of them, have
//! all versions of their keys, and the live entries go to pages with the same indices. The new segments are in RAM
//! until all pages have been read; then their filters are built and they are written.

use std::ops::Range;
use std::sync::Arc;

use nandex_device::{Completion, PageBuf};
use nandex_store::buffer::page_of;
use nandex_store::entries::{Entry, SlotState};
use nandex_store::hash::KeyHash;
use nandex_store::mutants::{Barrier, is_on};
use nandex_store::page::{PageKind, RawPage};
use nandex_store::ring::SegmentTag;
use nandex_store::{PageRun, ReadAhead};

use super::flush::{Scratch, WRITES_MAX};
use super::older::OlderVersions;
use super::table::Incarnation;
use super::{Incarnations, Inner};
use crate::write::absorb::{Batch, BulkLayout, Rule, Share};
use crate::{Error, Result};

/// The pages of all incarnations that are in RAM at a time, unless one of each is more.
pub(super) const READ_PAGES: usize = 64;

/// The minimum number of versions by which a batch grows.
const SPARE_VERSIONS: usize = 256;

/// New segments of a super table.
pub(super) struct Rewriting {
    segments: Vec<NewSegment>,
    /// The segment that takes the next entry.
    next: usize,
    /// The entries for which no segment had space.
    left: Vec<Left>,
}

struct NewSegment {
    pages: PageBuf,
    entries: usize,
    filter: Vec<u64>,
}

/// An entry that waits for a segment: the place of its key, and its bytes.
struct Left {
    place: u64,
    bytes: Vec<u8>,
}

impl Left {
    fn new(place: u64, entry: Entry<'_>) -> Self {
        Self { place, bytes: [entry.key, entry.value].concat() }
    }

    fn entry(&self, key_bytes: usize) -> Entry<'_> {
        let (key, value) = self.bytes.split_at(key_bytes);
        Entry { state: SlotState::Live, key, value }
    }
}

/// An incarnation that was written, and its filter.
pub(super) type Written = (Incarnation, Vec<u64>);

impl Inner {
    fn new_segment(&self) -> NewSegment {
        let pages = PageBuf::zeroed(self.layout.config.segment_pages() as usize);
        NewSegment { pages, entries: 0, filter: Vec::new() }
    }

    /// Reads a super table, and places the newest version of each key in about `segments` new segments. If it is not
    /// whole, also reads the entries of older generations with its keys, because removals of these might otherwise be
    /// dropped. The caller holds the maintenance lock.
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
        let before = self.layout.older.get();
        let is_whole = self.partitions[index].read().level.is_whole();
        let older = if is_whole { Arc::default() } else { Arc::clone(&before) };
        let sources = newest_first.len() + self.sources_of(index, &older);
        let at_once = (READ_PAGES / sources.max(1)).clamp(1, all);
        let versions = at_once * sources * self.entry_layout().slots();
        let segments = (0..segments.max(1)).map(|_| self.new_segment()).collect();
        let mut gathering = Gathering {
            core: self,
            index,
            share: Share::nth(index, bits).expect("a super table is a share"),
            // All in one bin: they share a few pages, and so the bin of the pages' rows.
            batch: Batch::new(self.entry_layout(), (1, versions + SPARE_VERSIONS), (bits, bits)),
            older,
            notes_removed: !before.is_empty(),
            removed: None,
            rewriting: Rewriting { segments, next: 0, left: Vec::new() },
        };
        let portions = (0..all).step_by(at_once).map(|first| first..all.min(first + at_once));
        gathering.gather(newest_first, portions)?;
        let Gathering { removed, mut rewriting, .. } = gathering;
        let is_empty =
            rewriting.left.is_empty() && rewriting.segments.iter().all(|it| it.entries == 0);
        if is_empty && is_on(Barrier::WholeKeepsARemoval) {
            removed.iter().for_each(|it| self.put_removal(it, &mut rewriting.segments[0]));
        }
        Ok(rewriting)
    }

    /// Returns the number of incarnations and buffers of older generations with a super table's keys; one whose pages
    /// have fewer keys counts several times.
    fn sources_of(&self, index: usize, older: &[Arc<Inner>]) -> usize {
        let of = |core: &Arc<Self>| {
            let sources = |index: usize| {
                let state = core.partitions[index].read();
                state.level.window.len() + state.frozen.len() + 1
            };
            let sources: usize = core.share_of(index, self.partitions.len()).map(sources).sum();
            let pages = core.layout.config.buffer_pages.div_ceil(self.layout.config.buffer_pages);
            sources * pages as usize
        };
        older.iter().map(of).sum()
    }

    /// Passes on the entries of older generations in some pages of a super table's keys.
    fn read_older(
        &self,
        index: usize,
        (older, pages): (&[Arc<Self>], &Range<usize>),
        push: &mut dyn FnMut(KeyHash, Entry<'_>) -> Result<()>,
    ) -> Result<()> {
        for (number, core) in older.iter().enumerate() {
            let newer = &older[..number];
            let mut versions = OlderVersions { push: &mut *push, core: self, index, newer };
            let pages = (pages, self.buffer_pages());
            core.visit_share((index, self.partitions.len()), pages, &mut versions)?;
        }
        Ok(())
    }

    /// Inserts a removal of a key that is not live: it marks a super table without other entries as whole.
    fn put_removal(&self, removed: &Left, segment: &mut NewSegment) {
        let entry = removed.entry(self.layout.config.key_bytes);
        let entry = Entry { state: SlotState::Tombstone, ..entry };
        self.put_in(segment, removed.place, entry);
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
            left.push(Left::new(place, entry));
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

    fn put_left(&self, segment: &mut NewSegment, left: &Left) -> bool {
        self.put_in(segment, left.place, left.entry(self.layout.config.key_bytes))
    }

    /// Builds the filters of all new segments. Entries that one cannot take go to the next, and those that the last
    /// cannot take to any that can; segments are added for the rest.
    fn build_filters(&self, rewriting: &mut Rewriting, scratch: &mut Scratch) {
        let Rewriting { segments, left, .. } = rewriting;
        let mut refused = Vec::new();
        for segment in segments.iter_mut() {
            refused.retain(|entry| !self.put_left(segment, entry));
            refused.append(&mut self.build_new_filter(segment, scratch));
        }
        refused.retain(|entry| !segments.iter_mut().any(|it| self.add_to(it, entry, scratch)));
        left.append(&mut refused);
        while !left.is_empty() {
            let mut segment = self.new_segment();
            left.retain(|entry| !self.put_left(&mut segment, entry));
            left.append(&mut self.build_new_filter(&mut segment, scratch));
            segments.push(segment);
        }
    }

    /// Builds the filter of a segment, and removes the entries that it refuses.
    fn build_new_filter(&self, segment: &mut NewSegment, scratch: &mut Scratch) -> Vec<Left> {
        let layout = self.entry_layout();
        self.build_filter_of(self.entries_of(segment).map(|(.., entry)| entry), scratch);
        segment.filter.clone_from(&scratch.bits);
        let mut numbers = scratch.bumped.iter().peekable();
        let (mut places, mut refused) = (Vec::new(), Vec::new());
        for (number, (page, slot, entry)) in self.entries_of(segment).enumerate() {
            if numbers.next_if_eq(&&number).is_some() {
                refused.push(Left::new(self.hasher.hash(entry.key).place, entry));
                places.push((page, slot));
            }
        }
        places.iter().for_each(|&(page, slot)| layout.clear(segment.pages.page_mut(page), slot));
        segment.entries -= places.len();
        refused
    }

    /// Adds an entry to a segment that has a filter, if the filter can take it too.
    fn add_to(&self, segment: &mut NewSegment, left: &Left, scratch: &mut Scratch) -> bool {
        if !self.put_left(segment, left) {
            return false;
        }
        self.build_filter_of(self.entries_of(segment).map(|(.., entry)| entry), scratch);
        if scratch.bumped.is_empty() {
            segment.filter.clone_from(&scratch.bits);
            return true;
        }
        let key = left.entry(self.layout.config.key_bytes).key;
        let own = self.entries_of(segment).find(|(.., entry)| entry.key == key);
        if let Some((page, slot, _)) = own {
            self.entry_layout().clear(segment.pages.page_mut(page), slot);
            segment.entries -= 1;
        }
        false
    }

    /// The entries of a new segment, each with its page and slot.
    fn entries_of<'s>(
        &self,
        segment: &'s NewSegment,
    ) -> impl Iterator<Item = (usize, usize, Entry<'s>)> + use<'s> {
        let layout = self.entry_layout();
        let pages = 0..self.layout.config.buffer_pages as usize;
        pages.flat_map(move |at| {
            let entries = layout.entries(segment.pages.page(at));
            entries.map(move |(slot, entry)| (at, slot, entry))
        })
    }

    /// Writes the new segments, with their filters. `None` if there are too many; then the written ones are dead.
    ///
    /// # Errors
    /// A failed write.
    pub(super) fn write_again(
        &self,
        index: usize,
        mut rewriting: Rewriting,
        scratch: &mut Scratch,
    ) -> Result<Option<Vec<Written>>> {
        self.build_filters(&mut rewriting, scratch);
        let mut writing = Writing { core: self, index, scratch, written: Vec::new(), in_flight: 0 };
        let mut segments = rewriting.segments.into_iter().filter(|segment| segment.entries > 0);
        let is_enough =
            segments.try_fold(
                true,
                |is_enough, segment| {
                    if is_enough { writing.push(segment) } else { Ok(false) }
                },
            );
        writing.wait_for(0)?;
        if is_enough? {
            return Ok(Some(writing.written));
        }
        let dead = writing.written.iter().map(|(it, _)| (it.id, SegmentTag::default()));
        self.layout.rings.of(index).complete_all(dead);
        Ok(None)
    }
}

/// Gathers all versions of a super table's keys, a few pages of all incarnations at a time.
struct Gathering<'g> {
    core: &'g Inner,
    index: usize,
    share: Share,
    batch: Batch,
    /// The generations that have keys of the super table, if it is not whole.
    older: Arc<[Arc<Inner>]>,
    /// Whether a key is kept, in case that none is live.
    notes_removed: bool,
    removed: Option<Left>,
    rewriting: Rewriting,
}

impl Gathering<'_> {
    /// Reads these incarnations, portion by portion of their pages, and places the newest versions. The next pages are
    /// read meanwhile.
    fn gather(
        &mut self,
        newest_first: &[Incarnation],
        portions: impl Iterator<Item = Range<usize>> + Clone,
    ) -> Result<()> {
        let (rings, layout) = (&self.core.layout.rings, self.core.entry_layout());
        let (ring, hasher) = (rings.of(self.index), self.core.hasher);
        let label = |id, page: usize| ring.label(id, page as u64, PageKind::Data);
        let runs = portions.clone().flat_map(|pages| {
            newest_first.iter().map(move |it| PageRun {
                first: label(it.id, pages.start).page,
                pages: pages.len() as u64,
            })
        });
        let mut portions = portions.flat_map(|pages| {
            let sources = newest_first.iter().map(|it| Some(it.id)).chain([None]);
            sources.map(move |source| (source, pages.clone()))
        });
        self.begin();
        let mut next = |gathering: &mut Self| {
            // The end of a portion, which comes at once if there are no incarnations.
            for (source, pages) in portions.by_ref() {
                match source {
                    Some(id) => return Ok(Some((id, pages))),
                    None => gathering.end(&pages)?,
                }
            }
            Ok::<_, Error>(None)
        };
        let ahead =
            ReadAhead { depth: READ_PAGES, pages: 2 * READ_PAGES as u64, ..ReadAhead::default() };
        ahead.read(&**rings.device(), runs, |_, buf| {
            let Some((id, pages)) = next(self)? else { return Ok(()) };
            for (at, page) in pages.enumerate() {
                let page = RawPage::new(buf.page(at)).check(label(id, page))?;
                let mut entries = layout.entries(page.bytes());
                entries.try_for_each(|(_, entry)| self.push(hasher.hash(entry.key), entry))?;
            }
            Ok::<_, Error>(())
        })?;
        next(self).map(drop)
    }

    fn begin(&mut self) {
        self.batch.begin(self.share);
        self.batch.begin_table();
    }

    fn push(&mut self, hash: KeyHash, entry: Entry<'_>) -> Result<()> {
        if self.notes_removed && self.removed.is_none() {
            self.removed = Some(Left::new(hash.place, Entry { value: &[], ..entry }));
        }
        self.batch.push(hash, Incarnations::row(hash), entry)
    }

    /// Ends a portion: all incarnations' pages with these indices were read. Those of older generations follow, and
    /// then all live entries are placed.
    fn end(&mut self, pages: &Range<usize>) -> Result<()> {
        let (core, older) = (self.core, Arc::clone(&self.older));
        core.read_older(self.index, (&older, pages), &mut |hash, entry| self.push(hash, entry))?;
        let Self { batch, rewriting, .. } = self;
        batch.choose(Rule::NEWEST);
        batch.chosen().with_places().for_each(|it| core.place_again(it, rewriting));
        self.begin();
        Ok(())
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
    /// Begins to write a segment. Returns whether the ring has a segment for it, and the super table a column, with
    /// another for the next flush.
    fn push(&mut self, segment: NewSegment) -> Result<bool> {
        let Self { core, index, .. } = *self;
        if self.written.len() + 1 >= core.layout.config.incarnations_max as usize {
            return Ok(false);
        }
        let Some(id) = core.layout.rings.of(index).reserve() else { return Ok(false) };
        self.wait_for(WRITES_MAX - 1)?;
        let NewSegment { pages, entries, filter } = segment;
        self.scratch.bits.clone_from(&filter);
        core.push_segment((index, id), 0, pages, self.scratch)?;
        self.in_flight += 1;
        self.written.push((Incarnation::clean(id, entries), filter));
        Ok(true)
    }

    /// Waits until no more than `most` segments are in flight.
    fn wait_for(&mut self, most: usize) -> Result<()> {
        let mut done = Vec::with_capacity(WRITES_MAX);
        let mut written = Ok(());
        while self.in_flight > most {
            self.core.await_segments(self.scratch, &mut done)?;
            // Each counts, whatever happened to those before.
            self.in_flight -= done.len();
            for Completion { result, .. } in done.drain(..) {
                written = written.and(self.core.volume.poison().guard(result));
            }
        }
        Ok(written?)
    }
}
