//! Bounds and guarantees, compared with an exact map.

use std::collections::BTreeMap;

use nandex_store::hash::{HashKind, mix};
use proptest::prelude::*;

use super::*;

const HASHER: KeyHasher = KeyHasher::new(HashKind::Xxh3, 7);

fn estimate(capacity: usize) -> TopEstimate {
    TopEstimate::new(EstimateConfig { capacity, key_bytes_max: 8 }, HASHER).unwrap()
}

/// An estimate, and its expected contents.
struct Checked {
    estimate: TopEstimate,
    counts: BTreeMap<Vec<u8>, i64>,
    added: i64,
}

impl Checked {
    fn new(capacity: usize) -> Self {
        Self { estimate: estimate(capacity), counts: BTreeMap::new(), added: 0 }
    }

    fn add(&mut self, key: u64, amount: i64) {
        let key = key.to_be_bytes();
        self.estimate.add_many(&[(&key, amount)]).unwrap();
        *self.counts.entry(key.to_vec()).or_default() += amount;
        self.added += amount.max(0);
    }

    fn remove(&mut self, key: u64) {
        self.estimate.remove(&key.to_be_bytes());
        self.counts.insert(key.to_be_bytes().to_vec(), 0);
    }

    fn capacity(&self) -> i64 {
        self.estimate.config.capacity as i64
    }

    /// Checks that all bounds hold, and that every key that must be followed is.
    fn check(&self) {
        let (estimate, counters) = (&self.estimate, self.estimate.config.counters());
        let followed: BTreeMap<_, _> = estimate.counters.iter().collect();
        for (key, count) in &self.counts {
            let KeyBounds { lower, upper } = estimate.bounds(key).unwrap();
            assert!((lower..=upper).contains(count), "{key:?}: {lower}..={upper} has no {count}");
            let must_be_there = count.saturating_mul(self.capacity()) > self.added;
            assert!(!must_be_there || followed.contains_key(&key[..]), "{key:?} with {count}");
        }
        assert!(estimate.others().upper * self.capacity() <= self.added);
        assert!(estimate.others().lower <= 0 && estimate.followed() <= counters);
        assert_eq!(estimate.added(), self.added);
        [1, 5, counters + 1].iter().for_each(|count| self.check_top(*count));
    }

    fn check_top(&self, count: usize) {
        let top = self.estimate.top(count);
        let listed: BTreeMap<_, _> = top.iter().map(|it| (&it.key[..], it.bounds)).collect();
        assert!(listed.len() == top.len() && top.len() <= count);
        let outside = self.counts.iter().filter(|(key, _)| !listed.contains_key(&key[..]));
        let greatest = outside.map(|(_, count)| *count).max().unwrap_or(0);
        for it in &top {
            let count = self.counts[&it.key];
            assert!(!it.is_certain || count >= greatest, "{it:?}: {count}, outside {greatest}");
        }
        let last = top.last().filter(|_| top.len() == count);
        let last = last.map_or(self.estimate.others().upper, |it| it.bounds.upper);
        assert!(greatest <= last.max(self.estimate.others().upper), "{greatest} above {last}");
    }
}

/// Returns a number below `limit`, small ones far more often.
fn skewed(random: u64, limit: u64) -> u64 {
    let bits = random % (64 - u64::from(limit.leading_zeros()));
    (random >> 8) % limit.min(1 << bits.max(1))
}

#[test]
fn additions_of_a_skewed_stream_have_their_greatest_keys_for_sure() {
    let mut checked = Checked::new(300);
    for number in 0..200_000_u64 {
        checked.add(skewed(mix(number), 100_000), 1);
    }
    checked.check();
    let top = checked.estimate.top(10);
    assert!(top.iter().all(|it| it.is_certain), "{top:?}");
    // Frequent keys come early, when little can have been missed.
    assert!(top.iter().all(|it| it.bounds.upper - it.bounds.lower <= 3), "{top:?}");
    assert!(top[0].bounds.lower > 1000 && checked.estimate.others().upper > 100);
}

