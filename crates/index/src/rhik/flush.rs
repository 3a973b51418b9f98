//! From a full buffer to its partition's tables: rewrite them with the buffer's updates, then change the directory.

use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

use nandex_device::PAGE_BYTES;
use nandex_store::buffer::Buffer;
use nandex_store::page::PAGE_HEADER_BYTES;
use nandex_store::records::RecordLayout;

use super::directory::{Directory, HashRange};
use super::rewrite::{Bodies, Changes, Rewrite, Sink};
use super::{Inner, Records, State};
use crate::write::groups::{
    Group, GroupReader, GroupWriter, Incoming, WriteQueue, is_no_space, retired_ram_bytes,
};
use crate::write::{Frozen, Layout, Usage, WritePolicy};
use crate::{Error, Result};

/// Memory that rewrites use again and again.
pub(crate) struct RewriteScratch {
    reader: GroupReader,
    writes: WriteQueue,
    bodies: Bodies,
}

/// Writes tables with their depths as notes.
struct Tables<'v> {
    layout: RecordLayout,
    writer: GroupWriter<'v>,
}

impl Sink for Tables<'_> {
    fn push(&mut self, range: HashRange, body: &[u8]) -> Result<()> {
        self.writer.push(range.depth, self.layout.count(body), body)
    }
}

type FrozenBuffer = Frozen<Records>;

impl Layout for Records {
    type Buffer = Buffer;
    type Level = Arc<Directory>;
    type Unlocked = ();
    type Reserved = ();
    type Job = std::convert::Infallible;
    type Scratch = RewriteScratch;

    fn policy(&self) -> WritePolicy {
        WritePolicy {
            forces_removals: true,
            retries_flushes: true,
            pace_updates: Some(u64::from(self.shape.entries_max)),
            ..WritePolicy::default()
        }
    }

    /// As large as suits the tables there are. Until a table is open its buffers have all their pages, since snapshots
    /// do.
    fn new_buffer(&self) -> Buffer {
        Buffer::new(self.shape.layout, self.hasher, self.buffer_pages())
    }

    /// Is there RAM for the directory to grow by another buffer? Removals are let through, if there are enough of them.
    fn reserve(core: &Inner, _index: usize, state: &State) -> Result<()> {
        let few = u64::from(core.layout.shape.entries_max / 16).max(1);
        let entries = core.counters.flushed_entries.load(Relaxed);
        // What a replay brings was taken before.
        let is_replay = !core.layout.is_open.load(Relaxed);
        if entries < core.layout.entries_max || state.forced >= few || is_replay {
            return Ok(());
        }
        Err(Error::Full { entries, flash_bytes: core.layout.flash_bytes() })
    }

    fn flush(
        core: &Inner,
        index: usize,
        frozen: FrozenBuffer,
        scratch: &mut RewriteScratch,
    ) -> Result<()> {
        let flushed = core.put_on_flash(index, &frozen.buffer, scratch);
        if flushed.as_ref().is_err_and(is_no_space) {
            // Tables that were replaced are free after a checkpoint: the next attempt may find space.
            core.volume.checkpoint()?;
        }
        flushed?;
        let entries = frozen.buffer.len() - frozen.buffer.stash_len();
        core.count_flush(entries as u64, frozen.buffer.slots());
        if frozen.buffer.page_count() == core.layout.buffer_pages() {
            core.recycle(frozen.buffer);
        } else {
            // Its RAM is given back before the new one takes its own.
            drop(frozen);
            core.pool.give(core.layout.new_buffer());
        }
        let counters = &core.layout.counters;
        let (replaced, pages) =
            (counters.replaced_pages.load(Relaxed), counters.pages.load(Relaxed));
        core.checkpoint_if_much_replaced(replaced, pages)
    }

    fn new_scratch(core: &Inner) -> Result<RewriteScratch> {
        let device = &**core.volume.device();
        let group_pages = core.layout.config.group_pages as usize;
        let (reader, writes) = (GroupReader::new(device, group_pages)?, WriteQueue::new(device)?);
        core.count_scratch(core.layout.config.rewrite_ram_bytes());
        Ok(RewriteScratch { reader, writes, bodies: Bodies::default() })
    }

    fn run(_core: &Inner, job: Self::Job, _scratch: &mut Option<RewriteScratch>) -> Result<()> {
        match job {}
    }

