//! Rank and select: where a quotient's run is, where the next gap is, and how far runs reach.

use std::ops::Range;

use nandex_device::{rank, select};

use super::blocks::{Blocks, FAR, Head, SLOTS, below, from};
use super::width::Width;

impl Blocks {
    /// The slots of a quotient's run; where it has none, no slots, at the place where a run would begin.
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

    /// A block's head, with its offset even where that does not fit.
    #[inline(always)]
    pub fn whole_head(&self, width: impl Width, block: usize) -> Head {
        let head = self.head(width, block);
        if head.offset == FAR {
            Head { offset: self.far_offset(width, block), ..head }
        } else {
            head
        }
    }

    /// Where the run of a block's quotient begins, or would: behind the run before it, and not before its own
    /// slot.
    #[inline(always)]
    pub fn run_start(&self, width: impl Width, block: usize, place: usize, head: &Head) -> usize {
        let base = block * SLOTS;
        let before = rank(head.occupieds & below(place));
        if before == 0 {
            return base + head.offset.max(place);
        }
        let runends = head.runends & from(head.offset);
        let end = select(runends, before - 1) as usize;
        if end < SLOTS {
            return base + place.max(end + 1);
        }
        let rest = before - 1 - rank(runends);
        let next = (base + head.offset).max(base + SLOTS);
        (base + place).max(self.select_from(width, next, rest) + 1)
    }

    /// The first slot at or behind `slot` that ends a run.
    #[inline(always)]
    pub fn runend_from(&self, width: impl Width, slot: usize) -> usize {
        let (block, place) = (slot / SLOTS, slot % SLOTS);
        let runends = self.runends(width, block) & from(place);
        if runends != 0 {
            return block * SLOTS + runends.trailing_zeros() as usize;
        }
        self.select_from(width, (block + 1) * SLOTS, 0)
    }

    /// The slot that ends the run of this number, of those that end at or behind `slot`; behind all blocks
    /// where there are fewer.
    fn select_from(&self, width: impl Width, slot: usize, number: u32) -> usize {
        let (mut number, mut place) = (number, slot % SLOTS);
        for block in slot / SLOTS..self.len() {
            let runends = self.runends(width, block) & from(place);
            let end = select(runends, number) as usize;
            if end < SLOTS {
                return block * SLOTS + end;
            }
            number -= rank(runends);
            place = 0;
        }
        self.len() * SLOTS
    }

    /// Is this slot of a block unused? No run has its place or ends there, and as many runs as begin before it
    /// end before it.
    #[inline(always)]
    pub fn is_gap(head: &Head, place: usize) -> bool {
        let before = below(place);
        (head.occupieds | head.runends) >> place & 1 == 0
            && head.offset <= place
            && rank(head.occupieds & before) == rank(head.runends & before & from(head.offset))
    }

    /// The first unused slot at or behind `slot`; behind all blocks where there is none.
    #[inline(always)]
    pub fn first_gap(&self, width: impl Width, slot: usize) -> usize {
        let mut place = slot % SLOTS;
        for block in slot / SLOTS..self.len() {
            let head = self.head(width, block);
            // An offset that does not fit is beyond this block too.
            let runends = head.runends & from(head.offset);
            let mut maybe = !(head.occupieds | head.runends) & from(head.offset.max(place));
            while maybe != 0 {
                let through = maybe ^ (maybe - 1);
                if rank(head.occupieds & through) == rank(runends & through) {
                    return block * SLOTS + maybe.trailing_zeros() as usize;
                }
                maybe &= maybe - 1;
            }
            place = 0;
        }
        self.len() * SLOTS
    }

    /// The first slot behind a run that ends right before `slot` which is unused, or begins a run in its own
    /// place: what lies there need not move when something before it goes.
    pub fn first_unshifted(&self, width: impl Width, slot: usize) -> usize {
        let mut place = slot % SLOTS;
        for block in slot / SLOTS..self.len() {
            let head = self.head(width, block);
            if place == 0 && head.offset == 0 {
                return block * SLOTS;
            }
            let runends = head.runends & from(head.offset);
            // Behind each runend, and behind the last one of earlier blocks.
            let behind = runends << 1 | from(head.offset) & !from(head.offset + 1);
            let mut maybe = behind & from(place.max(head.offset));
            while maybe != 0 {
                let before = (maybe ^ (maybe - 1)) >> 1;
                if rank(head.occupieds & before) == rank(runends & before) {
                    return block * SLOTS + maybe.trailing_zeros() as usize;
                }
                maybe &= maybe - 1;
            }
            place = 0;
        }
        self.len() * SLOTS
    }

    /// An offset that does not fit: from the last block before whose offset does, over all runs between.
    #[cold]
    fn far_offset(&self, width: impl Width, block: usize) -> usize {
        let near = (0..block).rev().find(|block| self.head(width, *block).offset < FAR);
        let near = near.expect("the first block's offset is 0");
        let mut end = near * SLOTS + self.head(width, near).offset;
        for before in near..block {
            end = self.runs_end(width, before, end);
        }
        end.saturating_sub(block * SLOTS)
    }

    /// The slot behind all runs of a block's quotients and of those before, of which the latter end right
    /// before `end`.
    pub fn runs_end(&self, width: impl Width, block: usize, end: usize) -> usize {
        match rank(self.head(width, block).occupieds) {
            0 => end,
            runs => self.select_from(width, end.max(block * SLOTS), runs - 1) + 1,
        }
    }
}
