//! Tests of the fast quotient filter against the readable one, which is tested against a map of counts.

use std::collections::BTreeMap;
use std::sync::Arc;

use nandex_device::PlainBits;
use nandex_store::fingerprint::Universe;
use nandex_store::run::{Entry, Source};
use proptest::prelude::*;

use super::blocks::FAR;
use super::width::Kind;
use super::{RankFilter, RankSource};
use crate::Error;
use crate::quotient::{Counts, QuotientFilter, Shape};

/// The fast filter, and what it must be like.
struct Pair {
    fast: RankFilter,
    readable: QuotientFilter,
}

impl Pair {
    fn new(shape: Shape) -> Self {
        Self { fast: RankFilter::new(shape), readable: QuotientFilter::new(shape) }
    }

    /// Adds to both. They give the same answer, to the last word of an error.
    fn add(&mut self, fingerprint: u64, count: i64) -> bool {
        let fast = self.fast.add(fingerprint, count).map_err(|error| error.to_string());
        let readable = self.readable.add(fingerprint, count).map_err(|error| error.to_string());
        assert_eq!(fast, readable, "{fingerprint} {count}");
        let (fast, readable) = (self.fast.count(fingerprint), self.readable.count(fingerprint));
        assert_eq!(fast, readable, "the count of {fingerprint} after {count} more");
        fast != 0
    }

    /// Whole, and the same in every way they have to say so.
    fn assert_same(&self) {
        self.fast.validate().unwrap();
        let expected: Vec<_> = self.readable.iter().collect();
        assert_eq!(self.fast.iter().collect::<Vec<_>>(), expected);
        assert_eq!(drain(self.fast.source()), expected);
        assert_eq!(self.fast.entries(), self.readable.entries());
        assert_eq!(self.fast.is_full(), self.readable.is_full());
        assert_eq!(self.fast.outliers(), self.readable.outliers());
        let fingerprints: Vec<_> = expected.iter().map(|entry| entry.fingerprint).collect();
        let mut counts = Vec::new();
        self.fast.count_many(&fingerprints, &mut counts);
        assert!(expected.iter().map(|entry| entry.count).eq(counts));
        let again =
            RankFilter::from_source(self.fast.shape(), &mut self.readable.source()).unwrap();
        assert!(
            again.blocks == self.fast.blocks,
            "built in order or not, it is the same bit for bit"
        );
    }
}

fn drain(mut source: impl Source) -> Vec<Entry> {
    let mut all = Vec::new();
    while source.next_batch(&mut all).unwrap() {}
    all
}

fn shape(size: u64, quotients: u64, counts: Counts, entries: u64) -> Shape {
    Shape::new(Universe::new(size).unwrap(), quotients, counts, entries).unwrap()
}

