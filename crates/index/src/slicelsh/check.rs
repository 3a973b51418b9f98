//! Checks a SliceLSH offline: its map with the moves that the log adds to it, every page of its current slicetables and
//! snapshots, and that each entry occurs once, where a lookup searches for it.

use std::collections::HashSet;

use nandex_device::PageId;
use nandex_store::bytes::{Reader, get_u64};
use nandex_store::check::{Checker, Contents, Subject};
use nandex_store::checkpoint::CatalogEntry;
use nandex_store::page::{Page, PageKind};
use nandex_store::shadow::{Block, Shadow, ShadowRecovery};
use nandex_store::slice::SliceLayout;
use nandex_store::space::Extent;

use super::Config;
use super::filter::{Bits, FilterLine};
use super::format::{DocumentUpdate, snapshot_entries};
use super::keys::{BucketPlacing, Pair};
use super::placement::Placement;
use super::recover::{MapSource, moved, placing};
use super::saved_filter::SavedLines;
use super::snapshot::places;
use crate::Result;
use crate::check::OnProgress;
use crate::write::SnapshotPlaces;
use crate::write::check::{
    check_each, check_entries, check_log, check_number, note, note_flaws, visit_entries,
};
use crate::write::format::{Moved, PageSnapshotRef, WriteState};

/// Checks one structure and notes flaws in the checker.
pub(crate) fn check(
    checker: &mut Checker,
    contents: &Contents,
    entry: &CatalogEntry,
    progress: &mut OnProgress<'_>,
) {
    match Index::decode(contents, entry) {
        Ok(index) => {
            index.slicetables(checker, progress);
            index.snapshots(checker);
            index.log(checker, contents);
        }
        Err(error) => {
            let subject = Subject { structure: Some(&entry.name), what: "configuration and map" };
            note(checker, subject, contents.superblock.checkpoint.start, &error);
        }
    }
}

/// An index as its catalog entry, and the moves in the log, describe it.
struct Index<'a> {
    config: Config,
    slices: SliceLayout,
    placement: Placement,
    placing: BucketPlacing,
    shadow: Shadow,
    /// The extent of its saved filter.
    filter: Option<Extent>,
    state: WriteState<PageSnapshotRef>,
    places: SnapshotPlaces,
    entry: &'a CatalogEntry,
}

impl<'a> Index<'a> {
    fn decode(contents: &Contents, entry: &'a CatalogEntry) -> Result<Self> {
        let place = contents.superblock.checkpoint.start;
        let config = Config::decode(&mut Reader::new(&entry.config, "configuration", place))?;
        let mut reader = Reader::new(&entry.state, "state", place);
        let (start, filter) = match entry.extents[..] {
            [extent] if extent.pages == config.pages() => (extent.start, None),
            // A page of slices has more bits than those of its buckets in a filter.
            [extent, filter] if extent.pages == config.pages() && filter.pages <= extent.pages => {
                (extent.start, Some(filter))
            }
            _ => {
                let found = format!("{:?}", entry.extents);
                return Err(reader.refuse("an extent as the configuration says", found).into());
            }
        };
        let epoch = contents.superblock.epoch;
        let from = MapSource { id: entry.id, place: start, epoch, state: &entry.state };
        let mut map = from.map(&config, &mut reader)?;
        let partitions = config.partitions as usize;
        let mut state = if entry.state.is_empty() {
            WriteState::new(partitions, entry.tail)
        } else {
            WriteState::decode(&mut reader)?
        };
        if state.partitions.len() != partitions || reader.left() > 0 {
            let found = format!("{} and {} bytes", state.partitions.len(), reader.left());
            return Err(reader.refuse(format!("{partitions} partitions"), found).into());
        }
        let mut result = Ok(());
        visit_entries(contents, entry, &mut |lsn, bytes| {
            if result.is_ok() {
                let page = contents.log_page(lsn);
                result = apply_move(&mut map, &mut state, bytes, (start, page));
            }
        })?;
        result?;
        Ok(Self {
            slices: Config::slice_layout(),
            placement: config.placement(),
            placing: placing(&config, contents.hasher()),
            shadow: map.finish(),
            places: places(entry.id, &config, start.plus(config.slicetable_pages())),
            config,
            filter,
            state,
            entry,
        })
    }

    fn subject<'s>(&'s self, what: &'s str) -> Subject<'s> {
        Subject { structure: Some(&self.entry.name), what }
    }

    /// The current slicetables of each partition.
    fn slicetables(&self, checker: &mut Checker, progress: &mut OnProgress<'_>) {
        let blocks = (0..self.config.partitions)
            .filter_map(|partition| Some((partition, self.shadow.block(partition)?)));
        let blocks: Vec<_> = blocks.collect();
        let block_pages = u64::from(self.config.block_pages());
        check_each(
            &self.entry.name,
            &blocks,
            |_| block_pages,
            progress,
            |&(partition, block)| {
                self.block(checker, partition, block);
            },
        );
    }

    fn block(&self, checker: &mut Checker, partition: u32, block: Block) {
        let what = format!("slice page of partition {partition}");
        let subject = self.subject(&what);
        let label = |index| self.shadow.label(block, index, PageKind::Slice);
        let run = (&label as &dyn Fn(u64) -> _, u64::from(self.config.block_pages()));
        let filter = self.saved_lines(checker, partition, block);
        let expected = Some(block.entries.into());
        check_entries(checker, subject, run, expected, &mut |checker, (number, index), page| {
            let (found, flaws) = self.slice_page((partition, &filter), page, index);
            note_flaws(checker, subject, number, &flaws);
            found as u64
        });
    }

