//! Random updates on filters of many shapes, compared with a map of counts after each.

use std::collections::BTreeMap;

use nandex_store::fingerprint::Universe;
use nandex_store::run::{Entry, Source};
use proptest::prelude::*;

use super::super::check::check;
use super::super::*;
use crate::Error;

/// What cannot be wrong: a count for each fingerprint.
#[derive(Clone, Default, Debug)]
pub struct Oracle(pub BTreeMap<u64, i64>);

impl Oracle {
    pub fn add(&mut self, fingerprint: u64, count: i64) {
        let sum = self.0.remove(&fingerprint).unwrap_or_default() + count;
        if sum != 0 {
            self.0.insert(fingerprint, sum);
        }
    }

    pub fn count(&self, fingerprint: u64) -> i64 {
        self.0.get(&fingerprint).copied().unwrap_or_default()
    }

    pub fn entries(&self) -> Vec<Entry> {
        self.0.iter().map(|(&fingerprint, &count)| Entry { fingerprint, count }).collect()
    }

    /// Slots and outliers that a filter needs for all this.
    pub fn needs(&self, counts: Counts) -> (u64, usize) {
        let held: Vec<_> = self.0.values().map(|&count| Held::of(counts, count)).collect();
        let slots = held.iter().map(|held| held.slots as u64).sum();
        (slots, held.iter().filter(|held| held.beside != 0).count())
    }
}

/// One that has everything the filter has, as proven by all its ways to say so.
pub fn assert_same(filter: &QuotientFilter, oracle: &Oracle) {
    check(filter).unwrap();
    assert_eq!(filter.iter().collect::<Vec<_>>(), oracle.entries());
    let (slots, outliers) = oracle.needs(filter.shape().counts());
    assert_eq!((filter.entries(), filter.outliers().len()), (slots, outliers));
    for &fingerprint in oracle.0.keys() {
        assert_eq!(filter.count(fingerprint), oracle.count(fingerprint));
    }
}

pub fn counts() -> impl Strategy<Value = Counts> {
    prop_oneof![
        Just(Counts::One),
        Just(Counts::Signed),
        (2..=16u32).prop_map(Counts::Small),
        Just(Counts::Small(2)),
    ]
}

/// Universes from 2 to many, round and not, over few quotients and as many as there may be.
pub fn shape() -> impl Strategy<Value = Shape> {
    let size = prop_oneof![2..300u64, (1..9u32).prop_map(|bits| 1u64 << bits), 300..1u64 << 38];
    let quotients = prop_oneof![1..8u64, 1..80u64];
    (size, quotients, counts(), 1..100u64)
        .prop_map(|(size, quotients, counts, entries)| {
            Shape::new(Universe::new(size).unwrap(), quotients, counts, entries).unwrap()
        })
        .boxed()
}

/// Updates: fingerprints by a fraction of the universe, drawn to few places so that they meet.
pub fn updates() -> impl Strategy<Value = Vec<(u64, i64)>> {
    let place = prop_oneof![
        any::<u64>(),
        (0..12u64).prop_map(|n| n << 60),
        (0..9u64).prop_map(|n| u64::MAX - (n << 55)),
    ];
    let amount = prop_oneof![
        6 => Just(1i64),
        4 => Just(-1i64),
        2 => -12..12i64,
        1 => any::<i64>().prop_map(|n| n >> 12),
    ];
    prop::collection::vec((place, amount), 0..150)
}

/// Does the oracle say that this update is refused, and with which error?
fn refused(
    filter: &QuotientFilter,
    oracle: &Oracle,
    fingerprint: u64,
    amount: i64,
) -> Option<&'static str> {
    let shape = filter.shape();
    let old = oracle.count(fingerprint);
    if shape.counts() == Counts::One && old + amount < 0 {
        return Some("NotThere");
    }
    let mut after = oracle.clone();
    after.add(fingerprint, amount);
    let (now, then) = (oracle.needs(shape.counts()), after.needs(shape.counts()));
    let too_many = then.0 > now.0 && then.0 > shape.entries_max();
    let outlying = then.1 > now.1 && then.1 as u64 > shape.outliers_max();
    (too_many || outlying).then_some("FilterFull")
}

