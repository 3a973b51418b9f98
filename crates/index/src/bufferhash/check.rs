//! Proves a BufferHash offline: its maps, every page of its live incarnations and images, and that each
//! entry stands where a lookup would look for it.

use nandex_device::{PAGE_BYTES, PageId};
use nandex_store::buffer::page_of;
use nandex_store::bytes::Reader;
use nandex_store::check::{Checker, Contents, Subject};
use nandex_store::checkpoint::CatalogEntry;
use nandex_store::entries::{Entry, EntryLayout};
use nandex_store::hash::KeyHasher;
use nandex_store::page::{Page, PageKind, PageLabel};
use nandex_store::ring::{Ring, RingShape, SegmentId, SegmentTag};
use nandex_store::space::Extent;

use super::filter::{Filter, FilterShape, ShapeParts, Slices};
use super::format::{ImageRef, State, decode_filter, decode_log_entry};
use super::{Config, Placement};
use crate::check::{CheckProgress, OnProgress};
use crate::intake::Shape;
use crate::intake::image::{self, Images};
use crate::{Error, Result};

/// The only column of a check's filter.
const LIVE: super::filter::Columns = [1, 0, 0, 0];

/// Refuses a table of which a check could not see the incarnations; damage is left to [`check`].
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

/// Checks one structure and notes in the checker what is wrong with it.
pub(crate) fn check(
    checker: &mut Checker,
    contents: &Contents,
    entry: &CatalogEntry,
    progress: &mut OnProgress<'_>,
) {
    match Table::decode(contents, entry) {
        Ok(table) => {
            table.incarnations(checker, progress);
            table.images(checker);
            table.log(checker, contents, entry);
        }
        Err(error) => {
            let subject = Subject { structure: Some(&entry.name), what: "configuration and maps" };
            note(checker, subject, contents.superblock.checkpoint.start, &error);
        }
    }
}

fn note(checker: &mut Checker, subject: Subject<'_>, page: PageId, error: &Error) {
    match error {
        Error::Store(error) => checker.note_error(subject, page, error),
        other => checker.note(subject, page, other),
    }
}

/// A table as its catalog entry describes it.
struct Table<'a> {
    name: &'a str,
    config: Config,
    layout: EntryLayout,
    buffers: Shape,
    hasher: KeyHasher,
    filter: Filter,
    ring: Ring,
    state: State,
    images: Images,
    entry: &'a CatalogEntry,
}

/// What is looked at: a run of entry pages of one super table.
#[derive(Clone, Copy)]
struct Place<'a> {
    subject: Subject<'a>,
    super_table: usize,
    /// The incarnation's filter, where it is whole.
    filter: Option<&'a Slices>,
}

impl<'a> Table<'a> {
    fn decode(contents: &Contents, entry: &'a CatalogEntry) -> Result<Self> {
        let place = contents.superblock.checkpoint.start;
        let config = Config::decode(&mut Reader::new(&entry.config, "configuration", place))?;
        let buffers = config.shape()?;
        let mut reader = Reader::new(&entry.state, "state", place);
        let extent = match entry.extents[..] {
            [extent] if Some(extent.pages) == pages(&config)? => extent,
            _ => {
                let found = format!("{:?}", entry.extents);
                return Err(reader.refuse("one extent as the configuration says", found).into());
            }
        };
        let shape = RingShape { segment_pages: config.segment_pages(), segments: config.segments };
        let of_ring = Extent { start: extent.start, pages: config.ring_pages() };
        let epoch = contents.superblock.epoch;
        let (ring, state) = if entry.state.is_empty() {
            (Ring::create(entry.id, of_ring, shape, epoch), State::default())
        } else {
            let ring = Ring::restore(entry.id, of_ring, shape, epoch, &mut reader)?;
            (ring, State::decode(&mut reader)?)
        };
        if reader.left() > 0 {
            return Err(reader.refuse("the end of the state", reader.left()).into());
        }
        let images =
            Images::new(&buffers, extent.start.plus(config.volume_ring_pages()), state.next_image);
        let (name, hasher) = (&entry.name[..], contents.hasher());
        let filter = Filter::new(one_word(config.filter)?);
        Ok(Self {
            name,
            config,
            layout: buffers.layout,
            buffers,
            hasher,
            filter,
            ring,
            state,
            images,
            entry,
        })
    }

