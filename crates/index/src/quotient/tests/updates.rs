//! Random updates, singly and in batches, and filters built from others.

use nandex_device::PlainBits;
use nandex_store::run::{Entry, Source};
use proptest::prelude::*;

use super::super::blocks::OFFSET_MAX;
use super::super::width::{Any, WidthKind};
use super::super::*;
use super::oracle::*;
use crate::Error;

/// The target of updates: everywhere, a narrow range, or the last quotients.
#[derive(Clone, Copy, Debug)]
enum Place {
    Everywhere,
    Narrow,
    Last,
}

fn place() -> impl Strategy<Value = Place> {
    prop_oneof![3 => Just(Place::Everywhere), 1 => Just(Place::Narrow), 1 => Just(Place::Last)]
}

fn draw(place: Place, shape: &Shape, number: u64) -> u64 {
    let universe = shape.split().universe();
    let size = universe.size();
    let narrow = (size / 16).clamp(1, size);
    match place {
        Place::Everywhere => universe.of(number),
        Place::Narrow => size / 3 + number % narrow.min(size - size / 3),
        Place::Last => size - 1 - number % narrow,
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 150, ..ProptestConfig::default() })]

    #[test]
    fn it_counts_as_a_map_does_while_it_fills_and_empties(
        shape in shapes(), place in place(), seed in any::<u64>(), loss in 0..3_u64,
    ) {
        let mut checked = Checked::new(shape);
        let mut next = random(seed);
        let mut present = Vec::new();
        for step in 0..2 * shape.entries_max() {
            let (number, choice) = (next(), next());
            match choice % 8 {
                0 if !present.is_empty() => {
                    let again = present[(number % present.len() as u64) as usize];
                    let amount = [1, 2, 9, -1, 40, 1000][(choice >> 8) as usize % 6];
                    checked.add(again, amount);
                }
                few if few <= loss && !present.is_empty() => {
                    let lost = present.swap_remove((number % present.len() as u64) as usize);
                    checked.add(lost, -checked.oracle.count(lost));
                }
                _ => {
                    let fingerprint = draw(place, &shape, number);
                    let amount = if choice >> 16 & 3 == 0 { -1 } else { 1 };
                    if checked.add(fingerprint, amount) {
                        present.push(fingerprint);
                    }
                }
            }
            if step.is_multiple_of(64) {
                checked.filter.check().unwrap();
            }
        }
        checked.assert_same();
        while let Some(lost) = present.pop() {
            checked.add(lost, -checked.oracle.count(lost));
            if present.len().is_multiple_of(64) {
                checked.filter.check().unwrap();
            }
        }
        prop_assert!(checked.filter == QuotientFilter::new(shape), "emptied, it is as it was when new");
    }

    #[test]
    fn a_batch_does_what_single_calls_do_up_to_the_first_that_does_not_fit(
        shape in shapes(), seed in any::<u64>(), most in prop_oneof![Just(1_u64), Just(25)],
    ) {
        let mut next = random(seed);
        let universe = shape.split().universe();
        let least = if shape.counts() == Counts::One { 1 } else { 1 - most as i64 / 2 };
        let entries: Vec<_> = (0..2 * shape.entries_max() + 20)
            .map(|_| Entry { fingerprint: universe.of(next()), count: least + (next() % most) as i64 })
            .collect();
        let (mut batched, mut single) = (QuotientFilter::new(shape), QuotientFilter::new(shape));
        let fits = |it: &&Entry| single.add(it.fingerprint, it.count).is_ok();
        let fitting = entries.iter().take_while(fits).count();
        prop_assert_eq!(batched.add_entries(&entries).unwrap(), fitting);
        prop_assert!(batched == single);
        let fingerprints: Vec<_> = entries.iter().map(|it| it.fingerprint).collect();
        let mut counts = Vec::new();
        batched.count_many(&fingerprints, &mut counts);
        prop_assert!(fingerprints.iter().map(|one| single.count(*one)).eq(counts));
        batched.clear();
        prop_assert!(batched == QuotientFilter::new(shape));
        if most == 1 {
            prop_assert_eq!(batched.add_many(&fingerprints).unwrap(), fitting);
            prop_assert!(batched == single);
        }
    }

    #[test]
    fn a_filter_of_another_size_has_the_same_entries(
        shape in small_shape(), updates in updates(), quotients in 1..200u64,
    ) {
        let Checked { filter, oracle } = updated(shape, &updates);
        match filter.resized(quotients) {
            Ok(filter) => Checked { filter, oracle }.assert_same(),
            Err(Error::FilterFull { .. }) => {
                prop_assert!(!oracle.fits(&shape.resized(quotients).unwrap()));
            }
            Err(error) => prop_assert!(false, "{error}"),
        }
    }

    #[test]
    fn merging_adds_up_the_counts_of_filters_of_all_sizes(
        shape in small_shape(),
        parts in prop::collection::vec(updates(), 0..6),
        sizes in prop::collection::vec(1..80u64, 6),
    ) {
        let mut sum = Oracle::new(shape.counts());
        let filters: Vec<_> = parts.iter().zip(sizes).map(|(updates, quotients)| {
            let Checked { filter, oracle } = updated(shape.resized(quotients).unwrap(), updates);
            oracle.map.iter().for_each(|(fingerprint, count)| sum.add(*fingerprint, *count));
            filter
        }).collect();
        let wide = super::oracle::shape(shape.split().universe().size(), 500, shape.counts(), 500);
        match QuotientFilter::merged(wide, &filters.iter().collect::<Vec<_>>()) {
            Ok(filter) => Checked { filter, oracle: sum }.assert_same(),
            Err(error) => prop_assert!(!sum.fits(&wide), "{error}"),
        }
    }
}

