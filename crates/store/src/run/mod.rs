//! The run: a sorted list of fingerprints on flash, written once, front to back.
//!
//! It is a level of the HotStorage'11 cascade filter. There a level is a quotient filter of any size; a merge streams
//! it, and a lookup reads one place of it. Here each page is a small quotient filter: a **slot page** has the
//! fingerprints of an even share of the universe. So arithmetic alone tells which page to read, and a run needs no
//! index in RAM.
//!
//! ```text
//!   universe  0 . . . . . | . . . . . . | . . : . . . | . . . . . . U     shares, all the same
//!                         |             |     :       |
//!   page           0      |      1      |     2       |      3         4 (spare)
//!             +-----------+ +-----------+ +-----------+ +-----------+ +-----------+
//!             | 9 entries | | 7 entries | | 11, full  | | 2+8       | |           |
//!             +-----------+ +-----------+ +-----------+ +-----------+ +-----------+
//!             base 0        base          base  limit = base          limit = U
//!                                         of its share's last 2 entries, which did not fit
//! ```
//!
//! Entries that do not fit are carried to the next page, as a quotient filter shifts entries that do not fit a slot. A
//! page records its end: its `limit` is the base of the next page. A lookup of a fingerprint from there on continues on
//! that page. By chance this happens to one page in some hundreds, and then affects a few of its entries.
//!
//! Inside a page fingerprints have the form to which the deck's metadata bits reduce when slots need not be
//! moved: quotients in unary, remainders packed, split where the page takes the fewest bits (Elias and Fano).
//! Counts take bytes only if they are not 1.
//!
//! Invariants
//! 1. A page holds the entries from its base up to its limit, all of them; the first page's base is 0, each
//!    one's limit is the next one's base, the last one's limit is the universe's size.
//! 2. A fingerprint is on its slot's page or after it, never before.
//! 3. Fingerprints ascend, each occurs once, and none has a count of 0.
//! 4. Every page carries the run's generation and its own number, so neither an older page at its place
//! 4. Every page carries the run's generation and its own number, so neither an older page at its place nor one from
//!    elsewhere is mistaken for it.
//! 5. A run is read only after its writer has finished: the pages that a crash leaves of an unfinished one are free.
//!
//! | act | flash | memory |
//! |---|---|---|
//! | a lookup | one page read; in 1 of 10,000 at most another | none |
//! | a stream of the run | each page read once, 256 at once | three chunks |
//! | writing it | each page written once, 256 at once | three chunks, two pages of entries |
//!
//! At a rate of false positives of 0.39 % a fingerprint takes 10.6 bits or less, all pages counted.

mod bits;
mod counts;
mod encode;
mod entry;
mod merge;
mod page;
mod reader;
mod shape;
mod state;
#[cfg(test)]
mod tests;
mod writer;

use nandex_device::PageId;

pub use counts::count_bytes;
pub use entry::{Entry, Source};
pub use merge::{Merge, MergeOptions, Sorted};
pub use page::{PAGE_ENTRIES_MAX, RunPage};
pub use reader::RunReader;
pub use shape::RunShape;
pub use state::RUN_VERSION;
pub use writer::RunWriter;

use counts::Exception;
use encode::Filled;

use crate::fingerprint::{Split, Universe};
use crate::mutants::{Barrier, is_on};
use crate::page::{PAGE_HEADER_BYTES, PageKind, PageLabel, RawPage, StructureId};
use crate::pages::PagePlace;
use crate::reads::LookupStep;
use crate::space::Extent;
use crate::{Error, Result};

/// The pages of a run, and their labels.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct RunPlace {
    /// Its structure.
    pub structure: StructureId,
    /// Its pages.
    pub extent: Extent,
    /// The write of the place: a number that the structure issues once, also across crashes.
    pub generation: u64,
}

impl RunPlace {
    /// Returns the label that page number `page` of the run must have.
    #[must_use]
    pub fn label(&self, page: u64) -> PageLabel {
        self.pages().label(page)
    }

    /// Returns the same place as a place of pages.
    pub(super) fn pages(&self) -> PagePlace {
        let Self { structure, extent, generation } = *self;
        PagePlace { kind: PageKind::Run, structure, extent, generation }
    }
}

/// A finished run: its pages, and their totals. Clones share the same pages.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Run {
    place: RunPlace,
    shape: RunShape,
    split: Split,
    used_pages: u64,
    entries: u64,
    tombstones: u64,
    count_bytes: u64,
    sum: i128,
}

impl Run {
    fn empty(place: RunPlace, shape: RunShape) -> Self {
        let (entries, tombstones, count_bytes, sum) = (0, 0, 0, 0);
        let (split, used_pages) = (shape.split(), 0);
        Self { place, shape, split, used_pages, entries, tombstones, count_bytes, sum }
    }

