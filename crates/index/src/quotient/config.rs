//! What a filter of keys is made for.

use nandex_store::fingerprint::Universe;
use nandex_store::hash::{HashKind, KeyHasher};

use super::{Counts, Shape};
use crate::{Error, Result};

/// What happens when a filter is full.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Growth {
    /// It takes twice the slots. The insert that meets it waits until all entries are in the new ones, and
    /// both are in RAM until then. Fingerprints stay as they are, so the rate of false positives rises with
    /// the keys.
    #[default]
    Double,
    /// The insert is refused.
    Refuse,
}

/// What a [`SharedFilter`](super::SharedFilter) is made for.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Config {
    /// Keys at which `rate` is reached: they set the universe of fingerprints, for good.
    pub keys: u64,
    /// Rate of false positives among that many keys.
    pub rate: f64,
    /// Keys that there is room for at first.
    pub room: u64,
    /// What a slot says of counts.
    pub counts: Counts,
    /// What happens when it is full.
    pub growth: Growth,
    /// The hash function. Keys that others choose need [`HashKind::Sip13`] and a secret key.
    pub hash: HashKind,
    /// The key of the hash function.
    pub hash_key: u128,
}

impl Config {
    /// For so many keys at this rate, with room for all of them from the beginning, and growth beyond.
    #[must_use]
    pub const fn new(keys: u64, rate: f64) -> Self {
        Self {
            keys,
            rate,
            room: keys,
            counts: Counts::One,
            growth: Growth::Double,
            hash: HashKind::Xxh3,
            hash_key: 0,
        }
    }

    /// So small that a test meets every limit.
    #[must_use]
    pub const fn tiny() -> Self {
        Self { room: 4, ..Self::new(1000, 0.01) }
    }

    /// The function from keys to hashes.
    #[must_use]
    pub const fn hasher(&self) -> KeyHasher {
        KeyHasher::new(self.hash, self.hash_key)
    }

    /// The sizes to begin with, where `fill` of the slots may be in use.
    ///
    /// # Errors
    /// [`Error::Config`] for a rate that is none, no keys or no room, or fingerprints too wide for a slot.
    pub fn shape(&self, fill: f64) -> Result<Shape> {
        let universe = Universe::for_rate(self.keys, self.rate)?;
        if self.room == 0 {
            let reason = "0; a filter begins with room for at least one key".into();
            return Err(Error::Config { field: "room", reason });
        }
        Shape::for_entries(universe, self.room, fill, self.counts)
    }
}
