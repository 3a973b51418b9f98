//! Checks a BufferHash offline: its maps, every page of its live incarnations and snapshots, and that each entry is
//! where a lookup searches for it.

use nandex_device::PageId;
use nandex_store::bytes::Reader;
use nandex_store::check::{Checker, Contents, Subject};
use nandex_store::checkpoint::CatalogEntry;
use nandex_store::hash::KeyHash;
use nandex_store::page::{Page, PageKind};
use nandex_store::ring::{Ring, SegmentId, SegmentTag};
use nandex_store::space::Extent;

use super::filter::{IncarnationFilter, Slices};
use super::format::decode_filter;
use super::{Config, Placement};
use crate::check::OnProgress;
use crate::write::check::{Buffers, Place, check_each, check_entries, note};
use crate::write::format::{PageSnapshotRef, WriteState};
use crate::write::{SnapshotPlaces, snapshot_pages};
use crate::{Error, Result};

/// The only column of a check's filter.
const LIVE: super::filter::Columns = [1, 0, 0, 0];

/// Fails for a table whose incarnations a check cannot read; [`check`] finds damage.
///
/// # Errors
/// [`Error::Config`] with the table's name.
pub(crate) fn refuse_chip(entry: &CatalogEntry) -> Result<()> {
    let config = Config::decode(&mut Reader::new(&entry.config, "configuration", PageId(0)));
    match config.map(|config| config.placement) {
        Ok(Placement::Chip { .. }) => Err(Error::Config {
            field: "chip",
            reason: format!(
                "the incarnations of table {:?} are on a chip, which a check does not read; open the \
                 table with its chip and look its keys up",
                entry.name
            ),
        }),
        Ok(Placement::Shared) | Err(_) => Ok(()),
    }
}

/// Checks one structure and notes flaws in the checker.
pub(crate) fn check(
    checker: &mut Checker,
    contents: &Contents,
    entry: &CatalogEntry,
    progress: &mut OnProgress<'_>,
) {
    match Table::decode(contents, entry) {
        Ok(table) => {
            table.incarnations(checker, progress);
            table.buffers.snapshot_generations(checker);
            table.buffers.snapshots(checker);
            table.buffers.log(checker, contents, &mut |_| false);
        }
        Err(error) => {
            let subject = Subject { structure: Some(&entry.name), what: "configuration and maps" };
            note(checker, subject, contents.superblock.checkpoint.start, &error);
        }
    }
}

/// A table as its catalog entry describes it.
struct Table<'a> {
    name: &'a str,
    config: Config,
    filter: IncarnationFilter,
    ring: Ring,
    buffers: Buffers<'a>,
}

impl<'a> Table<'a> {
    fn decode(contents: &Contents, entry: &'a CatalogEntry) -> Result<Self> {
        let place = contents.superblock.checkpoint.start;
        let config = Config::decode(&mut Reader::new(&entry.config, "configuration", place))?;
        let shape_of_buffers = config.shape()?;
        let mut reader = Reader::new(&entry.state, "state", place);
        let extent = match entry.extents[..] {
            [extent] if Some(extent.pages) == pages(&config)? => extent,
            _ => {
                let found = format!("{:?}", entry.extents);
                return Err(reader.refuse("one extent as the configuration says", found).into());
            }
        };
        let shape = config.ring_shape();
        let of_ring = Extent { start: extent.start, pages: config.ring_pages() };
        let epoch = contents.superblock.epoch;
        let (ring, state) = if entry.state.is_empty() {
            let state: WriteState<PageSnapshotRef> =
                WriteState::new(config.super_tables as usize, entry.tail);
            (Ring::create(entry.id, of_ring, shape, epoch), state)
        } else {
            let ring = Ring::restore(entry.id, of_ring, shape, epoch, &mut reader)?;
            (ring, WriteState::decode(&mut reader)?)
        };
        if reader.left() > 0 {
            return Err(reader.refuse("the end of the state", reader.left()).into());
        }
        let at = extent.start.plus(config.volume_ring_pages());
        let buffers = Buffers {
            name: &entry.name,
            noun: "super table",
            places: SnapshotPlaces::new(entry.id, &shape_of_buffers, at),
            shape: shape_of_buffers,
            hasher: contents.hasher(),
            state,
            entry,
        };
        let filter = IncarnationFilter::new(config.filter);
        Ok(Self { name: &entry.name, config, filter, ring, buffers })
    }

    /// Checks every live incarnation, oldest first.
    fn incarnations(&self, checker: &mut Checker, progress: &mut OnProgress<'_>) {
        let segments = self.ring.segments();
        let segment_pages = u64::from(self.config.segment_pages());
        let mut owned = vec![0; self.config.super_tables as usize];
        let slices = Slices::with_columns(self.filter.shape(), 1);
        check_each(
            self.name,
            &segments,
            |_| segment_pages,
            progress,
            |&(id, tag)| {
                let owner = owned.get_mut(tag.owner as usize);
                match owner {
                    Some(owned) if *owned < self.config.incarnations_max => {
                        *owned += 1;
                        self.incarnation(checker, id, tag, &slices);
                    }
                    _ => {
                        let what = "ring map";
                        let subject = Subject { structure: Some(self.name), what };
                        let message = format!("an incarnation of super table {}", tag.owner);
                        checker.note(subject, self.ring.page(id, 0), message);
                    }
                }
            },
        );
    }

    fn incarnation(&self, checker: &mut Checker, id: SegmentId, tag: SegmentTag, slices: &Slices) {
        let holds = |hash: KeyHash| self.filter.candidates(slices, hash.filter, &LIVE) == LIVE;
        let is_whole = self.load_filter(checker, id, tag, slices);
        let filter = is_whole.then_some(&holds as &dyn Fn(KeyHash) -> bool);
        let what = format!("entry page of super table {}", tag.owner);
        let subject = Subject { structure: Some(self.name), what: &what };
        let place = Place { subject, partition: tag.owner as usize, filter };
        let label = |index| self.ring.label(id, index, PageKind::Data);
        let run = (&label as &dyn Fn(u64) -> _, u64::from(self.config.buffer_pages));
        check_entries(checker, subject, run, Some(tag.entries.into()), &mut |checker, at, page| {
            self.buffers.entry_page(checker, place, page, at)
        });
    }

    /// Reads an incarnation's filter into column 0; returns whether it is undamaged.
    fn load_filter(
        &self,
        checker: &mut Checker,
        id: SegmentId,
        tag: SegmentTag,
        slices: &Slices,
    ) -> bool {
        let what = format!("filter page of super table {}", tag.owner);
        let subject = Subject { structure: Some(self.name), what: &what };
        let first = u64::from(self.config.buffer_pages);
        let pages = u64::from(self.config.filter_pages());
        let label = |index| self.ring.label(id, first + index, PageKind::Filter);
        let mut all = Vec::new();
        let run = (self.ring.page(id, first), pages);
        let mut append = |_: &mut Checker, _, page: Page<'_>| all.extend_from_slice(page.bytes());
        if checker.pages(subject, run, &label, &mut append) > 0 {
            return false;
        }
        slices.write_column(0, &decode_filter(&all, self.filter.shape().column_words()));
        true
    }
}

/// Returns the pages of a table of this configuration; `None` if they cannot be counted.
fn pages(config: &Config) -> Result<Option<u64>> {
    let of_snapshots = snapshot_pages(&config.shape()?);
    let of_ring = config.segments.checked_mul(u64::from(config.segment_pages()));
    Ok(of_ring.and_then(|pages| pages.checked_add(of_snapshots)))
}
