//! Makes space ahead of the head: full discard, or partial discard by policy (paper, section 5.1.2).
//!
//! Evictions run just before each checkpoint, which then allows their segments to be overwritten. A partial discard
//! reads the incarnation, searches the buffers and filters of its super table for newer versions of its entries,
//! verifies the filters' answers on flash, and puts the entries that the policy retains back into the buffer. These
//! entries fill buffers, which need segments, which need evictions: the cascade of section 7.4. Each segment that the
//! user's own inserts fill pays for `cascade_limit` partial discards; after these, the next eviction drops everything,
//! in FIFO order.

use std::sync::Arc;
use std::sync::atomic::Ordering::{Acquire, Relaxed};

use nandex_device::PageBuf;
use nandex_store::entries::{Entry, SlotState};
use nandex_store::hash::KeyHash;
use nandex_store::mutants::{Barrier, is_on};
use nandex_store::page::{PageKind, RawPage};
use nandex_store::reads::LookupStep;
use nandex_store::ring::{Ring, SegmentId, SegmentTag};

use super::filter::Columns;
use super::read::{KeyCandidate, Verification};
use super::table::{Incarnation, State};
use super::{Inner, Policy};
use crate::lookup::LookupKey;
use crate::write::format::encode_log_put;
use crate::{Error, Result};

/// The cost of one partial discard in the cascade's credit, in thousandths.
const DISCARD_COST: u64 = 1000;

/// The result of an eviction.
#[derive(PartialEq, Eq)]
enum Evicted {
    Yes,
    /// The retained entries currently have no space, in a buffer or in the log.
    NotNow,
}

impl Inner {
    /// Evicts until the reserve ahead of each ring's head is free. Does nothing while recovery replays the log and the
    /// policy retains part of a segment: see [`make_space`](Self::make_space).
    pub(super) fn evict_ahead(&self) -> Result<()> {
        if self.layout.config.policy.is_partial() && !self.ready.load(Acquire) {
            return Ok(());
        }
        self.layout.rings.all().iter().try_for_each(|ring| self.evict_ahead_of(ring))
    }

    fn evict_ahead_of(&self, ring: &Ring) -> Result<()> {
        while self.evicts() && ring.free_segments() < self.layout.rings.reserve_segments() {
            let Some((id, tag)) = ring.oldest() else { return Ok(()) };
            if self.evict(ring, id, tag)? == Evicted::NotNow {
                return Ok(());
            }
        }
        Ok(())
    }

    fn evict(&self, ring: &Ring, id: SegmentId, tag: SegmentTag) -> Result<Evicted> {
        if tag.entries == 0 {
            ring.evict(id);
            return Ok(Evicted::Yes);
        }
        let index = tag.owner as usize;
        let table = &self.partitions[index];
        let keeps = self.layout.config.policy.is_partial();
        if keeps {
            // Before they are loaded, the filters of a newly opened table lack newer versions.
            self.load_filters(index)?;
        }
        let _lock = table.maintain();
        let incarnation = table.read().level.oldest().filter(|oldest| oldest.id == id);
        let Some(incarnation) = incarnation else {
            ring.evict(id);
            return Ok(Evicted::Yes);
        };
        if !keeps || !self.may_cascade() {
            return self.discard(index, incarnation, &[], keeps);
        }
        let pages = self.read_incarnation(index, id)?;
        let kept = self.choose(index, incarnation, &pages)?;
        self.discard(index, incarnation, &kept, false)
    }

    /// Spends from the cascade's credit; returns whether it was enough.
    fn may_cascade(&self) -> bool {
        let draw = |credit: u64| credit.checked_sub(DISCARD_COST);
        self.layout.cascade_credit.fetch_update(Relaxed, Relaxed, draw).is_ok()
    }

