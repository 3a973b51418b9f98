//! A filter as bytes, for a file or a message. The bytes are drawn in `docs/format.md`.
//!
//! The bytes may be anything, so decoding proves everything that the filter's methods rely on: sizes, offsets,
//! runs, the order of remainders, counts and outliers. A decoded filter encodes to the same bytes again.

use nandex_store::bytes::{checksum, get_u32, get_u64, put_u32};
use nandex_store::fingerprint::Universe;

use super::blocks::Blocks;
use super::check::{damaged, expect};
use super::{Counts, Outliers, QuotientFilter, Shape};
use crate::Result;

/// What follows the checksum.
const MAGIC: [u8; 4] = *b"ndxq";

/// The version that is written.
const VERSION: u8 = 1;

/// Bytes before the slots.
const HEADER_BYTES: usize = 56;

/// Bytes of an outlier.
const OUTLIER_BYTES: usize = 16;

impl QuotientFilter {
    /// The filter as bytes, about as many as it takes in RAM.
    #[must_use]
    pub fn encode(&self) -> Vec<u8> {
        let (split, counts) = (self.shape.split(), self.shape.counts());
        let (kind, bits) = counts_to_numbers(counts);
        let mut bytes = vec![0; 4];
        bytes.extend(MAGIC);
        bytes.extend([VERSION, kind, bits, 0, 0, 0, 0, 0]);
        let outliers = self.outliers.len() as u64;
        let sizes = [split.universe().size(), split.quotients(), self.shape.entries_max()];
        let numbers = sizes.into_iter().chain([self.entries, outliers]);
        bytes.extend(numbers.flat_map(u64::to_le_bytes));
        bytes.extend(self.blocks.as_bytes());
        for (fingerprint, count) in self.outliers.iter() {
            bytes.extend(fingerprint.to_le_bytes());
            bytes.extend(count.to_le_bytes());
        }
        let sum = checksum(&bytes[4..]);
        put_u32(&mut bytes, 0, sum);
        bytes
    }

    /// The filter of these bytes.
    ///
    /// Cost: two passes over all slots.
    ///
    /// # Errors
    /// [`Error::FilterDamaged`](crate::Error::FilterDamaged) for bytes that are not a filter of this version.
    pub fn decode(bytes: &[u8]) -> Result<Self> {
        let shape = decode_header(bytes)?;
        let (entries, outliers) = (get_u64(bytes, 40), get_u64(bytes, 48));
        let blocks = Blocks::saved_bytes(shape.slots(), shape.slot_bits());
        let expected = HEADER_BYTES as u128 + blocks + u128::from(outliers) * OUTLIER_BYTES as u128;
        expect(expected == bytes.len() as u128, "bytes", expected, bytes.len())?;
        let (blocks, outliers) = bytes[HEADER_BYTES..].split_at(blocks as usize);
        let mut filter = Self::new(shape);
        filter.blocks.load(blocks);
        filter.outliers = decode_outliers(outliers)?;
        filter.entries = entries;
        filter.check()?;
        Ok(filter)
    }
}

/// The shape of a filter whose header is right.
fn decode_header(bytes: &[u8]) -> Result<Shape> {
    let length = bytes.len();
    expect(length >= HEADER_BYTES, "bytes, at least", HEADER_BYTES, length)?;
    expect(bytes[4..8] == MAGIC, "the mark", "ndxq", bytes[4..8].escape_ascii())?;
    expect(bytes[8] == VERSION, "version", VERSION, bytes[8])?;
    let (stored, computed) = (get_u32(bytes, 0), checksum(&bytes[4..]));
    expect(stored == computed, "checksum", format!("{computed:08x}"), format!("{stored:08x}"))?;
    expect(bytes[11..16] == [0; 5], "zeros", "after the counts", bytes[11..16].escape_ascii())?;
    let counts = counts_of_numbers(bytes[9], bytes[10])
        .ok_or_else(|| damaged("a kind of counts", "0 to 2", format!("{:?}", &bytes[9..11])))?;
    let sizes = [16, 24, 32].map(|at| get_u64(bytes, at));
    shape_of(sizes, counts).ok_or_else(|| {
        damaged("universe, quotients and entries", "of a filter", format!("{sizes:?}"))
    })
}

/// The shape of exactly these sizes; nothing if a shape would have others.
fn shape_of([size, quotients, entries_max]: [u64; 3], counts: Counts) -> Option<Shape> {
    let universe = Universe::new(size).ok()?;
    let shape = Shape::new(universe, quotients, counts, entries_max).ok()?;
    let is_same = (shape.split().quotients(), shape.entries_max()) == (quotients, entries_max);
    is_same.then_some(shape)
}

fn decode_outliers(bytes: &[u8]) -> Result<Outliers> {
    let (mut outliers, mut last) = (Outliers::default(), None);
    for bytes in bytes.chunks_exact(OUTLIER_BYTES) {
        let (fingerprint, count) = (get_u64(bytes, 0), get_u64(bytes, 8).cast_signed());
        let is_next = last < Some(fingerprint) && count != 0;
        expect(is_next, "ascending outliers", "other than 0", fingerprint)?;
        last = Some(fingerprint);
        outliers.set(fingerprint, count);
    }
    Ok(outliers)
}

/// Kind and bits of counts, as they are saved.
const fn counts_to_numbers(counts: Counts) -> (u8, u8) {
    match counts {
        Counts::One => (0, 0),
        Counts::Signed => (1, 0),
        Counts::Small(bits) => (2, bits as u8),
    }
}

const fn counts_of_numbers(kind: u8, bits: u8) -> Option<Counts> {
    match (kind, bits) {
        (0, 0) => Some(Counts::One),
        (1, 0) => Some(Counts::Signed),
        (2, bits) => Some(Counts::Small(bits as u32)),
        _ => None,
    }
}
