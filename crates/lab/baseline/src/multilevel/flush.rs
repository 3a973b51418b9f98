//! The flush of a full buffer to its partition's levels: puts the updates into the first level, passes on
//! those without space, and so on; then changes the map. Keys that move up take the same way.

use std::sync::Arc;

use nandex::raw::{GroupMap, GroupReader, GroupRewrite, GroupWriter, Incoming, RewrittenMap};
use nandex::{Error, Result};
use nandex_device::PageBuf;
use nandex_store::entries::SlotState;
use nandex_store::hash::KeyHasher;
use nandex_store::page::PAGE_HEADER_BYTES;
use nandex_store::records::RecordLayout;

use super::Levels;
use super::levels::{BITS_MAX, LevelMap, LevelPlan};
use super::lift::{LiftedGroup, add_lifted};
use super::spill::apply;

impl Levels {
    /// Writes a buffer's updates, and the keys that move up from the last level.
    pub(super) fn write_updates(
        &self,
        before: &LevelMap,
        rewrite: GroupRewrite<'_, '_, ()>,
    ) -> Result<RewrittenMap<LevelMap>> {
        let GroupRewrite { mut updates, records, hasher, reader, writer, progress, .. } = rewrite;
        let limits = (records.slots() as u64, rewrite.buffer_entries_max as u64);
        let lifted = LiftedGroup::of(before, self.plan, limits);
        let pages = lifted.as_ref().map(|lifted| lifted.read(reader)).transpose()?;
        if let Some(pages) = &pages {
            add_lifted(&mut updates, pages, (records, &hasher));
        }
        let without = lifted.as_ref().map(|lifted| lifted.removed_from(before));
        let before = without.as_ref().unwrap_or(before);
        let mut descent = Descent {
            plan: self.plan,
            records,
            hasher,
            progress,
            before,
            after: before.clone(),
            reader: &mut *reader,
            writer,
            written: Vec::new(),
            updates,
            pages_done: 0,
        };
        let mut level = 0;
        while descent.begin(level)? {
            descent.level(level)?;
            level += 1;
        }
        let levels = descent.after.len();
        let mut rewritten = descent.finish()?;
        rewritten.replaced.extend(lifted.map(|lifted| lifted.group));
        self.counters.note_levels(before.len(), levels);
        pages.into_iter().for_each(|pages| reader.give(pages));
        Ok(rewritten)
    }
}

/// Updates on their way through the levels.
struct Descent<'a, 'b> {
    plan: LevelPlan,
    records: RecordLayout,
    hasher: KeyHasher,
    progress: &'a dyn Fn(f64),
    before: &'a LevelMap,
    after: LevelMap,
    reader: &'a mut GroupReader,
    writer: GroupWriter<'a>,
    /// The level and number of each group that was written, in this order.
    written: Vec<(usize, usize)>,
    /// The updates that are not applied yet, in the order of the hashes.
    updates: Vec<Incoming<'b>>,
    pages_done: u64,
}

/// A group that updates may change, and the range of its updates.
#[derive(Clone, Debug)]
struct Touched {
    number: usize,
    updates: std::ops::Range<usize>,
}

impl Descent<'_, '_> {
    /// Begins a level, and returns whether it has updates. The level is added if the one before has spilled.
    fn begin(&mut self, level: usize) -> Result<bool> {
        if level < self.after.len() {
            return Ok(!self.updates.is_empty());
        }
        let spilled = self.updates.iter().filter(|it| it.entry.state == SlotState::Live).count();
        if spilled == 0 {
            return Ok(false);
        }
        let plan = self.plan;
        if level >= plan.levels_max() {
            let entries = self.after.entries() + spilled as u64;
            let reason = format!(
                "too many of them have hashes that begin with the same {BITS_MAX} bits; choose another hash function \
                 for the volume"
            );
            return Err(Error::GrowthStopped { entries, reason });
        }
        self.after.add_level(plan);
        Ok(true)
    }