#[test]
fn a_sum_past_63_bits_is_an_error_and_the_entries_before_it_are_added() {
    let mut filter = QuotientFilter::new(shape(1 << 20, 1000, Counts::Signed, 900));
    let entries = [(5, 1), (7, i64::MAX), (7, 1), (9, 1)];
    let entries = entries.map(|(fingerprint, count)| Entry { fingerprint, count });
    assert!(matches!(filter.add_entries(&entries), Err(Error::CountRange { .. })));
    assert_eq!([5, 7, 9].map(|one| filter.count(one)), [1, i64::MAX, 0]);
}

/// In slots of each number of bits, with and without the processor's instructions for bits.
#[test]
fn every_width_of_a_slot_stores_what_was_added() {
    for (share, plain) in (1..=56).flat_map(|share| [(share, false), (share, true)]) {
        let mut next = random(share);
        let quotients = if share > 54 { 64 } else { 200 };
        let entries = quotients * 9 / 10;
        let shape = shape((1 << share) * quotients, quotients, Counts::One, entries);
        let mut checked = Checked::new(shape);
        assert_eq!(u64::from(shape.slot_bits()), share);
        if plain {
            checked.filter.kind = WidthKind::plain(shape.slot_bits());
        }
        let universe = shape.split().universe();
        let all: Vec<_> = (0..entries).map(|_| universe.of(next())).collect();
        all.iter().for_each(|one| assert!(checked.add(*one, 1)));
        let mut built = checked.clone();
        built.filter.kind = WidthKind::new(shape.slot_bits());
        built.assert_same();
        assert_eq!(checked.filter.iter().collect::<Vec<_>>(), checked.oracle.entries());
        all.iter().for_each(|one| {
            checked.add(*one, -1);
        });
        checked.filter.check().unwrap();
        assert_eq!(checked.filter.entries(), 0);
    }
}

#[test]
fn all_in_one_quotient_is_one_run_over_many_blocks() {
    for quotient in [0, 63, 64, 700, 999] {
        let mut checked = Checked::new(shape(1000 << 12, 1000, Counts::Signed, 900));
        let first = checked.filter.shape().split().first(quotient);
        let mut next = random(quotient);
        for _ in 0..1200 {
            checked.add(first + next() % 4096, if next().is_multiple_of(4) { -1 } else { 1 });
        }
        checked.assert_same();
    }
}

