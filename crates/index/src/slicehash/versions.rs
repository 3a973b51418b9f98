//! What a merge of tables reads of a SliceHash: partition by partition, what is in RAM, runs, and then the slicetable.

use std::ops::Range;

use nandex_store::entries::{Entry, EntryLayout, SlotState};
use nandex_store::hash::KeyHasher;
use nandex_store::page::{PageKind, RawPage};
use nandex_store::ring::SegmentId;
use nandex_store::shadow::{Block, Shadow};
use nandex_store::{PageRun, ReadAhead};

use super::{Inner, State};
use crate::Result;
use crate::write::absorb::{Share, VersionSource, Visit};

impl VersionSource for Inner {
    fn hasher(&self) -> KeyHasher {
        self.hasher
    }

    fn layout(&self) -> EntryLayout {
        self.entry_layout()
    }

    /// An older table's partition is one of them for as long as its slicetable may be read.
    fn partitions(&self) -> usize {
        self.older().map_or(self.partitions.len(), |older| older.partitions.len())
    }

    fn versions_max(&self) -> u64 {
        self.versions_held()
    }

    fn each_version(&self, share: Share, visit: &mut Visit<'_>) -> Result<()> {
        let indexes = share.partitions_of(self.partitions.len());
        let each = self.partitions.len() / self.partitions();
        let splits = indexes.clone().step_by(each);
        let mut splits = splits.map(|first| first..(first + each).min(indexes.end));
        splits.try_for_each(|indexes| self.versions_of(indexes, visit))
    }
}

/// Passes what a partition holds in RAM, newest first.
fn each_in_ram(state: &State, visit: &mut Visit<'_>) -> Result<()> {
    state.each_buffered(visit)?;
    state.level.overflow.entries().try_for_each(visit)
}

impl Inner {
    /// Passes the versions of a partition, or of those that one of an older table was split into. What it still has for
    /// them is read once, after all that is newer.
    fn versions_of(&self, indexes: Range<usize>, visit: &mut Visit<'_>) -> Result<()> {
        let locks = indexes.clone().map(|index| self.partitions[index].maintain());
        let _locks: Vec<_> = locks.collect();
        indexes.clone().try_for_each(|index| self.own_versions(index, visit))?;
        let waiting: Vec<usize> = indexes.filter(|index| self.older_of(*index).is_some()).collect();
        let (Some(older), Some(&first)) = (self.older(), waiting.first()) else { return Ok(()) };
        let _held = self.hold_older(&older, first);
        let mut own = |entry: Entry<'_>| {
            let index = self.partition_of(self.hasher.hash(entry.key));
            if waiting.contains(&index) { visit(entry) } else { Ok(()) }
        };
        each_in_ram(&older.partitions[self.index_in(&older, first)].read(), &mut own)?;
        let base = self.base(Some(&older), first);
        base.slicetable.map_or(Ok(()), |it| older.versions_of_slices(it, &mut own))
    }

    /// Passes what a partition has of its own, newest first.
    fn own_versions(&self, index: usize, visit: &mut Visit<'_>) -> Result<()> {
        let runs: Vec<SegmentId> = {
            let state = self.partitions[index].read();
            each_in_ram(&state, visit)?;
            state.level.runs.iter().rev().map(|run| run.id).collect()
        };
        runs.iter().try_for_each(|id| self.versions_of_run(*id, visit))?;
        let slicetable = self.base(None, index).slicetable;
        slicetable.map_or(Ok(()), |it| self.versions_of_slices(it, visit))
    }

    fn versions_of_run(&self, id: SegmentId, visit: &mut Visit<'_>) -> Result<()> {
        let (pages, layout) = (self.read_run(id)?, self.entry_layout());
        (0..pages.pages()).try_for_each(|page| {
            layout.entries(pages.page(page)).try_for_each(|(_, entry)| visit(entry))
        })
    }

    /// Passes the entries of a slicetable, whose slices have each key once.
    fn versions_of_slices(
        &self,
        (shadow, block): (&Shadow, Block),
        visit: &mut Visit<'_>,
    ) -> Result<()> {
        let corrupt = nandex_store::Error::corrupt;
        let (slices, mut read) = (self.layout.slices, 0);
        let pages = u64::from(self.layout.config.block_pages());
        let all = [PageRun { first: shadow.page(block, 0), pages }];
        ReadAhead::default().read(&**self.volume.device(), all, |run, buf| {
            let first = read;
            read += run.pages;
            (first..).zip(0..buf.pages()).try_for_each(|(index, at)| {
                let label = shadow.label(block, index, PageKind::Slice);
                let page = RawPage::new(buf.page(at)).check(label)?;
                let body = page.body();
                let Some(count) = slices.count(body) else {
                    let most = format!("at most {} entries", slices.capacity());
                    return Err(corrupt("slice", label.page, most, "more").into());
                };
                (0..count).try_for_each(|at| {
                    let (key, value) = (slices.key(body, at), slices.value(body, at));
                    visit(Entry { state: SlotState::Live, key, value })
                })
            })
        })
    }
}
