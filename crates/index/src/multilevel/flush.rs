//! From a full buffer to its partition's levels: put the updates into the first level, pass on what that has no space
//! for, and so on; then change the map. Keys that move up take the same way.

use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

use nandex_device::{PAGE_BYTES, PageBuf};
use nandex_store::buffer::Buffer;
use nandex_store::entries::SlotState;
use nandex_store::page::PAGE_HEADER_BYTES;

use super::levels::{BITS_MAX, LevelMap};
use super::lift::{LiftedGroup, add_lifted};
use super::spill::apply;
use super::{Inner, Leveled, State};
use crate::write::groups::{
    Group, GroupReader, GroupWriter, Incoming, WriteQueue, is_no_space, retired_ram_bytes,
};
use crate::write::{Frozen, Layout, Usage, WritePolicy};
use crate::{Error, Result};

/// Memory that flushes use again and again.
pub(crate) struct FlushScratch {
    reader: GroupReader,
    writes: WriteQueue,
}

impl Layout for Leveled {
    type Buffer = Buffer;
    type Level = Arc<LevelMap>;
    type Unlocked = ();
    type Reserved = ();
    type Job = std::convert::Infallible;
    type Scratch = FlushScratch;

    fn policy(&self) -> WritePolicy {
        WritePolicy {
            forces_removals: true,
            retries_flushes: true,
            pace_updates: Some(u64::from(self.shape.entries_max)),
            ..WritePolicy::default()
        }
    }

    fn new_buffer(&self) -> Buffer {
        Buffer::new(self.shape.layout, self.hasher, self.config.buffer_pages as usize)
    }

    /// Is there RAM for the map to grow by another buffer? Removals are let through, if there are enough of them.
    fn reserve(core: &Inner, _index: usize, state: &State) -> Result<()> {
        let few = u64::from(core.layout.shape.entries_max / 16).max(1);
        let entries = core.counters.flushed_entries.load(Relaxed);
        // What a replay brings was taken before.
        let is_replay = !core.ready.load(Relaxed);
        if entries < core.layout.entries_max || state.forced >= few || is_replay {
            return Ok(());
        }
        Err(Error::Full { entries, flash_bytes: core.layout.flash_bytes() })
    }

    fn flush(
        core: &Inner,
        index: usize,
        frozen: Frozen<Self>,
        scratch: &mut FlushScratch,
    ) -> Result<()> {
        let flushed = core.put_on_flash(index, &frozen.buffer, scratch);
        if flushed.as_ref().is_err_and(is_no_space) {
            // Groups that were replaced are free after a checkpoint: the next attempt may find space.
            core.volume.checkpoint()?;
        }
        flushed?;
        let entries = frozen.buffer.len() - frozen.buffer.stash_len();
        core.count_flush(entries as u64, frozen.buffer.slots());
        core.recycle(frozen.buffer);
        let counters = &core.layout.counters;
        let (replaced, pages) =
            (counters.replaced_pages.load(Relaxed), counters.pages.load(Relaxed));
        core.checkpoint_if_much_replaced(replaced, pages)
    }

    fn new_scratch(core: &Inner) -> Result<FlushScratch> {
        let device = &**core.volume.device();
        let group_pages = core.layout.config.group_pages as usize;
        let (reader, writes) = (GroupReader::new(device, group_pages)?, WriteQueue::new(device)?);
        core.count_scratch(core.layout.config.flush_ram_bytes());
        Ok(FlushScratch { reader, writes })
    }

    fn run(_core: &Inner, job: Self::Job, _scratch: &mut Option<FlushScratch>) -> Result<()> {
        match job {}
    }

    fn usage(core: &Inner) -> Usage {
        let layout = &core.layout;
        let mut ram_bytes = layout.config.snapshot_bytes() + layout.cache.ram_bytes();
        let mut largest = 0;
        for partition in &core.partitions {
            let map = Arc::clone(&partition.read().level);
            largest = map.ram_bytes().max(largest);
            ram_bytes += map.ram_bytes() + map.checkpoint_ram_bytes();
        }
        // Each thread makes the next map of a partition. What was replaced is kept until a checkpoint.
        let next = largest * core.options.flush_threads.max(1) as u64;
        let replaced = layout.counters.replaced_pages.load(Relaxed);
        let ram_bytes = ram_bytes + next + retired_ram_bytes(replaced, layout.config.group_pages);
        Usage { ram_bytes, flash_bytes: layout.flash_bytes() }
    }
}

impl Leveled {
    /// Pages of levels and the places for snapshots.
    fn flash_bytes(&self) -> u64 {
        (self.counters.pages.load(Relaxed) + self.snapshots.pages) * PAGE_BYTES as u64
    }
}

/// The groups that a flush writes, and those that they replace.
#[derive(Debug)]
struct Flushed {
    map: LevelMap,
    replaced: Vec<Arc<Group>>,
    pages_written: u64,
    levels_added: u64,
}

impl Inner {
    /// Puts a buffer's updates into the levels of a partition, and makes the new map its own.
    fn put_on_flash(
        &self,
        index: usize,
        buffer: &Buffer,
        scratch: &mut FlushScratch,
    ) -> Result<()> {
        let _lock = self.partitions[index].maintain();
        let before = Arc::clone(&self.partitions[index].read().level);
        let flushed = self.write_updates(&before, buffer, scratch)?;
        self.count_written(flushed.pages_written * PAGE_BYTES as u64);
        self.layout.counters.note(&before, &flushed.map, flushed.levels_added);
        let replaced_pages: u64 = flushed.replaced.iter().map(|it| it.place.extent.pages).sum();
        self.layout.counters.replaced_pages.fetch_add(replaced_pages, Relaxed);
        self.swap(index, Arc::new(flushed.map), flushed.replaced);
        Ok(())
    }

