//! The segments that hold records, those that are free, and the order in which free ones are used.
//!
//! A freed segment is used again only after a durable checkpoint lists it as free. Free segments of one length are used
//! in the checkpoint's order, so that recovery knows the places of segments begun since then.

use std::collections::VecDeque;

use crate::mutants::{Barrier, is_on};

use super::config::RESERVE_SEGMENTS;
use super::extents::{Extents, SegmentGroup, payload};
use super::format::{LiveSegment, Overwritten, ValueRef, ValuesState};
use crate::space::Extent;

/// A segment in use.
#[derive(Clone, Copy, Debug)]
struct Segment {
    known: LiveSegment,
    /// Whether its live bytes were counted since the log was opened. A crash forgets which records became garbage.
    is_counted: bool,
}

/// The part of a segment that has references.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct LiveCounts {
    /// The number of bytes of records with their headers.
    pub bytes: u64,
    /// The number of records.
    pub records: u32,
}

impl LiveCounts {
    /// Counts a record.
    pub fn note(&mut self, reference: ValueRef) {
        self.bytes += reference.whole_bytes();
        self.records += 1;
    }
}

/// The segments of a value log.
#[derive(Debug)]
pub(super) struct Segments {
    by_slot: Vec<Option<Segment>>,
    last_sequence: u64,
    head: Option<u32>,
    free: VecDeque<u32>,
    /// The freed segments that are not yet free in a durable checkpoint.
    freed: VecDeque<u32>,
    /// The number of those that the last capture has.
    captured: usize,
    /// The number of free segments that are as long as the longest.
    free_longest: usize,
    extents: Extents,
    overwritten: Overwritten,
    /// The number of records that count as live and are dead; it is unknown which.
    unknown_dead: u64,
}

impl Segments {
    pub(super) fn new(extents: Extents, state: &ValuesState) -> Self {
        let mut by_slot = vec![None; extents.slots() as usize];
        for known in &state.live {
            by_slot[known.slot as usize] = Some(Segment { known: *known, is_counted: false });
        }
        let mut segments = Self {
            by_slot,
            last_sequence: state.last_sequence,
            head: state.live.last().map(|segment| segment.slot),
            free: state.free.iter().copied().collect(),
            freed: VecDeque::new(),
            captured: 0,
            free_longest: 0,
            extents,
            overwritten: state.overwritten,
            unknown_dead: 0,
        };
        segments.count_longest();
        segments
    }

    /// The extents of the segments.
    pub(super) fn extents(&self) -> &Extents {
        &self.extents
    }

    /// The numbers of what was overwritten over the log's life.
    pub(super) fn overwritten(&self) -> Overwritten {
        self.overwritten
    }

    /// Adds free segments in a new extent. They can be begun after the next checkpoint.
    pub(super) fn add(&mut self, group: SegmentGroup, extent: Extent) {
        let slots = self.extents.push(group, extent);
        self.by_slot.resize(slots.end as usize, None);
        let waits = is_on(Barrier::ValuesGrowInCheckpoint);
        let list = if waits { &mut self.freed } else { &mut self.free };
        list.extend(slots);
        self.count_longest();
    }

    fn count_longest(&mut self) {
        self.free_longest = self.longest_among(self.free.iter());
    }