    /// Every live incarnation, oldest first.
    fn incarnations(&self, checker: &mut Checker, progress: &mut OnProgress<'_>) {
        let segments = self.ring.segments();
        let segment_pages = u64::from(self.config.segment_pages());
        let pages = segments.len() as u64 * segment_pages;
        let mut owned = vec![0; self.config.super_tables as usize];
        let slices = Slices::new(self.filter.shape());
        for (number, (id, tag)) in (0..).zip(segments) {
            let pages_done = number * segment_pages;
            progress(CheckProgress { structure: self.name, pages_done, pages });
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
        }
        progress(CheckProgress { structure: self.name, pages_done: pages, pages });
    }

    fn incarnation(&self, checker: &mut Checker, id: SegmentId, tag: SegmentTag, slices: &Slices) {
        let filter = self.load_filter(checker, id, tag, slices).then_some(slices);
        let what = format!("entry page of super table {}", tag.owner);
        let subject = Subject { structure: Some(self.name), what: &what };
        let place = Place { subject, super_table: tag.owner as usize, filter };
        let label = |index| self.ring.label(id, index, PageKind::Data);
        let pages = u64::from(self.config.buffer_pages);
        let mut entries = 0;
        let run = (self.ring.page(id, 0), pages);
        let damaged = checker.pages(subject, run, &label, &mut |checker, index, page| {
            entries += self.entry_page(checker, place, page, (label(index).page, index));
        });
        if damaged == 0 && entries != u64::from(tag.entries) {
            let message = format!("expected {} entries, found {entries}", tag.entries);
            checker.note(subject, run.0, message);
        }
        checker.count_entries(self.name, entries);
    }

    /// Reads an incarnation's filter into column 0; tells whether it is whole.
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

    /// Every entry of a page that is sealed as it should be; gives their number. `index` is the page's
    /// place in its buffer. The first thing wrong is noted, and how often there is such.
    fn entry_page(
        &self,
        checker: &mut Checker,
        place: Place<'_>,
        page: Page<'_>,
        (number, index): (PageId, u64),
    ) -> u64 {
        let (mut entries, mut wrong, mut first) = (0, 0, String::new());
        for slot in self.layout.slot_numbers() {
            let flaw = match self.layout.entry(page.bytes(), slot) {
                Some(entry) => {
                    entries += 1;
                    self.flaw(place, page, (slot, entry), index)
                }
                None => self.layout.is_unknown(page.bytes(), slot).then(|| "its state is 3".into()),
            };
            if let Some(flaw) = flaw {
                wrong += 1;
                if wrong == 1 {
                    first = format!("slot {slot}: {flaw}");
                }
            }
        }
        match wrong {
            0 => {}
            1 => checker.note(place.subject, number, first),
            _ => checker.note(place.subject, number, format!("{first}; {wrong} slots are wrong")),
        }
        entries
    }

