//! Putting one more body into a run: what lies in its way moves right by one slot, up to the next gap.

use std::ops::Range;

use super::slots::{SlotArray, Stored};

impl SlotArray {
    /// Puts `body` at slot `at` of the run of `quotient`: at its first slot, behind its last, or between.
    /// There must be an empty slot from `at` on.
    pub fn insert(&mut self, quotient: usize, run: &Range<usize>, at: usize, body: u64) {
        if at == run.start && !run.is_empty() {
            let old_head = self.stored(at);
            self.store(at, Stored { is_continuation: true, ..old_head });
        }
        let stored = Stored { is_continuation: at != run.start, is_shifted: at != quotient, body };
        self.shift_right(at, stored);
        self.set_occupied(quotient, true);
    }

    /// Stores something in slot `at`, what was there in the next one, and so on up to an empty slot. What
    /// moved no longer lies where its quotient says; which quotients have runs stays where it is.
    fn shift_right(&mut self, at: usize, stored: Stored) {
        let mut moving = stored;
        for at in at..self.len() {
            let was_empty = self.is_empty(at);
            let displaced = self.stored(at);
            self.store(at, moving);
            if was_empty {
                return;
            }
            moving = Stored { is_shifted: true, ..displaced };
        }
        unreachable!("the caller has looked for an empty slot");
    }
}
