//! The mapping of the log's endless stream to pages of a volume.
//!
//! ```text
//!   stream   0 . . . . . . . . since . . . . . . . . . . . . . .
//!            | earlier pages  | newest pages, round and round
//!            +----------------+---------------------------------
//! ```
//!
//! A log that grows continues in more pages from one place of its stream on. Blocks before that place stay where they
//! are, and their pages are freed when the tail has passed them. So nothing is copied, and no place changes. The first
//! page of each part that is gone is kept: its block tells an opening with an older superblock that a newer one exists.

use nandex_device::PageId;

use super::Lsn;
use super::region::PAGE;
use crate::space::Extent;

/// The maximum number of earlier parts of a log, and of kept pages of parts that are gone.
pub(crate) const EARLIER_MAX: usize = 15;

/// A part of the stream, and the circle of pages that holds it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct LogPart {
    /// The first place of the stream in this part.
    pub since: Lsn,
    /// Its pages.
    pub pages: Extent,
}

impl LogPart {
    /// Its length in bytes.
    #[must_use]
    pub const fn bytes(&self) -> u64 {
        self.pages.pages * PAGE
    }

    fn offset(&self, lsn: u64) -> u64 {
        // Damaged headers name any place.
        lsn.wrapping_sub(self.since.0) % self.bytes()
    }
}

/// All parts of a log that are needed.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct LogParts {
    /// The parts that blocks are still read from, oldest first.
    pub earlier: Vec<LogPart>,
    /// The part that blocks are written to.
    pub newest: LogPart,
    /// The pages that are kept of parts that are gone, oldest first.
    pub left: Vec<PageId>,
}

impl From<Extent> for LogParts {
    /// Creates the parts of a log that stays in the same pages from its start.
    fn from(pages: Extent) -> Self {
        Self { earlier: Vec::new(), newest: LogPart { since: Lsn(0), pages }, left: Vec::new() }
    }
}

impl LogParts {
    /// All parts, oldest first.
    pub fn iter(&self) -> impl DoubleEndedIterator<Item = &LogPart> {
        self.earlier.iter().chain([&self.newest])
    }

    /// Returns all pages of the log, including those from which nothing is read.
    pub fn extents(&self) -> impl Iterator<Item = Extent> {
        let left = self.left.iter().map(|page| Extent { start: *page, pages: 1 });
        self.iter().map(|part| part.pages).chain(left)
    }

    /// The page after the last one.
    #[must_use]
    pub fn end(&self) -> PageId {
        self.extents().map(Extent::end).max().expect("a log has a part")
    }

    /// Returns the same log, continued in `pages` from `since` on.
    #[must_use]
    pub fn grown(&self, since: Lsn, pages: Extent) -> Self {
        let earlier = self.iter().copied().filter(|part| part.since < since).collect();
        Self { earlier, newest: LogPart { since, pages }, left: self.left.clone() }
    }

    /// Drops the parts before this place and returns them. Their first pages are kept.
    pub fn drop_before(&mut self, tail: Lsn) -> Vec<LogPart> {
        let next = self.iter().skip(1);
        let count = next.take_while(|next| next.since <= tail).count();
        let gone: Vec<_> = self.earlier.drain(..count).collect();
        self.left.extend(gone.iter().map(|part| part.pages.start));
        self.left.drain(..self.left.len().saturating_sub(EARLIER_MAX));
        gone
    }

    /// Returns the pages of this log that the log `by`, which replaces it, does not use.
    #[must_use]
    pub fn freed(&self, by: &Self) -> Vec<Extent> {
        let rest = |extent: Extent| {
            if by.extents().any(|it| it == extent) {
                return None;
            }
            let Extent { start, pages } = extent;
            let is_kept = by.left.contains(&start);
            Some(if is_kept { Extent { start: start.plus(1), pages: pages - 1 } } else { extent })
        };
        self.extents().filter_map(rest).collect()
    }

    /// Returns runs of pages, each of one part, that hold the stream from `tail` to `end`.
    #[must_use]
    pub fn runs(&self, tail: Lsn, end: Lsn) -> Vec<Extent> {
        let mut runs = Vec::new();
        let mut from = tail.0;
        while from < end.0 {
            let pages = self.left_in_part(from).min(end.0 - from) / PAGE;
            runs.push(Extent { start: self.page(from), pages });
            from += pages.max(1) * PAGE;
        }
        runs
    }

    /// The part that holds a place.
    fn of(&self, lsn: u64) -> &LogPart {
        let part = self.iter().rev().find(|part| part.since.0 <= lsn);
        part.unwrap_or_else(|| self.iter().next().expect("a log has a part"))
    }

