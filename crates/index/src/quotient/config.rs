//! What a filter of keys is made for.

use nandex_store::fingerprint::Universe;
use nandex_store::hash::{HashKind, KeyHasher};

use super::{Counts, Shape};
use crate::{Error, Result};

/// Share of the slots in use when the filter is full: beyond, runs get long and updates slow.
const FILL: f64 = 0.94;

/// What happens when a filter is full.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Growth {
    /// It doubles its slots. The insert that finds it full waits until all entries are in the new slots, and
    /// both are in RAM until then. Fingerprints stay the same, so the rate of false positives rises with the
    /// keys.
    #[default]
    Double,
    /// It refuses the insert.
    Refuse,
}

/// What a [`SharedFilter`](super::SharedFilter) is made for.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Config {
    /// Keys at which `rate` is reached. They set the universe of fingerprints, for good.
    pub keys: u64,
    /// Rate of false positives with that many keys.
    pub rate: f64,
    /// Keys that fit before the filter first grows.
    pub capacity: u64,
    /// What a slot stores of counts.
    pub counts: Counts,
    /// What happens when it is full.
    pub growth: Growth,
    /// The hash function. Untrusted keys need [`HashKind::Sip13`] and a secret key: who knows both can choose keys
    /// whose fingerprints are neighbours, and each update of them moves all the others.
    pub hash: HashKind,
    /// The key of the hash function.
    pub hash_key: u128,
}

impl Config {
    /// For this many keys at this rate, with slots for all of them from the beginning, and growth beyond.
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

    /// Small enough for a test to reach every limit.
    #[must_use]
    pub const fn tiny() -> Self {
        Self { capacity: 4, ..Self::new(1000, 0.01) }
    }

    /// The function from keys to hashes.
    #[must_use]
    pub const fn hasher(&self) -> KeyHasher {
        KeyHasher::new(self.hash, self.hash_key)
    }

    /// The sizes to begin with.
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
