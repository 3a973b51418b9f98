//! A saved quotient filter from any bytes is refused or behaves as one: it is saved the same again, says of its
//! entries what it lists, takes updates, and fits into a filter of another size.
#![no_main]

use libfuzzer_sys::fuzz_target;
use nandex::quotient::{Counts, QuotientFilter, Shape};
use nandex_store::fingerprint::Universe;

/// Where slots begin.
const SLOTS: usize = 56;

/// A filter's bytes with a right checksum, mark and version before what the fuzzer chose.
fn sealed(data: &[u8]) -> Vec<u8> {
    let mut bytes = [&[0; 4], &b"ndxq\x01"[..], data].concat();
    let sum = crc32c::crc32c(&bytes[4..]);
    bytes[..4].copy_from_slice(&sum.to_le_bytes());
    bytes
}

/// Small sizes in front of the fuzzer's slots, and how many are in use, so that it need not guess these.
fn framed(counts: u8, quotients: u8, data: &[u8]) -> Option<Vec<u8>> {
    let quotients = u64::from(quotients % 32) + 1;
    let counts = [Counts::One, Counts::Signed, Counts::Small(2)][usize::from(counts) % 3];
    let universe = Universe::new(quotients * 8).ok()?;
    let shape = Shape::new(universe, quotients, counts, 32).ok()?;
    let mut bytes = QuotientFilter::new(shape).encode();
    let room = bytes.len() - SLOTS;
    bytes[SLOTS..].iter_mut().zip(data).for_each(|(byte, with)| *byte = *with);
    let outliers = data.get(room..).unwrap_or_default();
    bytes.extend(outliers);
    let entries = used(&bytes[SLOTS..], &shape);
    bytes[40..48].copy_from_slice(&entries.to_le_bytes());
    bytes[48..56].copy_from_slice(&(outliers.len() as u64 / 16).to_le_bytes());
    Some(sealed(&bytes[9..]))
}

/// The slots with any of their three lowest bits set.
fn used(slots: &[u8], shape: &Shape) -> u64 {
    let bit = |at: u64| slots[at as usize / 8] >> (at % 8) & 1;
    let width = u64::from(shape.slot_bits()) + 3;
    (0..shape.slots()).filter(|slot| (0..3).any(|at| bit(slot * width + at) == 1)).count() as u64
}

fn behaves(bytes: &[u8]) {
    let Ok(mut filter) = QuotientFilter::decode(bytes) else { return };
    assert_eq!(filter.encode(), bytes);
    let entries: Vec<_> = filter.iter().collect();
    assert!(entries.windows(2).all(|pair| pair[0].fingerprint < pair[1].fingerprint));
    assert!(entries.iter().all(|entry| filter.count(entry.fingerprint) == entry.count));
    if let Ok(other) = filter.resized(filter.shape().split().quotients() / 2 + 3) {
        assert!(other.iter().eq(entries.iter().copied()));
    }
    let last = filter.shape().split().universe().size() - 1;
    let (before, count) = (filter.clone(), filter.count(last));
    if filter.add(last, 3).is_ok() {
        assert_eq!(filter.count(last), count + 3);
        filter.add(last, -3).expect("what was added can be taken away");
    }
    assert_eq!(filter, before);
    entries.iter().for_each(|entry| {
        filter.add(entry.fingerprint, -entry.count).expect("what is there can be taken away");
    });
    assert_eq!(filter, QuotientFilter::new(filter.shape()));
}

fuzz_target!(|data: (u8, u8, &[u8])| {
    let (counts, quotients, bytes) = data;
    assert!(QuotientFilter::decode(bytes).is_err() || bytes.len() >= 56);
    behaves(&sealed(bytes));
    if let Some(bytes) = framed(counts, quotients, bytes) {
        behaves(&bytes);
    }
});