    /// Applies the updates of each group of a level, in order. Updates for the next level stay in the list.
    fn level(&mut self, level: usize) -> Result<()> {
        let touched = self.touched(level);
        let old = |it: &Touched| self.before.group(level, it.number).cloned();
        let reads: Vec<_> = touched.iter().filter_map(old).collect();
        self.reader.begin(&reads)?;
        let (mut kept, mut next, mut read) = (0, 0, 0);
        for Touched { number, updates } in touched {
            kept = self.keep(kept, next..updates.start);
            next = updates.end;
            let mut pages = match self.before.group(level, number) {
                Some(group) => {
                    let pages = self.reader.next(&reads, read)?;
                    (0..pages.pages()).try_for_each(|it| group.prove(it, pages.page(it)))?;
                    read += 1;
                    pages
                }
                None => self.blank(level),
            };
            let is_changed;
            (kept, is_changed) = self.group(level, &mut pages, (kept, updates));
            if is_changed {
                self.write(level, number, &pages)?;
            }
            self.note_progress(pages.pages());
            self.reader.give(pages);
        }
        kept = self.keep(kept, next..self.updates.len());
        self.updates.truncate(kept);
        Ok(())
    }

    /// Returns the groups with an update that inserts, or that removes from a page with entries.
    fn touched(&self, level: usize) -> Vec<Touched> {
        let plan = self.plan;
        let mut touched = Vec::new();
        let number = |it: &Incoming<'_>| plan.page(level, it.hash).group;
        let mut start = 0;
        for those in self.updates.chunk_by(|one, other| number(one) == number(other)) {
            let end = start + those.len();
            let concerns = |it: &Incoming<'_>| {
                it.entry.state == SlotState::Live || self.before.has_page(plan, level, it.hash)
            };
            if those.iter().any(concerns) {
                touched.push(Touched { number: number(&those[0]), updates: start..end });
            }
            start = end;
        }
        touched
    }

    /// Keeps these updates for the next level; `kept` already are.
    fn keep(&mut self, kept: usize, those: std::ops::Range<usize>) -> usize {
        let until = kept + those.len();
        self.updates.copy_within(those, kept);
        until
    }

    /// Creates a group of pages without entries.
    fn blank(&mut self, level: usize) -> PageBuf {
        let mut pages = self.reader.buffer(self.plan.group_pages(level));
        pages.fill(0);
        pages
    }

    /// Applies the updates of a group, and keeps those for the next level. Returns the number of kept ones,
    /// and whether a page has changed.
    fn group(
        &mut self,
        level: usize,
        pages: &mut PageBuf,
        (mut kept, those): (usize, std::ops::Range<usize>),
    ) -> (usize, bool) {
        let plan = self.plan;
        let mut is_changed = false;
        for at in those {
            let update = self.updates[at];
            let page = plan.page(level, update.hash).index;
            let reaches = self.before.reaches(plan, level + 1, update.hash);
            let body = &mut pages.page_mut(page)[PAGE_HEADER_BYTES..];
            let applied = apply((self.records, &self.hasher), body, update, reaches);
            is_changed |= applied.is_changed;
            if let Some(rest) = applied.rest {
                self.updates[kept] = rest;
                kept += 1;
            }
        }
        (kept, is_changed)
    }

    /// Writes a group, or drops it if no page has entries.
    fn write(&mut self, level: usize, number: usize, pages: &PageBuf) -> Result<()> {
        let records = self.records;
        let bodies = || (0..pages.pages()).map(|it| &pages.page(it)[PAGE_HEADER_BYTES..]);
        if bodies().all(|body| records.count(body) == 0) {
            self.after.set(level, number, None);
            return Ok(());
        }
        for body in bodies() {
            let entries = records.count(body);
            self.writer.push(u8::from(entries > 0), entries, body)?;
        }
        self.written.push((level, number));
        self.writer.end_group()
    }

    fn note_progress(&mut self, pages: usize) {
        self.pages_done += pages as u64;
        let share = self.pages_done as f64 / self.before.pages().max(1) as f64;
        (self.progress)(share.min(1.0));
    }

    /// Waits for all writes, and returns the new map.
    fn finish(mut self) -> Result<RewrittenMap<LevelMap>> {
        let groups = self.writer.finish()?;
        let pages_written = groups.iter().map(|it| it.place.extent.pages).sum();
        for ((level, number), group) in self.written.into_iter().zip(groups) {
            self.after.set(level, number, Some(Arc::new(group)));
        }
        self.after.trim();
        let replaced = self.before.replaced_by(&self.after);
        Ok(RewrittenMap { map: self.after, replaced, pages_written })
    }
}
