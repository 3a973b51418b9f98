//! Laws of probability and cost: rates of false positives, the distance to a free slot, and behaviour at limits.

use nandex_device::PlainBits;
use nandex_store::hash::mix;

use super::super::width::Any;
use super::super::*;
use super::oracle::shape;
use crate::Error;

/// A filter of the hashes of the first `keys` numbers.
fn filled(shape: Shape, keys: u64) -> QuotientFilter {
    let mut filter = QuotientFilter::new(shape);
    let universe = shape.split().universe();
    (0..keys).for_each(|key| filter.add(universe.of(mix(key)), 1).unwrap());
    filter
}

#[test]
fn false_positives_come_at_the_rate_of_the_universe_and_false_negatives_never() {
    let keys = 47_000;
    for (size, quotients) in [(keys * 256, 50_000), (keys * 100 + 7, 1 << 16), (keys * 9, 90_001)] {
        let filter = filled(shape(size, quotients, Counts::One, keys), keys);
        let universe = filter.shape().split().universe();
        let contains = |key: u64| filter.count(universe.of(mix(key))) > 0;
        assert!((0..keys).all(contains), "no false negative");
        let trials = 400_000u64;
        let found = (0..trials).filter(|key| contains(key + (1 << 40))).count() as f64;
        let rate = 1.0 - (-(keys as f64) / size as f64).exp();
        let expected = rate * trials as f64;
        let sigma = (expected * (1.0 - rate)).sqrt();
        // The filter's own fingerprints are random too: their number also varies.
        let spread = 5.0 * sigma + 5.0 * expected / (keys as f64).sqrt();
        assert!((found - expected).abs() < spread, "{found} of {trials}, expected {expected}");
        assert!(universe.rate(filter.entries()) >= rate, "what stats say is an upper bound");
    }
}

#[test]
fn deletes_of_present_keys_never_hide_another() {
    let keys = 20_000;
    // Every second key shares its fingerprint with another: the case that is hard for deletes.
    for counts in [Counts::One, Counts::Signed, Counts::Small(4)] {
        let mut filter = filled(shape(keys, 10_000, counts, 9_500), 9_000);
        let universe = filter.shape().split().universe();
        for key in (0..9_000).filter(|key| key % 3 == 0) {
            filter.add(universe.of(mix(key)), -1).unwrap();
        }
        filter.check().unwrap();
        let rest = (0..9_000).filter(|key| key % 3 != 0);
        assert!(rest.clone().all(|key| filter.count(universe.of(mix(key))) > 0));
        rest.for_each(|key| filter.add(universe.of(mix(key)), -1).unwrap());
        assert!(filter == QuotientFilter::new(filter.shape()), "{counts:?}");
    }
}

#[test]
fn a_free_slot_is_as_near_as_the_page_says() {
    let quotients = 1u64 << 18;
    for fill in [0.5f64, 0.75, 0.9, 0.94] {
        let keys = (quotients as f64 * fill) as u64;
        let filter = filled(shape(quotients << 8, quotients, Counts::One, keys), keys);
        let width = Any(PlainBits, filter.shape().slot_bits() as usize);
        let free = |quotient| filter.blocks.first_gap(width, quotient) - quotient;
        let total: usize = (0..quotients as usize).map(free).sum();
        let (mean, expected) = (total as f64 / quotients as f64, 0.5 / (1.0 - fill).powi(2) - 0.5);
        assert!((0.7..1.3).contains(&(mean / expected)), "{mean} slots at {fill}");
    }
}

#[test]
fn a_filter_takes_as_many_as_it_says_and_refuses_the_next_one() {
    for counts in [Counts::One, Counts::Signed, Counts::Small(3)] {
        for quotients in [1, 2, 3, 64, 1000] {
            let shape = shape(1 << 30, quotients, counts, u64::MAX);
            let mut filter = filled(shape, shape.entries_max());
            assert!(filter.is_full() && filter.entries() == shape.entries_max());
            let fresh = (0..1u64 << 30).find(|at| filter.count(*at) == 0).unwrap();
            let before = filter.clone();
            let error = filter.add(fresh, 1).unwrap_err();
            assert!(matches!(error, Error::FilterFull { .. }), "{error}");
            assert!(error.to_string().contains("more quotients"), "{error}");
            assert!(filter == before);
            let present = filter.iter().next().unwrap();
            filter.add(present.fingerprint, -present.count).unwrap();
            filter.add(fresh, 1).unwrap();
            filter.check().unwrap();
            filter.clear();
            assert!(filter == QuotientFilter::new(shape));
        }
    }
}

#[test]
fn what_overflows_the_last_quotient_goes_after_it_until_no_slot_is_free() {
    let shape = shape(1 << 40, 300, Counts::One, 285);
    let free = shape.slots() - 299;
    let mut filter = QuotientFilter::new(shape);
    (0..free).for_each(|n| filter.add((1 << 40) - 1 - n * 1000, 1).unwrap());
    filter.check().unwrap();
    assert!(filter.entries() == free && !filter.is_full());
    let before = filter.clone();
    let error = filter.add((1 << 40) - 5, 1).unwrap_err().to_string();
    assert!(error.contains("hash keys with a secret"), "{error}");
    assert!(filter == before);
    filter.add(5, 1).unwrap();
    let grown = filter.resized(3000).unwrap();
    assert!(grown.iter().eq(filter.iter()));
    grown.check().unwrap();
}

#[test]
fn a_hot_fingerprint_takes_few_slots_and_outliers_have_a_limit() {
    let mut filter = QuotientFilter::new(shape(1 << 20, 1000, Counts::One, 900));
    (0..5000).for_each(|_| filter.add(77, 1).unwrap());
    assert_eq!((filter.entries(), filter.count(77)), (REPEATS_MAX as u64, 5000));
    (0..4999).for_each(|_| filter.add(77, -1).unwrap());
    assert_eq!((filter.entries(), filter.count(77), filter.outliers().len()), (1, 1, 0));
    let mut filter = QuotientFilter::new(shape(1 << 20, 1000, Counts::Small(2), 900));
    let limit = filter.shape().outliers_max();
    (0..limit).for_each(|at| filter.add(at * 100, 9).unwrap());
    assert!(filter.is_full());
    let before = filter.clone();
    let error = filter.add(5, 9).unwrap_err().to_string();
    assert!(error.contains("more bits for counts"), "{error}");
    assert!(filter == before);
    filter.add(5, 2).unwrap();
    filter.add(100, 1).unwrap();
    filter.add(100, -9).unwrap();
    filter.add(5, 7).unwrap();
    filter.check().unwrap();
}

#[test]
#[should_panic(expected = "fingerprint 64 of 64")]
fn a_fingerprint_of_another_universe_is_a_mistake() {
    let _ = QuotientFilter::new(shape(64, 8, Counts::One, 7)).count(64);
}

#[test]
fn it_takes_two_and_a_quarter_bits_more_than_remainders() {
    let filter = QuotientFilter::new(shape(1 << 28, 1 << 20, Counts::One, 1 << 20));
    let slots = filter.shape().slots() as f64;
    let bits = (filter.ram_bytes() * 8) as f64 / slots;
    assert!(bits < 8.0 + 2.251 + 2000.0 / slots, "{bits}");
}
