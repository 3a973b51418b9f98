//! Which segments hold records, which are free, and the order in which free ones are used.
//!
//! A freed segment is used again only after a durable checkpoint knows it as free. Free ones are used in the
//! checkpoint's order, so that recovery knows where segments begun since then are.

use std::collections::VecDeque;

use crate::mutants::{Barrier, is_on};

use super::config::ValuesConfig;
use super::format::{LiveSegment, ValueRef, ValuesState};

/// A segment in use.
#[derive(Clone, Copy, Debug)]
struct Segment {
    known: LiveSegment,
    /// Were its live bytes counted since the log was opened? A crash forgets what became garbage.
    is_counted: bool,
}

/// The segments of a value log.
#[derive(Debug)]
pub(super) struct Segments {
    by_slot: Vec<Option<Segment>>,
    last_sequence: u64,
    head: Option<u32>,
    free: VecDeque<u32>,
    /// Freed, and not yet free in a durable checkpoint.
    freed: VecDeque<u32>,
    /// How many of those the last capture has.
    captured: usize,
    segment_bytes: u64,
}

impl Segments {
    pub(super) fn new(config: &ValuesConfig, state: &ValuesState) -> Self {
        let mut by_slot = vec![None; config.segments as usize];
        for known in &state.live {
            by_slot[known.slot as usize] = Some(Segment { known: *known, is_counted: false });
        }
        Self {
            by_slot,
            last_sequence: state.last_sequence,
            head: state.live.last().map(|segment| segment.slot),
            free: state.free.iter().copied().collect(),
            freed: VecDeque::new(),
            captured: 0,
            segment_bytes: config.segment_bytes(),
        }
    }

    /// The segment that is written.
    pub(super) fn head(&self) -> Option<LiveSegment> {
        self.get(self.head?)
    }

    /// The segment in that place, if it holds records.
    pub(super) fn get(&self, slot: u32) -> Option<LiveSegment> {
        Some(self.by_slot.get(slot as usize)?.as_ref()?.known)
    }

    /// The segment of a reference, if it was not overwritten or freed.
    pub(super) fn holding(&self, reference: ValueRef) -> Option<LiveSegment> {
        let found = self.get(reference.slot)?;
        ((found.sequence & u64::from(u32::MAX)) as u32 == reference.sequence).then_some(found)
    }

    /// The place and number of the next segment.
    pub(super) fn next(&self) -> Option<(u32, u64)> {
        Some((*self.free.front()?, self.last_sequence + 1))
    }

    /// Begins the next segment, if more than `spared` are free.
    pub(super) fn begin(&mut self, spared: usize) -> Option<LiveSegment> {
        if self.free.len() <= spared {
            return None;
        }
        let (slot, sequence) = self.next()?;
        self.free.pop_front();
        let known = LiveSegment { slot, sequence, pages: 0, live_bytes: 0 };
        self.by_slot[slot as usize] = Some(Segment { known, is_counted: true });
        (self.head, self.last_sequence) = (Some(slot), sequence);
        Some(known)
    }

    /// Frees a segment.
    pub(super) fn free(&mut self, slot: u32) {
        if self.by_slot[slot as usize].take().is_some() {
            let spared = is_on(Barrier::ValuesSpareCheckpoint);
            let list = if spared { &mut self.freed } else { &mut self.free };
            list.push_back(slot);
        }
    }

    /// The oldest segment except the head.
    pub(super) fn oldest(&self) -> Option<LiveSegment> {
        self.closed().map(|segment| segment.known).min_by_key(|known| known.sequence)
    }

    /// The segment with the fewest live bytes, except the head.
    pub(super) fn emptiest(&self) -> Option<LiveSegment> {
        let bytes = |known: &LiveSegment| (known.live_bytes, known.sequence);
        self.closed().map(|segment| segment.known).min_by_key(bytes)
    }

    /// The oldest segment, except the head, whose live bytes were not counted since the log was opened.
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

    /// Notes how many pages of a segment are written.
    pub(super) fn note_pages(&mut self, slot: u32, pages: u32) {
        if let Some(known) = self.known(slot) {
            known.pages = pages;
        }
    }

    /// Notes that a reference to a record exists now.
    pub(super) fn note_live(&mut self, reference: ValueRef) {
        if let Some(known) = self.known(reference.slot) {
            known.live_bytes += reference.whole_bytes();
        }
    }

    /// Notes that no reference to a record exists any more.
    pub(super) fn note_dead(&mut self, reference: ValueRef) {
        if self.holding(reference).is_none() {
            return;
        }
        if let Some(known) = self.known(reference.slot) {
            known.live_bytes = known.live_bytes.saturating_sub(reference.whole_bytes());
        }
    }

    /// Notes the counted live bytes of a segment.
    pub(super) fn note_counted(&mut self, slot: u32, live_bytes: u64) {
        if let Some(segment) = &mut self.by_slot[slot as usize] {
            segment.known.live_bytes = live_bytes;
            segment.is_counted = true;
        }
    }

    /// Notes the most bytes that may be live in a segment found after a crash.
    pub(super) fn note_uncounted(&mut self, slot: u32, live_bytes: u64) {
        if let Some(segment) = &mut self.by_slot[slot as usize] {
            segment.known.live_bytes = live_bytes;
            segment.is_counted = false;
        }
    }

    /// Segments that can be begun.
    pub(super) fn free_count(&self) -> usize {
        self.free.len()
    }

    /// Segments that can be begun after the next checkpoint.
    pub(super) fn freed_count(&self) -> usize {
        self.freed.len()
    }

    /// Bytes with references, and bytes without in closed segments and in the written part of the head.
    pub(super) fn live_and_garbage_bytes(&self, page_bytes: u64) -> (u64, u64) {
        let all = self.by_slot.iter().flatten();
        all.fold((0, 0), |(live, garbage), segment| {
            let known = segment.known;
            let is_head = Some(known.slot) == self.head;
            let used =
                if is_head { u64::from(known.pages) * page_bytes } else { self.segment_bytes };
            (live + known.live_bytes, garbage + used.saturating_sub(known.live_bytes))
        })
    }

    /// The state for the checkpoint.
    pub(super) fn capture(&mut self) -> ValuesState {
        self.captured = self.freed.len();
        let mut live: Vec<_> = self.by_slot.iter().flatten().map(|segment| segment.known).collect();
        live.sort_by_key(|known| known.sequence);
        let free = self.free.iter().chain(&self.freed).copied().collect();
        ValuesState { last_sequence: self.last_sequence, live, free }
    }

    /// The last capture is durable.
    pub(super) fn committed(&mut self) {
        let captured = std::mem::take(&mut self.captured);
        self.free.extend(self.freed.drain(..captured));
    }

    /// RAM it holds, in bytes.
    pub(super) fn ram_bytes(&self) -> usize {
        self.by_slot.capacity() * size_of::<Option<Segment>>()
            + (self.free.capacity() + self.freed.capacity()) * size_of::<u32>()
    }
}
