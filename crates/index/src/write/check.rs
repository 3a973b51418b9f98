//! The offline checks that all tables share: pages of buffers, snapshots, and the log.

use nandex_device::{PAGE_BYTES, PageId};
use nandex_store::Lsn;
use nandex_store::buffer::page_of;
use nandex_store::check::{Checker, Contents, Subject};
use nandex_store::checkpoint::CatalogEntry;
use nandex_store::entries::Entry;
use nandex_store::hash::{KeyHash, KeyHasher};
use nandex_store::page::{Page, PageLabel};

use super::TableShape;
use super::format::{PageSnapshotRef, WriteState, decode_log_entry, decode_put_back};
use super::page_snapshots::SnapshotPlaces;
use crate::Error;
use crate::check::{CheckProgress, OnProgress};

/// A table's buffers as its catalog entry and the moves in the log describe them.
pub(crate) struct Buffers<'a> {
    pub name: &'a str,
    /// The structure's name for a partition.
    pub noun: &'static str,
    pub shape: TableShape,
    pub hasher: KeyHasher,
    pub state: WriteState<PageSnapshotRef>,
    pub places: SnapshotPlaces,
    pub entry: &'a CatalogEntry,
}

/// The location whose pages are checked.
#[derive(Clone, Copy)]
pub(crate) struct Place<'a> {
    pub subject: Subject<'a>,
    pub partition: usize,
    /// Tests whether the filter of these pages has a key. `None` without a filter, or with a damaged one.
    pub filter: Option<&'a dyn Fn(KeyHash) -> bool>,
}

/// Notes an error at its own page, if it names one.
pub(crate) fn note(checker: &mut Checker, subject: Subject<'_>, page: PageId, error: &Error) {
    match error {
        Error::Store(error) => checker.note_error(subject, page, error),
        other => checker.note(subject, page, other),
    }
}

impl Buffers<'_> {
    /// Checks every entry of a sealed page and returns their number. `index` is the page's index in its buffer. Notes
    /// the first flaw, and the number of flaws.
    pub(crate) fn entry_page(
        &self,
        checker: &mut Checker,
        place: Place<'_>,
        page: Page<'_>,
        (number, index): (PageId, u64),
    ) -> u64 {
        let layout = self.shape.layout;
        let mut entries = 0;
        let mut flaws = Vec::new();
        for slot in layout.slot_numbers() {
            let flaw = match layout.entry(page.bytes(), slot) {
                Some(entry) => {
                    entries += 1;
                    self.flaw(place, page, (slot, entry), index)
                }
                None => layout.is_unknown(page.bytes(), slot).then(|| "its state is 3".into()),
            };
            flaws.extend(flaw.map(|flaw| format!("slot {slot}: {flaw}")));
        }
        note_flaws(checker, place.subject, number, &flaws);
        entries
    }

    /// Returns why a lookup of this entry's key would miss the entry.
    fn flaw(
        &self,
        place: Place<'_>,
        page: Page<'_>,
        (slot, entry): (usize, Entry<'_>),
        index: u64,
    ) -> Option<String> {
        let hash = self.hasher.hash(entry.key);
        let partition = self.shape.partition_of(hash);
        if partition != place.partition {
            return Some(format!("its key belongs to {} {partition}", self.noun));
        }
        let pages = self.shape.buffer_pages as usize;
        // A snapshot's pages beyond the buffer's own hold its stash, which has no buckets.
        if index < pages as u64 {
            let own = page_of(hash, pages) as u64;
            if own != index {
                return Some(format!("its key belongs to page {own} of the buffer, not {index}"));
            }
            let layout = self.shape.layout;
            let found = layout.find(page.bytes(), entry.key, layout.buckets_of(hash));
            if found != Some(slot) {
                return Some("its key belongs to other buckets, or is there twice".into());
            }
        }
        let misses = |holds: &dyn Fn(KeyHash) -> bool| !holds(hash);
        place.filter.is_some_and(misses).then(|| "the filter does not hold its key".into())
    }

    /// Checks the snapshots that an opening would load.
    pub(crate) fn snapshots(&self, checker: &mut Checker) {
        let subject = Subject { structure: Some(self.name), what: "snapshot" };
        let partitions = &self.state.partitions;
        let (found, expected) = (partitions.len(), self.shape.partitions as usize);
        if found != expected {
            let message = format!("expected {expected} {}s, found {found}", self.noun);
            return checker.note(subject, self.places.place(0, 0), message);
        }
        // A log position is the start of a block. A state of another layout fails here.
        let tails = partitions.iter().map(|record| record.tail);
        if let Some(tail) = tails.into_iter().find(|tail| tail.0 % PAGE_BYTES as u64 != 0) {
            checker.note(subject, self.places.place(0, 0), format!("its log begins at {tail}"));
        }
        for (partition, record) in partitions.iter().enumerate() {
            record.snapshot.iter().for_each(|it| self.snapshot(checker, partition, *it));
        }
    }

    fn snapshot(&self, checker: &mut Checker, partition: usize, at: PageSnapshotRef) {
        let what = format!("snapshot page of {} {partition}", self.noun);
        let subject = Subject { structure: Some(self.name), what: &what };
        let label = |index| self.places.label(partition, at, index);
        let place = Place { subject, partition, filter: None };
        let run = (&label as &dyn Fn(u64) -> _, self.places.pages);
        check_entries(checker, subject, run, None, &mut |checker, at, page| {
            self.entry_page(checker, place, page, at)
        });
    }

    /// Checks that no snapshot that the checkpoint refers to is newer than the checkpoint.
    pub(crate) fn snapshot_generations(&self, checker: &mut Checker) {
        let next = self.state.next_generation;
        for (partition, record) in self.state.partitions.iter().enumerate() {
            if let Some(at) = record.snapshot {
                let what = format!("snapshot page of {} {partition}", self.noun);
                let subject = Subject { structure: Some(self.name), what: &what };
                let page = self.places.place(partition, at.slot);
                check_number(checker, subject, page, ("generation", at.generation, next));
            }
        }
    }

    /// Checks the log entries that an opening would replay: puts, removes, and entries of the layout's own.
    pub(crate) fn log(
        &self,
        checker: &mut Checker,
        contents: &Contents,
        is_own: &mut dyn FnMut(&[u8]) -> bool,
    ) {
        let expected = "expected a put or a remove of the table's widths";
        check_log(checker, contents, self.entry, expected, &mut |bytes| {
            let layout = self.shape.layout;
            let is_entry = || decode_log_entry(bytes, layout).is_some();
            is_entry() || decode_put_back(bytes, layout).is_some() || is_own(bytes)
        });
    }
}

