//! Bloom filters (paper, section 5.1.3): `hashes` bits set per key, found by double hashing.

use super::FilterShape;
use super::hash::{high_half, low_half, mix};
use super::wide;

/// The rows of one key: an arithmetic progression of 32-bit fractions, scaled to the rows (Kirsch and Mitzenmacher: two
/// hashes are as good as several independent ones).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Progression {
    first: u32,
    step: u32,
}

impl Progression {
    pub(super) fn new(hash: u64) -> Self {
        let mixed = mix(hash);
        Self { first: high_half(mixed), step: low_half(mixed) | 1 }
    }

    /// Returns the rows, `shape.hashes()` of them; two may be equal.
    pub(super) fn rows(self, shape: &FilterShape) -> impl Iterator<Item = usize> + use<> {
        let rows = u64::from(shape.slots());
        (0..shape.hashes()).map(move |number| {
            let fraction = self.first.wrapping_add(number.wrapping_mul(self.step));
            wide(high_half(u64::from(fraction) * rows))
        })
    }
}

/// Sets the bits of every key; never refuses a key.
pub(super) fn build(shape: &FilterShape, hashes: &[u64], bits: &mut Vec<u64>) {
    bits.clear();
    bits.resize(shape.column_words(), 0);
    for &hash in hashes {
        for row in Progression::new(hash).rows(shape) {
            bits[row / 64] |= 1 << (row % 64);
        }
    }
}

/// Returns the false-positive rate with `entries` keys: the share of ones, to the power of the hashes.
pub(super) fn rate(shape: &FilterShape, entries: u64) -> f64 {
    let hashes = f64::from(shape.hashes());
    let ones = 1.0 - (-hashes * entries as f64 / f64::from(shape.slots())).exp();
    ones.powf(hashes)
}
