//! One slot more, one slot less: what moves, and what heads say then.

use std::ops::Range;

use super::blocks::{Blocks, FAR, SLOTS};
use super::filter::RankFilter;
use super::width::Width;
use crate::Result;

impl RankFilter {
    /// Adds to a count. Nearly always the fingerprint is new and takes one slot, which is done right here.
    #[inline(always)]
    pub(super) fn add_at(&mut self, width: impl Width, fingerprint: u64, count: i64) -> Result<()> {
        let code = self.shape.counts().encode(count);
        if let Some(code) = code
            && self.entries < self.shape.entries_max()
            && self.add_new(width, fingerprint, code)
        {
            return Ok(());
        }
        self.add_found(width, fingerprint, count)
    }

    /// Puts a fingerprint that is not there into a slot of its own. Gives false, and changes nothing, where it
    /// is there, or no slot is left for it.
    #[inline(always)]
    fn add_new(&mut self, width: impl Width, fingerprint: u64, code: u64) -> bool {
        let (quotient, remainder) = self.split(fingerprint);
        let code_bits = self.shape.counts().bits();
        let body = remainder << code_bits | code;
        let (block, place) = (quotient / SLOTS, quotient % SLOTS);
        let head = self.blocks.whole_head(width, block);
        if Blocks::is_gap(&head, place) {
            self.blocks.set_slot(width, quotient, body);
            self.blocks.set_occupieds(width, block, head.occupieds | 1 << place);
            self.blocks.set_runends(width, block, head.runends | 1 << place);
            self.entries += 1;
            return true;
        }
        let start = self.blocks.run_start(width, block, place, &head);
        if head.occupieds >> place & 1 == 0 {
            return self.insert(width, quotient, &(start..start), start, body);
        }
        let end = self.blocks.runend_from(width, start) + 1;
        let mut at = start;
        while at < end {
            let there = self.remainder(width, at);
            if there == remainder {
                return false;
            }
            if there > remainder {
                break;
            }
            at += 1;
        }
        self.insert(width, quotient, &(start..end), at, body)
    }

    /// Puts a body before the slot `at` of a quotient's run, or behind its last. Gives false, and changes
    /// nothing, where no slot is left.
    #[inline(always)]
    pub(super) fn insert(
        &mut self,
        width: impl Width,
        quotient: usize,
        run: &Range<usize>,
        at: usize,
        body: u64,
    ) -> bool {
        let gap = self.blocks.first_gap(width, run.end);
        if gap as u64 >= self.shape.slots() {
            return false;
        }
        self.blocks.move_up(width, at, gap);
        self.blocks.set_slot(width, at, body);
        // A run's last slot moves on by one; a new run's is its only one.
        if run.is_empty() {
            self.blocks.insert_runend(width, at, gap, true);
            self.blocks.mark(width, quotient, true);
        } else {
            self.blocks.insert_runend(width, run.end - 1, gap, false);
        }
        for block in quotient / SLOTS + 1..=gap / SLOTS {
            let offset = self.blocks.head(width, block).offset;
            self.blocks.set_offset(width, block, offset + 1);
        }
        self.entries += 1;
        true
    }

    /// Takes a slot out of a quotient's run.
    pub(super) fn remove(&mut self, width: impl Width, quotient: usize, at: usize) {
        let run = self.blocks.run(width, quotient);
        let stop = self.blocks.first_unshifted(width, run.end);
        self.blocks.move_down(width, at, stop);
        if run.len() == 1 {
            self.blocks.remove_runend(width, at, stop);
            self.blocks.mark(width, quotient, false);
        } else {
            // The slot before the last is inside the run, so the last one's bit takes its place.
            self.blocks.remove_runend(width, run.end - 2, stop);
        }
        let changed = quotient / SLOTS + 1..=(stop - 1) / SLOTS;
        let mut end = None;
        for block in changed {
            end = self.blocks.lower_offset(width, block, end);
        }
        self.entries -= 1;
    }
}

impl Blocks {
    /// Notes whether a quotient has a run.
    #[inline(always)]
    fn mark(&mut self, width: impl Width, quotient: usize, is_occupied: bool) {
        let (block, bit) = (quotient / SLOTS, 1 << (quotient % SLOTS));
        let occupieds = self.head(width, block).occupieds & !bit;
        self.set_occupieds(width, block, if is_occupied { occupieds | bit } else { occupieds });
    }

    /// Makes an offset less by one. One that did not fit is computed anew; `end`, where it is known, is the
    /// slot behind the runs of all quotients up to the block before the one before, and is given back for the
    /// next.
    fn lower_offset(
        &mut self,
        width: impl Width,
        block: usize,
        end: Option<usize>,
    ) -> Option<usize> {
        let head = self.head(width, block);
        if head.offset < FAR {
            self.set_offset(width, block, head.offset - 1);
            return None;
        }
        let before = match end {
            Some(end) => end,
            None => (block - 1) * SLOTS + self.whole_head(width, block - 1).offset,
        };
        let end = self.runs_end(width, block - 1, before);
        self.set_offset(width, block, end - block * SLOTS);
        Some(end)
    }
}