    fn longest_among<'s>(&self, slots: impl Iterator<Item = &'s u32>) -> usize {
        let longest = self.extents.longest_pages();
        slots.filter(|slot| self.extents.segment_pages(**slot) == longest).count()
    }

    /// Returns the segment that is being written.
    pub(super) fn head(&self) -> Option<LiveSegment> {
        self.get(self.head?)
    }

    /// Returns the segment in this place, if it holds records.
    pub(super) fn get(&self, slot: u32) -> Option<LiveSegment> {
        Some(self.by_slot.get(slot as usize)?.as_ref()?.known)
    }

    /// Returns the segment of a reference, if it was not overwritten or freed.
    pub(super) fn holding(&self, reference: ValueRef) -> Option<LiveSegment> {
        let found = self.get(reference.slot)?;
        ((found.sequence & u64::from(u32::MAX)) as u32 == reference.sequence).then_some(found)
    }

    /// Returns the candidates for the next segment, if one was begun: the first free one of each length.
    pub(super) fn next(&self) -> Vec<LiveSegment> {
        let mut lengths = Vec::new();
        let mut next = Vec::new();
        for slot in &self.free {
            let pages = self.extents.segment_pages(*slot);
            if !lengths.contains(&pages) {
                lengths.push(pages);
                next.push(unwritten(*slot, self.last_sequence + 1));
            }
        }
        next
    }

    /// Returns the first free segment for a record of this many bytes, if `spared` of the longest stay free without it.
    fn first_for(&self, whole_bytes: u64, spared: usize) -> Option<u32> {
        let slots = self.free.iter();
        self.first_of(slots, self.free_longest, (whole_bytes, spared))
    }

    fn first_of<'s>(
        &self,
        mut slots: impl Iterator<Item = &'s u32>,
        longest_count: usize,
        (whole_bytes, spared): (u64, usize),
    ) -> Option<u32> {
        let longest = self.extents.longest_pages();
        let may_go = |slot: u32| {
            let is_longest = self.extents.segment_pages(slot) == longest;
            longest_count >= spared + usize::from(is_longest)
        };
        slots
            .find(|slot| self.extents.segment_bytes(**slot) >= whole_bytes && may_go(**slot))
            .copied()
    }

    /// Returns whether there is a free segment for a record of this many bytes.
    pub(super) fn has_free(&self, whole_bytes: u64, spared: usize) -> bool {
        self.first_for(whole_bytes, spared).is_some()
    }

    /// Returns whether there will be one after the next checkpoint.
    pub(super) fn will_have_free(&self, whole_bytes: u64, spared: usize) -> bool {
        let slots = || self.free.iter().chain(&self.freed);
        let longest = self.longest_among(slots());
        self.first_of(slots(), longest, (whole_bytes, spared)).is_some()
    }

    /// Returns whether fewer segments are free, or will be after the next checkpoint, than cleaning needs.
    pub(super) fn lacks_reserve(&self) -> bool {
        self.longest_among(self.free.iter().chain(&self.freed)) < RESERVE_SEGMENTS
    }

    /// Returns whether the segment with the least live share can be cleaned without all of the reserve. One free
    /// segment takes the live records of one that is half garbage, one without live records needs none, and the count
    /// of some may be too high.
    pub(super) fn is_cleaned_without_reserve(&self) -> bool {
        let is_dead = |it: &Segment| it.known.live_records == 0 || !it.is_counted;
        self.free_longest > 0 || self.closed().any(is_dead)
    }

    /// The number of bytes of the segments that are free, except one of the longest: the reserve takes a segment that
    /// turns out to be fuller than expected.
    pub(super) fn free_bytes_for_copies(&self) -> u64 {
        let bytes: u64 = self.free.iter().map(|slot| self.extents.segment_bytes(*slot)).sum();
        bytes.saturating_sub(payload(self.extents.longest_pages()))
    }

    /// The number of the longest segments that are free.
    pub(super) fn free_longest(&self) -> usize {
        self.free_longest
    }

    /// Begins the next segment, for a record of this many bytes, if `spared` of the longest stay free. A purpose that
    /// may use the reserve takes other segments first.
    pub(super) fn begin(&mut self, whole_bytes: u64, spared: usize) -> Option<LiveSegment> {
        let apart = self.first_for(whole_bytes, spared.max(RESERVE_SEGMENTS));
        let slot = apart.or_else(|| self.first_for(whole_bytes, spared))?;
        Some(self.begin_slot(slot))
    }

    /// Begins a free segment.
    pub(super) fn begin_slot(&mut self, slot: u32) -> LiveSegment {
        self.free.retain(|free| *free != slot);
        self.count_longest();
        let known = unwritten(slot, self.last_sequence + 1);
        self.by_slot[slot as usize] = Some(Segment { known, is_counted: true });
        (self.head, self.last_sequence) = (Some(slot), known.sequence);
        known
    }

    /// Frees a segment whose records may be live.
    pub(super) fn overwrite(&mut self, segment: LiveSegment) {
        self.overwritten.segments += 1;
        self.overwritten.records += u64::from(segment.live_records);
        self.free(segment.slot);
    }

    /// Frees a segment.
    pub(super) fn free(&mut self, slot: u32) {
        if let Some(Segment { known, .. }) = self.by_slot[slot as usize].take() {
            self.unknown_dead = self.unknown_dead.saturating_sub(known.live_records.into());
            let spared = is_on(Barrier::ValuesSpareCheckpoint);
            let list = if spared { &mut self.freed } else { &mut self.free };
            list.push_back(slot);
            self.count_longest();
        }
    }

    /// Returns the oldest segment except the head.
    pub(super) fn oldest(&self) -> Option<LiveSegment> {
        self.closed().map(|segment| segment.known).min_by_key(|known| known.sequence)
    }

    /// Returns the segment with the least live share, except the head, among those that hold a record of this many
    /// bytes.
    pub(super) fn emptiest(&self, whole_bytes: u64) -> Option<LiveSegment> {
        self.fitting(whole_bytes).min_by_key(|known| self.live_share(known))
    }

    /// Returns all of them, the one with the least live share first.
    pub(super) fn emptiest_first(&self, whole_bytes: u64) -> Vec<LiveSegment> {
        let mut fitting: Vec<_> = self.fitting(whole_bytes).collect();
        fitting.sort_by_key(|known| self.live_share(known));
        fitting
    }

    /// Iterates over the segments that hold a record of this many bytes. If too few of the longest are free, only one
    /// of the longest restores the reserve, and nothing is put until it is restored.
    fn fitting(&self, whole_bytes: u64) -> impl Iterator<Item = LiveSegment> {
        let least_pages = if self.lacks_reserve() { self.extents.longest_pages() } else { 0 };
        self.expected().filter(move |it| {
            let extents = &self.extents;
            extents.segment_bytes(it.slot) >= whole_bytes
                && extents.segment_pages(it.slot) >= least_pages
        })
    }

    /// Iterates over all segments in use, except the head, each with its expected live records: the unknown dead
    /// records are assigned to segments in proportion to their records and age.
    fn expected(&self) -> impl Iterator<Item = LiveSegment> {
        let weight = |it: &LiveSegment| {
            u128::from(it.live_records) * u128::from(self.last_sequence - it.sequence)
        };
        let all: u128 = match self.unknown_dead {
            0 => 0,
            _ => self.closed().map(|segment| weight(&segment.known)).sum(),
        };
        self.closed().map(move |segment| {
            let mut it = segment.known;
            if let Some(dead) = (u128::from(self.unknown_dead) * weight(&it)).checked_div(all) {
                let live = it.live_records.saturating_sub(u32::try_from(dead).unwrap_or(u32::MAX));
                it.live_bytes = part_of(it.live_bytes, live.into(), it.live_records.into());
                it.live_records = live;
            }
            it
        })
    }

    /// Notes the number of records that count as live and are dead, whichever they are.
    pub(super) fn note_unknown_dead(&mut self, records: u64) {
        self.unknown_dead = records;
    }

    /// The number of records that count as live and are dead.
    pub(super) fn unknown_dead(&self) -> u64 {
        self.unknown_dead
    }

    /// The number of the segment that was begun last.
    pub(super) fn last_sequence(&self) -> u64 {
        self.last_sequence
    }

    /// Returns the live share of a segment, in parts of 2^20, and its number, so that the oldest of equals comes first.
    fn live_share(&self, known: &LiveSegment) -> (u64, u64) {
        let bytes = self.extents.segment_bytes(known.slot).max(1);
        ((known.live_bytes << 20) / bytes, known.sequence)
    }

    /// Returns the share of a segment that is garbage, in parts of 2^20.
    pub(super) fn garbage_share(&self, known: &LiveSegment) -> u64 {
        (1u64 << 20).saturating_sub(self.live_share(known).0)
    }

    /// Returns all segments in use, except the head.
    pub(super) fn all_closed(&self) -> Vec<LiveSegment> {
        self.closed().map(|segment| segment.known).collect()
    }

    /// Returns whether at least one in `part` bytes of a segment is garbage.
    pub(super) fn has_garbage(&self, segment: LiveSegment, part: u64) -> bool {
        let bytes = self.extents.segment_bytes(segment.slot);
        segment.live_bytes <= bytes - bytes / part
    }

    /// Returns whether at least one in `part` of a segment's written bytes is dead. The space that no record used,
    /// because a longer one did not fit, does not count: copies might leave as much.
    pub(super) fn has_dead(&self, segment: LiveSegment, part: u64) -> bool {
        part * dead_bytes(&segment) >= segment.written_bytes()
    }

    /// Returns whether at least one in `part` of all written bytes, except in the head, is dead.
    pub(super) fn have_dead(&self, part: u64) -> bool {
        let sums = self.expected().map(|it| (it.written_bytes(), dead_bytes(&it)));
        let (written, dead) = sums.fold((0, 0), |sum, it| (sum.0 + it.0, sum.1 + it.1));
        part * dead >= written
    }

    /// Returns the segments with records that have references, oldest first.
    pub(super) fn live(&self) -> Vec<LiveSegment> {
        let all = self.by_slot.iter().flatten().map(|segment| segment.known);
        let mut live: Vec<_> = all.filter(|known| known.live_records > 0).collect();
        live.sort_unstable_by_key(|known| known.sequence);
        live
    }

    /// Returns the oldest segment, except the head, whose live bytes were not counted since the log was opened.
    pub(super) fn uncounted(&self) -> Option<LiveSegment> {
        let uncounted = self.closed().filter(|segment| !segment.is_counted);
        uncounted.map(|segment| segment.known).min_by_key(|known| known.sequence)
    }

    fn closed(&self) -> impl Iterator<Item = &Segment> {
        self.by_slot.iter().flatten().filter(|segment| Some(segment.known.slot) != self.head)
    }

    fn known(&mut self, slot: u32) -> Option<&mut LiveSegment> {
        Some(&mut self.by_slot.get_mut(slot as usize)?.as_mut()?.known)
    }

    /// Notes the number of written pages of a segment.
    pub(super) fn note_pages(&mut self, slot: u32, pages: u32) {
        if let Some(known) = self.known(slot) {
            known.pages = pages;
        }
    }

    /// Notes that a reference to a record exists now.
    pub(super) fn note_live(&mut self, reference: ValueRef) {
        if let Some(known) = self.known(reference.slot) {
            known.live_bytes += reference.whole_bytes();
            known.live_records += 1;
        }
    }

    /// Notes that no reference to a record exists any more.
    pub(super) fn note_dead(&mut self, reference: ValueRef) {
        if self.holding(reference).is_none() {
            return;
        }
        if let Some(known) = self.known(reference.slot) {
            known.live_bytes = known.live_bytes.saturating_sub(reference.whole_bytes());
            known.live_records = known.live_records.saturating_sub(1);
        }
    }

    /// Notes the counts of a segment.
    pub(super) fn note_counted(&mut self, slot: u32, live: LiveCounts) {
        self.note_live_counts(slot, live, true);
    }

    /// Notes the most that may be live in a segment found after a crash.
    pub(super) fn note_uncounted(&mut self, slot: u32, live: LiveCounts) {
        self.note_live_counts(slot, live, false);
    }

    fn note_live_counts(&mut self, slot: u32, live: LiveCounts, is_counted: bool) {
        if let Some(Some(segment)) = self.by_slot.get_mut(slot as usize) {
            let dead = segment.known.live_records.saturating_sub(live.records);
            self.unknown_dead = self.unknown_dead.saturating_sub(dead.into());
            (segment.known.live_bytes, segment.known.live_records) = (live.bytes, live.records);
            segment.is_counted = is_counted;
        }
    }

    /// The number of segments that can be begun.
    pub(super) fn free_count(&self) -> usize {
        self.free.len()
    }

    /// The number of segments that can be begun after the next checkpoint.
    pub(super) fn freed_count(&self) -> usize {
        self.freed.len()
    }

    /// Returns the bytes with references, and the bytes without in closed segments and in the written part of the head.
    pub(super) fn live_and_garbage_bytes(&self, page_bytes: u64) -> (u64, u64) {
        let all = self.by_slot.iter().flatten().map(|segment| segment.known);
        let (live, used) = all.fold((0, 0), |(live, used), known| {
            let own = match Some(known.slot) == self.head {
                true => u64::from(known.pages) * page_bytes,
                false => self.extents.segment_bytes(known.slot),
            };
            (live + known.live_bytes, used + own)
        });
        let live = part_of(live, self.live_records(), self.counted_records());
        (live, used.saturating_sub(live))
    }

    /// The number of records with references.
    pub(super) fn live_records(&self) -> u64 {
        self.counted_records().saturating_sub(self.unknown_dead)
    }

    /// The number of records that count as live.
    pub(super) fn counted_records(&self) -> u64 {
        self.by_slot.iter().flatten().map(|segment| u64::from(segment.known.live_records)).sum()
    }

    /// Captures the state for the checkpoint.
    pub(super) fn capture(&mut self) -> ValuesState {
        self.captured = self.freed.len();
        let mut live: Vec<_> = self.by_slot.iter().flatten().map(|segment| segment.known).collect();
        live.sort_by_key(|known| known.sequence);
        let free = self.free.iter().chain(&self.freed).copied().collect();
        let (overwritten, added) = (self.overwritten, self.extents.added());
        ValuesState { last_sequence: self.last_sequence, live, free, overwritten, added }
    }

    /// Notes that the last capture is durable.
    pub(super) fn committed(&mut self) {
        let captured = std::mem::take(&mut self.captured);
        self.free.extend(self.freed.drain(..captured));
        self.count_longest();
    }

    /// The RAM that it uses, in bytes.
    pub(super) fn ram_bytes(&self) -> usize {
        self.by_slot.capacity() * size_of::<Option<Segment>>()
            + (self.free.capacity() + self.freed.capacity()) * size_of::<u32>()
    }
}

/// Returns the share of `bytes` that `count` of `all` have.
fn part_of(bytes: u64, count: u64, all: u64) -> u64 {
    let part = u128::from(bytes) * u128::from(count);
    part.checked_div(all.into()).map_or(bytes, |part| part as u64)
}

/// Returns the number of written bytes that no live record has.
fn dead_bytes(segment: &LiveSegment) -> u64 {
    segment.written_bytes().saturating_sub(segment.live_bytes)
}

/// Returns a segment without written pages.
fn unwritten(slot: u32, sequence: u64) -> LiveSegment {
    LiveSegment { slot, sequence, pages: 0, live_bytes: 0, live_records: 0 }
}