#[test]
fn a_stream_of_different_keys_has_bounds_of_its_share() {
    let mut checked = Checked::new(300);
    for number in 0..50_000 {
        checked.add(number, 1);
    }
    checked.check();
    // Each pass frees all of the 400 counters, and so raises the bound by 1.
    assert_eq!(checked.estimate.others(), KeyBounds { lower: 0, upper: 124 });
    assert!(checked.estimate.top(5).iter().all(|it| !it.is_certain));
}

#[test]
fn what_is_subtracted_from_a_key_that_is_not_followed_lowers_the_bound_of_all_these() {
    let mut estimate = estimate(1);
    estimate.add_many(&[(b"a", 5), (b"b", 3), (b"c", 1), (b"d", -2)]).unwrap();
    assert_eq!(estimate.others(), KeyBounds { lower: -2, upper: 5 });
    assert_eq!(estimate.bounds(b"a"), Some(estimate.others()));
    assert_eq!(estimate.bounds(b"c"), Some(KeyBounds { lower: 1, upper: 6 }));
    estimate.add(b"c", -7).unwrap();
    assert_eq!(estimate.top(3), []);
    estimate.remove(b"c");
    assert_eq!((estimate.followed(), estimate.bounds(b"c")), (0, Some(estimate.others())));
}

#[test]
fn what_it_cannot_take_is_refused_or_counted() {
    for (capacity, key_bytes_max, field) in
        [(0, 8, "capacity"), (usize::MAX, 8, "capacity"), (1, 0, "key_"), (1, 4097, "key_")]
    {
        let config = EstimateConfig { capacity, key_bytes_max };
        let error = TopEstimate::new(config, HASHER).unwrap_err().to_string();
        assert!(error.starts_with(field), "{error}");
    }
    let mut estimate = estimate(4);
    estimate.add_many(&[(b"more than 8", 5), (b"a", i64::MAX), (b"b", -i64::MAX)]).unwrap();
    assert_eq!((estimate.too_long(), estimate.bounds(b"more than 8")), (1, None));
    for (key, amount) in [(b"a", 1), (b"b", -1), (b"c", i64::MIN)] {
        let error = estimate.add(key, amount).unwrap_err();
        assert!(matches!(error, Error::CountRange { .. }), "{error}");
    }
    assert_eq!(estimate.bounds(b"a"), Some(KeyBounds { lower: i64::MAX, upper: i64::MAX }));
}

#[test]
fn its_ram_is_what_it_says() {
    let mut estimate = estimate(1000);
    for number in 0..10_000_u64 {
        estimate.add(&number.to_be_bytes(), 1).unwrap();
    }
    // Bounds, hash and length, key, two to four slots of the index, and an upper bound.
    assert_eq!(estimate.config().counters(), 1334);
    assert_eq!(estimate.ram_bytes(), 1334 * (24 + 8 + 8) + 4096 * 4);
}

/// An operation on a key.
#[derive(Clone, Copy, Debug)]
enum Act {
    Add(u64, i64),
    Remove(u64),
}

fn acts(keys: u64) -> impl Strategy<Value = Vec<Act>> {
    let key = move || any::<u64>().prop_map(move |random| skewed(random, keys));
    let act = prop_oneof![
        8 => key().prop_map(|key| Act::Add(key, 1)),
        4 => (key(), 1..1000_i64).prop_map(|(key, amount)| Act::Add(key, amount)),
        2 => (key(), -50..1_i64).prop_map(|(key, amount)| Act::Add(key, amount)),
        1 => key().prop_map(Act::Remove),
    ];
    prop::collection::vec(act, 0..600)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, ..ProptestConfig::default() })]

    #[test]
    fn bounds_hold_whatever_is_added_subtracted_and_removed(
        capacity in 1..40_usize, acts in (1..300_u64).prop_flat_map(acts),
    ) {
        let mut checked = Checked::new(capacity);
        for (number, act) in acts.iter().enumerate() {
            match *act {
                Act::Add(key, amount) => checked.add(key, amount),
                Act::Remove(key) => checked.remove(key),
            }
            if number % 50 == 49 {
                checked.check();
            }
        }
        checked.check();
    }
}