#[test]
fn offsets_that_do_not_fit_are_found_from_earlier_blocks() {
    // A run of 80,000 slots pushes those after it further than 16 bits can express.
    let shape = shape(100_000 << 17, 100_000, Counts::One, 95_000);
    let first = shape.split().first(10);
    let (late, remainders) = (20_000, 80_000);
    let mut all: Vec<_> = (0..remainders).map(|n| first + n).collect();
    all.extend((11..late).step_by(1500).map(|quotient| shape.split().first(quotient)));
    let list = all.iter().map(|one| Entry { fingerprint: *one, count: 1 }).collect();
    let mut filter = QuotientFilter::from_source(shape, &mut List(list)).unwrap();
    filter.check().unwrap();
    let is_far =
        |filter: &QuotientFilter| filter.blocks.head(Any(PlainBits, 17), 1).offset == OFFSET_MAX;
    assert!(is_far(&filter));
    filter.add(shape.split().first(late - 1), 1).unwrap();
    filter.add(first + remainders, 1).unwrap();
    filter.check().unwrap();
    assert!(all.iter().step_by(997).all(|one| filter.count(*one) == 1));
    assert_eq!(filter.count(shape.split().first(late - 1)), 1);
    for one in (0..remainders).rev().step_by(3).take(500) {
        filter.add(first + one, -1).unwrap();
    }
    filter.check().unwrap();
    let shorter = QuotientFilter::from_source(shape, &mut filter.source()).unwrap();
    assert!(shorter == filter && is_far(&filter));
    assert!(QuotientFilter::decode(&filter.encode()).unwrap() == filter);
}

#[test]
fn a_source_that_fails_fails_the_filter_that_is_built_of_it() {
    struct Failing(usize);
    impl Source for Failing {
        fn next_batch(&mut self, out: &mut Vec<Entry>) -> nandex_store::Result<bool> {
            let Some(rest) = self.0.checked_sub(1) else {
                return Err(nandex_store::Error::config("source", "fails here"));
            };
            self.0 = rest;
            out.push(Entry { fingerprint: 1000 - rest as u64, count: 1 });
            Ok(true)
        }
    }
    for batches in [0, 1, 50] {
        let shape = shape(1 << 20, 1000, Counts::Signed, 900);
        let error = QuotientFilter::from_source(shape, &mut Failing(batches)).unwrap_err();
        assert!(error.to_string().contains("fails here"), "after {batches}: {error}");
    }
}

#[test]
fn sources_out_of_order_or_of_another_universe_or_too_large_are_refused() {
    let build = |shape, entries: &[(u64, i64)]| {
        let entry = |&(fingerprint, count): &_| Entry { fingerprint, count };
        let mut source = List(entries.iter().map(entry).collect());
        QuotientFilter::from_source(shape, &mut source)
    };
    let small = shape(64, 8, Counts::One, 7);
    assert_eq!(build(small, &[(1, 2), (9, 3)]).unwrap().entries(), 5);
    for (entries, word) in [
        (&[(9, 1), (9, 1)][..], "ascending"),
        (&[(9, 1), (8, 1)], "ascending"),
        (&[(64, 1)], "universe"),
        (&[(3, -1)], "below zero"),
        (&[(1, 4), (2, 4)], "full"),
    ] {
        let error = build(small, entries).unwrap_err().to_string();
        assert!(error.contains(word), "{entries:?}: {error}");
    }
    let last: Vec<_> = (1_100_000 - 2000..1_100_000).map(|at| (at, 1)).collect();
    let error = build(shape(1_100_000, 10_000, Counts::One, 9000), &last).unwrap_err().to_string();
    assert!(error.contains("none is free after"), "{error}");
    let other = QuotientFilter::new(shape(65, 8, Counts::One, 7));
    assert!(QuotientFilter::merged(small, &[&other]).is_err());
}