    /// Why a lookup of this entry's key would not find this entry.
    fn flaw(
        &self,
        place: Place<'_>,
        page: Page<'_>,
        (slot, entry): (usize, Entry<'_>),
        index: u64,
    ) -> Option<String> {
        let hash = self.hasher.hash(entry.key);
        let super_table = self.buffers.partition_of(hash);
        if super_table != place.super_table {
            return Some(format!("its key belongs to super table {super_table}"));
        }
        let pages = self.config.buffer_pages as usize;
        // Behind a buffer's pages an image has those of its stash, which have no buckets.
        if index < pages as u64 {
            let own = page_of(hash, pages) as u64;
            if own != index {
                return Some(format!("its key belongs to page {own} of the buffer, not {index}"));
            }
            let found = self.layout.find(page.bytes(), entry.key, self.layout.buckets_of(hash));
            if found != Some(slot) {
                return Some("its key belongs to other buckets, or is there twice".into());
            }
        }
        let misses = |filter| self.filter.candidates(filter, hash.filter, &LIVE) != LIVE;
        place.filter.is_some_and(misses).then(|| "the filter does not hold its key".into())
    }

    /// The images that the checkpoint refers to.
    fn images(&self, checker: &mut Checker) {
        let subject = Subject { structure: Some(self.name), what: "image" };
        let (found, expected) = (self.state.images.len(), self.config.super_tables as usize);
        if found != expected && !self.entry.state.is_empty() {
            let message = format!("expected {expected} super tables, found {found}");
            return checker.note(subject, self.images.place(0, 0), message);
        }
        // Places of the log are starts of blocks; a state of another layout is told by this.
        if let Some(tail) = self.state.tails.iter().find(|tail| tail.0 % PAGE_BYTES as u64 != 0) {
            checker.note(subject, self.images.place(0, 0), format!("its log begins at {tail}"));
        }
        let images = self.state.images.iter().enumerate();
        for (super_table, image) in images.filter_map(|(index, image)| Some((index, (*image)?))) {
            self.image(checker, super_table, image);
        }
    }

    fn image(&self, checker: &mut Checker, super_table: usize, image: ImageRef) {
        let what = format!("image page of super table {super_table}");
        let subject = Subject { structure: Some(self.name), what: &what };
        let first = self.images.place(super_table, image.slot);
        if image.generation >= self.state.next_image {
            let (found, next) = (image.generation, self.state.next_image);
            checker.note(subject, first, format!("generation {found}, where {next} comes next"));
        }
        let label = |index| PageLabel {
            kind: PageKind::Image,
            structure: self.entry.id,
            generation: image.generation,
            page: first.plus(index),
        };
        let place = Place { subject, super_table, filter: None };
        let mut entries = 0;
        let run = (first, self.images.pages());
        checker.pages(subject, run, &label, &mut |checker, index, page| {
            entries += self.entry_page(checker, place, page, (label(index).page, index));
        });
        checker.count_entries(self.name, entries);
    }

    /// The log entries that an opening would replay.
    fn log(&self, checker: &mut Checker, contents: &Contents, entry: &CatalogEntry) {
        let subject = Subject { structure: Some(self.name), what: "log entry" };
        let mut wrong = Vec::new();
        let mut visit = |lsn: nandex_store::Lsn, id, entry_bytes: usize, entries: &[u8]| {
            if id == entry.id && lsn >= entry.tail && entry_bytes > 0 {
                let mut entries = entries.chunks_exact(entry_bytes);
                if entries.any(|bytes| decode_log_entry(bytes, self.layout).is_none()) {
                    wrong.push(lsn);
                }
            }
            Ok(())
        };
        let read = contents.visit_log(&mut visit);
        let page_of = |lsn: nandex_store::Lsn| contents.log_page(lsn);
        for lsn in wrong {
            checker.note(subject, page_of(lsn), "expected a put or a remove of the table's widths");
        }
        if let Err(error) = read {
            checker.note_error(subject, page_of(entry.tail), &error);
        }
    }
}

/// Pages that a table of this configuration takes; nothing when they cannot be counted.
fn pages(config: &Config) -> Result<Option<u64>> {
    let of_images = image::pages(&config.shape()?);
    let of_ring = config.segments.checked_mul(u64::from(config.segment_pages()));
    Ok(of_ring.and_then(|pages| pages.checked_add(of_images)))
}

/// The same columns with room for 64 of them, of which a check needs one.
fn one_word(shape: FilterShape) -> Result<FilterShape> {
    FilterShape::from_parts(ShapeParts { words: 1, ..shape.parts() })
}
