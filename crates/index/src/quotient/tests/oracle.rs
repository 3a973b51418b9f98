//! An exact oracle: a map of counts, and a filter that is compared with it.

use std::collections::BTreeMap;

use nandex_store::fingerprint::Universe;
use nandex_store::run::{Entry, Source};
use proptest::prelude::*;

use super::super::*;
use crate::Error;

/// A count for each fingerprint, and the slots and outliers that a filter of them needs.
#[derive(Clone, Debug)]
pub struct Oracle {
    counts: Counts,
    pub map: BTreeMap<u64, i64>,
    pub slots: u64,
    pub outliers: u64,
}

impl Oracle {
    pub fn new(counts: Counts) -> Self {
        Self { counts, map: BTreeMap::new(), slots: 0, outliers: 0 }
    }

    pub fn add(&mut self, fingerprint: u64, amount: i64) {
        let before = self.count(fingerprint);
        let after = before + amount;
        self.map.insert(fingerprint, after);
        if after == 0 {
            self.map.remove(&fingerprint);
        }
        let [before, after] = [before, after].map(|count| StoredCount::of(self.counts, count));
        self.slots = self.slots + after.slots as u64 - before.slots as u64;
        self.outliers =
            self.outliers + u64::from(after.outlier != 0) - u64::from(before.outlier != 0);
    }

    pub fn count(&self, fingerprint: u64) -> i64 {
        self.map.get(&fingerprint).copied().unwrap_or_default()
    }

    pub fn entries(&self) -> Vec<Entry> {
        let entry =
            |(fingerprint, count): (&u64, &i64)| Entry { fingerprint: *fingerprint, count: *count };
        self.map.iter().map(entry).collect()
    }

    /// The slot after the last one in use.
    fn end(&self, shape: &Shape) -> u64 {
        self.map.iter().fold(0, |end, (fingerprint, count)| {
            let slots = StoredCount::of(self.counts, *count).slots as u64;
            end.max(shape.split().quotient(*fingerprint)) + slots
        })
    }

    /// Returns whether everything fits a filter of this shape.
    pub fn fits(&self, shape: &Shape) -> bool {
        self.slots <= shape.entries_max()
            && self.outliers <= shape.outliers_max()
            && self.end(shape) <= shape.slots()
    }

    /// Returns whether a filter correctly rejected this update with this error.
    fn refuses(&self, shape: &Shape, fingerprint: u64, amount: i64, error: &Error) -> bool {
        let sum = self.count(fingerprint).checked_add(amount).filter(|sum| *sum != i64::MIN);
        match error {
            Error::CountRange { .. } => sum.is_none(),
            Error::NotThere { .. } => self.counts == Counts::One && sum.is_some_and(|sum| sum < 0),
            Error::FilterFull { .. } => {
                let mut after = self.clone();
                after.add(fingerprint, amount);
                let more = (after.slots > self.slots, after.outliers > self.outliers);
                more.0 && after.slots > shape.entries_max()
                    || more.1 && after.outliers > shape.outliers_max()
                    || more.0 && after.end(shape) > shape.slots()
            }
            _ => false,
        }
    }
}

/// A filter and its oracle.
#[derive(Clone, Debug)]
pub struct Checked {
    pub filter: QuotientFilter,
    pub oracle: Oracle,
}

impl Checked {
    pub fn new(shape: Shape) -> Self {
        Self { filter: QuotientFilter::new(shape), oracle: Oracle::new(shape.counts()) }
    }

    /// Adds to both; the filter must reject exactly what the oracle rejects. Returns whether the fingerprint is then
    /// present.
    pub fn add(&mut self, fingerprint: u64, amount: i64) -> bool {
        match self.filter.add(fingerprint, amount) {
            Ok(()) => self.oracle.add(fingerprint, amount),
            Err(error) => {
                let shape = self.filter.shape();
                let is_right = self.oracle.refuses(&shape, fingerprint, amount, &error);
                assert!(is_right, "{fingerprint} {amount}: {error}");
            }
        }
        let count = self.oracle.count(fingerprint);
        assert_eq!(self.filter.count(fingerprint), count, "{fingerprint} after adding {amount}");
        count != 0
    }