    /// Counts the entries of one more page, and the exceptions among them whose count is not 1.
    fn add(&mut self, filled: Filled, exceptions: &[Exception]) {
        self.entries += filled.entries as u64;
        self.count_bytes += filled.count_bytes as u64;
        self.sum += filled.entries as i128;
        for exception in exceptions {
            self.tombstones += u64::from(exception.count < 0);
            self.sum += i128::from(exception.count) - 1;
        }
    }

    /// Its pages.
    #[must_use]
    pub fn place(&self) -> RunPlace {
        self.place
    }

    /// Its division into pages.
    #[must_use]
    pub fn shape(&self) -> RunShape {
        self.shape
    }

    /// The universe of its fingerprints.
    #[must_use]
    pub fn universe(&self) -> Universe {
        self.shape.universe
    }

    /// The number of pages that fingerprints are spread over; the pages after them are spare.
    #[must_use]
    pub fn slot_pages(&self) -> u64 {
        self.shape.slot_pages
    }

    /// The number of pages that were written.
    #[must_use]
    pub fn used_pages(&self) -> u64 {
        self.used_pages
    }

    /// The number of fingerprints.
    #[must_use]
    pub fn entries(&self) -> u64 {
        self.entries
    }

    /// The number of fingerprints with a count below zero.
    #[must_use]
    pub fn tombstones(&self) -> u64 {
        self.tombstones
    }

    /// The bytes that counts take in its pages: the estimate for a run that it is merged into.
    #[must_use]
    pub fn count_bytes(&self) -> u64 {
        self.count_bytes
    }

    /// The sum of all its counts.
    #[must_use]
    pub fn sum(&self) -> i128 {
        self.sum
    }

    /// Cuts off the pages that were not written, and returns them for [`Volume::give_back`](crate::Volume::give_back).
    /// Must be called before any capture has named the run's extent.
    #[must_use]
    pub fn trim(&mut self) -> Option<Extent> {
        let extent = &mut self.place.extent;
        let rest = Extent {
            start: extent.start.plus(self.used_pages),
            pages: extent.pages - self.used_pages,
        };
        extent.pages = self.used_pages;
        self.shape.spare_pages = self.used_pages - self.shape.slot_pages;
        (rest.pages > 0).then_some(rest)
    }

    /// Returns the page to read for a fingerprint. Reads nothing.
    ///
    /// # Panics
    /// If the fingerprint is not of the universe.
    #[inline]
    #[must_use]
    pub fn page_of(&self, fingerprint: u64) -> PageId {
        assert!(fingerprint < self.universe().size(), "a fingerprint is of its universe");
        self.page(self.split.quotient(fingerprint))
    }

    /// Returns what a page that was read for a fingerprint says: its count, below zero for a tombstone, or which page
    /// to read next. The first page is that of [`page_of`](Self::page_of). Reads nothing.
    ///
    /// # Errors
    /// [`Error::Corrupt`] if the bytes are not those of that page.
    ///
    /// # Panics
    /// If `page` is not the run's, or `bytes` not one page.
    pub fn look(
        &self,
        page: PageId,
        bytes: &[u8],
        fingerprint: u64,
    ) -> Result<LookupStep<PageId, i64>> {
        let index = page.0.wrapping_sub(self.place.extent.start.0);
        assert!(index < self.used_pages, "a page of the run is looked at");
        let body = self.prove(index, bytes)?;
        if fingerprint < body.base() {
            return Err(self.refuse(index, format!("{fingerprint}, or less"), body.base()));
        }
        if fingerprint < body.limit() {
            let count = body.count(fingerprint);
            return count
                .map(LookupStep::Answer)
                .ok_or_else(|| self.refuse(index, "counts", "none"));
        }
        if index + 1 == self.used_pages {
            return Err(self.refuse(index, self.universe().size(), body.limit()));
        }
        Ok(LookupStep::Read(page.plus(1)))
    }

    fn page(&self, index: u64) -> PageId {
        self.place.extent.start.plus(index)
    }

    /// The split of fingerprints over the slot pages.
    #[must_use]
    pub fn split(&self) -> Split {
        self.split
    }

    /// Verifies a page, by its number in the run, and finds its parts.
    fn prove<'b>(&self, index: u64, bytes: &'b [u8]) -> Result<RunPage<'b>> {
        let page = RawPage::new(bytes);
        let page = if is_on(Barrier::RunProvesPages) {
            page.check(self.place.label(index))?.body()
        } else {
            &bytes[PAGE_HEADER_BYTES..]
        };
        let body =
            RunPage::parse(page).ok_or_else(|| self.refuse(index, "a page of it", "none"))?;
        Ok(body)
    }

    fn refuse(
        &self,
        index: u64,
        expected: impl std::fmt::Display,
        found: impl std::fmt::Display,
    ) -> Error {
        Error::corrupt("page of a run", self.page(index), expected, found)
    }
}
