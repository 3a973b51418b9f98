//! Checks a SliceBloom offline: its configuration and map, every page of its slicetables and snapshots, and its keys in
//! the log.

use nandex_device::PageId;
use nandex_store::bytes::Reader;
use nandex_store::check::{Checker, Contents, Subject};
use nandex_store::checkpoint::CatalogEntry;
use nandex_store::page::PageKind;
use nandex_store::shadow::{Block, Shadow};

use super::buffer::Content;
use super::recover::{FilterSource, RestoredFilter, restore};
use super::{Config, SliceLevel};
use crate::Result;
use crate::check::OnProgress;
use crate::write::check::{check_each, check_log, check_number, note};
use crate::write::format::{AddsUp, PageSnapshotRef, WriteState};
use crate::write::{BoundaryRecord, LogCodec, SnapshotPlaces};

/// A filter as its catalog entry describes it.
struct Described<'a> {
    name: &'a str,
    config: Config,
    shadow: Shadow,
    levels: Vec<SliceLevel>,
    state: WriteState<PageSnapshotRef>,
    places: SnapshotPlaces,
}

/// Checks one filter and notes flaws in the checker. Counts its keys, each as often as it was inserted.
pub(crate) fn check(
    checker: &mut Checker,
    contents: &Contents,
    entry: &CatalogEntry,
    progress: &mut OnProgress<'_>,
) {
    match decode(contents, entry) {
        Ok(filter) => {
            filter.slicetables(checker, progress);
            filter.snapshots(checker);
            filter.log(checker, contents, entry);
        }
        Err(error) => {
            let subject = Subject { structure: Some(&entry.name), what: "configuration and map" };
            note(checker, subject, contents.superblock.checkpoint.start, &error);
        }
    }
}

fn decode<'a>(contents: &Contents, entry: &'a CatalogEntry) -> Result<Described<'a>> {
    let place = contents.superblock.checkpoint.start;
    let mut reader = Reader::new(&entry.config, "slicebloom configuration", place);
    let config = Config::decode(&mut reader)?;
    if reader.left() > 0 {
        return Err(reader.refuse("the end of the configuration", reader.left()).into());
    }
    let mut reader = Reader::new(&entry.state, "slicebloom state", place);
    let start = match entry.extents[..] {
        [extent] if extent.pages == config.pages() => extent.start,
        _ => {
            let found = format!("{:?}", entry.extents);
            return Err(reader.refuse("one extent as the configuration says", found).into());
        }
    };
    let from = FilterSource { id: entry.id, start, epoch: contents.superblock.epoch };
    let is_new = entry.state.is_empty();
    let RestoredFilter { shadow, levels } = restore(&from, &config, is_new, &mut reader)?;
    let state = if is_new {
        WriteState::new(levels.len(), entry.tail)
    } else {
        WriteState::decode_with(AddsUp::Yes, &mut reader, PageSnapshotRef::decode)?
    };
    if state.partitions.len() != levels.len() || reader.left() > 0 {
        let expected =
            format!("the buffers of {} partitions and the end of the state", levels.len());
        let found = format!("{} partitions, {} bytes left", state.partitions.len(), reader.left());
        return Err(reader.refuse(expected, found).into());
    }
    let (name, places) = (&entry.name[..], from.places(&config));
    Ok(Described { name, config, shadow: shadow.finish(), levels, state, places })
}

impl Described<'_> {
    /// The current slicetable of each partition.
    fn slicetables(&self, checker: &mut Checker, progress: &mut OnProgress<'_>) {
        let blocks = (0..self.config.partitions)
            .filter_map(|partition| Some((partition, self.shadow.block(partition)?)));
        let blocks: Vec<_> = blocks.collect();
        let block_pages = u64::from(self.config.block_pages());
        check_each(
            self.name,
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
        let subject = Subject { structure: Some(self.name), what: &what };
        let label = |index| self.shadow.label(block, index, PageKind::Slice);
        let run = (self.shadow.page(block, 0), u64::from(self.config.block_pages()));
        let (layout, bits) = (self.config.slice_layout(), self.config.bits());
        let incarnations = self.levels[partition as usize].incarnations;
        checker.pages(subject, run, &label, &mut |checker, index, page| {
            if layout.has_strays(index, page.body(), bits, incarnations) {
                let message = format!("bits of more than {incarnations} incarnations");
                checker.note(subject, label(index).page, message);
            }
        });
        checker.count_entries(self.name, block.entries.into());
    }

    /// Checks the snapshots that an opening would load.
    fn snapshots(&self, checker: &mut Checker) {
        for (partition, record) in self.state.partitions.iter().enumerate() {
            record.snapshot.iter().for_each(|at| self.snapshot(checker, partition, *at));
        }
    }

    fn snapshot(&self, checker: &mut Checker, partition: usize, at: PageSnapshotRef) {
        let what = format!("snapshot page of partition {partition}");
        let subject = Subject { structure: Some(self.name), what: &what };
        let label = |index| self.places.label(partition, at, index);
        let start: PageId = self.places.place(partition, at.slot);
        let number = ("generation", at.generation, self.state.next_generation);
        check_number(checker, subject, start, number);
        let mut bodies = Vec::new();
        let run = (start, self.places.pages);
        let damaged = checker.pages(subject, run, &label, &mut |_, _, page| {
            bodies.extend_from_slice(page.body());
        });
        let keys_max = self.config.buffer_keys.into();
        match Content::decode(&bodies, self.config.bits(), keys_max) {
            Some(content) => checker.count_entries(self.name, content.keys),
            None if damaged == 0 => {
                checker.note(subject, start, "expected the bits of a buffer, found other bytes");
            }
            None => {}
        }
    }

    fn log(&self, checker: &mut Checker, contents: &Contents, entry: &CatalogEntry) {
        let codec = super::format::FingerprintCodec(self.config.placing());
        let is_boundary = |bytes: &[u8]| {
            BoundaryRecord::decode(bytes).is_some_and(|it| it.partition < self.config.partitions)
        };
        let expected = "expected a key or a boundary of the filter";
        check_log(checker, contents, entry, expected, &mut |bytes| {
            codec.decode(bytes).is_some() || is_boundary(bytes)
        });
    }
}
