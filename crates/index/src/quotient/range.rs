//! The fingerprints of a range: keys that share a prefix, such as the known places of a key.

use std::ops::{Range, RangeInclusive};

use nandex_store::run::Entry;

use super::QuotientFilter;
use super::blocks::SLOTS;
use super::width::{Width, with_width};

impl QuotientFilter {
    /// Calls `visit` with each fingerprint of a range and its count, in ascending order.
    ///
    /// Cost: about two cache misses for each quotient of the range; a [`prefetch`](Self::prefetch) of its start helps.
    #[inline]
    pub fn each_in(&self, range: Range<u64>, mut visit: impl FnMut(Entry)) {
        let split = self.shape.split();
        let end = range.end.min(split.universe().size());
        if range.start >= end {
            return;
        }
        let (first, last) = (split.split(range.start), split.split(end - 1));
        with_width!(self.kind, width => {
            for quotient in first.0..=last.0 {
                let least = if quotient == first.0 { first.1 } else { 0 };
                let most = if quotient == last.0 { last.1 } else { u64::MAX };
                self.each_of(width, quotient as usize, least..=most, &mut visit);
            }
        });
    }

    /// Visits the fingerprints of a quotient whose remainders are in a range.
    #[inline(always)]
    fn each_of(
        &self,
        width: impl Width,
        quotient: usize,
        remainders: RangeInclusive<u64>,
        visit: &mut impl FnMut(Entry),
    ) {
        self.blocks.prefetch_slot(width, quotient);
        let head = self.blocks.head(width, quotient / SLOTS);
        if head.occupieds >> (quotient % SLOTS) & 1 == 0 {
            return;
        }
        let mut slots = self.blocks.run(width, quotient);
        while let Some(slot) = slots.next() {
            let remainder = self.remainder(width, slot);
            if remainder > *remainders.end() {
                return;
            }
            if remainder < *remainders.start() {
                continue;
            }
            let same = self.same(width, remainder, slot..slots.end);
            slots.start = same.end;
            let fingerprint = self.shape.split().join(quotient as u64, remainder);
            let count = self.stored(width, fingerprint, &same).count(self.shape.counts());
            visit(Entry { fingerprint, count });
        }
    }
}

#[cfg(test)]
mod tests {
    use nandex_store::fingerprint::Universe;
    use proptest::prelude::*;

    use crate::quotient::{Counts, Shape};

    use super::*;

    fn filter(size: u64, quotients: u64, counts: Counts) -> QuotientFilter {
        let universe = Universe::new(size).unwrap();
        QuotientFilter::new(Shape::new(universe, quotients, counts, quotients).unwrap())
    }

    fn check(filter: &QuotientFilter, range: Range<u64>) {
        let mut found = Vec::new();
        filter.each_in(range.clone(), |entry| found.push(entry));
        let expected: Vec<_> = filter.iter().filter(|it| range.contains(&it.fingerprint)).collect();
        assert_eq!(found, expected, "{range:?}");
    }

    proptest! {
        #[test]
        fn a_range_has_the_fingerprints_that_are_in_it(
            fingerprints in prop::collection::vec(0..5000u64, 0..300),
            starts in prop::collection::vec((0..5200u64, 0..400u64), 1..20),
        ) {
            let shapes = [(400, Counts::One), (1000, Counts::Signed), (512, Counts::Small(3))];
            for (quotients, counts) in shapes {
                let mut filter = filter(5000, quotients, counts);
                for fingerprint in &fingerprints {
                    filter.add(*fingerprint, 1).unwrap();
                }
                for (start, length) in &starts {
                    check(&filter, *start..start + length);
                }
                check(&filter, 0..u64::MAX);
            }
        }
    }
}
