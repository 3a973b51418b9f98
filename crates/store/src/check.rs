//! Verifies a volume offline: reads everything that its superblock leads to, and lists what differs from what was
//! written.
//!
//! Nothing is written, synced or grown, so a read-only device is enough, and a check never makes damage
//! worse. It continues after damage where it can: it notes a page that fails verification and reads the next one. The
//! structures of the index are checked with the same [`Checker`].

use std::sync::Arc;

use nandex_device::{Counted, Device, PAGE_BYTES, PageBuf, PageId};

use crate::checkpoint::{self, Catalog};
use crate::hash::KeyHasher;
use crate::log::{LogEnd, LogRegion, Visit, replay, replay_until};
use crate::page::{Page, PageLabel, RawPage};
use crate::superblock::{SUPERBLOCK_PAGES, Superblock};
use crate::volume::{log_region, read_superblock, space_of};
use crate::{Error, Lsn, Result};

/// The number of findings that are kept; others are only counted, so that the report of a volume of garbage fits in
/// memory.
pub const FINDINGS_MAX: usize = 10_000;

/// Pages that are read at once.
const CHUNK_PAGES: u64 = 256;

/// Something that differs from what was written.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Finding {
    /// The structure; `None` for the volume itself.
    pub structure: Option<String>,
    /// The expected part, such as `superblock` or `entry page of super table 3`.
    pub what: String,
    /// The page of the damage. If the log has a device of its own, a finding of the log names a page of that device.
    pub page: PageId,
    /// The fault.
    pub message: String,
}

impl std::fmt::Display for Finding {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { structure, what, page, message } = self;
        match structure {
            Some(name) => write!(f, "{what} of {name:?} at {page}: {message}"),
            None => write!(f, "{what} at {page}: {message}"),
        }
    }
}

/// A structure that was checked.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct CheckedStructure {
    /// Its name.
    pub name: String,
    /// The kind of structure.
    pub kind: String,
    /// Entries that were read and verified, counting every version of a key; 0 if no structure counted.
    pub entries: u64,
}

/// The result of a check.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Report {
    /// Everything that is wrong, in the order of finding it; at most [`FINDINGS_MAX`].
    pub findings: Vec<Finding>,
    /// Findings beyond that number.
    pub findings_left_out: u64,
    /// Pages read; a page read twice counts twice.
    pub pages_read: u64,
    /// The structures that the catalog names.
    pub structures: Vec<CheckedStructure>,
    /// Entries in the log that the next opening would replay.
    pub log_entries: u64,
}

impl Report {
    /// Returns whether everything is as it was written.
    #[must_use]
    pub fn ok(&self) -> bool {
        self.findings.is_empty()
    }
}

/// The part that is being checked, for the text of a finding.
#[derive(Clone, Copy, Debug)]
pub struct Subject<'a> {
    /// The structure; `None` for the volume itself.
    pub structure: Option<&'a str>,
    /// The part of it, such as `superblock`.
    pub what: &'a str,
}

impl<'a> Subject<'a> {
    /// A part of the volume itself.
    #[must_use]
    pub const fn of_volume(what: &'a str) -> Self {
        Self { structure: None, what }
    }
}

/// The contents of the volume's own pages; the check of the structures starts from it.
#[derive(Debug)]
pub struct Contents {
    /// The valid superblock.
    pub superblock: Superblock,
    /// The structures, with their configurations and maps.
    pub catalog: Catalog,
    /// The log and its end; `None` if it is damaged.
    log: Option<(LogRegion, LogEnd)>,
}

impl Contents {
    /// The volume's hash function.
    #[must_use]
    pub fn hasher(&self) -> KeyHasher {
        self.superblock.hasher()
    }

    /// Returns the page of the log's device that holds a place of the log.
    #[must_use]
    pub fn log_page(&self, lsn: Lsn) -> PageId {
        self.superblock.log.page(lsn.0)
    }

    /// Visits all entries of the log, oldest first; none if the log is damaged. Reads the part of the log that is in
    /// use.
    ///
    /// # Errors
    /// A failed read, or what `visit` returns.
    pub fn visit_log(&self, visit: &mut Visit<'_>) -> Result<()> {
        let Some((region, end)) = &self.log else { return Ok(()) };
        let superblock = &self.superblock;
        replay_until(region, superblock.volume_id, superblock.log_anchor(), end.next, visit)
    }
}

