//! A saved quotient filter from any bytes is refused or behaves as one: it is saved the same again, counts its
//! entries as it lists them, takes updates, and fits into a filter of another size.
#![no_main]

use libfuzzer_sys::fuzz_target;
use nandex::raw::quotient::{Counts, QuotientFilter, Shape};
use nandex_store::fingerprint::Universe;

/// Bytes before the blocks, and before the slots of a block.
const HEADER_BYTES: usize = 56;
const BLOCK_HEAD_BYTES: usize = 18;

/// Returns a filter's bytes with a right checksum, mark and version before the fuzzer's bytes.
fn sealed(data: &[u8]) -> Vec<u8> {
    let mut bytes = [&[0; 4], &b"ndxq\x01"[..], data].concat();
    let sum = crc32c::crc32c(&bytes[4..]);
    bytes[..4].copy_from_slice(&sum.to_le_bytes());
    bytes
}

/// Returns a header of small sizes before the fuzzer's blocks, and offsets and a number of slots in use that
/// fit the blocks' bits, so that the fuzzer need not guess these.
fn framed(counts: u8, quotients: u8, data: &[u8]) -> Option<Vec<u8>> {
    let quotients = u64::from(quotients % 32) + 1;
    let counts = [Counts::One, Counts::Signed, Counts::Small(2)][usize::from(counts) % 3];
    let universe = Universe::new(quotients * 8).ok()?;
    let shape = Shape::new(universe, quotients, counts, 32).ok()?;
    let mut bytes = QuotientFilter::new(shape).encode();
    let blocks = &mut bytes[HEADER_BYTES..];
    blocks.iter_mut().zip(data).for_each(|(byte, with)| *byte = *with);
    let used = set_offsets(blocks, BLOCK_HEAD_BYTES + 8 * shape.slot_bits() as usize);
    let outliers = data.get(blocks.len()..).unwrap_or_default();
    bytes.extend(outliers);
    bytes[40..48].copy_from_slice(&used.to_le_bytes());
    bytes[48..56].copy_from_slice(&(outliers.len() as u64 / 16).to_le_bytes());
    Some(sealed(&bytes[9..]))
}

/// Sets the offset of each block, and counts the slots in use.
fn set_offsets(blocks: &mut [u8], block_bytes: usize) -> u64 {
    let slots = blocks.len() / block_bytes * 64;
    let (mut end, mut used) = (0_usize, 0);
    for quotient in 0..slots {
        if quotient % 64 == 0 {
            let offset = (end.saturating_sub(quotient) as u16).to_le_bytes();
            blocks[quotient / 64 * block_bytes..][..2].copy_from_slice(&offset);
        }
        let bit = |at: usize, slot: usize| {
            blocks[slot / 64 * block_bytes + at + slot % 64 / 8] >> (slot % 8) & 1 == 1
        };
        if bit(2, quotient) {
            let start = end.max(quotient);
            end = (start..slots).find(|slot| bit(10, *slot)).map_or(slots, |last| last + 1);
            used += (end - start) as u64;
        }
    }
    used
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
        filter.add(last, -3).expect("what was added can be subtracted");
    }
    assert_eq!(filter, before);
    entries.iter().for_each(|entry| {
        filter.add(entry.fingerprint, -entry.count).expect("what is present can be subtracted");
    });
    assert_eq!(filter, QuotientFilter::new(filter.shape()));
}

fuzz_target!(|data: (u8, u8, &[u8])| {
    let (counts, quotients, bytes) = data;
    assert!(QuotientFilter::decode(bytes).is_err() || bytes.len() >= HEADER_BYTES);
    behaves(&sealed(bytes));
    if let Some(bytes) = framed(counts, quotients, bytes) {
        behaves(&bytes);
    }
});