    /// Writes a buffer's updates, and what moves up of the last level.
    fn write_updates(
        &self,
        before: &LevelMap,
        buffer: &Buffer,
        scratch: &mut FlushScratch,
    ) -> Result<Flushed> {
        let Leveled { plan, records, hasher, shape, .. } = &self.layout;
        let limit = shape.buffer_limit();
        let mut updates = self.sorted_updates(buffer, 2 * limit);
        let Some(lifted) = LiftedGroup::of(before, *plan, (records.slots() as u64, limit as u64))
        else {
            return self.write_levels(before, updates, scratch);
        };
        let pages = lifted.read(&mut scratch.reader)?;
        add_lifted(&mut updates, &pages, (*records, hasher));
        let mut flushed = self.write_levels(&lifted.removed_from(before), updates, scratch)?;
        flushed.replaced.push(lifted.group);
        scratch.reader.give(pages);
        Ok(flushed)
    }

    fn write_levels(
        &self,
        before: &LevelMap,
        updates: Vec<Incoming<'_>>,
        FlushScratch { reader, writes }: &mut FlushScratch,
    ) -> Result<Flushed> {
        let next_number = || self.take_generation();
        let group_pages = self.layout.config.group_pages as usize;
        let writer = GroupWriter::new((&self.volume, self.id), group_pages, &next_number, writes);
        let mut descent = Descent {
            core: self,
            before,
            after: before.clone(),
            reader,
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
        descent.finish()
    }

    /// Replaces a partition's map in the moment in which the flushed buffer leaves RAM.
    fn swap(&self, index: usize, after: Arc<LevelMap>, replaced: Vec<Arc<Group>>) {
        let _maps = self.layout.hold_maps();
        self.replace_flushed(index, after);
        self.layout.retired.retire(replaced.into_iter());
    }
}

/// Updates on their way through the levels.
struct Descent<'a, 'b> {
    core: &'a Inner,
    before: &'a LevelMap,
    after: LevelMap,
    reader: &'a mut GroupReader,
    writer: GroupWriter<'a>,
    /// The level and number of each group that was written, in this order.
    written: Vec<(usize, usize)>,
    /// What is still to be done, in the order of the hashes.
    updates: Vec<Incoming<'b>>,
    pages_done: u64,
}

/// A group that updates may change, and which of them are its own.
#[derive(Clone, Debug)]
struct Touched {
    number: usize,
    updates: std::ops::Range<usize>,
}

impl Descent<'_, '_> {
    /// Is there anything to do in this level? It is added if the one before has spilled.
    fn begin(&mut self, level: usize) -> Result<bool> {
        if level < self.after.len() {
            return Ok(!self.updates.is_empty());
        }
        let spilled = self.updates.iter().filter(|it| it.entry.state == SlotState::Live).count();
        if spilled == 0 {
            return Ok(false);
        }
        let plan = self.core.layout.plan;
        if level >= plan.levels_max() {
            let entries = self.after.entries + spilled as u64;
            let reason = format!(
                "too many of them have hashes that begin with the same {BITS_MAX} bits; choose another hash function \
                 for the volume"
            );
            return Err(Error::GrowthStopped { entries, reason });
        }
        self.after.add_level(plan);
        Ok(true)
    }

    /// Passes each group of a level that updates concern, in order. What goes on to the next level stays in the list.
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

    /// The groups with an update that puts, or that removes from a page with entries.
    fn touched(&self, level: usize) -> Vec<Touched> {
        let plan = self.core.layout.plan;
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

    /// A group of pages without entries.
    fn blank(&mut self, level: usize) -> PageBuf {
        let mut pages = self.reader.buffer(self.core.layout.plan.group_pages(level));
        pages.fill(0);
        pages
    }

    /// Applies the updates of a group, and keeps what goes on. Returns how many are kept, and whether a page has
    /// changed.
    fn group(
        &mut self,
        level: usize,
        pages: &mut PageBuf,
        (mut kept, those): (usize, std::ops::Range<usize>),
    ) -> (usize, bool) {
        let layout = &self.core.layout;
        let mut is_changed = false;
        for at in those {
            let update = self.updates[at];
            let page = layout.plan.page(level, update.hash).index;
            let reaches = self.before.reaches(layout.plan, level + 1, update.hash);
            let body = &mut pages.page_mut(page)[PAGE_HEADER_BYTES..];
            let applied = apply((layout.records, &self.core.hasher), body, update, reaches);
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
        let records = self.core.layout.records;
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
        self.core.pace.progress(share.min(1.0));
    }

    /// Waits for all writes, and names what they wrote.
    fn finish(mut self) -> Result<Flushed> {
        let groups = self.writer.finish()?;
        let pages_written = groups.iter().map(|it| it.place.extent.pages).sum();
        for ((level, number), group) in self.written.into_iter().zip(groups) {
            self.after.set(level, number, Some(Arc::new(group)));
        }
        let levels_added = self.after.len().saturating_sub(self.before.len()) as u64;
        self.after.trim();
        let replaced = self.before.replaced_by(&self.after);
        Ok(Flushed { map: self.after, replaced, pages_written, levels_added })
    }
}
