//! Proof that blocks are a quotient filter: every invariant of the [module](super), by looking at all of them.

use super::blocks::{Blocks, FAR, SLOTS};
use super::filter::{RankFilter, mask};
use super::width::{Any, Fixed, Width, with_width};
use crate::quotient::check::damaged;
use crate::quotient::counts::Held;
use crate::{Error, Result};

impl RankFilter {
    /// Looks at the whole filter, slot by slot and without rank or select.
    ///
    /// # Errors
    /// [`Error::FilterDamaged`](crate::Error::FilterDamaged) with the first thing that cannot be.
    pub fn validate(&self) -> Result<()> {
        with_width!(self.shape.slot_bits(), width => self.validate_at(width))
    }

    fn validate_at(&self, width: impl Width) -> Result<()> {
        let quotients = self.shape.split().quotients() as usize;
        let (mut end, mut used, mut outliers) = (0, 0, 0);
        for quotient in 0..self.blocks.len() * SLOTS {
            if quotient % SLOTS == 0 {
                self.blocks.check_offset(width, quotient / SLOTS, end)?;
            }
            let head = self.blocks.head(width, quotient / SLOTS);
            if head.occupieds >> (quotient % SLOTS) & 1 == 0 {
                if end <= quotient {
                    self.blocks.check_gaps(width, quotient, quotient + 1)?;
                }
                continue;
            }
            if quotient >= quotients {
                return Err(damaged("quotients below", quotients, quotient));
            }
            let start = end.max(quotient);
            end = start + self.blocks.run_slots(width, start)?;
            used += (end - start) as u64;
            outliers += self.check_run(width, quotient, start, end)?;
        }
        self.check_sums(end, used, outliers)
    }

    fn check_sums(&self, end: usize, used: u64, outliers: u64) -> Result<()> {
        if end as u64 > self.shape.slots() {
            return Err(damaged("slots in use below", self.shape.slots(), end));
        }
        if used != self.entries || used > self.shape.entries_max() {
            return Err(damaged("slots in use", self.entries, used));
        }
        let beside = self.outliers.len() as u64;
        if outliers != beside || beside > self.shape.outliers_max() {
            return Err(damaged("outliers that slots tell of", beside, outliers));
        }
        Ok(())
    }

    /// Remainders ascend, and each count is held in the one way there is for it. Gives the run's outliers.
    fn check_run(
        &self,
        width: impl Width,
        quotient: usize,
        start: usize,
        end: usize,
    ) -> Result<u64> {
        let (split, counts) = (self.shape.split(), self.shape.counts());
        let (mut at, mut last, mut outliers) = (start, None, 0);
        while at < end {
            let body = self.blocks.slot(width, at);
            let remainder = body >> counts.bits();
            if last >= Some(remainder) {
                return Err(damaged("ascending remainders, in slot", at, remainder));
            }
            last = Some(remainder);
            let is_other = |slot: &usize| self.blocks.slot(width, *slot) != body;
            let behind = (at..end).find(is_other).unwrap_or(end);
            let fingerprint = split.join(quotient as u64, remainder);
            let slots = behind - at;
            let code = body & mask(counts);
            let has_beside = Held::has_beside(counts, slots, code);
            let beside = if has_beside { self.outliers.get(fingerprint) } else { 0 };
            let held = Held { slots, code, beside };
            let is_one = fingerprint < split.universe().size()
                && split.split(fingerprint) == (quotient as u64, remainder);
            if !is_one || Held::of(counts, held.count(counts)) != held {
                return Err(damaged("a count as it is held, in slot", at, format!("{held:?}")));
            }
            outliers += u64::from(beside != 0);
            at = behind;
        }
        Ok(outliers)
    }
}

impl Blocks {
    /// The runs of earlier blocks' quotients end right before `end`: does the offset say so?
    fn check_offset(&self, width: impl Width, block: usize, end: usize) -> Result<()> {
        let expected = end.saturating_sub(block * SLOTS).min(FAR);
        let found = self.head(width, block).offset;
        if found == expected { Ok(()) } else { Err(damaged("an offset of", expected, found)) }
    }

    /// Slots of a run that begins here.
    fn run_slots(&self, width: impl Width, start: usize) -> Result<usize> {
        let ends = |slot: &usize| self.runends(width, slot / SLOTS) >> (slot % SLOTS) & 1 == 1;
        let end = (start..self.len() * SLOTS).find(ends);
        end.map(|end| end + 1 - start).ok_or_else(|| no_end(start))
    }

    /// Unused slots hold nothing.
    fn check_gaps(&self, width: impl Width, start: usize, end: usize) -> Result<()> {
        for slot in start..end {
            let runend = self.runends(width, slot / SLOTS) >> (slot % SLOTS) & 1;
            let body = self.slot(width, slot);
            if (runend, body) != (0, 0) {
                return Err(damaged("nothing in unused slot", slot, body));
            }
        }
        Ok(())
    }
}

fn no_end(start: usize) -> Error {
    damaged("an end of the run in slot", start, "none")
}
