//! The positions of fingerprints: as in the paper's layout, and every pattern of bits that small filters can have.

use std::collections::BTreeMap;

use nandex_device::PlainBits;
use proptest::prelude::*;

use super::super::three_bits::ThreeBitFilter;
use super::super::width::Any;
use super::super::*;
use super::oracle::*;
use crate::Error;

/// Checks that the same remainders are in the same slots, with runs at the same places.
fn assert_same_slots(filter: &QuotientFilter, reference: &ThreeBitFilter) {
    let width = Any(PlainBits, filter.shape().slot_bits() as usize);
    let bit = |bits: u64, at: usize| bits >> (at % 64) & 1 == 1;
    for (at, slot) in reference.slots.iter().enumerate() {
        let head = filter.blocks.head(width, at / 64);
        assert_eq!(filter.blocks.slot(width, at), slot.stored.remainder, "slot {at}");
        assert_eq!(bit(head.occupieds, at), slot.is_occupied, "quotient {at}");
        let continues = reference.slots.get(at + 1).is_some_and(|next| next.stored.is_continuation);
        assert_eq!(bit(head.runends, at), !slot.is_empty() && !continues, "slot {at}");
    }
    let entries =
        filter.iter().flat_map(|it| std::iter::repeat_n(it.fingerprint, it.count as usize));
    assert!(entries.eq(reference.iter()));
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 100, ..ProptestConfig::default() })]

    #[test]
    fn fingerprints_are_in_the_slots_that_the_paper_gives_them(
        quotients in 1..400_u64, share in 2..600_u64, fill in 0.1..0.95_f64, seed in any::<u64>(),
    ) {
        let shape = shape(quotients * share, quotients, Counts::One, (quotients as f64 * fill) as u64);
        let mut filter = QuotientFilter::new(shape);
        let mut reference = ThreeBitFilter::new(shape.split(), shape.slots() as usize);
        let mut next = random(seed);
        let mut present = Vec::new();
        for _ in 0..3 * quotients {
            if !present.is_empty() && (next().is_multiple_of(3) || filter.is_full()) {
                let lost = present.swap_remove((next() % present.len() as u64) as usize);
                filter.add(lost, -1).unwrap();
                reference.remove(lost);
                continue;
            }
            let fingerprint = shape.split().universe().of(next());
            if reference.count(fingerprint) < REPEATS_MAX && filter.add(fingerprint, 1).is_ok() {
                reference.insert(fingerprint);
                present.push(fingerprint);
            }
            prop_assert_eq!(filter.count(fingerprint), reference.count(fingerprint) as i64);
        }
        assert_same_slots(&filter, &reference);
    }
}

#[test]
fn the_drawing_is_what_the_bits_are() {
    let mut filter = QuotientFilter::new(shape(64, 8, Counts::One, 8));
    let octal = [0o14, 0o43, 0o11, 0o25, 0o17];
    assert_eq!(filter.add_many(&octal).unwrap(), 5);
    let width = Any(PlainBits, 3);
    let head = filter.blocks.head(width, 0);
    assert_eq!((head.offset, head.occupieds, head.runends), (0, 0b01_0110, 0b11_1000));
    let bodies: Vec<_> = (0..8).map(|slot| filter.blocks.slot(width, slot)).collect();
    assert_eq!(bodies, [0, 1, 4, 7, 5, 3, 0, 0]);
    assert_eq!(filter.blocks.run(width, 4), 5..6);
    assert_eq!(filter.blocks.first_gap(width, 1), 6);
}

/// Slots of 4 bits.
const WIDTH: Any<PlainBits> = Any(PlainBits, 4);

/// Returns a filter that may use only its first few slots.
fn narrow(slots: usize) -> QuotientFilter {
    let mut filter = QuotientFilter::new(shape(1600, 100, Counts::One, 95));
    filter.slots = slots;
    filter
}

/// Returns the occupieds and runends.
fn pattern(filter: &QuotientFilter) -> (u64, u64) {
    let head = filter.blocks.head(WIDTH, 0);
    (head.occupieds, head.runends)
}

/// Returns filters of all multisets of quotients that fit, by their patterns.
fn reachable(slots: usize) -> BTreeMap<(u64, u64), QuotientFilter> {
    let mut found = BTreeMap::new();
    let mut next = vec![narrow(slots)];
    while let Some(filter) = next.pop() {
        for quotient in 0..slots as u64 {
            let mut more = filter.clone();
            match more.add(16 * quotient, 1) {
                Ok(()) => next.push(more),
                Err(error) => assert!(matches!(error, Error::FilterFull { .. }), "{error}"),
            }
        }
        found.insert(pattern(&filter), filter);
        next.retain(|filter| !found.contains_key(&pattern(filter)));
    }
    found
}

/// Returns whether any filter's slots can have this pattern.
fn is_accepted(slots: usize, occupieds: u64, runends: u64) -> bool {
    let mut filter = narrow(slots);
    filter.blocks.set_occupieds(WIDTH, 0, occupieds);
    filter.blocks.set_runends(WIDTH, 0, runends);
    (0..=slots as u64).any(|entries| {
        filter.entries = entries;
        filter.check().is_ok()
    })
}

#[test]
fn the_check_accepts_exactly_the_patterns_that_inserts_make() {
    let mut sizes = Vec::new();
    for slots in 1..=5 {
        let all = (0..1 << slots).flat_map(|one| (0..1 << slots).map(move |other| (one, other)));
        let accepted = all.filter(|(occupieds, runends)| is_accepted(slots, *occupieds, *runends));
        let reachable = reachable(slots);
        assert!(accepted.eq(reachable.keys().copied()), "{slots} slots");
        sizes.push(reachable.len());
    }
    // The Catalan numbers: each pattern is a multiset of quotients that fits, and there are no others.
    assert_eq!(sizes, [2, 5, 14, 42, 132]);
}

#[test]
fn what_inserts_make_deletes_undo_in_any_order() {
    for filter in (1..=5).flat_map(reachable).map(|(_, filter)| filter) {
        for entry in filter.iter() {
            let mut less = filter.clone();
            less.add(entry.fingerprint, -1).unwrap();
            less.check().unwrap();
            assert_eq!(less.count(entry.fingerprint), entry.count - 1);
            less.add(entry.fingerprint, 1).unwrap();
            assert!(less == filter);
        }
    }
}
