//! The seeded hashes, named in the superblock.
//!
//! A volume names its hash function and keeps its key, so that a file opens anywhere and a hash never changes
//! silently. One call gives 128 bits: one half addresses, the other feeds the filter.

use std::hash::Hasher as _;

use siphasher::sip128::{Hasher128, SipHasher13};
use twox_hash::XxHash3_128;

use crate::bytes::get_u64;

/// The hash function of a volume. The numbers are on flash: they never change.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
#[repr(u8)]
pub enum HashKind {
    /// For keys that are hashes themselves: uses their first 16 bytes, mixed by a fixed bijection. Whoever chooses the
    /// keys chooses the places: never use it for untrusted keys.
    Identity = 0,
    /// XXH3-128, seeded: fast and stable, for trusted keys. Not safe against crafted keys.
    #[default]
    Xxh3 = 1,
    /// SipHash-1-3-128, keyed: for untrusted keys.
    Sip13 = 2,
}

impl HashKind {
    /// Returns the kind of this number.
    #[must_use]
    pub fn from_number(number: u8) -> Option<Self> {
        [Self::Identity, Self::Xxh3, Self::Sip13].into_iter().find(|kind| *kind as u8 == number)
    }
}

/// 128 well-mixed bits of a key.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct KeyHash {
    /// The half that selects the place: super table, page, buckets.
    pub place: u64,
    /// The half that filters use.
    pub filter: u64,
}

/// A volume's hash function with its key.
#[derive(Clone, Copy, Debug)]
pub struct KeyHasher {
    kind: HashKind,
    key: u128,
}

impl KeyHasher {
    /// Creates the hasher of the function `kind` under `key`.
    #[must_use]
    pub const fn new(kind: HashKind, key: u128) -> Self {
        Self { kind, key }
    }

    /// The kind of the hash function.
    #[must_use]
    pub const fn kind(&self) -> HashKind {
        self.kind
    }

    /// Its key.
    #[must_use]
    pub const fn key(&self) -> u128 {
        self.key
    }

    /// Hashes a key.
    #[inline]
    #[must_use]
    pub fn hash(&self, bytes: &[u8]) -> KeyHash {
        match self.kind {
            HashKind::Identity => identity(bytes),
            HashKind::Xxh3 => split(XxHash3_128::oneshot_with_seed(low(self.key), bytes)),
            HashKind::Sip13 => {
                let mut hasher = SipHasher13::new_with_keys(low(self.key), high(self.key));
                hasher.write(bytes);
                split(hasher.finish128().as_u128())
            }
        }
    }
}

#[inline]
fn split(hash: u128) -> KeyHash {
    KeyHash { place: high(hash), filter: low(hash) }
}

#[inline]
fn low(wide: u128) -> u64 {
    (wide & u128::from(u64::MAX)) as u64
}

#[inline]
fn high(wide: u128) -> u64 {
    (wide >> 64) as u64
}

/// Hashes keys that are hashes: the first word selects the place, the second (or the first again) is for filters.
fn identity(bytes: &[u8]) -> KeyHash {
    let word = |at: usize| if bytes.len() >= at + 8 { get_u64(bytes, at) } else { 0 };
    let first = word(0);
    KeyHash {
        place: mix(first),
        filter: mix(word(8) ^ first.rotate_left(32) ^ 0x9e37_79b9_7f4a_7c15),
    }
}

/// MurmurHash3's 64-bit finaliser: a bijection in which every input bit moves every output bit.
#[inline]
#[must_use]
pub const fn mix(mut word: u64) -> u64 {
    word ^= word >> 33;
    word = word.wrapping_mul(0xff51_afd7_ed55_8ccd);
    word ^= word >> 33;
    word = word.wrapping_mul(0xc4ce_b9fe_1a85_ec53);
    word ^ (word >> 33)
}

/// Reduces a uniform 16-bit number to `0..range` by multiply-shift.
#[inline]
#[must_use]
pub const fn reduce16(bits: u16, range: usize) -> usize {
    (bits as usize * range) >> 16
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hashes_are_what_the_format_says() {
        // Test vectors of docs/reference/format.md: a change here makes every volume unreadable.
        let key = 0x0123_4567_89ab_cdef_0011_2233_4455_6677;
        let hash = |kind| KeyHasher::new(kind, key).hash(b"nandexes");
        assert_eq!(hash(HashKind::Identity).place, mix(u64::from_le_bytes(*b"nandexes")));
        let xxh3 = KeyHash { place: 1_816_747_696_323_096_535, filter: 14_846_364_852_073_166_017 };
        assert_eq!(hash(HashKind::Xxh3), xxh3);
        let sip13 = KeyHash { place: 5_446_921_769_417_380_061, filter: 1_200_056_897_052_976_793 };
        assert_eq!(hash(HashKind::Sip13), sip13);
    }

    #[test]
    fn names_and_numbers_lead_back() {
        for kind in [HashKind::Identity, HashKind::Xxh3, HashKind::Sip13] {
            assert_eq!(HashKind::from_number(kind as u8), Some(kind));
        }
        assert_eq!(HashKind::from_number(9), None);
    }
}
