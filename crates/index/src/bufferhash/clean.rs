//! Cleaning: a super table is rewritten without updated or removed entries, when a table that rejects inserts would
//! otherwise be full.
//!
//! All incarnations of one super table are read from front to back, and the newest version of each key is written
//! again, into as few segments as possible, bypassing buffers and log. Removals are dropped together with what they
//! shadow. The new incarnations replace all old ones at once. So the paper's partial discard of the oldest incarnation
//! (NSDI'10, section 5.1.2) becomes one of all of them: reads are long, and none needs the filters for a key.
//!
//! ```text
//!   ring    | A | B | A | C | B | A |  reserve  |          A has the most that came since it was rewritten
//!             |       |           |
//!             +-------+-----------+--> newest version of each key
//!                                         |
//!           |   | B |   | C | B |   | A | A |              what is dead is free after a checkpoint
//! ```
//!
//! If live entries are a share u of the ring and updates are spread evenly, a super table is rewritten when about u /
//! (2 - u) of it is live, and an update writes 1 + u / (2 (1 - u)) entries: 2.2 with u = .7.
//!
//! Invariants
//! 1. While a super table is rewritten none of its buffers is frozen: a buffer's entries are newer than the rewritten
//!    ones, and so is its segment.
//! 2. In the ring's map the new segments replace the old ones at one moment.

use std::sync::atomic::Ordering::{Acquire, Relaxed, SeqCst};
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU64};

use nandex_store::ring::{Ring, SegmentId, SegmentTag};

use super::Inner;
use super::flush::{SPACE_WAIT, Scratch};
use super::rewrite::Written;
use super::table::{Incarnation, Job, Level, State};
use crate::write::{Space, pool};
use crate::{Error, Result, damage};

/// The number of times that the ring is checked again while a checkpoint may free segments.
const SPACE_WAITS: usize = 100;
/// The divisor of the keys that a table was made for: it rejects inserts once it has that share more.
const OVER: u64 = 32;

/// The state of cleaning in a table.
#[derive(Debug, Default)]
pub(crate) struct Cleaning {
    /// Whether a job is queued or running.
    is_queued: AtomicBool,
    /// The number of times that incarnations were added or rewritten.
    changes: AtomicU64,
    /// The number of changes after which a job could do nothing. A table without incarnations is not stuck, whatever
    /// the value.
    stuck_at: AtomicU64,
    /// The number of buffers that have a segment and are not on flash yet.
    waiting: AtomicU64,
    /// The number of entries added to super tables since each was rewritten.
    unclean: AtomicU64,
    /// The number of keys on flash, as estimated by flushes.
    keys: AtomicI64,
}

impl Cleaning {
    /// Notes a new incarnation.
    pub(super) fn came(&self, incarnation: &Incarnation) {
        self.changes.fetch_add(1, SeqCst);
        self.keys.fetch_add(incarnation.keys.into(), Relaxed);
        if !incarnation.is_clean {
            self.unclean.fetch_add(incarnation.entries.into(), Relaxed);
        }
    }

    /// Returns whether the last job could do nothing, and nothing has changed since.
    fn is_stuck(&self) -> bool {
        self.stuck_at.load(SeqCst) == self.changes.load(SeqCst)
    }

    /// Notes that a buffer that had a segment is on flash.
    pub(super) fn landed(&self) {
        self.waiting.fetch_sub(1, SeqCst);
    }

    /// Returns the approximate number of keys on flash.
    pub(super) fn keys(&self) -> u64 {
        self.keys.load(Relaxed).max(0).cast_unsigned()
    }
}

impl Inner {
    /// Reserves space as [`Layout::reserve`](crate::write::Layout::reserve) does, for a table that is cleaned.
    pub(super) fn reserve_cleaned(
        &self,
        index: usize,
        state: &State,
    ) -> Result<Space<Option<SegmentId>>> {
        if state.level.is_cleaned {
            return Ok(Space::Pending);
        }
        let ring = self.layout.rings.of(index);
        let is_ready = self.ready.load(Acquire);
        let reserve = if is_ready { self.layout.rings.reserve_segments() } else { 0 };
        // Removals make space once they are on flash.
        let removes = state.forced >= u64::from(self.layout.shape.entries_max / OVER as u32).max(1);
        let spare = if removes { reserve / 2 } else { reserve };
        let kept = usize::from(is_ready);
        let most = self.layout.config.incarnations_max as usize - kept;
        let has_column = state.level.window.len() + state.frozen.len() < most;
        let is_over = is_ready && self.layout.cleaning.keys() > self.keys_max();
        let has_space = has_column && ring.free_segments() > spare && (!is_over || removes);
        let more = Self::columns_more(state);
        let has_ram = has_space && self.take_columns(more, is_ready);
        if has_ram {
            let ahead = reserve + u64::from(self.layout.config.spare_buffers);
            if is_ready && ring.free_segments() <= ahead {
                self.queue_cleaning(None);
            }
            if let Some(id) = ring.reserve() {
                self.layout.cleaning.waiting.fetch_add(1, SeqCst);
                return Ok(Space::Reserved(Some(id)));
            }
            self.layout.columns.give_back(more);
            if is_ready {
                // Only a checkpoint is missing.
                self.queue_cleaning(None);
                return Ok(Space::Pending);
            }
        }
        if is_ready && self.may_clean() {
            self.queue_cleaning(match (has_column, has_space) {
                (false, _) => Some(index),
                (true, true) => self.frees_columns(index, &state.level),
                (true, false) => None,
            });
            return Ok(Space::Pending);
        }
        Err(Error::Full { entries: self.layout.cleaning.keys(), flash_bytes: self.flash_bytes() })
    }