    /// Bytes from `lsn` to the end of its lap.
    pub(super) fn left_in_lap(&self, lsn: u64) -> u64 {
        let part = self.of(lsn);
        part.bytes() - part.offset(lsn)
    }

    /// Bytes from `lsn` to the end of its lap or to the next part, whichever comes first.
    pub(super) fn left_in_part(&self, lsn: u64) -> u64 {
        let next = self.iter().map(|part| part.since.0).find(|since| *since > lsn);
        next.map_or(u64::MAX, |next| next - lsn).min(self.left_in_lap(lsn))
    }

    /// The page that holds the byte `lsn`.
    #[must_use]
    pub fn page(&self, lsn: u64) -> PageId {
        let part = self.of(lsn);
        part.pages.start.plus(part.offset(lsn) / PAGE)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn extent(start: u64, pages: u64) -> Extent {
        Extent { start: PageId(start), pages }
    }

    fn places(parts: &LogParts, from: u64, to: u64) -> Vec<u64> {
        (from..to).map(|page| parts.page(page * PAGE).0).collect()
    }

    #[test]
    fn a_log_that_grows_goes_on_elsewhere_and_keeps_the_places_of_its_blocks() {
        let old = LogParts::from(extent(10, 4));
        let grown = old.grown(Lsn(6 * PAGE), extent(100, 8));
        assert_eq!(places(&grown, 0, 6), places(&old, 0, 6));
        assert_eq!(places(&grown, 6, 15), [100, 101, 102, 103, 104, 105, 106, 107, 100]);
        assert_eq!(grown.left_in_lap(5 * PAGE), 3 * PAGE);
        assert_eq!(grown.left_in_part(5 * PAGE), PAGE);
        assert_eq!(grown.left_in_part(6 * PAGE), 8 * PAGE);
    }

    #[test]
    fn a_part_goes_when_the_tail_has_passed_it() {
        let mut parts = LogParts::from(extent(10, 4));
        parts = parts.grown(Lsn(6 * PAGE), extent(100, 8));
        parts = parts.grown(Lsn(9 * PAGE), extent(200, 16));
        let gone = |parts: &mut LogParts, tail: u64| {
            let gone = parts.drop_before(Lsn(tail * PAGE));
            gone.into_iter().map(|part| part.pages).collect::<Vec<_>>()
        };
        assert_eq!(gone(&mut parts, 5), []);
        assert_eq!(gone(&mut parts.clone(), 6), [extent(10, 4)]);
        let before = parts.clone();
        assert_eq!(gone(&mut parts, 9), [extent(10, 4), extent(100, 8)]);
        assert_eq!(before.freed(&parts), [extent(11, 3), extent(101, 7)]);
        assert!(parts.earlier.is_empty());
        assert_eq!(parts.left, [PageId(10), PageId(100)]);
        assert_eq!(parts.end(), PageId(216));
        let all: Vec<_> = parts.extents().collect();
        assert_eq!(all, [extent(200, 16), extent(10, 1), extent(100, 1)]);
    }

    #[test]
    fn few_pages_are_kept_of_parts_that_are_gone() {
        let mut parts = LogParts::from(extent(10, 4));
        for at in 1..=20 {
            parts = parts.grown(Lsn(at * PAGE), extent(100 * at, 4));
            let before = parts.clone();
            parts.drop_before(Lsn(at * PAGE));
            let freed: u64 = before.freed(&parts).iter().map(|it| it.pages).sum();
            assert_eq!(freed, if at > EARLIER_MAX as u64 { 4 } else { 3 });
        }
        assert_eq!(parts.left.len(), EARLIER_MAX);
        assert_eq!(parts.left.last(), Some(&PageId(1900)));
    }

    #[test]
    fn a_part_in_which_no_block_began_is_none() {
        let before = LogParts::from(extent(10, 4));
        let parts = before.grown(Lsn(0), extent(100, 8));
        assert_eq!(parts, LogParts::from(extent(100, 8)));
        assert_eq!(before.freed(&parts), [extent(10, 4)]);
    }

    #[test]
    fn runs_end_at_laps_and_parts() {
        let parts = LogParts::from(extent(10, 4)).grown(Lsn(6 * PAGE), extent(100, 8));
        let runs = parts.runs(Lsn(2 * PAGE), Lsn(15 * PAGE));
        let expected = [extent(12, 2), extent(10, 2), extent(100, 8), extent(100, 1)];
        assert_eq!(runs, expected);
        assert_eq!(parts.runs(Lsn(PAGE), Lsn(PAGE)), []);
    }
}