/// Makes updates on both; gives the oracle.
pub fn play(filter: &mut QuotientFilter, updates: &[(u64, i64)]) -> Oracle {
    let universe = filter.shape().split().universe();
    let mut oracle = Oracle::default();
    for &(place, amount) in updates {
        let fingerprint = universe.of(place);
        let expected = refused(filter, &oracle, fingerprint, amount);
        let before = expected.map(|_| filter.clone());
        let found = filter.add(fingerprint, amount);
        match (&found, expected) {
            (Ok(()), None) => oracle.add(fingerprint, amount),
            (Err(Error::NotThere { .. }), Some("NotThere")) => {
                assert_eq!(Some(&*filter), before.as_ref())
            }
            (Err(Error::FilterFull { .. }), Some("FilterFull")) => {
                assert_eq!(Some(&*filter), before.as_ref(), "a refused update changes nothing");
            }
            _ => panic!("{found:?}, expected {expected:?}"),
        }
        check(filter).unwrap();
        assert_eq!(filter.count(fingerprint), oracle.count(fingerprint));
        assert_eq!(filter.contains_fingerprint(fingerprint), oracle.count(fingerprint) > 0);
    }
    assert_same(filter, &oracle);
    oracle
}

/// All that a source gives.
pub fn drain(mut source: impl Source) -> Vec<Entry> {
    let mut all = Vec::new();
    while source.next_batch(&mut all).unwrap() {}
    all
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, ..ProptestConfig::default() })]

    #[test]
    fn a_filter_counts_as_a_map_does(shape in shape(), updates in updates()) {
        let mut filter = QuotientFilter::new(shape);
        let oracle = play(&mut filter, &updates);
        prop_assert_eq!(drain(filter.source()), oracle.entries());
        let again = QuotientFilter::from_source(shape, &mut filter.source()).unwrap();
        prop_assert_eq!(&again, &filter, "built in order or not, it is the same bit for bit");
    }

    #[test]
    fn taking_everything_out_again_leaves_an_empty_filter(shape in shape(), updates in updates()) {
        let mut filter = QuotientFilter::new(shape);
        let oracle = play(&mut filter, &updates);
        for (&fingerprint, &count) in oracle.0.iter().rev() {
            filter.add(fingerprint, -count).unwrap();
            check(&filter).unwrap();
        }
        prop_assert_eq!(filter, QuotientFilter::new(shape));
    }

    #[test]
    fn a_filter_of_another_size_has_the_same_entries(
        shape in shape(), updates in updates(), quotients in 1..200u64,
    ) {
        let mut filter = QuotientFilter::new(shape);
        let oracle = play(&mut filter, &updates);
        match filter.resized(quotients) {
            Ok(other) => assert_same(&other, &oracle),
            Err(Error::FilterFull { .. }) => {
                let other = shape.resized(quotients).unwrap();
                let (slots, outliers) = oracle.needs(shape.counts());
                let full = slots > other.entries_max() || outliers as u64 > other.outliers_max();
                prop_assert!(full, "{slots} slots in {other:?}");
            }
            Err(error) => prop_assert!(false, "{error}"),
        }
    }

    #[test]
    fn merging_adds_up_what_all_have(
        shape in shape(),
        parts in prop::collection::vec(updates(), 0..6),
        sizes in prop::collection::vec(1..80u64, 6),
    ) {
        let mut filters = Vec::new();
        let mut sum = Oracle::default();
        for (updates, quotients) in parts.iter().zip(sizes) {
            let mut filter = QuotientFilter::new(shape.resized(quotients).unwrap());
            let oracle = play(&mut filter, updates);
            oracle.0.iter().for_each(|(fingerprint, count)| sum.add(*fingerprint, *count));
            filters.push(filter);
        }
        let boxed = |filter| Box::new(QuotientFilter::source(filter)) as Box<dyn Source>;
        let merge = Merge::new(filters.iter().map(boxed).collect()).unwrap();
        prop_assert_eq!(drain(merge), sum.entries());
        let (slots, outliers) = sum.needs(shape.counts());
        let wide = Shape::new(shape.split().universe(), 500, shape.counts(), 500).unwrap();
        match QuotientFilter::merged(wide, &filters.iter().collect::<Vec<_>>()) {
            Ok(merged) => assert_same(&merged, &sum),
            Err(error) => {
                let full = slots > wide.entries_max() || outliers as u64 > wide.outliers_max();
                prop_assert!(full, "{error}");
            }
        }
    }
}