    /// Takes columns for a flush, as far as RAM allows; a recovery is not limited.
    fn take_columns(&self, more: u64, is_ready: bool) -> bool {
        if is_ready {
            return self.layout.columns.try_take(more);
        }
        self.layout.columns.take(more);
        true
    }

    /// Returns the super table to rewrite if RAM has no columns for this one: the next one for which older generations
    /// take RAM, otherwise this one, if many entries were added since it was rewritten, otherwise the one with the most
    /// to gain.
    fn frees_columns(&self, index: usize, level: &Level) -> Option<usize> {
        let unclean_min = u64::from(self.layout.config.filter.entries_max());
        self.next_to_take_over().or((level.unclean > unclean_min).then_some(index))
    }

    /// Returns the number of keys that the table takes.
    fn keys_max(&self) -> u64 {
        self.layout.config.entries_max + self.layout.config.entries_max / OVER
    }

    /// Returns whether rewriting super tables may make space, or show that there is some, now or after the running
    /// flushes.
    fn may_clean(&self) -> bool {
        let cleaning = &self.layout.cleaning;
        let unclean = cleaning.unclean.load(Relaxed);
        // Keys counted when each super table was last rewritten. The table is full only if the current estimate is too
        // high as well, since keys may have been removed meanwhile.
        let known = self.counters.flushed_entries.load(Relaxed).saturating_sub(unclean);
        let is_full = known.min(cleaning.keys()) > self.keys_max();
        let has_more = unclean > 0 || self.next_to_take_over().is_some();
        let is_possible = has_more && !cleaning.is_stuck();
        !is_full && (is_possible || cleaning.waiting.load(SeqCst) > 0)
    }

    /// Queues the rewriting of that super table, or of the one with the most to gain. Only one at a time is rewritten.
    fn queue_cleaning(&self, index: Option<usize>) {
        if !self.layout.cleaning.is_queued.swap(true, SeqCst) {
            self.work.push(pool::Job::Own(Job::Clean(index)));
        }
    }

    /// Rewrites a super table if segments are short: that one, or the one with the most to gain. Reads all of its
    /// pages, and writes its live entries.
    pub(super) fn clean(&self, index: Option<usize>, scratch: &mut Scratch) -> Result<()> {
        let cleaned = self.clean_worst(index, scratch);
        self.layout.cleaning.is_queued.store(false, SeqCst);
        cleaned
    }

    fn clean_worst(&self, index: Option<usize>, scratch: &mut Scratch) -> Result<()> {
        let cleaning = &self.layout.cleaning;
        let (changes, waiting) = (cleaning.changes.load(SeqCst), cleaning.waiting.load(SeqCst));
        let ring = self.layout.rings.of(0);
        let needed =
            |index: usize| self.segments_needed(index, &self.partitions[index].read().level);
        let asked = index.filter(|index| needed(*index) <= ring.free_segments());
        let index = match asked.or_else(|| self.worst(ring)) {
            Some(index) => index,
            None if ring.free_segments() > ring.writable_segments() => {
                return self.ask_for_checkpoint();
            }
            None => {
                if waiting == 0 {
                    cleaning.stuck_at.store(changes, SeqCst);
                }
                return Ok(());
            }
        };
        if !self.await_segments_for(ring, needed(index))? {
            return Ok(());
        }
        let table = &self.partitions[index];
        let takes_over = self.layout.older.is_some() && !table.read().level.is_whole();
        let _taking_over = takes_over.then(|| self.layout.older.keep());
        let _lock = table.maintain();
        {
            let mut state = table.write();
            // A waiting buffer already has its segment, which is older than those of the rewritten incarnations.
            if !state.frozen.is_empty() || state.level.window.is_empty() && !takes_over {
                return Ok(());
            }
            state.level.is_cleaned = true;
        }
        let rewritten = self.rewrite(index, scratch);
        let is_damaged = {
            let mut state = table.write();
            state.level.is_cleaned = false;
            state.level.is_damaged
        };
        // A damaged super table stays as it is: the lookups of its keys report the damage.
        rewritten.or_else(|error| if is_damaged { Ok(()) } else { Err(error) })?;
        // Segments that are dead now can be written after the next checkpoint.
        if ring.writable_segments() <= self.layout.rings.reserve_segments() {
            self.ask_for_checkpoint()?;
        }
        Ok(())
    }