/// Checks the log entries that an opening of this structure would replay, and notes each unknown one with what was
/// expected.
pub(crate) fn check_log(
    checker: &mut Checker,
    contents: &Contents,
    entry: &CatalogEntry,
    expected: &str,
    is_known: &mut dyn FnMut(&[u8]) -> bool,
) {
    let subject = Subject { structure: Some(&entry.name), what: "log entry" };
    let mut wrong = Vec::new();
    let read = visit_entries(contents, entry, &mut |lsn, bytes| {
        if !is_known(bytes) {
            wrong.push(lsn);
        }
    });
    wrong.dedup();
    for lsn in wrong {
        checker.note(subject, contents.log_page(lsn), expected);
    }
    if let Err(error) = read {
        checker.note_error(subject, contents.log_page(entry.tail), &error);
    }
}

/// Checks the parts of a structure one after the other, and reports the progress. A part has as many pages as
/// `pages_of` says.
pub(crate) fn check_each<P>(
    structure: &str,
    parts: &[P],
    pages_of: impl Fn(&P) -> u64,
    progress: &mut OnProgress<'_>,
    mut check: impl FnMut(&P),
) {
    let pages = parts.iter().map(&pages_of).sum();
    let mut pages_done = 0;
    for part in parts {
        progress(CheckProgress { structure, pages_done, pages });
        check(part);
        pages_done += pages_of(part);
    }
    progress(CheckProgress { structure, pages_done, pages });
}

/// Checks the contents of a page, given its number and its index, and returns the number of its entries.
pub(crate) type EntriesOf<'e> = dyn FnMut(&mut Checker, (PageId, u64), Page<'_>) -> u64 + 'e;

/// Verifies consecutive pages, and passes each to `entries_of`. Counts the entries, and notes if whole pages have a
/// different number than `expected`.
pub(crate) fn check_entries(
    checker: &mut Checker,
    subject: Subject<'_>,
    (label, pages): (&dyn Fn(u64) -> PageLabel, u64),
    expected: Option<u64>,
    entries_of: &mut EntriesOf<'_>,
) {
    let start = label(0).page;
    let mut entries = 0;
    let damaged = checker.pages(subject, (start, pages), label, &mut |checker, index, page| {
        entries += entries_of(checker, (label(index).page, index), page);
    });
    if let Some(expected) = expected.filter(|expected| damaged == 0 && *expected != entries) {
        checker.note(subject, start, format!("expected {expected} entries, found {entries}"));
    }
    checker.count_entries(subject.structure.unwrap_or_default(), entries);
}

/// Notes if something has a higher number than the checkpoint knows, which means it was written later.
pub(crate) fn check_number(
    checker: &mut Checker,
    subject: Subject<'_>,
    page: PageId,
    (noun, number, next): (&str, u64, u64),
) {
    if number >= next {
        checker.note(subject, page, format!("{noun} {number}, where {next} comes next"));
    }
}

/// Verifies the pages after the one that ended a sequential read of them; all but the first if that page is unknown.
pub(crate) fn prove_rest(
    checker: &mut Checker,
    subject: Subject<'_>,
    (label, pages): (&dyn Fn(u64) -> PageLabel, u64),
    error: &Error,
) {
    let start = label(0).page;
    let damaged = match error {
        Error::Store(nandex_store::Error::Corrupt { page, .. }) => page.0.checked_sub(start.0),
        _ => None,
    };
    let first = damaged.map_or(0, |damaged| damaged + 1);
    let run = (start.plus(first), pages.saturating_sub(first));
    checker.pages(subject, run, &|index| label(first + index), &mut |_, _, _| {});
}

/// Notes the first flaw of a page, and the number of flaws.
pub(crate) fn note_flaws(
    checker: &mut Checker,
    subject: Subject<'_>,
    page: PageId,
    flaws: &[String],
) {
    match flaws {
        [] => {}
        [flaw] => checker.note(subject, page, flaw),
        [first, ..] => {
            checker.note(subject, page, format!("{first}; {} slots are wrong", flaws.len()));
        }
    }
}

/// Visits each log entry that an opening of this structure would replay, oldest first.
///
/// # Errors
/// A failed read.
pub(crate) fn visit_entries(
    contents: &Contents,
    entry: &CatalogEntry,
    visit: &mut dyn FnMut(Lsn, &[u8]),
) -> nandex_store::Result<()> {
    contents.visit_log(&mut |lsn, id, entry_bytes: usize, entries: &[u8]| {
        if id == entry.id && lsn >= entry.tail && entry_bytes > 0 {
            entries.chunks_exact(entry_bytes).for_each(|bytes| visit(lsn, bytes));
        }
        Ok(())
    })
}
