//! Reads of a large batch are sorted by their pages, and pages next to each other are one read.
//!
//! ```text
//!   lookups, in the order of their keys:   a    b    c    d    e
//!   their pages:                           7    3    4    7    12-13
//!   reads:                                 3-4  7  12-13            b and c share a read, and a and d
//! ```
//!
//! A batch that is large for its table has several lookups for each page. In one of records that were inserted together
//! these are consecutive. All lookups of a run have searched RAM before its read starts, so the read is as late as
//! their own would be.

use nandex_device::PageBuf;

use super::pipeline::{Pending, ReadPipeline, Request};
use super::{PageReads, ReadPlace};

/// The number of keys from which on a batch sorts its lookups. With fewer keys, few share a page of a table that is
/// larger than RAM.
const SORTED_MIN: usize = 256;

/// The most lookups that are held back at a time; each takes some 150 bytes of RAM.
const HELD_MAX: usize = 4096;

/// The most pages of one read.
const RUN_PAGES_MAX: u64 = 16;

/// A lookup that waits to be sorted: its read place, its token and its probe.
pub(super) type Held<U> = (ReadPlace, u64, <U as PageReads>::Probe);

/// Lookups that share a read.
pub(super) struct Run {
    /// The pages that are read.
    pub(super) place: ReadPlace,
    /// The other lookups, except the one whose request stands for all.
    others: Vec<u32>,
}

impl Run {
    /// Adds the place of a lookup, which begins at the run's first page or later. Returns false if it is not adjacent
    /// or the run would be too long.
    fn takes(&mut self, place: ReadPlace) -> bool {
        let before = place.page.0 - self.place.page.0;
        let pages = (before + u64::from(place.pages)).max(self.place.pages.into());
        let is_next = before <= self.place.pages.into() && place.write == self.place.write;
        let is_short = pages <= RUN_PAGES_MAX.max(self.place.pages.into());
        if is_next && is_short {
            self.place.pages = pages as u32;
        }
        is_next && is_short
    }
}

impl<U: PageReads> ReadPipeline<'_, U> {
    /// Returns whether a batch of `keys` keys sorts its lookups. If channels are known, the schedule decides the order
    /// of reads.
    pub(super) fn sorts(&self, keys: usize) -> bool {
        U::SORTS_BATCHES && keys >= SORTED_MIN && !self.pool.has_channels()
    }

    /// Starts a lookup of a batch that sorts, or holds it back once the device is busy.
    ///
    /// # Errors
    /// As [`start`](Self::start).
    pub(super) fn hold(
        &mut self,
        (token, probe): (u64, U::Probe),
        held: &mut Vec<Held<U>>,
    ) -> Result<(), U::Error> {
        if self.started < self.pool.depth() || self.user().parts(&probe) > 1 {
            return self.start(token, probe);
        }
        held.push((self.user().place(&probe, 0), token, probe));
        if held.len() < HELD_MAX { Ok(()) } else { self.start_sorted(held) }
    }

    /// Starts lookups, each of one part, in the order of their pages.
    ///
    /// # Errors
    /// As [`start`](Self::start).
    pub(super) fn start_sorted(&mut self, held: &mut Vec<Held<U>>) -> Result<(), U::Error> {
        held.sort_unstable_by_key(|(place, token, _)| (place.page, *token));
        let mut open: Option<(u32, Run)> = None;
        for (place, token, probe) in held.drain(..) {
            let lookup = self.add(token, probe)?;
            if let Some((_, run)) = &mut open
                && run.takes(place)
            {
                run.others.push(lookup);
                continue;
            }
            let ended = open.replace((lookup, Run { place, others: Vec::new() }));
            ended.map_or(Ok(()), |run| self.start_run(run))?;
        }
        open.map_or(Ok(()), |run| self.start_run(run))
    }

    fn start_run(&mut self, (first, run): (u32, Run)) -> Result<(), U::Error> {
        if !run.others.is_empty() {
            self.in_progress(first).run = Some(Box::new(run));
        }
        self.begin(first)
    }

    /// Processes the pages that were read for a request of one lookup or of a run.
    pub(super) fn take_read(
        &mut self,
        request: Request,
        read: nandex_device::Result<&PageBuf>,
    ) -> Result<(), U::Error> {
        self.in_progress(request.lookup).reads += 1;
        match (self.in_progress(request.lookup).run.take(), read) {
            (None, read) => self.take_part(request, read),
            (Some(run), Ok(pages)) => self.take_run(request.lookup, *run, pages),
            (Some(run), Err(_)) => {
                // Separate reads show which of them fail.
                self.enqueue(request.lookup);
                run.others.into_iter().for_each(|other| self.enqueue(other));
                Ok(())
            }
        }
    }

    /// Gives each lookup of a run its pages.
    fn take_run(&mut self, first: u32, run: Run, pages: &PageBuf) -> Result<(), U::Error> {
        let mut result = Ok(());
        let mut copied: Option<(ReadPlace, PageBuf)> = None;
        for lookup in std::iter::once(first).chain(run.others) {
            let request = Request { lookup, part: 0 };
            let place = self.place(request);
            if copied.as_ref().is_none_or(|(of, _)| *of != place) {
                copied.take().into_iter().for_each(|(_, own)| self.queue().pages.give(own));
                let mut own = self.queue().pages.take(place.pages);
                let from = (place.page.0 - run.place.page.0) as usize;
                for page in 0..place.pages as usize {
                    own.page_mut(page).copy_from_slice(pages.page(from + page));
                }
                copied = Some((place, own));
            }
            let Some((_, own)) = &copied else { continue };
            result = result.and(self.take_part(request, Ok(own)));
        }
        copied.into_iter().for_each(|(_, own)| self.queue().pages.give(own));
        result
    }

    /// Returns a lookup that is in progress.
    pub(super) fn in_progress(&mut self, lookup: u32) -> &mut Pending<U::Probe> {
        self.lookups[lookup as usize].as_mut().expect("a lookup on its way")
    }
}