    /// Returns the saved filter of these slicetables, if it is valid.
    fn saved_lines(
        &self,
        checker: &Checker,
        partition: u32,
        block: Block,
    ) -> Option<Vec<FilterLine>> {
        let place = (self.entry.id, self.filter?);
        let partitions = self.config.partitions as usize;
        SavedLines::read(&*checker.device(), place, partitions, (partition as usize, block))
    }

    /// Returns the number of entries of a sealed page, and its flaws.
    fn slice_page(
        &self,
        (partition, filter): (u32, &Option<Vec<FilterLine>>),
        page: Page<'_>,
        index: u64,
    ) -> (usize, Vec<String>) {
        let body = page.body();
        let Some(count) = self.slices.count(body) else {
            return (0, vec![format!("more than {} entries", self.slices.capacity())]);
        };
        let Some((table, slice)) = self.placement.slice_of(index) else {
            let flaw = (count > 0).then(|| format!("{count} entries in a page of no slice"));
            return (count, flaw.into_iter().collect());
        };
        let mut seen = HashSet::new();
        let flaw = |at: usize| {
            let key = get_u64(self.slices.key(body, at), 0);
            let pair = Pair { table, key, id: get_u64(self.slices.value(body, at), 0) };
            let own = self.placing.slice_of(self.placing.hash(key));
            let flaw = if own != slice {
                format!("its bucket belongs to slice {own}, not {slice}")
            } else if filter.as_ref().is_some_and(|filter| !self.may_have(filter, pair)) {
                "the saved filter does not have its bucket".into()
            } else {
                self.flaw(partition as usize, pair, &mut seen)?
            };
            Some(format!("entry {at}: {flaw}"))
        };
        (count, (0..count).filter_map(flaw).collect())
    }

    /// Returns whether the lines of its partition have the bucket of a pair.
    fn may_have(&self, lines: &[FilterLine], pair: Pair) -> bool {
        let all = lines.len() * self.config.partitions as usize;
        let bits = Bits::of(all, (pair.table, self.placing.hash(pair.key)));
        bits.are_in(&lines[bits.line % lines.len()])
    }

    /// Returns why a lookup of this pair's bucket would miss it, or find it twice.
    fn flaw(&self, partition: usize, pair: Pair, seen: &mut HashSet<Pair>) -> Option<String> {
        let own = self.placing.partition_of(self.placing.hash(pair.key));
        if own != partition {
            return Some(format!("its bucket belongs to partition {own}"));
        }
        (!seen.insert(pair)).then(|| "its id is there twice".into())
    }

    /// Checks the snapshots that an opening would load.
    fn snapshots(&self, checker: &mut Checker) {
        let next = self.state.next_generation;
        for (partition, record) in self.state.partitions.iter().enumerate() {
            let Some(at) = record.snapshot else { continue };
            let what = format!("snapshot page of partition {partition}");
            let subject = self.subject(&what);
            let page = self.places.place(partition, at.slot);
            check_number(checker, subject, page, ("generation", at.generation, next));
            self.snapshot(checker, subject, (partition, at));
        }
    }

    fn snapshot(
        &self,
        checker: &mut Checker,
        subject: Subject<'_>,
        (partition, at): (usize, PageSnapshotRef),
    ) {
        let label = |index| self.places.label(partition, at, index);
        let (run, mut seen) = ((&label as &dyn Fn(u64) -> _, self.places.pages), HashSet::new());
        check_entries(checker, subject, run, None, &mut |checker, (number, _), page| {
            let Some(found) = snapshot_entries(page.body(), self.config.tables) else {
                let message = format!("entries of other than {} tables", self.config.tables);
                checker.note(subject, number, message);
                return 0;
            };
            let flaw = |(at, (pair, _)): (usize, &(Pair, bool))| {
                Some(format!("entry {at}: {}", self.flaw(partition, *pair, &mut seen)?))
            };
            let flaws: Vec<_> = found.iter().enumerate().filter_map(flaw).collect();
            note_flaws(checker, subject, number, &flaws);
            found.len() as u64
        });
    }

    /// Checks the log entries that an opening would replay: updates of documents, and moves.
    fn log(&self, checker: &mut Checker, contents: &Contents) {
        let expected = format!("expected an update with {} keys", self.config.tables);
        check_log(checker, contents, self.entry, &expected, &mut |bytes| {
            DocumentUpdate::decode(bytes, self.config.tables).is_some()
                || Moved::decode(bytes).is_some()
        });
    }
}

/// Applies a log entry, if it is a move, as an opening would.
fn apply_move(
    map: &mut ShadowRecovery,
    state: &mut WriteState<PageSnapshotRef>,
    bytes: &[u8],
    (start, page): (PageId, PageId),
) -> Result<()> {
    let Some((record, own)) = Moved::decode(bytes) else { return Ok(()) };
    let Some(partition) = state.partitions.get_mut(record.partition as usize) else {
        let expected = "a move of a partition that there is";
        let found = format!("one of partition {}", record.partition);
        return Err(nandex_store::Error::corrupt("log entry", page, expected, found).into());
    };
    if moved(map, record.partition, own, start)? {
        partition.snapshot = record.snapshot;
    }
    Ok(())
}
