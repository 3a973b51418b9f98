//! The on-flash format of a SliceBloom; no I/O, and no panic on any input. docs/reference/format.md draws it.
//!
//! It comprises the positions of a key's bits, a key in the log, a slice page, and the state without the buffers'.

use nandex_store::bytes::{Reader, get_u64};
use nandex_store::hash::{KeyHasher, mix};
use nandex_store::page::PAGE_BODY_BYTES;
use nandex_store::{Log, StructureId};

use super::buffer::{Bitmap, BloomBuffer};
use crate::Result;
use crate::write::LogCodec;

/// Bytes of a fingerprint in the log.
pub(super) const FINGERPRINT_BYTES: usize = 8;

/// The version of the encoded state.
const STATE_VERSION: u8 = 1;

/// The distance between the words of a key's positions: 2^64 divided by the golden ratio.
const STEP: u64 = 0x9e37_79b9_7f4a_7c15;

/// The representation of a key: 64 bits of its hash. Its first bits select the partition, and mixing all of them gives
/// the positions.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) struct Fingerprint(pub u64);

/// The placement of the bits of keys.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct BitPlacing {
    /// Partitions, a power of two.
    pub partitions: u32,
    /// Bits of a partition's filter: the paper's m.
    pub bits: u32,
    /// The number of bits of a key: the paper's number of hash functions.
    pub hashes: u32,
}

impl BitPlacing {
    /// The fingerprint of a key.
    #[inline]
    pub fn fingerprint(hasher: KeyHasher, key: &[u8]) -> Fingerprint {
        Fingerprint(hasher.hash(key).place)
    }

    /// The partition of a key: the first bits of its fingerprint.
    #[inline]
    pub fn partition(&self, fingerprint: Fingerprint) -> usize {
        // The shift is split so that a single partition (0 bits) works too.
        (fingerprint.0 >> 1 >> (63 - self.partitions.trailing_zeros())) as usize
    }

    /// Returns the positions of a key in the filter of its partition; two of them may be equal.
    #[inline]
    pub fn positions(self, fingerprint: Fingerprint) -> impl Iterator<Item = u32> {
        (1..=u64::from(self.hashes)).map(move |number| {
            let word = mix(fingerprint.0.wrapping_add(number.wrapping_mul(STEP)));
            ((u128::from(word) * u128::from(self.bits)) >> 64) as u32
        })
    }
}

/// Writes keys to the log: their fingerprints.
#[derive(Clone, Copy, Debug)]
pub(crate) struct FingerprintCodec(pub(super) BitPlacing);

impl LogCodec<BloomBuffer> for FingerprintCodec {
    fn logged_bytes(&self, updates: &[Fingerprint]) -> u64 {
        (updates.len() * FINGERPRINT_BYTES) as u64
    }

    fn append(
        &self,
        log: &Log,
        (id, _): (StructureId, usize),
        updates: &[Fingerprint],
        records: &mut Vec<u8>,
    ) -> Result<()> {
        if let [Fingerprint(word)] = updates {
            log.append(id, &[&word.to_le_bytes()])?;
            return Ok(());
        }
        records.clear();
        updates.iter().for_each(|it| records.extend_from_slice(&it.0.to_le_bytes()));
        log.append_many(id, FINGERPRINT_BYTES, records)?;
        Ok(())
    }

    fn decode(&self, bytes: &[u8]) -> Option<(usize, Fingerprint)> {
        let is_key = bytes.len() == FINGERPRINT_BYTES;
        let fingerprint = Fingerprint(if is_key { get_u64(bytes, 0) } else { return None });
        Some((self.0.partition(fingerprint), fingerprint))
    }
}

/// The places of slices in the pages of a slicetable. Slice `i` has bit `i` of all incarnations.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct SliceLayout {
    /// Bytes of a slice: a bit for each incarnation.
    pub slice_bytes: usize,
    /// Slices of a page.
    pub page_slices: u32,
}

impl SliceLayout {
    /// Creates the layout for `incarnations` incarnations, a multiple of 8.
    pub fn new(incarnations: u32) -> Self {
        let slice_bytes = (incarnations / 8) as usize;
        let page_slices = u32::try_from(PAGE_BODY_BYTES / slice_bytes).expect("at most 4064");
        Self { slice_bytes, page_slices }
    }

    /// Returns the number of pages for the slices of `bits` positions.
    pub fn pages(&self, bits: u32) -> u32 {
        bits.div_ceil(self.page_slices)
    }

    /// The page of a position's slice, counted from the slicetable's first.
    #[inline]
    pub fn page_of(&self, position: u32) -> u32 {
        position / self.page_slices
    }

