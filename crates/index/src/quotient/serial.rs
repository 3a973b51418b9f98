//! A filter as bytes, for a file or a message. The bytes are drawn in `docs/reference/format.md`.
//!
//! The bytes are untrusted, so decoding verifies everything that the filter's methods rely on: sizes, offsets, runs,
//! the order of remainders, counts and outliers. A decoded filter encodes to the same bytes again.

use nandex_store::bytes::{checksum, get_u32, get_u64, put_u32};
use nandex_store::fingerprint::Universe;
use nandex_store::hash::HashKind;

use super::blocks::Blocks;
use super::check::{damaged, expect};
use super::{Config, Counts, Growth, Outliers, QuotientFilter, Shape};
use crate::Result;

/// The bytes after the checksum.
const MAGIC: [u8; 4] = *b"ndxq";

/// The version of fingerprints alone, and that of keys, which also have their hash function.
const VERSION: u8 = 1;
const KEYS_VERSION: u8 = 2;

/// Bytes before the slots.
const HEADER_BYTES: usize = 56;

/// The bytes of a filter of keys between the header and the slots, for its configuration.
const KEYS_BYTES: usize = 40;

/// Bytes of an outlier.
const OUTLIER_BYTES: usize = 16;

impl QuotientFilter {
    /// Encodes the filter, in about as many bytes as it takes in RAM.
    #[must_use]
    pub fn encode(&self) -> Vec<u8> {
        self.encode_with(VERSION, HashKind::Identity, &[])
    }

    /// Encodes the filter with its configuration, including the key of the hash function.
    pub(super) fn encode_keys(&self, config: &Config) -> Vec<u8> {
        let mut made_for = Vec::with_capacity(KEYS_BYTES);
        made_for.extend(config.hash_key.to_le_bytes());
        made_for.extend(config.keys.to_le_bytes());
        made_for.extend(config.rate.to_bits().to_le_bytes());
        made_for.extend(u64::from(config.growth == Growth::Refuse).to_le_bytes());
        self.encode_with(KEYS_VERSION, config.hash, &made_for)
    }

    fn encode_with(&self, version: u8, hash: HashKind, made_for: &[u8]) -> Vec<u8> {
        let (split, counts) = (self.shape.split(), self.shape.counts());
        let (kind, bits) = counts_to_numbers(counts);
        let mut bytes = vec![0; 4];
        bytes.extend(MAGIC);
        bytes.extend([version, kind, bits, hash as u8, 0, 0, 0, 0]);
        let outliers = self.outliers.len() as u64;
        let sizes = [split.universe().size(), split.quotients(), self.shape.entries_max()];
        let numbers = sizes.into_iter().chain([self.entries, outliers]);
        bytes.extend(numbers.flat_map(u64::to_le_bytes));
        bytes.extend(made_for);
        bytes.extend(self.blocks.as_bytes());
        for (fingerprint, count) in self.outliers.iter() {
            bytes.extend(fingerprint.to_le_bytes());
            bytes.extend(count.to_le_bytes());
        }
        let sum = checksum(&bytes[4..]);
        put_u32(&mut bytes, 0, sum);
        bytes
    }

    /// Decodes a filter.
    ///
    /// Cost: two passes over all slots.
    ///
    /// # Errors
    /// [`Error::FilterDamaged`](crate::Error::FilterDamaged) for bytes that are not a filter of this version.
    pub fn decode(bytes: &[u8]) -> Result<Self> {
        Self::decode_with(VERSION, bytes)
    }

    /// Decodes a filter and its configuration.
    pub(super) fn decode_keys(bytes: &[u8]) -> Result<(Self, Config)> {
        let filter = Self::decode_with(KEYS_VERSION, bytes)?;
        let config = decode_config(bytes, filter.shape)?;
        Ok((filter, config))
    }

    fn decode_with(version: u8, bytes: &[u8]) -> Result<Self> {
        let shape = decode_header(version, bytes)?;
        let header = header_bytes(version);
        let (entries, outliers) = (get_u64(bytes, 40), get_u64(bytes, 48));
        let blocks = Blocks::saved_bytes(shape.slots(), shape.slot_bits());
        let expected = header as u128 + blocks + u128::from(outliers) * OUTLIER_BYTES as u128;
        expect(expected == bytes.len() as u128, "bytes", expected, bytes.len())?;
        let (blocks, outliers) = bytes[header..].split_at(blocks as usize);
        let mut filter = Self::new(shape);
        filter.blocks.load(blocks);
        filter.outliers = decode_outliers(outliers)?;
        filter.entries = entries;
        filter.check()?;
        Ok(filter)
    }
}

/// Decodes the configuration of a saved filter of keys, whose header is valid.
fn decode_config(bytes: &[u8], shape: Shape) -> Result<Config> {
    let hash = HashKind::from_number(bytes[11]);
    let hash = hash.ok_or_else(|| damaged("a hash function", "0 to 2", bytes[11]))?;
    let growth = match get_u64(bytes, 88) {
        0 => Growth::Double,
        1 => Growth::Refuse,
        other => return Err(damaged("growth", "0 or 1", other)),
    };
    let [low, high] = [56, 64].map(|at| u128::from(get_u64(bytes, at)));
    Ok(Config {
        keys: get_u64(bytes, 72),
        rate: f64::from_bits(get_u64(bytes, 80)),
        capacity: shape.entries_max().max(1),
        counts: shape.counts(),
        growth,
        hash,
        hash_key: high << 64 | low,
    })
}

/// Bytes before the slots.
const fn header_bytes(version: u8) -> usize {
    if version == KEYS_VERSION { HEADER_BYTES + KEYS_BYTES } else { HEADER_BYTES }
}

/// Decodes the shape of a filter whose header is valid.
fn decode_header(version: u8, bytes: &[u8]) -> Result<Shape> {
    let (header, length) = (header_bytes(version), bytes.len());
    expect(length >= header, "bytes, at least", header, length)?;
    expect(bytes[4..8] == MAGIC, "the mark", "ndxq", bytes[4..8].escape_ascii())?;
    expect(bytes[8] == version, "version", version, bytes[8])?;
    let (stored, computed) = (get_u32(bytes, 0), checksum(&bytes[4..]));
    expect(stored == computed, "checksum", format!("{computed:08x}"), format!("{stored:08x}"))?;
    expect(version == KEYS_VERSION || bytes[11] == 0, "no hash function", 0, bytes[11])?;
    expect(bytes[12..16] == [0; 4], "zeros", "after the counts", bytes[12..16].escape_ascii())?;
    let counts = counts_of_numbers(bytes[9], bytes[10])
        .ok_or_else(|| damaged("a kind of counts", "0 to 2", format!("{:?}", &bytes[9..11])))?;
    let sizes = [16, 24, 32].map(|at| get_u64(bytes, at));
    shape_of(sizes, counts).ok_or_else(|| {
        damaged("universe, quotients and entries", "of a filter", format!("{sizes:?}"))
    })
}

/// Returns the shape of exactly these sizes; `None` if no shape has them.
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

/// Returns the kind and bits of counts, as they are saved.
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