/// Checks a volume's own pages: both superblocks, the checkpoint, the catalog, the extents and the whole log.
/// `log_device` is needed if the volume was created with one.
///
/// Reads the checkpoint and the log once. Its memory is that of a checkpoint and a few blocks of the log. The
/// index checks the structures' pages.
///
/// # Errors
/// [`Error::Foreign`] and [`Error::Version`] for a file that cannot be checked, [`Error::LogDevice`] when the log's
/// device is missing or was not expected. Damage is not an error: it is in the report.
pub fn check(device: Arc<dyn Device>, log_device: Option<Arc<dyn Device>>) -> Result<Report> {
    Ok(Checker::start(device, log_device)?.0.finish())
}

/// Reads pages, verifies them, and notes what is wrong.
#[derive(Debug)]
pub struct Checker {
    device: Arc<Counted<Arc<dyn Device>>>,
    log_device: Option<Arc<Counted<Arc<dyn Device>>>>,
    report: Report,
}

impl Checker {
    /// Checks the volume's own pages, and returns their contents unless they are too damaged.
    ///
    /// # Errors
    /// As [`check`].
    pub fn start(
        device: Arc<dyn Device>,
        log_device: Option<Arc<dyn Device>>,
    ) -> Result<(Self, Option<Contents>)> {
        let device = Arc::new(Counted::new(device));
        let log_device = log_device.map(|log_device| Arc::new(Counted::new(log_device)));
        let mut checker = Self { device, log_device, report: Report::default() };
        let Some(superblock) = checker.superblocks()? else { return Ok((checker, None)) };
        checker.length(&superblock);
        let region = checker.log_region(&superblock)?;
        let end = checker.log(&region, &superblock);
        let Some(catalog) = checker.checkpoint(&superblock) else { return Ok((checker, None)) };
        checker.catalog(&superblock, &catalog, end);
        let log = end.map(|end| (region, end));
        Ok((checker, Some(Contents { superblock, catalog, log })))
    }

    /// Ends the check and returns the report.
    #[must_use]
    pub fn finish(mut self) -> Report {
        self.report.pages_read = self.pages_read();
        self.report
    }

    /// Pages read so far.
    #[must_use]
    pub fn pages_read(&self) -> u64 {
        let of_log = self.log_device.as_ref().map_or(0, |log| log.snapshot().pages_read);
        self.device.snapshot().pages_read + of_log
    }

    /// The device, for structures whose parts read it themselves. Those reads are counted too.
    #[must_use]
    pub fn device(&self) -> Arc<dyn Device> {
        Arc::clone(&self.device) as Arc<dyn Device>
    }

    /// Notes something that is wrong.
    pub fn note(&mut self, subject: Subject<'_>, page: PageId, message: impl std::fmt::Display) {
        if self.report.findings.len() >= FINDINGS_MAX {
            self.report.findings_left_out += 1;
            return;
        }
        let structure = subject.structure.map(str::to_owned);
        let (what, message) = (subject.what.to_owned(), message.to_string());
        self.report.findings.push(Finding { structure, what, page, message });
    }

    /// Notes an error at its own page, if it has one.
    pub fn note_error(&mut self, subject: Subject<'_>, page: PageId, error: &Error) {
        match error {
            Error::Corrupt { page, expected, found, .. } => {
                self.note(subject, *page, format_args!("expected {expected}, found {found}"));
            }
            other => self.note(subject, page, other),
        }
    }

    /// Notes how many entries of a structure were read and verified.
    pub fn count_entries(&mut self, structure: &str, entries: u64) {
        let mut all = self.report.structures.iter_mut();
        if let Some(structure) = all.find(|checked| checked.name == structure) {
            structure.entries += entries;
        }
    }

