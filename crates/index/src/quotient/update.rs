//! Adding and removing one slot: the slots that move, and the changes to the heads of blocks.

use std::ops::Range;

use super::QuotientFilter;
use super::blocks::{Blocks, OFFSET_MAX, SLOTS};
use super::width::{Lanes, Width};
use crate::Result;

impl QuotientFilter {
    /// Adds to a count. The fingerprint is nearly always new and takes one slot; that path is inline.
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

    /// Stores an absent fingerprint in a slot. Returns false, and changes nothing, if it is present or no slot is free
    /// for it.
    #[inline(always)]
    fn add_new(&mut self, width: impl Width, fingerprint: u64, code: u64) -> bool {
        let (quotient, remainder) = self.split(fingerprint);
        self.blocks.prefetch_slot(width, quotient);
        let code_bits = self.shape.counts().bits();
        let body = remainder << code_bits | code;
        let (block, place) = (quotient / SLOTS, quotient % SLOTS);
        let mut here = self.blocks.block_mut(width, block);
        let head = here.head();
        if Blocks::is_gap(width, &head, place) {
            here.set_slot(width, place, body);
            here.set_head(head.occupieds | 1 << place, head.runends | 1 << place);
            self.entries += 1;
            return true;
        }
        let Some((start, slots)) = Blocks::near_run(width, &head, place) else {
            return self.add_far(width, fingerprint, body);
        };
        let lanes = Lanes::new(width, here.slots_from(width, start), slots);
        if lanes.equal(remainder, code_bits) != 0 {
            return false;
        }
        let at = start + width.rank(lanes.less(remainder << code_bits)) as usize;
        let end = start + slots;
        let gap = Blocks::gap_within(width, &head, end);
        let base = block * SLOTS;
        if gap == SLOTS || base + gap >= self.slots {
            return self.insert(width, quotient, &(base + start..base + end), base + at, body);
        }
        here.move_up(width, at, gap);
        here.set_slot(width, at, body);
        let runends = with_runend(head.runends, start, slots, gap);
        here.set_head(head.occupieds | 1 << place, runends);
        self.entries += 1;
        true
    }

    /// Stores an absent fingerprint as [`add_new`](Self::add_new) does, wherever the run is.
    #[inline(never)]
    fn add_far(&mut self, width: impl Width, fingerprint: u64, body: u64) -> bool {
        let found = self.find(width, fingerprint);
        found.same.is_empty()
            && self.insert(width, found.quotient, &found.run, found.same.start, body)
    }

    /// Inserts a body before the slot `at` of a quotient's run, or after its last. Returns false, and changes nothing,
    /// if no slot is free.
    pub(super) fn insert(
        &mut self,
        width: impl Width,
        quotient: usize,
        run: &Range<usize>,
        at: usize,
        body: u64,
    ) -> bool {
        let gap = self.blocks.first_gap(width, run.end);
        if gap >= self.slots {
            return false;
        }
        self.blocks.move_up(width, at, gap);
        self.blocks.set_slot(width, at, body);
        // The last slot of a run moves right by one. A new run has only one slot.
        let is_new = run.is_empty();
        self.blocks.insert_runend(width, run.end - usize::from(!is_new), gap, is_new);
        self.blocks.mark(width, quotient, true);
        for block in quotient / SLOTS + 1..=gap / SLOTS {
            let offset = self.blocks.head(width, block).offset;
            self.blocks.set_offset(width, block, offset + 1);
        }
        self.entries += 1;
        true
    }

    /// Removes a slot of a quotient's run.
    pub(super) fn remove(&mut self, width: impl Width, quotient: usize, at: usize) {
        let run = self.blocks.run(width, quotient);
        let stop = self.blocks.first_unshifted(width, run.end);
        self.blocks.move_down(width, at, stop);
        if run.len() == 1 {
            self.blocks.remove_runend(width, at, stop);
            self.blocks.mark(width, quotient, false);
        } else {
            // The slot before the last has no bit, and the last one's bit moves there.
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

/// Returns the runends of a block after the run at `start` has grown by one slot and all up to `gap` has moved. The
/// last slot of a run moves right by one. A new run has only one slot.
#[inline(always)]
fn with_runend(runends: u64, start: usize, slots: usize, gap: usize) -> u64 {
    let is_new = slots == 0;
    let split = start + slots - usize::from(!is_new);
    let moved = u64::MAX >> (63 - gap) & u64::MAX << split;
    runends & !moved | (runends & moved & !(1 << gap)) << 1 | u64::from(is_new) << split
}

impl Blocks {
    /// Notes whether a quotient has a run.
    #[inline(always)]
    fn mark(&mut self, width: impl Width, quotient: usize, is_occupied: bool) {
        let (block, bit) = (quotient / SLOTS, 1 << (quotient % SLOTS));
        let occupieds = self.head(width, block).occupieds & !bit;
        self.set_occupieds(width, block, if is_occupied { occupieds | bit } else { occupieds });
    }

    /// Lowers an offset by one. An offset that was not stored in full is computed again. `end`, if it is known, is the
    /// slot after the runs of all quotients before the previous block. Returns the same for the next block.
    fn lower_offset(
        &mut self,
        width: impl Width,
        block: usize,
        end: Option<usize>,
    ) -> Option<usize> {
        let head = self.head(width, block);
        if head.offset < OFFSET_MAX {
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