    /// Returns the super table to which most entries were added since it was rewritten, among those that can be
    /// rewritten now.
    fn worst(&self, ring: &Ring) -> Option<usize> {
        let free = ring.free_segments();
        let unclean = |(index, table): (usize, &super::table::SuperTable)| {
            let state = table.read();
            let level = &state.level;
            let can = state.frozen.is_empty() && self.segments_needed(index, level) <= free;
            // Entries of older generations are taken over separately.
            let is_own = level.is_whole() || !self.layout.older.is_some();
            let is_worth_it = level.unclean > 0 && !level.is_damaged && is_own;
            (can && is_worth_it).then_some((level.unclean, index))
        };
        let (_, index) = self.partitions.iter().enumerate().filter_map(unclean).max()?;
        Some(index)
    }

    /// Returns the approximate number of segments that rewriting a super table takes.
    pub(super) fn segments_needed(&self, index: usize, level: &Level) -> u64 {
        let filled = self.segments_filled(index, level, 8) + 2;
        let takes_over = self.layout.older.is_some() && !level.is_whole();
        if takes_over { filled } else { filled.min(level.window.len() as u64 + 1) }
    }

    /// Returns the segments that its keys fill, plus one in `more`.
    fn segments_filled(&self, index: usize, level: &Level, more: u64) -> u64 {
        let keys = self.keys_expected(index, level);
        (keys + keys / more).div_ceil(self.layout.config.filter.entries_max().into())
    }

    /// Waits until `needed` segments can be written, for a checkpoint if necessary; returns whether they can. The
    /// caller holds no lock.
    pub(super) fn await_segments_for(&self, ring: &Ring, needed: u64) -> Result<bool> {
        for _ in 0..SPACE_WAITS {
            self.volume.poison().check()?;
            if ring.writable_segments() >= needed {
                return Ok(true);
            }
            self.ask_for_checkpoint()?;
            if ring.free_segments() < needed {
                return Ok(false);
            }
            ring.wait_for_space(needed, SPACE_WAIT);
        }
        Ok(false)
    }

    /// Rewrites a super table. The caller holds the maintenance lock, and no buffer of the super table can be frozen. A
    /// super table with a page that cannot be read is never rewritten again.
    pub(super) fn rewrite(&self, index: usize, scratch: &mut Scratch) -> Result<()> {
        let (old, segments) = {
            let level = &self.partitions[index].read().level;
            (level.incarnations_newest_first(), self.segments_filled(index, level, 32) as usize)
        };
        let read = self.newest_versions(index, &old, segments);
        let rewriting = read.inspect_err(|error| {
            if damage::page_of(error).is_some() {
                self.leave_damaged(index);
            }
        })?;
        match self.write_again(index, rewriting, scratch)? {
            Some(written) => {
                self.put_rewritten(index, &written)?;
                self.release_older(index)
            }
            None => {
                // Other super tables took the free segments, or this one has more keys than was estimated.
                let mut state = self.partitions[index].write();
                let more = state.level.entries().cast_signed() - state.level.keys;
                state.level.keys += more;
                self.layout.cleaning.keys.fetch_add(more, Relaxed);
                Ok(())
            }
        }
    }

    fn leave_damaged(&self, index: usize) {
        let mut state = self.partitions[index].write();
        state.level.is_damaged = true;
        self.layout.cleaning.unclean.fetch_sub(state.level.unclean, Relaxed);
        state.level.unclean = 0;
    }

    /// Installs the written incarnations in place of all earlier ones of a super table.
    fn put_rewritten(&self, index: usize, written: &[Written]) -> Result<()> {
        let config = &self.layout.config;
        let shape = self.layout.filter.shape();
        let mut level = Level::new(config.incarnations_max, shape, written.len().max(1))?;
        for (incarnation, bits) in written {
            level.push(config.filter.kind(), *incarnation, bits);
        }
        // Nothing is written only if no generation has any of its keys.
        level.has_taken_over = self.layout.older.is_some();
        let mut state = self.partitions[index].write();
        let old = state.level.incarnations_newest_first();
        let tagged = written.iter().map(|(it, _)| (it.id, it.tag(index)));
        let dead = old.iter().map(|it| (it.id, SegmentTag::default()));
        self.layout.rings.of(index).complete_all(tagged.chain(dead));
        let (before, after) = (state.level.entries(), level.entries());
        let (unclean, keys) = (state.level.unclean, state.level.keys);
        let columns = (state.level.columns_with(0), level.columns_with(0));
        state.level.put_rewritten(level);
        drop(state);
        self.layout.columns.give_back(columns.0);
        self.layout.columns.take(columns.1);
        // In this order the known number never seems to be more than it is.
        let (counters, cleaning) = (&self.counters, &self.layout.cleaning);
        counters.flushed_entries.fetch_sub(before, Relaxed);
        counters.flushed_entries.fetch_add(after, Relaxed);
        cleaning.unclean.fetch_sub(unclean, Relaxed);
        cleaning.keys.fetch_add(after.cast_signed() - keys, Relaxed);
        cleaning.changes.fetch_add(1, SeqCst);
        self.moved.store(true, SeqCst);
        Ok(())
    }
}
