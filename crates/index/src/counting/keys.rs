//! The stored bytes of a key, and their place.

use nandex_store::hash::KeyHasher;

use crate::model::{FilterRequirements, StoredKeys};
use crate::{Error, Result};

/// The widest key, in bytes.
pub const KEY_BYTES_MAX: usize = 32;

/// The narrowest and the widest fingerprint, in bytes.
const FINGERPRINT_BYTES: std::ops::RangeInclusive<u8> = 2..=8;

/// The form in which a counting table stores its keys.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Keys {
    /// Keys of this number of bytes, 1 to 32, stored whole: counts are exact.
    Whole(u8),
    /// A fingerprint of this number of bytes, 2 to 8, for keys of any width. Keys with the same fingerprint share their
    /// count: with `n` keys in the table, a key that was never added meets one at a rate of `n / 256^bytes`.
    Fingerprints(u8),
}

impl Keys {
    /// Returns the bytes stored for each key.
    #[must_use]
    pub const fn stored_bytes(self) -> usize {
        match self {
            Self::Whole(bytes) | Self::Fingerprints(bytes) => bytes as usize,
        }
    }

    /// Returns the rate at which a key that was never added shares its fingerprint with one of `keys` others; 0 for
    /// whole keys.
    #[must_use]
    pub fn rate(self, keys: u64) -> f64 {
        match self {
            Self::Whole(_) => 0.0,
            Self::Fingerprints(bytes) => (keys as f64 / 256f64.powi(bytes.into())).min(1.0),
        }
    }

    /// Returns the narrowest fingerprint with at most this rate for this number of keys.
    ///
    /// # Errors
    /// [`Error::Config`] if 8 bytes are too few, and for a rate that is not between 0 and 1.
    pub fn for_rate(keys: u64, rate: f64) -> Result<Self> {
        if !(rate > 0.0 && rate < 1.0) {
            let reason = format!("{rate}; it must be between 0 and 1");
            return Err(Error::Config { field: "rate", reason });
        }
        let fits = |bytes: &u8| Self::Fingerprints(*bytes).rate(keys) <= rate;
        let bytes = FINGERPRINT_BYTES.into_iter().find(fits).ok_or_else(|| {
            let reason = format!(
                "{rate} with {keys} keys; fingerprints of 8 bytes do not reach it: store keys whole"
            );
            Error::Config { field: "rate", reason }
        })?;
        Ok(Self::Fingerprints(bytes))
    }

    /// Returns the form of keys that a filter for these requirements stores.
    ///
    /// # Errors
    /// As [`for_rate`](Self::for_rate).
    pub fn advised(requirements: &FilterRequirements) -> Result<Self> {
        match requirements.stored_keys {
            StoredKeys::Whole(key_bytes) => Ok(Self::Whole(key_bytes)),
            StoredKeys::Fingerprints => Self::for_rate(requirements.keys, requirements.rate),
        }
    }

    pub(super) fn validate(self) -> Result<()> {
        let (bytes, allowed) = match self {
            Self::Whole(bytes) => (bytes, 1..=KEY_BYTES_MAX as u8),
            Self::Fingerprints(bytes) => (bytes, FINGERPRINT_BYTES),
        };
        if allowed.contains(&bytes) {
            return Ok(());
        }
        let reason =
            format!("{bytes} bytes; they must be {} to {}", allowed.start(), allowed.end());
        Err(Error::Config { field: "keys", reason })
    }
}

/// Computes the bytes that are stored for a key, their partition, and their place in it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct KeyPlacing {
    pub keys: Keys,
    pub hasher: KeyHasher,
    pub partitions: u64,
}

impl KeyPlacing {
    /// Returns the bytes stored for each key.
    pub(super) fn width(&self) -> usize {
        self.keys.stored_bytes()
    }

    /// Fails for a key of another width than the table's.
    pub(super) fn check(&self, key: &[u8]) -> Result<()> {
        match self.keys {
            Keys::Whole(bytes) => Error::check_width("key", key, bytes.into()),
            Keys::Fingerprints(_) => Ok(()),
        }
    }

    /// Returns the bytes stored for a key, in an array whose rest is 0.
    #[inline]
    pub(super) fn stored(&self, key: &[u8]) -> [u8; KEY_BYTES_MAX] {
        let mut stored = [0; KEY_BYTES_MAX];
        match self.keys {
            Keys::Whole(_) => stored[..key.len()].copy_from_slice(key),
            Keys::Fingerprints(bytes) => {
                let hash = self.hasher.hash(key).place.to_be_bytes();
                stored[..bytes.into()].copy_from_slice(&hash[..bytes.into()]);
            }
        }
        stored
    }

    /// Returns the partition of a stored key, and its place there: a number that ascends in the order in which a
    /// partition stores its keys. The high bits of one hash choose the partition, the block, and the page: the paper's
    /// g(x) and s(x).
    #[inline]
    pub(super) fn place(&self, stored: &[u8]) -> (usize, u64) {
        let hash = match self.keys {
            Keys::Whole(_) => self.hasher.hash(stored).place,
            Keys::Fingerprints(_) => {
                let mut hash = [0; 8];
                hash[..stored.len()].copy_from_slice(stored);
                u64::from_be_bytes(hash)
            }
        };
        let product = u128::from(hash) * u128::from(self.partitions);
        ((product >> 64) as usize, product as u64)
    }
}

/// Reduces a place to `0..range`; it never decreases when the place increases.
#[inline]
pub(super) fn reduce(place: u64, range: u64) -> u64 {
    ((u128::from(place) * u128::from(range)) >> 64) as u64
}

#[cfg(test)]
mod tests {
    use nandex_store::hash::HashKind;

    use super::*;

    #[test]
    fn places_ascend_with_the_hash_and_partitions_share_it() {
        let placing = KeyPlacing {
            keys: Keys::Fingerprints(8),
            hasher: KeyHasher::new(HashKind::Xxh3, 1),
            partitions: 3,
        };
        let places: Vec<_> =
            (0..300u64).map(|i| placing.place(&(i * (u64::MAX / 300)).to_be_bytes())).collect();
        assert!(places.is_sorted());
        let counts = [0, 1, 2].map(|part| places.iter().filter(|it| it.0 == part).count());
        assert!(counts.iter().all(|count| *count > 0), "{counts:?}");
    }

    #[test]
    fn a_rate_takes_the_narrowest_fingerprint_that_reaches_it() {
        assert_eq!(Keys::for_rate(1000, 0.02).unwrap(), Keys::Fingerprints(2));
        assert_eq!(Keys::for_rate(1 << 30, 1e-3).unwrap(), Keys::Fingerprints(5));
        assert!(Keys::for_rate(1 << 30, 1e-12).is_err());
        for bad in [Keys::Whole(0), Keys::Whole(33), Keys::Fingerprints(1), Keys::Fingerprints(9)] {
            assert!(bad.validate().is_err(), "{bad:?}");
        }
    }
}