    /// Removes an incarnation, and puts its retained entries back, at one moment for all lookups.
    fn discard(
        &self,
        index: usize,
        incarnation: Incarnation,
        kept: &[(KeyHash, Entry<'_>)],
        forced: bool,
    ) -> Result<Evicted> {
        let ring = self.layout.rings.of(index);
        let mut state = self.partitions[index].write();
        let space = self.layout.shape.buffer_limit().saturating_sub(state.active_mut().len());
        if space < kept.len() && !self.try_freeze(index, &mut state, 0)? {
            drop(state);
            return self.put_off(index, incarnation, ring.free_segments() > 0);
        }
        let kept = state.not_buffered(kept)?;
        match self.log_kept(&mut state, &kept) {
            Ok(true) => {}
            Ok(false) | Err(Error::Store(nandex_store::Error::LogFull { .. })) => {
                drop(state);
                let hope = ring.free_segments() > 0 || self.tail_may_move();
                return self.put_off(index, incarnation, hope);
            }
            Err(error) => return Err(error),
        }
        for &(hash, entry) in &kept {
            state.active_mut().put_carried_over(hash, entry);
        }
        let retained = kept.len() as u64;
        state.updates += retained;
        self.drop_oldest(index, &mut state);
        ring.evict(incarnation.id);
        drop(state);
        let dropped = u64::from(incarnation.entries).saturating_sub(retained);
        self.counters.retained.fetch_add(retained, Relaxed);
        self.counters.evicted.fetch_add(dropped, Relaxed);
        if forced {
            self.counters.forced_evictions.fetch_add(dropped, Relaxed);
        }
        Ok(Evicted::Yes)
    }

    /// Logs the retained entries before any of them is put back: entries that are in no log must not leave flash.
    /// Returns whether the log had space.
    fn log_kept(&self, state: &mut State, kept: &[(KeyHash, Entry<'_>)]) -> Result<bool> {
        if kept.is_empty() || !is_on(Barrier::KeptIsLogged) {
            return Ok(true);
        }
        let entry_bytes = 1 + self.entry_layout().entry_bytes();
        let mut bytes = Vec::with_capacity(kept.len() * entry_bytes);
        for (_, entry) in kept {
            encode_log_put(&mut bytes, entry.key, entry.value);
        }
        let log = self.volume.log();
        let Some(_reservation) = log.try_reserve_closely(bytes.len() as u64)? else {
            return Ok(false);
        };
        state.since.get_or_insert_with(|| log.next_lsn());
        log.append_many(self.id, entry_bytes, &bytes)?;
        Ok(true)
    }

    /// Returns whether the coming checkpoint will free log space.
    fn tail_may_move(&self) -> bool {
        let tail = self.volume.log().tail();
        self.partitions.iter().all(|table| table.read().tail().is_none_or(|since| since > tail))
    }

    /// Handles retained entries that currently have no space, in a buffer or in the log. With a free segment the coming
    /// checkpoint lets a flush continue, which frees space, and so does a log that can be shortened. Without this
    /// `hope` everything waits for this segment, and it is discarded as a whole.
    fn put_off(&self, index: usize, incarnation: Incarnation, hope: bool) -> Result<Evicted> {
        if hope {
            self.layout.cascade_credit.fetch_add(DISCARD_COST, Relaxed);
            return Ok(Evicted::NotNow);
        }
        self.discard(index, incarnation, &[], true)
    }

    /// Reads the data pages of an incarnation in one I/O chunk and verifies each.
    pub(super) fn read_incarnation(&self, index: usize, id: SegmentId) -> Result<PageBuf> {
        let pages = PageBuf::zeroed(self.layout.config.buffer_pages as usize);
        let ring = self.layout.rings.of(index);
        let pages = self.layout.rings.device().read(ring.page(id, 0), pages)?;
        for page in 0..pages.pages() {
            let label = ring.label(id, page as u64, PageKind::Data);
            RawPage::new(pages.page(page)).check(label)?;
        }
        Ok(pages)
    }

    /// Returns the entries of an incarnation that the policy retains.
    pub(super) fn choose<'p>(
        &self,
        index: usize,
        incarnation: Incarnation,
        pages: &'p PageBuf,
    ) -> Result<Vec<(KeyHash, Entry<'p>)>> {
        let threshold = self.layout.threshold.load(Relaxed);
        let priority = |entry: &Entry<'_>| (self.layout.ranking.0)(entry.key, entry.value);
        let mut kept: Vec<_> = (0..pages.pages())
            .flat_map(|page| self.entry_layout().entries(pages.page(page)))
            .map(|(_, entry)| (self.hasher.hash(entry.key), entry))
            // The oldest tombstone no longer shadows anything.
            .filter(|(_, entry)| entry.state == SlotState::Live)
            .filter(|(_, entry)| match self.layout.config.policy {
                Policy::Threshold(_) => priority(entry) >= threshold,
                _ => true,
            })
            .collect();
        let mut newer = self.partitions[index].read().level.incarnations_newest_first();
        newer.retain(|other| other.id.sequence() > incarnation.id.sequence());
        let keys: Vec<_> = kept.iter().map(|(hash, entry)| (*hash, entry.key)).collect();
        let mut superseded = self.superseded(index, &keys, &newer)?.into_iter();
        kept.retain(|_| superseded.next() == Some(false));
        if let Policy::Top(thousandths) = self.layout.config.policy {
            let keep = incarnation.entries as usize * usize::from(thousandths) / 1000;
            kept.sort_by_key(|(_, entry)| std::cmp::Reverse(priority(entry)));
            kept.truncate(keep);
        }
        Ok(kept)
    }

    /// Returns, for each key, whether one of these incarnations has it. The filters decide most; on a positive answer
    /// the page is read.
    pub(super) fn superseded(
        &self,
        index: usize,
        keys: &[(KeyHash, &[u8])],
        newer: &[Incarnation],
    ) -> Result<Vec<bool>> {
        let (newer, live, slices) = {
            let level = &self.partitions[index].read().level;
            // Their columns may have been renumbered since they were listed.
            let mut found = level.newest_first();
            found.retain(|(_, other)| newer.iter().any(|it| it.id == other.id));
            let mut live: Columns = [0; 4];
            found.iter().for_each(|(column, _)| live[column / 64] |= 1 << (column % 64));
            (found, live, Arc::clone(&level.slices))
        };
        let mut maybes = Vec::new();
        for (number, (hash, _)) in keys.iter().enumerate() {
            let mask = self.layout.filter.candidates(&slices, hash.filter, &live);
            let hit = |column: &usize| mask[column / 64] >> (column % 64) & 1 == 1;
            let ids = newer.iter().filter(|(column, _)| hit(column)).map(|(_, i)| i.id);
            maybes.extend(ids.map(|id| (number, id)));
        }
        let mut answers = vec![false; keys.len()];
        self.lookups.reads.pipeline(&Verification(self)).batch(
            &maybes,
            maybes.len().max(1),
            |_| (),
            |&(number, id), ()| {
                let (hash, bytes) = keys[number];
                let key = LookupKey::new(hash, bytes);
                Ok(LookupStep::Read(KeyCandidate { key, id, is_held: false }))
            },
            |index, is_held, _| answers[maybes[index].0] |= is_held,
        )?;
        Ok(answers)
    }
}
