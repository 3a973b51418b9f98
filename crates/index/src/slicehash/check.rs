//! Checks a SliceHash offline: its maps with the moves that the log adds to them, every page of its current
//! slicetables, runs and snapshots, and that each entry occurs once, where a lookup searches for it.

use std::collections::HashSet;

use nandex_store::bytes::Reader;
use nandex_store::check::{Checker, Contents, Subject};
use nandex_store::checkpoint::CatalogEntry;
use nandex_store::page::{Page, PageKind};
use nandex_store::shadow::Block;

use super::front::{Front, Run};
use super::layout::Slicing;
use super::recover::{Maps, Restored, Source};
use super::slice::SliceLayout;
use super::{Config, growing};
use crate::check::OnProgress;
use crate::write::check::{
    Buffers, Place, check_each, check_entries, note, note_flaws, visit_entries,
};
use crate::write::format::{Moved, WriteState};
use crate::write::{SnapshotPlaces, snapshot_pages};
use crate::{Error, Result};

/// Checks one structure and notes flaws in the checker.
pub(crate) fn check(
    checker: &mut Checker,
    contents: &Contents,
    entry: &CatalogEntry,
    progress: &mut OnProgress<'_>,
) {
    match Table::decode(checker, contents, entry) {
        Ok(table) => {
            table.slicetables(checker, progress);
            table.runs(checker);
            table.overflow(checker, contents);
            table.buffers.snapshots(checker);
            let is_move = |bytes: &[u8]| Moved::decode(bytes).is_some();
            table.buffers.log(checker, contents, &mut { is_move });
        }
        Err(error) => {
            let subject = Subject { structure: Some(&entry.name), what: "configuration and maps" };
            note(checker, subject, contents.superblock.checkpoint.start, &error);
        }
    }
}

/// A table as its catalog entry, and the moves in the log, describe it.
struct Table<'a> {
    config: Config,
    slices: SliceLayout,
    slicing: Slicing,
    restored: Restored,
    buffers: Buffers<'a>,
}

/// The keys in the parts of each slice of a group, for finding duplicates.
type Keys = Vec<HashSet<Vec<u8>>>;

impl<'a> Table<'a> {
    fn decode(checker: &mut Checker, contents: &Contents, entry: &'a CatalogEntry) -> Result<Self> {
        let place = contents.superblock.checkpoint.start;
        let config = Config::decode(&mut Reader::new(&entry.config, "configuration", place))?;
        let shape = config.shape()?;
        let mut reader = Reader::new(&entry.state, "state", place);
        let own = config.slicetable_pages() + config.front_pages();
        let start = match entry.extents[..] {
            [extent] if extent.pages == own + snapshot_pages(&shape) => extent.start,
            _ => {
                let found = format!("{:?}", entry.extents);
                return Err(reader.refuse("one extent as the configuration says", found).into());
            }
        };
        let epoch = contents.superblock.epoch;
        let takes_over = entry.kind == growing::TABLE_KIND;
        let from = Source { id: entry.id, place: start, epoch, state: &entry.state, takes_over };
        let mut maps = Maps::restore(&from, config, &mut reader)?;
        let state = if entry.state.is_empty() {
            WriteState::new(shape.partitions as usize, entry.tail)
        } else {
            WriteState::decode(&mut reader)?
        };
        if reader.left() > 0 {
            return Err(reader.refuse("the end of the state", reader.left()).into());
        }
        let places = SnapshotPlaces::new(entry.id, &shape, start.plus(own));
        let hasher = contents.hasher();
        let (name, noun) = (&entry.name[..], "partition");
        let mut buffers = Buffers { name, noun, shape, hasher, state, places, entry };
        buffers.snapshot_generations(checker);
        apply_moves(contents, &mut maps, &mut buffers)?;
        let restored = maps.finish()?;
        let slicing = Slicing::new(&config);
        Ok(Self { config, slices: config.slice_layout(), slicing, restored, buffers })
    }

    fn subject<'s>(&'s self, what: &'s str) -> Subject<'s> {
        Subject { structure: Some(self.buffers.name), what }
    }

    /// The current slicetable of each partition.
    fn slicetables(&self, checker: &mut Checker, progress: &mut OnProgress<'_>) {
        let blocks = (0..self.config.partitions)
            .filter_map(|partition| Some((partition, self.restored.shadow.block(partition)?)));
        let blocks: Vec<_> = blocks.collect();
        let block_pages = u64::from(self.config.block_pages());
        check_each(
            self.buffers.name,
            &blocks,
            |_| block_pages,
            progress,
            |&(partition, block)| {
                self.slicetable(checker, partition, block);
            },
        );
    }

