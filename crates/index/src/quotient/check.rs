//! Verifies that blocks are a quotient filter: checks every invariant of the [module](super).

use super::blocks::{Blocks, OFFSET_MAX, SLOTS};
use super::width::{Width, with_width};
use super::{QuotientFilter, StoredCount};
use crate::{Error, Result};

impl QuotientFilter {
    /// Checks the whole filter, slot by slot and without rank or select. Its bytes are untrusted.
    ///
    /// # Errors
    /// [`Error::FilterDamaged`] with the first flaw.
    pub(super) fn check(&self) -> Result<()> {
        with_width!(self.kind, width => self.check_at(width))
    }

    fn check_at(&self, width: impl Width) -> Result<()> {
        let quotients = self.shape.split().quotients() as usize;
        let (mut end, mut used, mut outliers) = (0, 0, 0);
        for quotient in 0..self.blocks.len() * SLOTS {
            if quotient % SLOTS == 0 {
                self.blocks.check_offset(width, quotient / SLOTS, end)?;
            }
            let head = self.blocks.head(width, quotient / SLOTS);
            if head.occupieds >> (quotient % SLOTS) & 1 == 0 {
                if end <= quotient {
                    self.blocks.check_unused(width, quotient)?;
                }
                continue;
            }
            expect(quotient < quotients, "quotients below", quotients, quotient)?;
            let start = end.max(quotient);
            end = self.blocks.find_run_end(width, start)?;
            used += (end - start) as u64;
            outliers += self.check_run(width, quotient, start, end)?;
        }
        self.check_sums(end, used, outliers)
    }

    fn check_sums(&self, end: usize, used: u64, outliers: usize) -> Result<()> {
        let (entries_max, outliers_max) = (self.shape.entries_max(), self.shape.outliers_max());
        expect(end <= self.slots, "slots in use below", self.slots, end)?;
        expect(used == self.entries, "slots in use", self.entries, used)?;
        expect(used <= entries_max, "slots in use, at most", entries_max, used)?;
        expect(outliers as u64 <= outliers_max, "outliers, at most", outliers_max, outliers)?;
        let stored = self.outliers.len();
        expect(outliers == stored, "slots that have outliers", stored, outliers)
    }

    /// Checks that remainders ascend and each count is stored in its only valid form. Returns the run's outliers.
    fn check_run(
        &self,
        width: impl Width,
        quotient: usize,
        start: usize,
        end: usize,
    ) -> Result<usize> {
        let (split, counts) = (self.shape.split(), self.shape.counts());
        let (mut at, mut last, mut outliers) = (start, None, 0);
        while at < end {
            let body = self.blocks.slot(width, at);
            let remainder = body >> counts.bits();
            expect(last < Some(remainder), "ascending remainders, in slot", at, remainder)?;
            last = Some(remainder);
            let is_other = |slot: &usize| self.blocks.slot(width, *slot) != body;
            let next = (at..end).find(is_other).unwrap_or(end);
            let fingerprint = split.join(quotient as u64, remainder);
            let is_one = fingerprint < split.universe().size()
                && split.split(fingerprint) == (quotient as u64, remainder);
            expect(is_one, "the remainder of a fingerprint, in slot", at, remainder)?;
            let stored = self.stored(width, fingerprint, &(at..next));
            let count = stored.count(counts);
            let is_right = count != i64::MIN && StoredCount::of(counts, count) == stored;
            expect(is_right, "a count as it is stored, in slot", at, format!("{stored:?}"))?;
            outliers += usize::from(stored.outlier != 0);
            at = next;
        }
        Ok(outliers)
    }
}

impl Blocks {
    /// Checks that a block's offset says that the runs of earlier quotients end right before `end`.
    fn check_offset(&self, width: impl Width, block: usize, end: usize) -> Result<()> {
        let expected = end.saturating_sub(block * SLOTS).min(OFFSET_MAX);
        let found = self.head(width, block).offset;
        expect(found == expected, "an offset of", expected, found)
    }

    /// Returns the slot after a run.
    fn find_run_end(&self, width: impl Width, start: usize) -> Result<usize> {
        let is_end = |slot: &usize| self.runends(width, slot / SLOTS) >> (slot % SLOTS) & 1 == 1;
        let end = (start..self.len() * SLOTS).find(is_end);
        end.map(|end| end + 1).ok_or_else(|| damaged("an end of the run in slot", start, "none"))
    }

    fn check_unused(&self, width: impl Width, slot: usize) -> Result<()> {
        let runend = self.runends(width, slot / SLOTS) >> (slot % SLOTS) & 1;
        expect(runend == 0, "no end of a run in unused slot", slot, runend)?;
        let body = self.slot(width, slot);
        expect(body == 0, "nothing in unused slot", slot, body)
    }
}

/// # Errors
/// [`Error::FilterDamaged`] otherwise.
pub(super) fn expect(
    is_so: bool,
    what: &str,
    expected: impl std::fmt::Display,
    found: impl std::fmt::Display,
) -> Result<()> {
    if is_so { Ok(()) } else { Err(damaged(what, expected, found)) }
}

/// The error for impossible content.
pub(super) fn damaged(
    what: &str,
    expected: impl std::fmt::Display,
    found: impl std::fmt::Display,
) -> Error {
    Error::FilterDamaged { expected: format!("{what} {expected}"), found: found.to_string() }
}