/// A sequence of numbers that looks like chance.
fn chance(seed: u64) -> impl FnMut() -> u64 {
    let mut state = seed;
    move || {
        state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (state ^ state >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ mixed >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ mixed >> 31
    }
}

fn counts() -> impl Strategy<Value = Counts> {
    prop_oneof![Just(Counts::One), Just(Counts::Signed), (2..=16_u32).prop_map(Counts::Small)]
}

/// Slots of 8, 9, 10 and 16 bits, which have code of their own, and others; from one block to dozens.
fn shapes() -> impl Strategy<Value = Shape> {
    let share = prop_oneof![2..5_u64, 200..600_u64, Just(256_u64), Just(1 << 16), 1..1_u64 << 30];
    (prop_oneof![1..200_u64, 1..3000_u64], share, counts(), 0.1..1.2_f64).prop_map(
        |(quotients, share, counts, fill)| {
            shape(quotients * share + share, quotients, counts, (quotients as f64 * fill) as u64)
        },
    )
}

/// Where updates go: everywhere, to a narrow place, or to the last quotients.
#[derive(Clone, Copy, Debug)]
enum Place {
    Everywhere,
    Narrow,
    Last,
}

fn place() -> impl Strategy<Value = Place> {
    prop_oneof![3 => Just(Place::Everywhere), 1 => Just(Place::Narrow), 1 => Just(Place::Last)]
}

fn draw(place: Place, size: u64, number: u64) -> u64 {
    let universe = Universe::new(size).unwrap();
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
    fn it_is_as_the_readable_one_while_it_fills_and_empties(
        shape in shapes(), place in place(), seed in any::<u64>(), loss in 0..3_u64,
    ) {
        let size = shape.split().universe().size();
        let mut pair = Pair::new(shape);
        let mut next = chance(seed);
        let mut there = Vec::new();
        for step in 0..2 * shape.entries_max() {
            let (number, choice) = (next(), next());
            match choice % 8 {
                0 if !there.is_empty() => {
                    let again = there[(number % there.len() as u64) as usize];
                    let amount = [1, 2, 9, -1, 40, 1000][(choice >> 8) as usize % 6];
                    pair.add(again, amount);
                }
                few if few <= loss && !there.is_empty() => {
                    let lost = there.swap_remove((number % there.len() as u64) as usize);
                    let count = pair.readable.count(lost);
                    pair.add(lost, -count);
                }
                _ => {
                    let fingerprint = draw(place, size, number);
                    let amount = if choice >> 16 & 3 == 0 && shape.counts() != Counts::One { -1 } else { 1 };
                    if pair.add(fingerprint, amount) {
                        there.push(fingerprint);
                    }
                }
            }
            if step.is_multiple_of(64) {
                pair.fast.validate().unwrap();
            }
        }
        pair.assert_same();
        while let Some(lost) = there.pop() {
            pair.add(lost, -pair.readable.count(lost));
            if there.len().is_multiple_of(64) {
                pair.fast.validate().unwrap();
            }
        }
        prop_assert!(pair.fast == RankFilter::new(shape), "emptied, it is as it was when new");
    }

    #[test]
    fn a_batch_does_what_single_calls_do(shape in shapes(), seed in any::<u64>()) {
        let mut next = chance(seed);
        let universe = shape.split().universe();
        let all: Vec<_> = (0..shape.entries_max() + 20).map(|_| universe.of(next())).collect();
        let (mut batched, mut single) = (RankFilter::new(shape), RankFilter::new(shape));
        let room = all.iter().take_while(|one| single.add(**one, 1).is_ok()).count();
        prop_assert_eq!(batched.add_many(&all).unwrap(), room);
        prop_assert!(batched == single);
        let mut counts = Vec::new();
        batched.count_many(&all, &mut counts);
        prop_assert!(all.iter().map(|one| single.count(*one)).eq(counts));
        batched.clear();
        prop_assert!(batched == RankFilter::new(shape));
        let entries: Vec<_> =
            all.iter().map(|one| Entry { fingerprint: *one, count: 1 }).collect();
        prop_assert_eq!(batched.add_entries(&entries).unwrap(), room);
        prop_assert!(batched == single);
    }

    #[test]
    fn entries_are_added_up_to_the_first_that_does_not_fit(
        shape in shapes(), seed in any::<u64>(),
    ) {
        let shape = Shape::new(shape.split().universe(), shape.split().quotients(),
            Counts::Signed, shape.entries_max());
        let Ok(shape) = shape else { return Ok(()) };
        let mut next = chance(seed);
        let size = shape.split().universe().size();
        let entries: Vec<_> = (0..2 * shape.entries_max() + 20)
            .map(|_| Entry { fingerprint: next() % size, count: (next() % 25) as i64 - 12 })
            .collect();
        let (mut batched, mut single) = (RankFilter::new(shape), RankFilter::new(shape));
        let fits = |it: &&Entry| single.add(it.fingerprint, it.count).is_ok();
        let fitting = entries.iter().take_while(fits).count();
        prop_assert_eq!(batched.add_entries(&entries).unwrap(), fitting);
        prop_assert!(batched == single);
    }
}

#[test]
fn a_sum_past_63_bits_is_an_error_and_the_entries_before_it_are_added() {
    let mut filter = RankFilter::new(shape(1 << 20, 1000, Counts::Signed, 900));
    let entries = [(5, 1), (7, i64::MAX), (7, 1), (9, 1)]
        .map(|(fingerprint, count)| Entry { fingerprint, count });
    assert!(matches!(filter.add_entries(&entries), Err(Error::CountRange { .. })));
    assert_eq!([5, 7, 9].map(|one| filter.count(one)), [1, i64::MAX, 0]);
}

/// In slots of each number of bits, with and without the processor's instructions for bits.
#[test]
fn every_width_of_a_slot_holds_what_was_put_in() {
    for (share, plain) in (1..=56).flat_map(|share| [(share, false), (share, true)]) {
        let mut next = chance(share);
        let quotients = if share > 54 { 64 } else { 200 };
        let entries = quotients * 9 / 10;
        let mut pair = Pair::new(shape((1 << share) * quotients, quotients, Counts::One, entries));
        if plain {
            pair.fast.kind = if share == 8 { Kind::Plain8 } else { Kind::Plain(share as usize) };
        }
        assert_eq!(u64::from(pair.fast.shape().slot_bits()), share);
        let universe = pair.fast.shape().split().universe();
        let all: Vec<_> = (0..entries).map(|_| universe.of(next())).collect();
        all.iter().for_each(|one| assert!(pair.add(*one, 1)));
        pair.assert_same();
        all.iter().for_each(|one| {
            pair.add(*one, -1);
        });
        pair.assert_same();
    }
}

#[test]
fn all_in_one_quotient_is_one_run_over_many_blocks() {
    for quotient in [0, 63, 64, 700, 999] {
        let mut pair = Pair::new(shape(1000 << 12, 1000, Counts::Signed, 900));
        let first = pair.fast.shape().split().first(quotient);
        let mut next = chance(quotient);
        for _ in 0..1200 {
            pair.add(first + next() % 4096, if next().is_multiple_of(4) { -1 } else { 1 });
        }
        pair.assert_same();
    }
}

#[test]
fn a_hot_fingerprint_takes_eight_slots_and_an_outlier() {
    let mut pair = Pair::new(shape(1 << 20, 1 << 10, Counts::One, 900));
    for _ in 0..5000 {
        pair.add(77_777, 1);
    }
    assert_eq!((pair.fast.entries(), pair.fast.count(77_777)), (8, 5000));
    pair.assert_same();
    for _ in 0..5000 {
        pair.add(77_777, -1);
    }
    pair.add(77_777, -1);
    assert_eq!((pair.fast.entries(), pair.fast.outliers().len()), (0, 0));
    pair.assert_same();
}

#[test]
fn offsets_that_do_not_fit_are_found_from_earlier_blocks() {
    // Runs of 80,000 slots push those behind them by more than 16 bits say.
    let shape = shape(100_000 << 17, 100_000, Counts::One, 95_000);
    let first = shape.split().first(10);
    let (late, remainders) = (20_000, 80_000);
    let mut all: Vec<_> = (0..remainders).map(|n| first + n).collect();
    all.extend((11..late).step_by(1500).map(|quotient| shape.split().first(quotient)));
    let sorted = all.iter().map(|one| (*one, 1)).collect::<BTreeMap<_, _>>();
    let mut filter = RankFilter::from_source(shape, &mut List(Some(sorted.clone()))).unwrap();
    filter.validate().unwrap();
    let is_far =
        |filter: &RankFilter| filter.blocks.head(super::width::Any(PlainBits, 17), 1).offset == FAR;
    assert!(is_far(&filter));
    filter.add(shape.split().first(late - 1), 1).unwrap();
    filter.add(first + remainders, 1).unwrap();
    filter.validate().unwrap();
    assert!(sorted.keys().step_by(997).all(|one| filter.count(*one) == 1));
    assert_eq!(filter.count(shape.split().first(late - 1)), 1);
    for one in (0..remainders).rev().step_by(3).take(500) {
        filter.add(first + one, -1).unwrap();
    }
    filter.validate().unwrap();
    let left: BTreeMap<_, _> =
        filter.iter().map(|entry| (entry.fingerprint, entry.count)).collect();
    let shorter = RankFilter::from_source(shape, &mut List(Some(left))).unwrap();
    assert!(shorter == filter);
    assert!(is_far(&filter));
}

#[test]
fn the_drawing_is_what_the_bits_are() {
    let mut filter = RankFilter::new(shape(64, 8, Counts::One, 8));
    let octal = [0o14, 0o43, 0o11, 0o25, 0o17];
    assert_eq!(filter.add_many(&octal).unwrap(), 5);
    let width = super::width::Any(PlainBits, 3);
    let head = filter.blocks.head(width, 0);
    assert_eq!((head.offset, head.occupieds, head.runends), (0, 0b01_0110, 0b11_1000));
    let bodies: Vec<_> = (0..8).map(|slot| filter.blocks.slot(width, slot)).collect();
    assert_eq!(bodies, [0, 1, 4, 7, 5, 3, 0, 0]);
    assert_eq!(filter.blocks.run(width, 4), 5..6);
    assert_eq!(filter.blocks.first_gap(width, 1), 6);
}

#[test]
fn validation_finds_each_bit_that_is_wrong() {
    let width = super::width::Fixed::<8, _>(PlainBits);
    let mut whole = RankFilter::new(shape(300 << 8, 300, Counts::One, 270));
    let mut next = chance(5);
    while whole.add(next() % (300 << 8), 1).is_ok() {}
    whole.validate().unwrap();
    let damages: [&dyn Fn(&mut RankFilter); 5] = [
        &|filter| filter.blocks.set_offset(width, 2, 60),
        &|filter| {
            let head = filter.blocks.head(width, 1);
            filter.blocks.set_occupieds(width, 1, head.occupieds ^ 1 << 40);
        },
        &|filter| {
            let runends = filter.blocks.runends(width, 3);
            filter.blocks.set_runends(width, 3, runends ^ 1 << 7);
        },
        &|filter| {
            let run = (0..300).map(|quotient| filter.blocks.run(width, quotient));
            let run = run.max_by_key(|run| run.len()).unwrap();
            filter.blocks.set_slot(width, run.start, 255);
        },
        &|filter| {
            let gap = filter.blocks.first_gap(width, 0);
            filter.blocks.set_slot(width, gap, 1);
        },
    ];
    for damage in damages {
        let mut filter = whole.clone();
        damage(&mut filter);
        let error = filter.validate().unwrap_err();
        assert!(matches!(error, Error::FilterDamaged { .. }), "{error}");
    }
}

/// A map as a source.
struct List(Option<BTreeMap<u64, i64>>);

impl Source for List {
    fn next_batch(&mut self, out: &mut Vec<Entry>) -> nandex_store::Result<bool> {
        let Some(entries) = self.0.take() else { return Ok(false) };
        out.extend(
            entries
                .iter()
                .map(|(fingerprint, count)| Entry { fingerprint: *fingerprint, count: *count }),
        );
        Ok(true)
    }
}

#[test]
fn sources_that_are_not_in_order_or_too_much_are_refused_as_by_the_readable_one() {
    struct Raw(Vec<u64>);
    impl Source for Raw {
        fn next_batch(&mut self, out: &mut Vec<Entry>) -> nandex_store::Result<bool> {
            out.extend(self.0.iter().map(|&fingerprint| Entry { fingerprint, count: 1 }));
            Ok(!std::mem::take(&mut self.0).is_empty())
        }
    }
    let shape = shape(10_000, 100, Counts::One, 90);
    for list in
        [vec![5, 4], vec![7, 7], vec![9999, 10_000], (0..91).collect(), (9000..9100).collect()]
    {
        let fast = RankFilter::from_source(shape, &mut Raw(list.clone())).unwrap_err();
        let readable = QuotientFilter::from_source(shape, &mut Raw(list)).unwrap_err();
        assert_eq!(fast.to_string(), readable.to_string());
    }
}

#[test]
fn a_source_may_own_its_filter() {
    let mut filter = RankFilter::new(shape(1 << 30, 5000, Counts::One, 4000));
    let all: Vec<_> = (0..4000).map(|n| n * 200_003).collect();
    assert_eq!(filter.add_many(&all).unwrap(), 4000);
    assert!(filter.is_full() && matches!(filter.add(1, 1), Err(Error::FilterFull { .. })));
    let source = RankSource::new(Arc::new(filter));
    let found: Vec<_> = std::thread::spawn(|| drain(source)).join().unwrap();
    assert!(found.iter().map(|entry| entry.fingerprint).eq(all));
}

#[test]
fn it_takes_two_and_a_quarter_bits_more_than_remainders() {
    let filter = RankFilter::new(shape(1 << 28, 1 << 20, Counts::One, 1 << 20));
    let slots = filter.shape().slots() as f64;
    let bits = (filter.ram_bytes() * 8) as f64 / slots;
    assert!(bits < 8.0 + 2.251 + 2000.0 / slots, "{bits}");
}

#[test]
fn false_positives_are_as_many_as_fingerprints_are_taken() {
    let universe = Universe::for_rate(100_000, 0.0039).unwrap();
    let shape = Shape::for_entries(universe, 100_000, 0.94, Counts::One).unwrap();
    let mut filter = RankFilter::new(shape);
    let mut next = chance(1);
    let keys: Vec<_> = (0..100_000).map(|_| universe.of(next())).collect();
    assert_eq!(filter.add_many(&keys).unwrap(), keys.len());
    assert!(keys.iter().all(|key| filter.count(*key) > 0));
    let wrong = (0..1_000_000).filter(|_| filter.count(universe.of(next())) > 0).count();
    // 3892 expected, since some keys share a fingerprint; five times the spread of 62 to either side.
    assert!((3580..4205).contains(&wrong), "{wrong}");
}