    /// Checks that the filter is valid and has the oracle's entries, by every method that reports them.
    pub fn assert_same(&self) {
        let Self { filter, oracle } = self;
        filter.check().unwrap();
        let (shape, entries) = (filter.shape(), oracle.entries());
        assert_eq!(filter.iter().collect::<Vec<_>>(), entries);
        assert_eq!(drain(&mut filter.source()), entries);
        assert_eq!(
            (filter.entries(), filter.outliers().len() as u64),
            (oracle.slots, oracle.outliers)
        );
        let is_full =
            oracle.slots >= shape.entries_max() || oracle.outliers >= shape.outliers_max();
        assert_eq!(filter.is_full(), is_full);
        let fingerprints: Vec<_> = oracle.map.keys().copied().collect();
        let mut counts = Vec::new();
        filter.count_many(&fingerprints, &mut counts);
        assert!(oracle.map.values().copied().eq(counts));
        let again = QuotientFilter::from_source(shape, &mut List(entries)).unwrap();
        assert!(again == *filter, "built in order or not, it is the same bit for bit");
    }
}

/// Entries in one batch.
pub struct List(pub Vec<Entry>);

impl Source for List {
    fn next_batch(&mut self, out: &mut Vec<Entry>) -> nandex_store::Result<bool> {
        out.append(&mut self.0);
        Ok(!out.is_empty())
    }
}

/// All entries of a source.
pub fn drain(source: &mut dyn Source) -> Vec<Entry> {
    let mut all = Vec::new();
    while source.next_batch(&mut all).unwrap() {}
    all
}

pub fn shape(size: u64, quotients: u64, counts: Counts, entries: u64) -> Shape {
    Shape::new(Universe::new(size).unwrap(), quotients, counts, entries).unwrap()
}

/// Returns a sequence of pseudo-random numbers.
pub fn random(seed: u64) -> impl FnMut() -> u64 {
    let mut state = seed;
    move || {
        state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        nandex_store::hash::mix(state)
    }
}

fn counts() -> impl Strategy<Value = Counts> {
    prop_oneof![
        2 => Just(Counts::One),
        2 => Just(Counts::Signed),
        1 => Just(Counts::Small(2)),
        1 => (2..=16_u32).prop_map(Counts::Small),
    ]
}

/// Universes from 2 to large ones, round and not, over few quotients and as many as possible.
pub fn small_shape() -> impl Strategy<Value = Shape> {
    let size = prop_oneof![2..300u64, (1..9u32).prop_map(|bits| 1u64 << bits), 300..1u64 << 38];
    let quotients = prop_oneof![1..8u64, 1..80u64];
    (size, quotients, counts(), 1..100u64)
        .prop_map(|(size, quotients, counts, entries)| shape(size, quotients, counts, entries))
}

/// Slots of 8, 9, 10 and 16 bits, which have specialized code, and others; from one block to dozens.
pub fn shapes() -> impl Strategy<Value = Shape> {
    let share = prop_oneof![2..5_u64, 200..600_u64, Just(256_u64), Just(1 << 16), 1..1_u64 << 30];
    let quotients = prop_oneof![1..200_u64, 1..3000_u64];
    let wide =
        (quotients, share, counts(), 0.1..1.2_f64).prop_map(|(quotients, share, counts, fill)| {
            shape(quotients * share + share, quotients, counts, (quotients as f64 * fill) as u64)
        });
    prop_oneof![1 => small_shape(), 2 => wide]
}

/// Updates: places in the universe, few enough that updates meet, and amounts.
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

/// A filter after these updates.
pub fn updated(shape: Shape, updates: &[(u64, i64)]) -> Checked {
    let mut checked = Checked::new(shape);
    let universe = shape.split().universe();
    for (place, amount) in updates {
        checked.add(universe.of(*place), *amount);
    }
    checked
}
