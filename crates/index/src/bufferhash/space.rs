//! Space for a recovery under a partial discard.
//!
//! A recovery writes again the segments that were on their way to flash at the power cut, so it can need more segments
//! than the table had free. Evictions cannot free them in the usual way: retained entries would be logged after updates
//! that are still to be replayed, and shadow these at the next opening. A recovery therefore copies the retained
//! entries into buffers, has a checkpoint save these as snapshots, and only then frees the segments.

use std::sync::atomic::Ordering::Relaxed;

use nandex_store::ring::{SegmentId, SegmentTag};

use super::Inner;
use super::table::Incarnation;
use crate::Result;

/// An incarnation, and its super table.
type Owned = (usize, Incarnation);

impl Inner {
    /// Ensures that a flush of this super table finds a segment, and leaves one. The caller holds no lock and
    /// replays no update meanwhile. Returns whether buffers have changed.
    pub(super) fn make_space(&self, index: usize) -> Result<bool> {
        if !self.layout.config.policy.is_partial() || !self.is_short(index) {
            return Ok(false);
        }
        // One trip around the ring finds all available space.
        let mut left = self.layout.config.segments;
        loop {
            self.flush_all()?;
            if !self.is_short(index) {
                return Ok(true);
            }
            let copied = if left > 0 { self.copy_oldest(index)? } else { Vec::new() };
            left = left.saturating_sub(copied.len() as u64);
            match copied[..] {
                [] if !self.force_oldest(index) => return Ok(false),
                [] => {}
                _ => {
                    self.flush_all()?;
                    copied.into_iter().for_each(|owned| self.let_go(owned));
                }
            }
        }
    }

    /// Returns whether the flush would find no segment or no column, or take the last segment.
    fn is_short(&self, index: usize) -> bool {
        let ring = self.layout.rings.of(index);
        let is_here = |other: &usize| std::ptr::eq(self.layout.rings.of(*other), ring);
        let waiting = |other: usize| self.partitions[other].read().frozen.len();
        let all: usize = (0..self.partitions.len()).filter(is_here).map(waiting).sum();
        ring.writable_segments() < all as u64 + 2 || self.is_level_full(index)
    }

    fn is_level_full(&self, index: usize) -> bool {
        let state = self.partitions[index].read();
        let most = self.layout.config.incarnations_max as usize;
        state.level.window.len() + state.frozen.len() >= most
    }

    /// Returns the incarnations to drop, oldest first: at most as many as are kept free ahead.
    fn oldest(&self, index: usize) -> Vec<Owned> {
        let (rings, partitions) = (&self.layout.rings, &self.partitions);
        if self.is_level_full(index) {
            let oldest = partitions[index].read().level.oldest();
            return oldest.map(|oldest| (index, oldest)).into_iter().collect();
        }
        let own =
            |(id, tag): (SegmentId, SegmentTag)| (tag.owner as usize, Incarnation::of(id, tag));
        let most = usize::try_from(rings.reserve_segments()).unwrap_or(usize::MAX);
        rings.of(index).segments().into_iter().map(own).take(most).collect()
    }

    /// Copies the retained entries of the oldest incarnations into buffers, as far as these have space.
    fn copy_oldest(&self, index: usize) -> Result<Vec<Owned>> {
        let mut copied = Vec::new();
        for (table, incarnation) in self.oldest(index) {
            if !self.copy(table, incarnation, copied.is_empty())? {
                break;
            }
            copied.push((table, incarnation));
        }
        Ok(copied)
    }

    /// Copies the retained entries of an incarnation; `may_freeze` allows flushing a full buffer first. Returns whether
    /// there was space for all of them.
    fn copy(&self, index: usize, incarnation: Incarnation, may_freeze: bool) -> Result<bool> {
        self.load_filters(index)?;
        let table = &self.partitions[index];
        let _lock = table.maintain();
        let pages = self.read_incarnation(index, incarnation.id)?;
        let kept = self.choose(index, incarnation, &pages)?;
        let mut state = table.write();
        let kept = state.not_buffered(&kept)?;
        if self.layout.shape.buffer_limit() < state.active_mut().len() + kept.len() {
            let has_segment = self.layout.rings.of(index).writable_segments() > 0;
            if !may_freeze || !has_segment || !self.try_freeze(index, &mut state, 0)? {
                return Ok(false);
            }
        }
        for &(hash, entry) in &kept {
            state.active_mut().put_carried_over(hash, entry);
        }
        state.updates += kept.len() as u64;
        drop(state);
        let dropped = u64::from(incarnation.entries).saturating_sub(kept.len() as u64);
        self.counters.retained.fetch_add(kept.len() as u64, Relaxed);
        self.counters.evicted.fetch_add(dropped, Relaxed);
        Ok(true)
    }

    /// Drops an incarnation whose copies are durable.
    fn let_go(&self, (index, incarnation): Owned) {
        let table = &self.partitions[index];
        let _lock = table.maintain();
        let mut state = table.write();
        let ring = self.layout.rings.of(index);
        ring.complete(incarnation.id, SegmentTag::default());
        self.drop_oldest(index, &mut state);
        while let Some((id, SegmentTag { entries: 0, .. })) = ring.oldest() {
            ring.evict(id);
        }
    }

    /// Drops the oldest incarnation, as in normal operation when everything in it is live. Returns whether there was
    /// one.
    fn force_oldest(&self, index: usize) -> bool {
        let Some(&owned) = self.oldest(index).first() else { return false };
        let dropped = u64::from(owned.1.entries);
        self.counters.evicted.fetch_add(dropped, Relaxed);
        self.counters.forced_evictions.fetch_add(dropped, Relaxed);
        self.let_go(owned);
        true
    }
}