    /// Reads `pages` pages from `first` on in large chunks. Passes those that match `label` to `act`, with their index;
    /// notes the others and returns their number. Skips pages past the device's end, because a finding already reports
    /// that the device is too short.
    pub fn pages(
        &mut self,
        subject: Subject<'_>,
        (first, pages): (PageId, u64),
        label: &dyn Fn(u64) -> PageLabel,
        act: &mut dyn FnMut(&mut Self, u64, Page<'_>),
    ) -> u64 {
        let there = self.device.page_count().saturating_sub(first.0).min(pages);
        let mut damaged = pages - there;
        let mut index = 0;
        while index < there {
            let count = (there - index).min(CHUNK_PAGES);
            match self.read(first.plus(index), count) {
                Ok(buf) => {
                    for at in 0..count {
                        damaged += self.prove(subject, &buf, (index, at), label, act);
                    }
                }
                Err(_) => damaged += self.pages_singly(subject, (first, index, count), label, act),
            }
            index += count;
        }
        damaged
    }

    fn read(&self, first: PageId, pages: u64) -> Result<PageBuf> {
        let pages = usize::try_from(pages).expect("a chunk is short");
        Ok(self.device.read(first, PageBuf::zeroed(pages))?)
    }

    /// Reads the pages of an unreadable chunk one by one, and notes those that cannot be read.
    fn pages_singly(
        &mut self,
        subject: Subject<'_>,
        (first, from, count): (PageId, u64, u64),
        label: &dyn Fn(u64) -> PageLabel,
        act: &mut dyn FnMut(&mut Self, u64, Page<'_>),
    ) -> u64 {
        let mut damaged = 0;
        for index in from..from + count {
            match self.read(first.plus(index), 1) {
                Ok(buf) => damaged += self.prove(subject, &buf, (index, 0), label, act),
                Err(error) => {
                    self.note_error(subject, first.plus(index), &error);
                    damaged += 1;
                }
            }
        }
        damaged
    }

    /// Verifies page `at` of a chunk that begins at `index`; returns 1 when it is damaged.
    fn prove(
        &mut self,
        subject: Subject<'_>,
        buf: &PageBuf,
        (index, at): (u64, u64),
        label: &dyn Fn(u64) -> PageLabel,
        act: &mut dyn FnMut(&mut Self, u64, Page<'_>),
    ) -> u64 {
        let label = label(index + at);
        let bytes = buf.page(usize::try_from(at).expect("a chunk is short"));
        match RawPage::new(bytes).check(label) {
            Ok(page) => {
                act(self, index + at, page);
                0
            }
            Err(error) => {
                self.note_error(subject, label.page, &error);
                1
            }
        }
    }
}

/// The steps, in the order of a volume's opening.
impl Checker {
    /// Checks all superblocks; returns the valid one.
    fn superblocks(&mut self) -> Result<Option<Superblock>> {
        const SUBJECT: Subject<'static> = Subject::of_volume("superblock");
        if self.device.page_count() < SUPERBLOCK_PAGES {
            return read_superblock(&*self.device).map(Some);
        }
        let mut pages = [PageBuf::zeroed(1), PageBuf::zeroed(1)];
        let mut readable = [true; 2];
        for (index, page) in pages.iter_mut().enumerate() {
            match self.read(PageId(index as u64), 1) {
                Ok(read) => *page = read,
                Err(error) => {
                    self.note_error(SUBJECT, PageId(index as u64), &error);
                    readable[index] = false;
                }
            }
        }
        let chosen = match Superblock::choose([&pages[0], &pages[1]]) {
            Ok(chosen) => Some(chosen),
            Err(Error::Corrupt { .. }) => None,
            Err(_) if readable != [true; 2] => None,
            Err(error) => return Err(error),
        };
        for (index, page) in pages.iter().enumerate().filter(|(index, _)| readable[*index]) {
            let place = PageId(index as u64);
            match (Superblock::decode(page, place), &chosen) {
                (Err(error), _) => self.note_error(SUBJECT, place, &error),
                (Ok(other), Some(chosen)) => self.sibling(chosen, &other),
                (Ok(_), None) => {}
            }
        }
        Ok(chosen.map(|chosen| self.third_copy(chosen)))
    }

    /// Checks the third copy, and returns the newer of it and the chosen superblock. The third copy is written with the
    /// first of two generations; a power cut may leave it one generation ahead of the others, or one write behind them.
    fn third_copy(&mut self, chosen: Superblock) -> Superblock {
        let subject = Subject::of_volume("superblock");
        let there = |place: &PageId| place.0 < self.device.page_count();
        let Some(place) = chosen.copy.filter(there) else { return chosen };
        let page = match self.read(place, 1) {
            Ok(page) => page,
            Err(error) => {
                self.note_error(subject, place, &error);
                return chosen;
            }
        };
        match Superblock::decode(&page, place) {
            Err(error) => self.note_error(subject, place, &error),
            Ok(copy) if copy.volume_id != chosen.volume_id => {
                self.note(subject, place, "it belongs to another volume");
            }
            Ok(copy) => self.third_generation(&chosen, &copy, place),
        }
        chosen.or_copy(&page, place)
    }

    fn third_generation(&mut self, chosen: &Superblock, copy: &Superblock, place: PageId) {
        let subject = Subject::of_volume("superblock");
        let (newest, third) = (chosen.generation, copy.generation);
        if third > newest + 1 {
            let message = format!(
                "expected generation {third} as in the third copy at {place}, found {newest}; the drive has lost writes"
            );
            self.note(subject, chosen.place(), message);
        } else if third + 2 < newest {
            let least = newest - 2;
            self.note(subject, place, format!("expected generation {least}, found {third}"));
        }
    }

    /// Checks that the two superblocks belong to the same volume, and that one was written right after the other.
    fn sibling(&mut self, chosen: &Superblock, other: &Superblock) {
        let subject = Subject::of_volume("superblock");
        if other.volume_id != chosen.volume_id {
            self.note(subject, other.place(), "it belongs to another volume");
        } else if chosen.generation - other.generation > 1 {
            let (newest, found) = (chosen.generation, other.generation);
            let message = format!("expected generation {}, found {found}", newest - 1);
            self.note(subject, other.place(), message);
        }
    }

    fn length(&mut self, superblock: &Superblock) {
        let (expected_pages, found_pages) = (superblock.page_count, self.device.page_count());
        if found_pages < expected_pages {
            let error = Error::Truncated { expected_pages, found_pages };
            self.note_error(Subject::of_volume("volume"), PageId(found_pages), &error);
        }
    }

    fn log_region(&self, superblock: &Superblock) -> Result<LogRegion> {
        let device: Arc<dyn Device> = Arc::clone(&self.device) as Arc<dyn Device>;
        let of_log = self.log_device.as_ref().map(|log| Arc::clone(log) as Arc<dyn Device>);
        log_region(&device, of_log.as_ref(), superblock)
    }

    /// Reads the log to its end; returns that end, unless it is damaged.
    fn log(&mut self, region: &LogRegion, superblock: &Superblock) -> Option<LogEnd> {
        let subject = Subject::of_volume("log");
        let (first, needed) = (superblock.log.newest.pages.start, superblock.log.end().0);
        let found = region.device.page_count();
        if found < needed {
            if superblock.log_apart {
                let message = format!("its device has {found} pages, the log needs {needed}");
                self.note(subject, PageId(found), message);
            }
            return None;
        }
        let mut entries = 0;
        let mut count = |_, _, entry_bytes: usize, group: &[u8]| {
            entries += (group.len() / entry_bytes.max(1)) as u64;
            Ok(())
        };
        let end = replay(region, superblock.volume_id, superblock.log_anchor(), &mut count);
        self.report.log_entries = entries;
        end.map_err(|error| self.note_error(subject, first, &error)).ok()
    }

    /// Checks every page of the checkpoint, and their content together.
    fn checkpoint(&mut self, superblock: &Superblock) -> Option<Catalog> {
        let subject = Subject::of_volume("checkpoint");
        let (start, generation) = (superblock.checkpoint.start, superblock.checkpoint_generation);
        let bytes = usize::try_from(superblock.checkpoint_bytes).ok()?;
        let pages = checkpoint::pages_for(bytes);
        let label = |index| checkpoint::label(generation, start.plus(index));
        let there = self.device.page_count().saturating_mul(PAGE_BYTES as u64);
        let mut all = Vec::with_capacity(bytes.min(usize::try_from(there).unwrap_or(bytes)));
        let mut append = |_: &mut Self, _, page: Page<'_>| all.extend_from_slice(page.body());
        if self.pages(subject, (start, pages), &label, &mut append) > 0 {
            return None;
        }
        all.truncate(bytes);
        let catalog = Catalog::decode(&all, start);
        catalog.map_err(|error| self.note_error(subject, start, &error)).ok()
    }

    /// Checks the catalog's structures, extents and tails.
    fn catalog(&mut self, superblock: &Superblock, catalog: &Catalog, log_end: Option<LogEnd>) {
        let (subject, place) = (Subject::of_volume("catalog"), superblock.checkpoint.start);
        if let Err(error) = space_of(superblock, catalog) {
            self.note_error(subject, place, &error);
        }
        for (index, entry) in catalog.entries.iter().enumerate() {
            let before = &catalog.entries[..index];
            let wrong = if before.iter().any(|other| other.name == entry.name) {
                format!("two structures are named {:?}", entry.name)
            } else if before.iter().any(|other| other.id == entry.id) {
                format!("two structures have the number {}", entry.id.0)
            } else if entry.id.0 == 0 || entry.id.0 >= catalog.next_id {
                format!("structure {:?} has the number {}", entry.name, entry.id.0)
            } else if entry.tail < superblock.log_tail
                || log_end.is_some_and(|end| entry.tail > end.next)
            {
                format!("the log of {:?} begins at {}, outside the log", entry.name, entry.tail)
            } else {
                String::new()
            };
            if !wrong.is_empty() {
                self.note(subject, place, wrong);
            }
            let (name, kind) = (entry.name.clone(), entry.kind.clone());
            self.report.structures.push(CheckedStructure { name, kind, entries: 0 });
        }
    }
}
