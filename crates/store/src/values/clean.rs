//! The choice of segments that are worth cleaning, and the counts that their owner reports.

use std::sync::atomic::Ordering::Relaxed;

use super::config::RESERVE_SEGMENTS;
use super::extents::payload;
use super::format::{LiveSegment, PAYLOAD_BYTES, RECORD_HEADER_BYTES};
use super::{LiveCounts, ValueLog, grow};
use crate::WhenFull;

/// The reciprocal of the share of garbage from which on a segment is worth cleaning before the log refuses records.
const GARBAGE_PART: u64 = 8;

/// The reciprocal of the share of free segments below which the log is cleaned ahead.
const FREE_PART: usize = 8;

/// The reciprocal of the largest share of the log that is cleaned together.
const CLEANED_PART: u64 = 4;

impl ValueLog {
    /// Returns the segment with the best ratio of garbage to copies among those that hold a record of this many bytes,
    /// if an eighth of it is garbage.
    #[must_use]
    pub fn worth_cleaning(&self, bytes: u64) -> Option<LiveSegment> {
        let state = self.inner.state();
        let found = state.segments.emptiest(bytes + RECORD_HEADER_BYTES as u64);
        found.filter(|segment| state.segments.has_garbage(*segment, GARBAGE_PART))
    }

    /// Like [`worth_cleaning`](Self::worth_cleaning): returns the best segment, and after it those that have at least
    /// two thirds of its garbage, up to a quarter of the log.
    #[must_use]
    pub fn all_worth_cleaning(&self, bytes: u64) -> Vec<LiveSegment> {
        let state = self.inner.state();
        let segments = &state.segments;
        let most_bytes = segments.extents().pages() * PAYLOAD_BYTES as u64 / CLEANED_PART;
        let mut found = segments.emptiest_first(bytes + RECORD_HEADER_BYTES as u64);
        found.retain(|segment| segments.has_garbage(*segment, GARBAGE_PART));
        let most_garbage = found.first().map_or(0, |best| segments.garbage_share(best));
        let mut bytes = 0;
        let together = found.iter().take_while(|segment| {
            bytes += segments.extents().segment_bytes(segment.slot);
            bytes <= most_bytes && 3 * segments.garbage_share(segment) >= 2 * most_garbage
        });
        let count = together.count().max(1);
        found.truncate(count);
        found
    }

    /// The number of bytes of records that copies may take without using the whole reserve: those of free segments, and
    /// the rest of the head.
    #[must_use]
    pub fn free_bytes_for_copies(&self) -> u64 {
        let state = self.inner.state();
        state.segments.free_bytes_for_copies() + self.inner.head_rest(&state)
    }

    /// The number of bytes of records that puts may take without using the reserve.
    #[must_use]
    pub fn free_bytes_for_puts(&self) -> u64 {
        let state = self.inner.state();
        let segments = &state.segments;
        let longest = payload(segments.extents().longest_pages());
        segments.free_bytes_for_copies().saturating_sub(longest) + self.inner.head_rest(&state)
    }

    /// Returns whether free segments run short while some are worth cleaning, which is better than growth: at most one
    /// in eight is free, not counting the reserve.
    #[must_use]
    pub fn cleans_ahead(&self) -> bool {
        let state = self.inner.state();
        let segments = &state.segments;
        let free = segments.free_count() + segments.freed_count();
        let few = RESERVE_SEGMENTS + segments.extents().slots() as usize / FREE_PART;
        if free > few {
            return false;
        }
        match self.inner.config.when_full {
            WhenFull::EvictOldest => false,
            WhenFull::Refuse => {
                segments.emptiest(0).is_some_and(|best| segments.has_garbage(best, GARBAGE_PART))
            }
            WhenFull::Grow => grow::is_cleaned_first(segments, 0),
        }
    }

    /// Returns the written segments, except the head.
    #[must_use]
    pub fn closed_segments(&self) -> Vec<LiveSegment> {
        self.inner.state().segments.all_closed()
    }

    /// Notes the most records that can be live, where some were replaced without a [`note_dead`](Self::note_dead).
    /// Cleaning and [`stats`](Self::stats) then assume that older ones are dead, the more the longer they may have been
    /// replaced.
    pub fn note_live_at_most(&self, records: u64) {
        let segments = &mut self.inner.state().segments;
        let dead = segments.counted_records().saturating_sub(records);
        segments.note_unknown_dead(dead);
    }

    /// Returns whether some of the records that count as live are dead, and it is unknown which.
    #[must_use]
    pub fn has_unknown_dead(&self) -> bool {
        self.inner.state().segments.unknown_dead() > 0
    }

    /// Returns a segment whose live bytes were not counted since the log was opened, and may be fewer than noted.
    #[must_use]
    pub fn uncounted(&self) -> Option<LiveSegment> {
        self.inner.state().segments.uncounted()
    }

    /// Notes the live part of a segment, as its owner has counted it.
    pub fn note_counted(&self, segment: LiveSegment, live: LiveCounts) {
        let segments = &mut self.inner.state().segments;
        // A segment that was overwritten meanwhile may have become another.
        if segments.get(segment.slot).is_some_and(|it| it.sequence == segment.sequence) {
            segments.note_counted(segment.slot, live);
        }
    }

    /// Frees a segment without live records. Every reference that has replaced one into it must be durable. The segment
    /// can be written after the next checkpoint.
    pub fn give_back(&self, segment: LiveSegment) {
        self.inner.state().segments.free(segment.slot);
        self.inner.counters.cleaned_segments.fetch_add(1, Relaxed);
    }
}
