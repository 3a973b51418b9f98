//! The configuration of a filter of keys.

use nandex_store::fingerprint::Universe;
use nandex_store::hash::{HashKind, KeyHasher};

use super::{Counts, Shape};
use crate::{Error, Result};

/// The share of the slots in use when the filter is full: beyond it, runs get long and updates slow.
const FILL: f64 = 0.94;

/// The policy of a full filter.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Growth {
    /// Doubles the slots. The insert that finds the filter full waits until all entries are in the new slots, and both
    /// are in RAM meanwhile. Fingerprints stay the same, so the rate of false positives rises with the keys.
    #[default]
    Double,
    /// Rejects the insert.
    Refuse,
}

/// The configuration of a [`SharedFilter`](super::SharedFilter).
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Config {
    /// The number of keys at which `rate` is reached. It determines the universe of fingerprints, permanently.
    pub keys: u64,
    /// The rate of false positives with this number of keys.
    pub rate: f64,
    /// The number of keys that fit before the filter first grows.
    pub capacity: u64,
    /// The part of counts that a slot stores.
    pub counts: Counts,
    /// The policy of a full filter.
    pub growth: Growth,
    /// The hash function. Untrusted keys need [`HashKind::Sip13`] and a secret key: someone who knows both can choose
    /// keys whose fingerprints are neighbours, and each update of one moves all the others.
    pub hash: HashKind,
    /// The key of the hash function.
    pub hash_key: u128,
}

impl Config {
    /// Returns the configuration for `keys` keys at this rate, with slots for all of them from the beginning, and
    /// growth beyond.
    #[must_use]
    pub const fn new(keys: u64, rate: f64) -> Self {
        Self {
            keys,
            rate,
            capacity: keys,
            counts: Counts::One,
            growth: Growth::Double,
            hash: HashKind::Xxh3,
            hash_key: 0,
        }
    }

    /// Returns a configuration small enough for a test to reach every limit.
    #[must_use]
    pub const fn tiny() -> Self {
        Self { capacity: 4, ..Self::new(1000, 0.01) }
    }

    /// The function from keys to hashes.
    #[must_use]
    pub const fn hasher(&self) -> KeyHasher {
        KeyHasher::new(self.hash, self.hash_key)
    }

    /// Returns the initial sizes.
    ///
    /// # Errors
    /// [`Error::Config`] for a rate outside 0 to 1, no keys or no capacity, or fingerprints too wide for a
    /// slot.
    pub fn shape(&self) -> Result<Shape> {
        let universe = Universe::for_rate(self.keys, self.rate)?;
        if self.capacity == 0 {
            let reason = "0; a filter begins with slots for at least one key".into();
            return Err(Error::Config { field: "capacity", reason });
        }
        Shape::for_entries(universe, self.capacity, FILL, self.counts)
    }
}
