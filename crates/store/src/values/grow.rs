//! Growth: more segments, in a new extent of the volume.
//!
//! An extent belongs to the log once a capture names it, and its segments are written only when a checkpoint with that
//! capture is durable. So a crash leaves the log as it was, with the extent free, or with segments that are free.
//!
//! A log grows when none of its segments is half garbage and less than a third of all that is written is dead. Cleaning
//! a segment with a live share of u writes u/(1 - u) bytes for each byte that it frees. Overwritten at random, the
//! emptiest segment of a log with a live share of s has the u for which s = (u - 1)/ln u: .42 where two thirds are
//! live. So puts and copies together write about 1.7 times the bytes that are put. Records, garbage and an eighth to
//! grow by take at most 1.7 times the space of the live records: 1.5 times that of a log that was just filled, which
//! has an eighth to grow by too. Without the second rule the first round of updates, which leaves a little garbage in
//! each segment, would double the log.

use crate::space::{Extent, LEFT_PAGES_MIN};
use crate::{Error, Result, Threads, WhenFull};

use super::extents::SegmentGroup;
use super::segments::Segments;
use super::{Inner, Purpose};

/// The reciprocal of the share of garbage from which on a segment is cleaned instead of growing the log.
const GARBAGE_PART: u64 = 2;

/// The reciprocal of the dead share of all that is written from which on the emptiest segment is cleaned too, if as
/// much of it is dead.
const LOG_DEAD_PART: u64 = 3;

/// The reciprocal of the share of a log's length that stays free in the volume, at least [`LEFT_PAGES_MIN`].
/// Checkpoints need it, and so does the table of references: without free pages, not even a removal would be possible.
const LEFT_PART: u64 = 16;

/// The alternative to growth.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Growth {
    /// Clean a segment instead, if one is worth it.
    RatherClean,
    /// None: grow at once.
    AtOnce,
}

impl Inner {
    /// Adds segments for a record of this many bytes, if the log grows; returns whether a checkpoint will free one.
    ///
    /// # Errors
    /// A failure of the device, except that it has no space, which the log notes.
    pub(super) fn grow(&self, whole_bytes: u64, growth: Growth) -> Result<bool> {
        if self.config.when_full != WhenFull::Grow {
            return Ok(false);
        }
        let _growing = self.growing.lock().expect("no holder of the growth's lock panics");
        let spared = self.spared(Purpose::Put);
        let growths = {
            let state = self.state();
            if state.segments.will_have_free(whole_bytes, spared) {
                return Ok(true);
            }
            // After crashes during cleaning its reserve may be used up.
            let segments = &state.segments;
            let can_clean = !segments.lacks_reserve() || segments.is_cleaned_without_reserve();
            let may_clean = growth == Growth::RatherClean && can_clean;
            if may_clean && is_cleaned_first(segments, whole_bytes) {
                return Ok(false);
            }
            state.segments.extents().growths(whole_bytes)
        };
        self.add_first_possible(&growths)
    }

    /// Grows before the last segment is full, so that no put waits for it. A failure is reported by the put that needs
    /// the space, which tries again. Without background threads puts would wait for this too, and grow when it is due.
    pub(super) fn grow_ahead(&self) {
        let grows = self.config.when_full == WhenFull::Grow;
        if !grows || self.volume.threads() == Threads::Inline {
            return;
        }
        // While a segment is cleaned, its reserve is in use, which is not a sign of a lack.
        if !is_cleaned_first(&self.state().segments, 1) {
            let _ = self.grow(1, Growth::RatherClean);
        }
    }

    /// Adds the first of these groups of segments for which the volume has space.
    fn add_first_possible(&self, growths: &[SegmentGroup]) -> Result<bool> {
        let mut reason = "it has as many segments as a log can have".to_owned();
        for group in growths {
            match self.allocate_and_leave_some(group.pages()) {
                Ok(extent) => {
                    let mut state = self.state();
                    state.segments.add(*group, extent);
                    state.stopped = None;
                    return Ok(true);
                }
                Err(Error::Device(error @ nandex_device::Error::NoSpace { .. })) => {
                    reason = error.to_string();
                }
                Err(error) => return Err(error),
            }
        }
        self.state().stopped = Some(reason);
        Ok(false)
    }

    /// Allocates an extent, if the volume then has pages left for others.
    fn allocate_and_leave_some(&self, pages: u64) -> Result<Extent> {
        let extent = self.volume.allocate(pages)?;
        let log_pages = self.state().segments.extents().pages() + pages;
        let left = (log_pages / LEFT_PART).max(LEFT_PAGES_MIN);
        if let Err(error) = self.volume.leave_free(left) {
            self.volume.give_back(extent);
            return Err(error);
        }
        Ok(extent)
    }
}

/// Returns whether a segment for a record of this many bytes is worth cleaning instead of growing.
pub(super) fn is_cleaned_first(segments: &Segments, whole_bytes: u64) -> bool {
    let Some(emptiest) = segments.emptiest(whole_bytes) else { return false };
    segments.has_garbage(emptiest, GARBAGE_PART)
        || segments.has_dead(emptiest, LOG_DEAD_PART) && segments.have_dead(LOG_DEAD_PART)
}