    fn usage(core: &Inner) -> Usage {
        let (mut ram_bytes, mut largest) = (core.layout.config.snapshot_bytes(), 0);
        for partition in &core.partitions {
            let directory = Arc::clone(&partition.read().level);
            largest = directory.ram_bytes().max(largest);
            ram_bytes += directory.ram_bytes() + directory.checkpoint_ram_bytes();
        }
        // Each thread makes the next directory of a partition. What was replaced is kept until a checkpoint.
        let next = largest * core.options.flush_threads.max(1) as u64;
        let ram_bytes = ram_bytes + next + core.layout.retired_ram_bytes();
        Usage { ram_bytes, flash_bytes: core.layout.flash_bytes() }
    }
}

impl Records {
    /// Tables and the places for snapshots.
    fn flash_bytes(&self) -> u64 {
        (self.counters.pages.load(Relaxed) + self.snapshots.pages) * PAGE_BYTES as u64
    }

    /// RAM of groups that were replaced since the last checkpoint, in bytes.
    fn retired_ram_bytes(&self) -> u64 {
        retired_ram_bytes(self.counters.replaced_pages.load(Relaxed), self.config.group_pages)
    }

    /// Pages of a write buffer now.
    pub(super) fn buffer_pages(&self) -> usize {
        if self.is_open.load(Relaxed) {
            self.config.buffer_pages_for(self.counters.pages.load(Relaxed))
        } else {
            self.config.buffer_pages as usize
        }
    }
}

impl Inner {
    /// Rewrites the tables of a partition with a buffer's updates, and makes the new ones its own.
    fn put_on_flash(
        &self,
        index: usize,
        buffer: &Buffer,
        scratch: &mut RewriteScratch,
    ) -> Result<()> {
        let _lock = self.partitions[index].maintain();
        let before = Arc::clone(&self.partitions[index].read().level);
        let updates = self.sorted_updates(buffer, self.layout.shape.buffer_limit());
        let (groups, changes) = self.write_tables(&before, &updates, scratch)?;
        let after = Directory::new(groups.into_iter().map(Arc::new).collect());
        self.count_written(after.pages() * PAGE_BYTES as u64);
        self.layout.counters.note(&before, &after, changes);
        self.swap(index, Arc::new(after));
        Ok(())
    }

    fn write_tables(
        &self,
        before: &Directory,
        updates: &[Incoming<'_>],
        RewriteScratch { reader, writes, bodies }: &mut RewriteScratch,
    ) -> Result<(Vec<Group>, Changes)> {
        let layout = &self.layout;
        let next_number = || self.take_generation();
        let group_pages = layout.config.group_pages as usize;
        let owner = (&self.volume, self.id);
        let writer = GroupWriter::new(owner, group_pages, &next_number, writes);
        let sink = Tables { layout: layout.records, writer };
        let occupancy = layout.config.occupancy();
        let mut rewrite = Rewrite::new(layout.records, self.hasher, occupancy, bodies, sink);
        self.rewrite(before, updates, reader, &mut rewrite)?;
        let (sink, changes) = rewrite.finish()?;
        Ok((sink.writer.finish()?, changes))
    }

    /// Passes each table of a partition with its updates, in order.
    fn rewrite<S: Sink>(
        &self,
        before: &Directory,
        mut updates: &[Incoming<'_>],
        reader: &mut GroupReader,
        rewrite: &mut Rewrite<'_, S>,
    ) -> Result<()> {
        if before.is_empty() {
            return rewrite.first_table(updates);
        }
        let pages = before.pages() as f64;
        let mut done = 0;
        let mut range: Option<HashRange> = None;
        reader.begin(before.groups())?;
        for (number, group) in before.groups().iter().enumerate() {
            let mut read = reader.next(before.groups(), number)?;
            for (page, depth) in group.notes.iter().enumerate() {
                let own = HashRange::behind(range, *depth);
                let count = updates.partition_point(|update| own.ends_after(update.hash));
                let (those, rest) = updates.split_at(count);
                group.prove(page, read.page(page))?;
                rewrite.table(own, &mut read.page_mut(page)[PAGE_HEADER_BYTES..], those)?;
                (updates, range) = (rest, Some(own));
                done += 1;
            }
            reader.give(read);
            self.pace.progress(f64::from(done) / pages);
        }
        Ok(())
    }

    /// Replaces a partition's directory in the moment in which the flushed buffer leaves RAM.
    fn swap(&self, index: usize, after: Arc<Directory>) {
        let _maps = self.layout.hold_maps();
        let before = self.replace_flushed(index, after);
        self.layout.retired.retire(before.groups().iter().cloned());
    }
}
