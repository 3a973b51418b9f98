//! Rank and select: finds a quotient's run, the next unused slot, and the end of runs.

use std::ops::Range;

use super::blocks::{Blocks, Head, OFFSET_MAX, SLOTS, bits_below, bits_from};
use super::width::Width;

impl Blocks {
    /// Returns the slots of a quotient's run; if it has none, an empty range at the slot where its run would begin.
    #[inline(always)]
    pub fn run(&self, width: impl Width, quotient: usize) -> Range<usize> {
        let (block, place) = (quotient / SLOTS, quotient % SLOTS);
        let head = self.whole_head(width, block);
        let start = self.run_start(width, block, place, &head);
        if head.occupieds >> place & 1 == 0 {
            return start..start;
        }
        start..self.runend_from(width, start) + 1
    }

    /// Returns the first place and the number of slots of a run that is entirely in its own block and short enough to
    /// be compared at once; `None` for others. For a quotient without a run it returns where the run would begin, and
    /// 0.
    #[inline(always)]
    pub fn near_run<W: Width>(width: W, head: &Head, place: usize) -> Option<(usize, usize)> {
        if head.offset >= SLOTS {
            return None;
        }
        let before = width.rank(head.occupieds & bits_below(place));
        // A run begins after the one before it, or after those of earlier blocks.
        let after = (head.runends & u64::MAX << head.offset) << 1 | 1 << head.offset;
        let start = (width.select(after, before) as usize).max(place);
        let rest = head.runends.checked_shr(start as u32)?;
        let is_there = (head.occupieds >> place & 1) as usize;
        let slots = (rest.trailing_zeros() as usize + 1) * is_there;
        (slots <= W::LANES && start + slots <= SLOTS).then_some((start, slots))
    }

    /// Returns a block's head, with its full offset even if that is not stored.
    #[inline(always)]
    pub fn whole_head(&self, width: impl Width, block: usize) -> Head {
        let head = self.head(width, block);
        if head.offset == OFFSET_MAX {
            Head { offset: self.far_offset(width, block), ..head }
        } else {
            head
        }
    }

    /// Returns the slot at which the run of a block's quotient begins, or would begin: after the run before it, and not
    /// before its own slot.
    #[inline(always)]
    pub fn run_start(&self, width: impl Width, block: usize, place: usize, head: &Head) -> usize {
        let base = block * SLOTS;
        let before = width.rank(head.occupieds & bits_below(place));
        if before == 0 {
            return base + head.offset.max(place);
        }
        let runends = head.runends & bits_from(head.offset);
        let end = width.select(runends, before - 1) as usize;
        if end < SLOTS {
            return base + place.max(end + 1);
        }
        let rest = before - 1 - width.rank(runends);
        let next = (base + head.offset).max(base + SLOTS);
        (base + place).max(self.select_from(width, next, rest) + 1)
    }

    /// Returns the first slot from `slot` on that ends a run.
    #[inline(always)]
    pub fn runend_from(&self, width: impl Width, slot: usize) -> usize {
        let (block, place) = (slot / SLOTS, slot % SLOTS);
        let runends = self.runends(width, block) & bits_from(place);
        if runends != 0 {
            return block * SLOTS + runends.trailing_zeros() as usize;
        }
        self.select_from(width, (block + 1) * SLOTS, 0)
    }

    /// Returns the slot that ends the run with this number, counting runs that end from `slot` on; the end of all
    /// blocks if there are fewer.
    fn select_from(&self, width: impl Width, slot: usize, number: u32) -> usize {
        let (mut number, mut place) = (number, slot % SLOTS);
        for block in slot / SLOTS..self.len() {
            let runends = self.runends(width, block) & bits_from(place);
            let end = width.select(runends, number) as usize;
            if end < SLOTS {
                return block * SLOTS + end;
            }
            number -= width.rank(runends);
            place = 0;
        }
        self.len() * SLOTS
    }

    /// Returns whether this slot of a block is unused: its quotient has no run, no run ends there, and all runs that
    /// begin before it end before it.
    #[inline(always)]
    pub fn is_gap(width: impl Width, head: &Head, place: usize) -> bool {
        let before = bits_below(place);
        (head.occupieds | head.runends) >> place & 1 == 0
            && head.offset <= place
            && width.rank(head.occupieds & before)
                == width.rank(head.runends & before & bits_from(head.offset))
    }

    /// Returns the first unused slot of a block from a place on; 64 if it has none.
    #[inline(always)]
    pub fn gap_within(width: impl Width, head: &Head, place: usize) -> usize {
        // An offset that is not stored in full is past this block too.
        let runends = head.runends & bits_from(head.offset);
        let mut maybe = !(head.occupieds | head.runends) & bits_from(head.offset.max(place));
        while maybe != 0 {
            let through = maybe ^ (maybe - 1);
            if width.rank(head.occupieds & through) == width.rank(runends & through) {
                return maybe.trailing_zeros() as usize;
            }
            maybe &= maybe - 1;
        }
        SLOTS
    }

    /// Returns the first unused slot from `slot` on; the end of all blocks if there is none.
    #[inline(always)]
    pub fn first_gap(&self, width: impl Width, slot: usize) -> usize {
        let mut place = slot % SLOTS;
        for block in slot / SLOTS..self.len() {
            let gap = Self::gap_within(width, &self.head(width, block), place);
            if gap < SLOTS {
                return block * SLOTS + gap;
            }
            place = 0;
        }
        self.len() * SLOTS
    }

    /// Returns the first slot after a run that ends right before `slot` that is unused, or begins a run in its own
    /// quotient's slot. It does not move when an earlier slot is removed.
    pub fn first_unshifted(&self, width: impl Width, slot: usize) -> usize {
        let mut place = slot % SLOTS;
        for block in slot / SLOTS..self.len() {
            let head = self.head(width, block);
            if place == 0 && head.offset == 0 {
                return block * SLOTS;
            }
            let runends = head.runends & bits_from(head.offset);
            // The slots after each runend, and after the last one of earlier blocks.
            let after = runends << 1 | bits_from(head.offset) & !bits_from(head.offset + 1);
            let mut maybe = after & bits_from(place.max(head.offset));
            while maybe != 0 {
                let before = (maybe ^ (maybe - 1)) >> 1;
                if width.rank(head.occupieds & before) == width.rank(runends & before) {
                    return block * SLOTS + maybe.trailing_zeros() as usize;
                }
                maybe &= maybe - 1;
            }
            place = 0;
        }
        self.len() * SLOTS
    }

    /// Returns an offset that is not stored in full, computed from the last block before it whose offset is.
    #[cold]
    fn far_offset(&self, width: impl Width, block: usize) -> usize {
        let near = (0..block).rev().find(|block| self.head(width, *block).offset < OFFSET_MAX);
        let near = near.expect("the first block's offset is 0");
        let mut end = near * SLOTS + self.head(width, near).offset;
        for before in near..block {
            end = self.runs_end(width, before, end);
        }
        end.saturating_sub(block * SLOTS)
    }

    /// Returns the slot after all runs of a block's quotients and of earlier ones, given that the earlier ones end
    /// right before `end`.
    pub fn runs_end(&self, width: impl Width, block: usize, end: usize) -> usize {
        match width.rank(self.head(width, block).occupieds) {
            0 => end,
            runs => self.select_from(width, end.max(block * SLOTS), runs - 1) + 1,
        }
    }
}