    fn slicetable(&self, checker: &mut Checker, partition: u32, block: Block) {
        let what = format!("slice page of partition {partition}");
        let subject = self.subject(&what);
        let shadow = &self.restored.shadow;
        let label = |index| shadow.label(block, index, PageKind::Slice);
        let run = (&label as &dyn Fn(u64) -> _, u64::from(self.config.block_pages()));
        let mut keys = Keys::new();
        let expected = Some(block.entries.into());
        check_entries(checker, subject, run, expected, &mut |checker, (number, index), page| {
            let (found, flaws) = self.slice_page(partition, page, index, &mut keys);
            note_flaws(checker, subject, number, &flaws);
            found as u64
        });
    }

    /// Returns the number of entries of a sealed page, and its flaws.
    fn slice_page(
        &self,
        partition: u32,
        page: Page<'_>,
        index: u64,
        keys: &mut Keys,
    ) -> (usize, Vec<String>) {
        let body = page.body();
        let Some(count) = self.slices.count(body) else {
            return (0, vec![format!("more than {} entries", self.slices.capacity())]);
        };
        let Some((slice, part)) = self.slicing.slice_of(index) else {
            let flaw = (count > 0).then(|| format!("{count} entries in a page of no slice"));
            return (count, flaw.into_iter().collect());
        };
        let member = self.slicing.member(slice);
        if keys.len() <= member {
            keys.resize_with(member + 1, HashSet::new);
        }
        if part == 0 {
            keys[member].clear();
        }
        let flaw = |at: usize| {
            let key = self.slices.key(body, at);
            let is_first = keys[member].insert(key.to_vec());
            Some(format!("entry {at}: {}", self.flaw((partition, slice), key, is_first)?))
        };
        (count, (0..count).filter_map(flaw).collect())
    }

    /// Returns why a lookup of this key would not find it there.
    fn flaw(&self, (partition, slice): (u32, u32), key: &[u8], is_first: bool) -> Option<String> {
        let hash = self.buffers.hasher.hash(key);
        let own = self.buffers.shape.partition_of(hash);
        if own != partition as usize {
            return Some(format!("its key belongs to partition {own}"));
        }
        let own = self.slicing.slice_of_key(hash);
        if own != slice {
            return Some(format!("its key belongs to slice {own}, not {slice}"));
        }
        (!is_first).then(|| "its key is there twice".into())
    }

    /// Checks the overflow of splits, which the maps store.
    fn overflow(&self, checker: &mut Checker, contents: &Contents) {
        let page = contents.superblock.checkpoint.start;
        for (partition, level) in self.restored.levels.iter().enumerate() {
            let what = format!("overflow of partition {partition}");
            let subject = self.subject(&what);
            for (at, entry) in level.overflow.entries().enumerate() {
                let own = self.buffers.shape.partition_of(self.buffers.hasher.hash(entry.key));
                if own != partition {
                    let message = format!("entry {at}: its key belongs to partition {own}");
                    checker.note(subject, page, message);
                }
            }
            checker.count_entries(self.buffers.name, level.overflow.len() as u64);
        }
    }

    /// Checks the runs of the front table that are not merged yet.
    fn runs(&self, checker: &mut Checker) {
        for (partition, level) in self.restored.levels.iter().enumerate() {
            level.runs.iter().for_each(|run| self.run(checker, partition, run));
        }
    }

    fn run(&self, checker: &mut Checker, partition: usize, run: &Run) {
        let what = format!("run page of partition {partition}");
        let subject = self.subject(&what);
        let place = Place { subject, partition, filter: None };
        let front: &Front = &self.restored.front;
        let label = |index| front.label_at(run.id, index);
        let pages = (&label as &dyn Fn(u64) -> _, u64::from(self.config.buffer_pages));
        check_entries(
            checker,
            subject,
            pages,
            Some(run.entries.into()),
            &mut |checker, at, page| self.buffers.entry_page(checker, place, page, at),
        );
    }
}

/// Applies the moves that an opening would find in the log.
fn apply_moves(contents: &Contents, maps: &mut Maps, buffers: &mut Buffers<'_>) -> Result<()> {
    let mut result: Result<()> = Ok(());
    let state = &mut buffers.state;
    visit_entries(contents, buffers.entry, &mut |lsn, bytes| {
        let Some((moved, own)) = Moved::decode(bytes).filter(|_| result.is_ok()) else { return };
        let Some(partition) = state.partitions.get_mut(moved.partition as usize) else {
            let expected = "a move of a partition that there is";
            let found = format!("one of partition {}", moved.partition);
            let page = contents.log_page(lsn);
            result = Err(nandex_store::Error::corrupt("log entry", page, expected, found).into());
            return;
        };
        match maps.moved(moved.partition, own) {
            Ok(true) => partition.snapshot = moved.snapshot,
            Ok(false) => {}
            Err(error) => result = Err(error),
        }
    })
    .map_err(Error::from)?;
    result
}
