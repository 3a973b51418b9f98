//! The cache lines that an operation on a filter in RAM touches: pure functions of the filter's content.
//!
//! The places of fingerprints in a quotient filter follow from their quotients alone. In ascending order each
//! one takes the first free slot from its quotient's on:
//!
//! ```text
//!   quotients   1 1 2     5        slot   0   1   2   3   4   5   6
//!                                             1   1   2       5
//!                                             |- cluster -|   |- cluster
//! ```
//!
//! A filter with three bits for each slot walks a cluster from its beginning; one by rank and select finds a
//! run's end by counting bits in the head of a block. To insert, both move slots up to the next free one.

use std::collections::BTreeSet;
use std::ops::RangeInclusive;

/// Bits of a cache line.
const LINE_BITS: u64 = 512;
/// Slots of a block with a head, and the head's bits.
const BLOCK_SLOTS: u64 = 64;
const HEAD_BITS: u64 = 144;

/// The lines that an operation touches.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Lines(BTreeSet<u64>);

impl Lines {
    fn touch(&mut self, bits: RangeInclusive<u64>) {
        self.0.extend(bits.start() / LINE_BITS..=bits.end() / LINE_BITS);
    }

    /// Returns their number.
    #[must_use]
    pub fn count(&self) -> u64 {
        self.0.len() as u64
    }

    /// Returns the number of lines that do not follow another: the ones that a processor cannot prefetch.
    #[must_use]
    pub fn jumps(&self) -> u64 {
        let is_jump = |line: &&u64| line.checked_sub(1).is_none_or(|it| !self.0.contains(&it));
        self.0.iter().filter(is_jump).count() as u64
    }
}

/// The layout of slots in RAM.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Slots {
    /// One after another, each with three bits of its own.
    Plain {
        /// Bits of a slot, the three included.
        bits: u64,
    },
    /// In blocks of 64 after a head, for rank and select.
    Blocks {
        /// Bits of a slot.
        bits: u64,
    },
}

/// The places of a quotient filter's fingerprints.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Layout {
    slots: Slots,
    /// The quotient in each used slot, and whether it is the last of its run.
    held: Vec<Option<u64>>,
    /// First and last slot of each quotient's run.
    runs: Vec<Option<(u64, u64)>>,
}

impl Layout {
    /// Creates the layout of these quotients, in ascending order, below `quotients`.
    ///
    /// # Panics
    /// Panics if one is not below `quotients`.
    #[must_use]
    pub fn new(slots: Slots, quotients: u64, ascending: impl Iterator<Item = u64>) -> Self {
        let mut held: Vec<Option<u64>> = Vec::new();
        let mut runs = vec![None; quotients as usize];
        for quotient in ascending {
            if (held.len() as u64) < quotient {
                held.resize(quotient as usize, None);
            }
            let slot = held.len() as u64;
            held.push(Some(quotient));
            let run = runs[quotient as usize].get_or_insert((slot, slot));
            run.1 = slot;
        }
        Self { slots, held, runs }
    }

    fn is_used(&self, slot: u64) -> bool {
        self.held.get(slot as usize).is_some_and(Option::is_some)
    }

    /// Returns the first slot of a used slot's cluster: the nearest at or before it that contains its own
    /// quotient, or the one after a free one.
    fn cluster_start(&self, slot: u64) -> u64 {
        let is_own = |at: u64| self.held[at as usize] == Some(at);
        let is_first_of_run = |at: u64| self.runs[at as usize].is_some_and(|run| run.0 == at);
        let mut at = slot;
        while at > 0 && self.is_used(at - 1) && !(is_own(at) && is_first_of_run(at)) {
            at -= 1;
        }
        at
    }

    /// Returns the first free slot at or after `slot`.
    fn free(&self, mut slot: u64) -> u64 {
        while self.is_used(slot) {
            slot += 1;
        }
        slot
    }

    /// Returns the lines that a lookup of a quotient's run touches.
    #[must_use]
    pub fn lookup(&self, quotient: u64) -> Lines {
        let mut lines = Lines::default();
        let run = self.runs[quotient as usize];
        match self.slots {
            Slots::Plain { .. } => match run {
                None => self.touch(quotient, quotient, &mut lines),
                Some((_, last)) => self.touch(self.cluster_start(quotient), last, &mut lines),
            },
            Slots::Blocks { .. } => {
                self.touch_heads(quotient, run.map_or(quotient, |run| run.1), &mut lines);
                if let Some((first, last)) = run {
                    self.touch(first, last, &mut lines);
                }
            }
        }
        lines
    }

