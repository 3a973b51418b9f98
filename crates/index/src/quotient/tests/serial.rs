//! Filters as bytes: read back the same, and refused when any bit is another one.

use nandex_store::bytes::checksum;
use nandex_store::fingerprint::Universe;
use proptest::prelude::*;

use super::super::*;
use super::oracle::{play, shape, updates};

/// The bytes with the checksum they should have.
fn sealed(mut bytes: Vec<u8>) -> Vec<u8> {
    let sum = checksum(&bytes[4..]);
    bytes[..4].copy_from_slice(&sum.to_le_bytes());
    bytes
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, ..ProptestConfig::default() })]

    #[test]
    fn a_filter_is_read_back_bit_for_bit(shape in shape(), updates in updates()) {
        let mut filter = QuotientFilter::new(shape);
        play(&mut filter, &updates);
        let bytes = filter.encode();
        let again = QuotientFilter::decode(&bytes).unwrap();
        prop_assert_eq!(again.encode(), bytes);
        prop_assert_eq!(again, filter);
    }

    #[test]
    fn bytes_with_a_right_checksum_are_refused_or_are_a_filter(
        shape in shape(), updates in updates(), bits in prop::collection::vec(any::<prop::sample::Index>(), 1..4),
    ) {
        let mut filter = QuotientFilter::new(shape);
        play(&mut filter, &updates);
        let mut bytes = filter.encode();
        for bit in bits {
            let at = bit.index(bytes.len() * 8);
            bytes[at / 8] ^= 1 << (at % 8);
        }
        let bytes = sealed(bytes);
        if let Ok(other) = QuotientFilter::decode(&bytes) {
            prop_assert_eq!(other.encode(), bytes);
            let mut out = QuotientFilter::new(other.shape());
            for entry in other.iter() {
                prop_assert_eq!(other.count(entry.fingerprint), entry.count);
                out.add(entry.fingerprint, entry.count).unwrap();
            }
            prop_assert_eq!(out, other, "whatever was read could have been added");
        }
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
fn the_bytes_are_what_the_format_says() {
    let hex: String = example().encode().iter().map(|byte| format!("{byte:02x}")).collect();
    let page = include_str!("../../../../../docs/format.md");
    let vector = page.split("Test vector of a quotient filter").nth(1).expect("the page has one");
    let vector = vector.split("```").nth(1).unwrap().trim_start_matches("text");
    let vector: String = vector.split_whitespace().collect();
    assert_eq!(vector, hex);
}
