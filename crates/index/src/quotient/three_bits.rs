//! The quotient filter in the paper's layout (HotStorage'11), written for readability. Tests compare
//! [`QuotientFilter`](super::QuotientFilter) with it, slot by slot.
//!
//! A fingerprint's quotient names a slot. The remainder is stored in that slot or, when others are in the way, a little
//! further right. Three bits for each slot are enough to determine the quotient of every remainder:
//!
//! ```text
//!   slot        0       1       2       3       4       5       6
//!           +-------+-------+-------+-------+-------+-------+-------+
//!           |       | 1 0 0 | 1 1 1 | 0 1 1 | 1 0 1 | 0 0 1 |       |   is_occupied, _continuation, _shifted
//!           |       |   1   |   4   |   7   |   5   |   3   |       |   remainder
//!           +-------+-------+-------+-------+-------+-------+-------+
//!                   |<---- run of 1 ------->| of 2  | of 4  |
//!                   |<-------------- one cluster ---------->|
//! ```
//!
//! The remainders of one quotient are a **run**, in ascending order. Runs are in the order of their quotients. Runs
//! that push each other to the right are a **cluster**, which begins with a remainder in its own slot. *is_occupied*
//! belongs to the slot: its quotient has a run, wherever that is. The other two belong to the remainder and move with
//! it. In this cluster the slots 1, 2 and 4 are occupied and the slots 1, 4 and 5 begin runs, so the second of these
//! runs belongs to quotient 2.
//!
//! | occupied | continuation | shifted | the slot |
//! |:---:|:---:|:---:|---|
//! | 0 | 0 | 0 | is empty |
//! | 1 | 0 | 0 | has the head of its own run: a cluster begins |
//! | 0 | 0 | 1 | has the head of an earlier quotient's run, and its own quotient has no run |
//! | 1 | 0 | 1 | the same, and its own quotient's run is further right |
//! | 0 | 1 | 1 | continues an earlier quotient's run, and its own quotient has no run |
//! | 1 | 1 | 1 | the same, and its own quotient's run is further right |
//! | 0, 1 | 1 | 0 | is impossible: what continues a run is right of its head, so it is shifted |
//!
//! # An example
//!
//! With 8 quotients and fingerprints of two octal digits: the first is the quotient, the second the remainder.
//!
//! ```text
//!            0       1       2       3       4       5       6       7
//!   + 14 |       | 100 4 |       |       |       |       |       |       |
//!   + 43 |       | 100 4 |       |       | 100 3 |       |       |       |
//!   + 11 |       | 100 1 | 011 4 |       | 100 3 |       |       |       |
//!   + 25 |       | 100 1 | 111 4 | 001 5 | 100 3 |       |       |       |
//!   + 17 |       | 100 1 | 111 4 | 011 7 | 101 5 | 001 3 |       |       |
//!   + 25 |       | 100 1 | 111 4 | 011 7 | 101 5 | 011 5 | 001 3 |       |
//!   - 14 |       | 100 1 | 111 7 | 001 5 | 111 5 | 001 3 |       |       |
//!   - 25 |       | 100 1 | 111 7 | 001 5 | 100 3 |       |       |       |
//! ```
//!
//! `+ 11` is less than 14 and becomes the head of its run; 14 moves right and is now a continuation. `+ 25` finds its
//! slot taken by 14, marks it as occupied, and goes after it: a run's head, shifted. `+ 17` moves 25 and 43: two
//! clusters become one. The second `+ 25` goes next to the first, since each insert must be present to be deleted.
//! After the last step 43 is back in its own slot, in a cluster of its own.

use std::ops::Range;

use nandex_store::fingerprint::Split;

/// A multiset of fingerprints.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ThreeBitFilter {
    split: Split,
    pub slots: Vec<Slot>,
}

/// A slot: whether its own quotient has a run, and the remainder stored in it.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Slot {
    pub is_occupied: bool,
    pub stored: Stored,
}

/// A remainder and its two bits, which move together.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Stored {
    /// Whether the remainder before it belongs to the same run.
    pub is_continuation: bool,
    /// Whether it is right of the slot that its quotient names.
    pub is_shifted: bool,
    pub remainder: u64,
}

impl Slot {
    /// Returns whether nothing is stored here. The slot of a quotient that has a run is never empty: it has a remainder
    /// of that run, or of an earlier one.
    pub fn is_empty(&self) -> bool {
        !self.is_occupied && !self.stored.is_continuation && !self.stored.is_shifted
    }
}

impl ThreeBitFilter {
    pub fn new(split: Split, slots: usize) -> Self {
        Self { split, slots: vec![Slot::default(); slots] }
    }

    /// Returns the number of times that a fingerprint was inserted.
    pub fn count(&self, fingerprint: u64) -> usize {
        let (quotient, remainder) = self.split.split(fingerprint);
        let run = self.run(quotient as usize);
        run.filter(|at| self.slots[*at].stored.remainder == remainder).count()
    }

    /// Inserts a fingerprint into its run, in order.
    ///
    /// # Panics
    /// If no slot is empty from its own slot on.
    pub fn insert(&mut self, fingerprint: u64) {
        let (quotient, remainder) = self.split.split(fingerprint);
        let quotient = quotient as usize;
        let run = self.run(quotient);
        let is_less = |at: &usize| self.slots[*at].stored.remainder < remainder;
        let at = run.start + run.clone().take_while(is_less).count();
        if at == run.start && !run.is_empty() {
            // The head of the run becomes its second.
            self.slots[at].stored.is_continuation = true;
        }
        let (is_continuation, is_shifted) = (at != run.start, at != quotient);
        self.shift_right(at, Stored { is_continuation, is_shifted, remainder });
        self.slots[quotient].is_occupied = true;
    }