    /// Returns the lines that inserting a fingerprint of a quotient touches.
    #[must_use]
    pub fn insert(&self, quotient: u64) -> Lines {
        let mut lines = Lines::default();
        let free = self.free(quotient);
        match self.slots {
            Slots::Plain { .. } => {
                let is_used = self.is_used(quotient);
                let first = if is_used { self.cluster_start(quotient) } else { quotient };
                self.touch(first, free, &mut lines);
            }
            Slots::Blocks { .. } => {
                self.touch_heads(quotient, free, &mut lines);
                let first = self.runs[quotient as usize].map_or(free, |run| run.0);
                self.touch(first.min(free), free, &mut lines);
            }
        }
        lines
    }

    fn touch(&self, first: u64, last: u64, lines: &mut Lines) {
        lines.touch(self.bit(first)..=self.bit(last) + self.slot_bits() - 1);
    }

    fn touch_heads(&self, first: u64, last: u64, lines: &mut Lines) {
        for block in first / BLOCK_SLOTS..=last / BLOCK_SLOTS {
            let bit = block * (HEAD_BITS + BLOCK_SLOTS * self.slot_bits());
            lines.touch(bit..=bit + HEAD_BITS - 1);
        }
    }

    fn slot_bits(&self) -> u64 {
        match self.slots {
            Slots::Plain { bits } | Slots::Blocks { bits } => bits,
        }
    }

    fn bit(&self, slot: u64) -> u64 {
        match self.slots {
            Slots::Plain { bits } => slot * bits,
            Slots::Blocks { bits } => {
                let block = slot / BLOCK_SLOTS;
                (block + 1) * HEAD_BITS + slot * bits
            }
        }
    }
}

/// Returns the lines of these bits of a Bloom filter.
#[must_use]
pub fn lines_of(bits: impl Iterator<Item = u64>) -> Lines {
    let mut lines = Lines::default();
    bits.for_each(|bit| lines.touch(bit..=bit));
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    fn layout(slots: Slots) -> Layout {
        Layout::new(slots, 8, [1, 1, 2, 5].into_iter())
    }

    #[test]
    fn fingerprints_are_as_drawn() {
        let layout = layout(Slots::Plain { bits: 512 });
        let held: Vec<_> = (0..7).map(|slot| layout.is_used(slot)).collect();
        assert_eq!(held, [false, true, true, true, false, true, false]);
        assert_eq!(
            (layout.runs[1], layout.runs[2], layout.runs[5]),
            (Some((1, 2)), Some((3, 3)), Some((5, 5)))
        );
        assert_eq!((layout.cluster_start(3), layout.cluster_start(5), layout.free(1)), (1, 5, 4));
    }

    #[test]
    fn a_walk_touches_its_cluster_and_no_more() {
        // A slot is a line here.
        let layout = layout(Slots::Plain { bits: 512 });
        let counts = |quotient| [layout.lookup(quotient).count(), layout.insert(quotient).count()];
        assert_eq!(counts(0), [1, 1]);
        // From slot 1: two of its own; and to the free slot 4.
        assert_eq!(counts(1), [2, 4]);
        assert_eq!(counts(2), [3, 4]);
        // Slot 3 is in use by another quotient: it is visible at once that it has no run.
        assert_eq!(counts(3), [1, 4]);
        assert_eq!(counts(5), [1, 2]);
        assert_eq!(layout.insert(2).jumps(), 1);
    }

    #[test]
    fn a_block_with_a_head_is_asked_for_its_head_and_the_run() {
        let layout = layout(Slots::Blocks { bits: 9 });
        // Head and slots of the only block: 144 + 576 bits, the first line and the next.
        assert_eq!((layout.lookup(0).count(), layout.lookup(1).count()), (1, 1));
        let far = Layout::new(Slots::Blocks { bits: 9 }, 128, [60, 60].into_iter());
        assert_eq!((far.lookup(60).count(), far.lookup(60).jumps()), (2, 1));
    }

    #[test]
    fn bits_of_one_line_are_one_line() {
        let lines = lines_of([3, 500, 512, 5_000].into_iter());
        assert_eq!((lines.count(), lines.jumps()), (3, 2));
    }
}
