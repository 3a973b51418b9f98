//! Taking a body out of a run: what lies behind it moves left by one slot, up to where the cluster ends.

use std::ops::Range;

use super::slots::{SlotArray, Stored};

impl SlotArray {
    /// Takes out what is stored in slot `at` of the run of `quotient`.
    pub fn remove(&mut self, quotient: usize, run: &Range<usize>, at: usize) {
        self.shift_left(quotient, at);
        if run.len() == 1 {
            self.set_occupied(quotient, false);
        } else if at == run.start {
            let second = self.stored(at);
            let head = Stored { is_continuation: false, is_shifted: at != quotient, ..second };
            self.store(at, head);
        }
    }

    /// Moves what follows slot `gap`, which holds something of `quotient`, left by one, until what follows
    /// lies where its quotient says, or is nothing. A head that comes home is shifted no more.
    fn shift_left(&mut self, quotient: usize, gap: usize) {
        let (mut quotient, mut gap) = (quotient, gap);
        while gap + 1 < self.len() && self.is_shifted(gap + 1) {
            let mut moving = self.stored(gap + 1);
            if !moving.is_continuation {
                quotient = self.next_occupied(quotient + 1).expect("each run has its quotient");
                moving.is_shifted = gap != quotient;
            }
            self.store(gap, moving);
            gap += 1;
        }
        self.store(gap, Stored::default());
    }
}