    /// Removes one occurrence of a fingerprint.
    ///
    /// # Panics
    /// If it is absent.
    pub fn remove(&mut self, fingerprint: u64) {
        let (quotient, remainder) = self.split.split(fingerprint);
        let quotient = quotient as usize;
        let mut run = self.run(quotient);
        let start = run.start;
        let is_last = run.len() == 1;
        let at = run.find(|at| self.slots[*at].stored.remainder == remainder);
        let at = at.expect("the fingerprint is present");
        self.shift_left(quotient, at);
        if is_last {
            self.slots[quotient].is_occupied = false;
        } else if at == start {
            // The second of the run becomes its head.
            self.slots[at].stored.is_continuation = false;
            self.slots[at].stored.is_shifted = at != quotient;
        }
    }

    /// Returns all fingerprints in ascending order: the slots from left to right.
    pub fn iter(&self) -> impl Iterator<Item = u64> + '_ {
        let runs = self.occupied(0).map(|quotient| (quotient, self.run(quotient)));
        runs.flat_map(move |(quotient, run)| {
            let join = move |slot: &Slot| self.split.join(quotient as u64, slot.stored.remainder);
            self.slots[run].iter().map(join)
        })
    }

    /// Returns the slots of a quotient's run; if it has none, an empty range at the slot where it would begin.
    ///
    /// In a cluster the n-th head belongs to the n-th occupied slot. So it walks left to where the cluster begins, then
    /// right, one run for each occupied slot before the quotient's.
    pub fn run(&self, quotient: usize) -> Range<usize> {
        if self.slots[quotient].is_empty() {
            return quotient..quotient;
        }
        let cluster = self.cluster_start(quotient);
        let before = self.occupied(cluster).take_while(|at| *at < quotient).count();
        let start = (0..before).fold(cluster, |start, _| self.run_end(start));
        let is_occupied = self.slots[quotient].is_occupied;
        start..if is_occupied { self.run_end(start) } else { start }
    }

    /// The first slot of a cluster: the next one on the left that is not shifted.
    pub fn cluster_start(&self, at: usize) -> usize {
        let is_start = |at: &usize| !self.slots[*at].stored.is_shifted;
        (0..=at).rev().find(is_start).expect("the first slot is never shifted")
    }

    /// The slot after the run that begins at `start`.
    fn run_end(&self, start: usize) -> usize {
        let continues = |at: &usize| self.slots[*at].stored.is_continuation;
        start + 1 + (start + 1..self.slots.len()).take_while(continues).count()
    }

    /// The quotients from `first` on that have runs.
    fn occupied(&self, first: usize) -> impl Iterator<Item = usize> + '_ {
        (first..self.slots.len()).filter(|at| self.slots[*at].is_occupied)
    }

    /// Stores a remainder in slot `at`, the one that was there in the next slot, and so on up to an empty slot. Moved
    /// remainders are no longer in their own slots. *is_occupied* stays where it is.
    fn shift_right(&mut self, at: usize, stored: Stored) {
        let mut moving = stored;
        for slot in &mut self.slots[at..] {
            let was_empty = slot.is_empty();
            let displaced = std::mem::replace(&mut slot.stored, moving);
            if was_empty {
                return;
            }
            moving = Stored { is_shifted: true, ..displaced };
        }
        panic!("no slot is empty from {at} on");
    }

    /// Moves the remainders after slot `gap`, which has one of `quotient`, left by one, up to one that is in its own
    /// slot, or an empty slot. A head that returns to its own slot is no longer shifted.
    fn shift_left(&mut self, quotient: usize, gap: usize) {
        let (mut quotient, mut gap) = (quotient, gap);
        while gap + 1 < self.slots.len() && self.slots[gap + 1].stored.is_shifted {
            let mut moving = self.slots[gap + 1].stored;
            if !moving.is_continuation {
                quotient = self.occupied(quotient + 1).next().expect("each run has its quotient");
                moving.is_shifted = gap != quotient;
            }
            self.slots[gap].stored = moving;
            gap += 1;
        }
        self.slots[gap].stored = Stored::default();
    }
}

/// Draws all slots, as the module's documentation does.
fn drawn(filter: &ThreeBitFilter) -> String {
    let draw = |slot: &Slot| {
        if slot.is_empty() {
            return "|       ".to_owned();
        }
        let Stored { is_continuation, is_shifted, remainder } = slot.stored;
        let bits =
            [slot.is_occupied, is_continuation, is_shifted].map(|bit| u8::from(bit).to_string());
        format!("| {} {remainder} ", bits.concat())
    };
    filter.slots.iter().map(draw).collect::<String>() + "|"
}

#[test]
fn the_worked_example_is_what_the_filter_does() {
    let universe = nandex_store::fingerprint::Universe::new(64).unwrap();
    let mut filter = ThreeBitFilter::new(Split::new(universe, 8), 8);
    let mut found = Vec::new();
    for step in ["+14", "+43", "+11", "+25", "+17", "+25", "-14", "-25"] {
        let (sign, octal) = step.split_at(1);
        let fingerprint = u64::from_str_radix(octal, 8).unwrap();
        if sign == "+" {
            filter.insert(fingerprint)
        } else {
            filter.remove(fingerprint)
        }
        found.push(format!("{sign} {octal} {}", drawn(&filter)));
    }
    for page in [
        include_str!("three_bits.rs"),
        include_str!("../../../../docs/explanation/structures/quotient.md"),
    ] {
        let lines = page.lines().map(|line| line.trim_start_matches("//!").trim());
        let steps = lines.filter(|line| line.starts_with(['+', '-']) && line.ends_with('|'));
        assert_eq!(steps.collect::<Vec<_>>(), found, "should be\n{}", found.join("\n"));
    }
}
