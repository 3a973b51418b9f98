//! The key of a term in the tables: the 128 bits of its hash.

use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hash, Hasher};

use twox_hash::XxHash3_128;

/// The XXH3 hash of a term's UTF-8 with 128 bits, in little-endian order. The same in every index, so that indexes can
/// be merged.
///
/// Two terms of one key would be counted as one. By chance that happens once in 10^19 indexes of 4 billion terms. XXH3
/// is not a cryptographic hash: an author of the texts could construct two such terms. The index then reports a
/// contradiction when it merges the runs that have them, unless both come in one batch.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct TermKey(pub [u8; 16]);

impl TermKey {
    /// Returns the key of a term.
    #[must_use]
    pub fn of(term: &[u8]) -> Self {
        Self(XxHash3_128::oneshot(term).to_le_bytes())
    }

    /// Returns the first half as a number, which is in the order of keys.
    pub(crate) fn half(self) -> u64 {
        let [a, b, c, d, e, f, g, h, ..] = self.0;
        u64::from_be_bytes([a, b, c, d, e, f, g, h])
    }
}

impl Hash for TermKey {
    fn hash<H: Hasher>(&self, state: &mut H) {
        state.write_u64(self.half());
    }
}

/// A map from keys, which are hashes already.
pub(crate) type KeyMap<V> = HashMap<TermKey, V, BuildHasherDefault<PassThrough>>;

/// The hasher that returns its input number.
#[derive(Clone, Copy, Default, Debug)]
pub(crate) struct PassThrough(u64);

impl Hasher for PassThrough {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        for &byte in bytes {
            self.0 = self.0.rotate_left(8) ^ u64::from(byte);
        }
    }

    fn write_u64(&mut self, number: u64) {
        self.0 = number;
    }
}
