//! Saved filters: they decode to the same filters, and decoding fails if any bit is wrong.

use nandex_store::bytes::checksum;
use nandex_store::fingerprint::Universe;
use proptest::prelude::*;

use super::super::*;
use super::oracle::{Checked, small_shape, updated, updates};

/// Returns the bytes with a valid checksum.
fn sealed(mut bytes: Vec<u8>) -> Vec<u8> {
    let sum = checksum(&bytes[4..]);
    bytes[..4].copy_from_slice(&sum.to_le_bytes());
    bytes
}

/// Checks that bytes with a valid checksum are rejected, or are a filter that updates could have made.
fn assert_refused_or_a_filter(bytes: &[u8]) {
    let Ok(filter) = QuotientFilter::decode(bytes) else { return };
    assert_eq!(filter.encode(), bytes);
    let mut again = QuotientFilter::new(filter.shape());
    for entry in filter.iter() {
        assert_eq!(filter.count(entry.fingerprint), entry.count);
        again.add(entry.fingerprint, entry.count).unwrap();
    }
    assert!(again == filter);
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, ..ProptestConfig::default() })]

    #[test]
    fn a_filter_is_read_back_bit_for_bit(
        shape in small_shape(), updates in updates(),
        bits in prop::collection::vec(any::<prop::sample::Index>(), 1..4),
    ) {
        let Checked { filter, .. } = updated(shape, &updates);
        let mut bytes = filter.encode();
        prop_assert!(QuotientFilter::decode(&bytes).unwrap() == filter);
        for bit in bits {
            let at = bit.index(bytes.len() * 8);
            bytes[at / 8] ^= 1 << (at % 8);
        }
        assert_refused_or_a_filter(&sealed(bytes));
    }
}

fn example() -> QuotientFilter {
    let universe = Universe::new(64).unwrap();
    let mut filter = QuotientFilter::new(Shape::new(universe, 8, Counts::Small(2), 7).unwrap());
    for (fingerprint, count) in [(0o14, 1), (0o43, 2), (0o11, -1), (0o25, 300)] {
        filter.add(fingerprint, count).unwrap();
    }
    filter
}

#[test]
fn every_flipped_bit_is_noticed_and_so_is_every_missing_or_added_byte() {
    let bytes = example().encode();
    for bit in 0..bytes.len() * 8 {
        let mut bad = bytes.clone();
        bad[bit / 8] ^= 1 << (bit % 8);
        assert!(QuotientFilter::decode(&bad).is_err(), "bit {bit}");
    }
    for length in 0..bytes.len() {
        assert!(QuotientFilter::decode(&bytes[..length]).is_err(), "{length} bytes");
    }
    assert!(QuotientFilter::decode(&[&bytes[..], &[0]].concat()).is_err());
    let huge = [u64::MAX, 1 << 61].map(u64::to_le_bytes);
    for (at, size) in [16, 24, 32, 40, 48].into_iter().flat_map(|at| huge.map(|size| (at, size))) {
        let mut bad = bytes.clone();
        bad[at..at + 8].copy_from_slice(&size);
        let error = QuotientFilter::decode(&sealed(bad)).unwrap_err();
        assert!(!error.to_string().is_empty(), "nothing is allocated by a damaged size");
    }
}

#[test]
fn a_filter_with_a_wrong_bit_and_a_right_checksum_is_refused_or_another_filter() {
    let bytes = example().encode();
    let (block_bytes, head_bytes) = (18 + 5 * 8, 18);
    for bit in 16 * 8..bytes.len() * 8 {
        let mut bad = bytes.clone();
        bad[bit / 8] ^= 1 << (bit % 8);
        let bad = sealed(bad);
        assert_refused_or_a_filter(&bad);
        let block = (bit / 8).checked_sub(56).filter(|at| *at < 2 * block_bytes);
        if block.is_some_and(|at| at % block_bytes < head_bytes) {
            assert!(QuotientFilter::decode(&bad).is_err(), "bit {bit} of a block's head");
        }
    }
}

#[test]
fn the_bytes_are_what_the_format_says() {
    let hex: String = example().encode().iter().map(|byte| format!("{byte:02x}")).collect();
    let page = include_str!("../../../../../docs/reference/format.md");
    let vector = page.split("Test vector of a quotient filter").nth(1).expect("the page has one");
    let vector = vector.split("```").nth(1).unwrap().trim_start_matches("text");
    let vector: String = vector.split_whitespace().collect();
    assert_eq!(vector, hex);
}