    /// A position's slice in the body of its page.
    #[inline]
    pub fn slice<'b>(&self, body: &'b [u8], position: u32) -> &'b [u8] {
        let at = (position % self.page_slices) as usize * self.slice_bytes;
        &body[at..at + self.slice_bytes]
    }

    /// Replaces a column in the body of page number `page`: the bits of one incarnation.
    pub fn set_column(&self, page: u64, body: &mut [u8], column: u32, bits: &Bitmap) {
        let (byte, mask) = ((column / 8) as usize, 1 << (column % 8));
        let first = page * u64::from(self.page_slices);
        let positions = first..u64::from(bits.len());
        for (slice, position) in body.chunks_exact_mut(self.slice_bytes).zip(positions) {
            if bits.has(position as u32) {
                slice[byte] |= mask;
            } else {
                slice[byte] &= !mask;
            }
        }
    }

    /// Returns whether the body of page number `page` has bits where a slicetable with this number of incarnations and
    /// positions has none.
    pub fn has_strays(&self, page: u64, body: &[u8], bits: u32, incarnations: u64) -> bool {
        let slices = body.chunks_exact(self.slice_bytes);
        let is_clear = |bytes: &[u8]| bytes.iter().all(|byte| *byte == 0);
        let rest = slices.remainder();
        let first = page * u64::from(self.page_slices);
        let is_stray = |(position, slice): (u64, &[u8])| {
            let columns = if position < u64::from(bits) { incarnations } else { 0 };
            let is_out = |column: u64| slice[(column / 8) as usize] >> (column % 8) & 1 == 1;
            (columns..slice.len() as u64 * 8).any(is_out)
        };
        (first..).zip(slices).any(is_stray) || !is_clear(rest)
    }
}

/// Encodes the state without the buffers': the map of the slicetables, and the number of incarnations that each has
/// taken.
pub(super) fn encode_state(map: &[u8], incarnations: impl Iterator<Item = u64>) -> Vec<u8> {
    let mut out = vec![STATE_VERSION];
    out.extend_from_slice(map);
    incarnations.for_each(|count| out.extend_from_slice(&count.to_le_bytes()));
    out
}

/// Reads the state's version; the map of the slicetables follows it.
///
/// # Errors
/// Another version.
pub(super) fn decode_version(reader: &mut Reader<'_>) -> Result<()> {
    let version = reader.u8()?;
    if version != STATE_VERSION {
        return Err(reader.refuse(format!("a state of version {STATE_VERSION}"), version).into());
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_in_the_log_are_the_bytes_that_the_format_says() {
        let placing = BitPlacing { partitions: 4, bits: 1600, hashes: 3 };
        let codec = FingerprintCodec(placing);
        let fingerprint = Fingerprint(0xc123_4567_89ab_cdef);
        assert_eq!(codec.decode(&fingerprint.0.to_le_bytes()), Some((3, fingerprint)));
        for length in [0, 7, 9, 13] {
            assert_eq!(codec.decode(&vec![1; length]), None);
        }
        // The test vector of docs/reference/format.md: a change here makes every filter unreadable.
        let positions: Vec<_> = placing.positions(fingerprint).collect();
        assert_eq!(positions, [1484, 704, 883]);
        let one = BitPlacing { partitions: 1, ..placing };
        assert_eq!(one.partition(Fingerprint(u64::MAX)), 0);
    }

    #[test]
    fn a_column_is_replaced_and_no_other_bit_changes() {
        for incarnations in [8, 24, 256, 512] {
            let layout = SliceLayout::new(incarnations);
            let bits = 2 * layout.page_slices + 5;
            assert_eq!(layout.pages(bits), 3);
            let (mut even, mut odd) = (Bitmap::new(bits), Bitmap::new(bits));
            (0..bits).step_by(2).for_each(|at| even.set(at));
            (1..bits).step_by(2).for_each(|at| odd.set(at));
            let mut body = vec![0; PAGE_BODY_BYTES];
            layout.set_column(1, &mut body, 7, &even);
            layout.set_column(1, &mut body, incarnations - 1, &even);
            layout.set_column(1, &mut body, 7, &odd);
            for position in layout.page_slices..2 * layout.page_slices {
                let slice = layout.slice(&body, position);
                let last = slice[slice.len() - 1] >> 7 & 1;
                let column = slice[0] >> 7 & 1;
                if incarnations == 8 {
                    assert_eq!(u32::from(column), position % 2);
                } else {
                    assert_eq!(
                        (u32::from(column), u32::from(last)),
                        (position % 2, 1 - position % 2)
                    );
                }
            }
            assert!(!layout.has_strays(1, &body, bits, u64::from(incarnations)));
            assert!(layout.has_strays(1, &body, bits, 7));
            assert!(layout.has_strays(2, &body, bits, u64::from(incarnations)));
        }
    }
}
