//! A running estimate of the most frequent keys, in a fixed amount of RAM and without scanning the table.
//!
//! It follows as many keys as it has counters. Each counter has a lower and an upper bound of its key's count, and one
//! bound applies to all keys that are not followed. A new key takes a counter, with that bound for what may have been
//! added to it before. When all counters are used, those with the smallest upper bounds are freed, at least a quarter
//! of them, and the bound for keys that are not followed rises to the greatest of these. So an addition costs a lookup
//! in a hash table and, amortised, a constant share of the next pass, whatever its amount.
//!
//! This is Misra and Gries' summary for amounts of any size, with many decrements in one, as described by Anderson,
//! Bevan, Lang, Liberty, Rhodes and Thaler (IMC 2017), where each counter has its own bound as in Space-Saving
//! (Metwally, Agrawal and El Abbadi, ICDT 2005): a key that took its counter before the first pass, and kept it, has an
//! exact count.
//! Space-Saving itself replaces one counter for each new key: a heap costs a logarithm of the counters, and buckets of
//! equal counts suit only additions of 1. With additions of 1 both have the same bound for keys that are not followed.
//!
//! With `capacity` m and a total A of all additions (without subtractions):
//! 1. `lower <= count <= upper` for each key, whatever was added, subtracted and removed.
//! 2. A key that is not followed has a count of at most A / m: all keys with more are followed. A pass that raises that
//!    bound by d takes d from at least m counters that are above it, and additions brought at most A.
//! 3. A subtraction from a key that is not followed lowers the lower bound of all these keys, which is otherwise 0. A
//!    removal frees the key's counter: 0 is within the bounds of keys that are not followed.
//!
//! | act | time | RAM |
//! |---|---|---|
//! | add | a lookup, and a share of a pass: amortised O(1); a pass itself is O(m) | 0 |
//! | remove, bounds | a lookup | 0 |
//! | top | O(m log m) | the answer, and 8 bytes for each key followed |

mod counters;
#[cfg(test)]
mod tests;

use std::cmp::Reverse;

use nandex_store::hash::KeyHasher;

use crate::{Error, Result};
use counters::Counters;

/// The maximum number of keys that an estimate can be made for.
const CAPACITY_MAX: usize = 1 << 28;
/// The longest key that it takes, in bytes.
const KEY_BYTES_MAX: usize = 4096;

/// The sizes of an estimate.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct EstimateConfig {
    /// Every key with more than 1 / `capacity` of all additions is guaranteed to be followed: 1 to 2^28. There are a
    /// third more counters.
    pub capacity: usize,
    /// The longest key in bytes, 1 to 4096. Each counter reserves this number of bytes for its key. Longer keys are not
    /// followed.
    pub key_bytes_max: usize,
}

impl EstimateConfig {
    /// Returns the maximum number of keys that are followed at a time.
    #[must_use]
    pub const fn counters(&self) -> usize {
        self.capacity + self.capacity.div_ceil(3)
    }

    /// Returns the RAM that it takes, all of it from the start, in bytes.
    #[must_use]
    pub fn ram_bytes(&self) -> u64 {
        let uppers = self.counters() * size_of::<i64>();
        counters::ram_bytes(self.counters(), self.key_bytes_max) + uppers as u64
    }

    /// # Errors
    /// [`Error::Config`] for sizes out of their limits.
    fn validate(&self) -> Result<()> {
        let refuse = |field, found, most| {
            Err(Error::Config { field, reason: format!("{found}; it must be 1 to {most}") })
        };
        match *self {
            Self { capacity, .. } if !(1..=CAPACITY_MAX).contains(&capacity) => {
                refuse("capacity", capacity, CAPACITY_MAX)
            }
            Self { key_bytes_max, .. } if !(1..=KEY_BYTES_MAX).contains(&key_bytes_max) => {
                refuse("key_bytes_max", key_bytes_max, KEY_BYTES_MAX)
            }
            _ => Ok(()),
        }
    }
}

/// The bounds of a key's count, both included.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct KeyBounds {
    /// The count is at least this. Below 0 only if something was subtracted.
    pub lower: i64,
    /// The count is at most this.
    pub upper: i64,
}

impl KeyBounds {
    /// Returns the bounds after an addition.
    const fn plus(self, amount: i64) -> Self {
        Self { lower: self.lower + amount, upper: self.upper + amount }
    }
}

/// One of the most frequent keys by upper bound.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct EstimatedKey {
    /// The key, as it was added.
    pub key: Vec<u8>,
    /// The bounds of its count.
    pub bounds: KeyBounds,
    /// Whether it is certain that no key outside of the list has a greater count.
    pub is_certain: bool,
}

/// A running estimate of the most frequent keys of a stream of additions. It only covers that stream, so a table's
/// earlier counts are not included, and it is not stored on flash.
///
/// ```
/// use nandex::raw::counting::{EstimateConfig, TopEstimate};
/// use nandex::raw::store::hash::{HashKind, KeyHasher};
///
/// let config = EstimateConfig { capacity: 100, key_bytes_max: 16 };
/// let mut estimate = TopEstimate::new(config, KeyHasher::new(HashKind::Xxh3, 0))?;
/// for number in 0..10_000_u32 {
///     estimate.add_many(&[(b"often", 2), (&number.to_be_bytes(), 1)])?;
/// }
/// let top = estimate.top(1);
/// assert_eq!((&top[0].key[..], top[0].is_certain), (&b"often"[..], true));
/// assert_eq!((top[0].bounds.lower, top[0].bounds.upper), (20_000, 20_000));
/// assert!(estimate.others().upper <= 30_000 / 100);
/// # Ok::<(), nandex::Error>(())
/// ```
#[derive(Debug)]
pub struct TopEstimate {
    config: EstimateConfig,
    hasher: KeyHasher,
    counters: Counters,
    others: KeyBounds,
    added: i64,
    /// The total of subtractions, 0 or less.
    subtracted: i64,
    too_long: u64,
    /// The upper bounds of all counters, as scratch memory for a pass.
    uppers: Vec<i64>,
}

impl TopEstimate {
    /// Creates an empty estimate. Untrusted keys need a secret hash function, such as a volume's own.
    ///
    /// # Errors
    /// [`Error::Config`] for sizes out of their limits.
    pub fn new(config: EstimateConfig, hasher: KeyHasher) -> Result<Self> {
        config.validate()?;
        Ok(Self {
            config,
            hasher,
            counters: Counters::new(config.counters(), config.key_bytes_max),
            others: KeyBounds::default(),
            added: 0,
            subtracted: 0,
            too_long: 0,
            uppers: Vec::with_capacity(config.counters()),
        })
    }

    /// Adds to each key, in order: accepts the same batches as [`Counter::add_many`](crate::Counter::add_many).
    ///
    /// # Errors
    /// As [`add`](Self::add); additions before the failing one are done.
    pub fn add_many(&mut self, amounts: &[(&[u8], i64)]) -> Result<()> {
        amounts.iter().try_for_each(|(key, amount)| self.add(key, *amount))
    }

    /// Adds to a key, or subtracts from it with a negative amount. A key that is too long is only counted.
    ///
    /// # Errors
    /// [`Error::CountRange`] if all additions, or all subtractions, would exceed 63 bits.
    pub fn add(&mut self, key: &[u8], amount: i64) -> Result<()> {
        if key.len() > self.config.key_bytes_max {
            self.too_long += 1;
            return Ok(());
        }
        let all = if amount > 0 { &mut self.added } else { &mut self.subtracted };
        let sum = all.checked_add(amount).filter(|sum| *sum > i64::MIN);
        *all = sum.ok_or(Error::CountRange { count: *all, amount })?;
        let hash = self.hash(key);
        match self.counters.find(hash, key) {
            Some(at) => {
                let bounds = self.counters.bounds_mut(at);
                *bounds = bounds.plus(amount);
            }
            None if amount > 0 => {
                if self.counters.is_full() {
                    self.free_some();
                }
                self.counters.push(hash, key, self.others.plus(amount));
            }
            None => self.others.lower += amount,
        }
        Ok(())
    }

    /// Sets a key's count to 0, whatever it was.
    pub fn remove(&mut self, key: &[u8]) {
        if let Some(at) = self.counters.find(self.hash(key), key) {
            self.counters.remove(at);
        }
    }

    fn hash(&self, key: &[u8]) -> u32 {
        // The half of the hash that is not the table's order: keys that arrive in that order do not form clusters here.
        self.hasher.hash(key).filter as u32
    }

    /// Frees the counters with the smallest upper bounds, so that at least `capacity` of them were at or above the
    /// greatest of these.
    fn free_some(&mut self) {
        self.uppers.clear();
        self.uppers.extend(self.counters.iter().map(|(_, bounds)| bounds.upper));
        let place = self.uppers.len() - self.config.capacity;
        let (_, least, _) = self.uppers.select_nth_unstable(place);
        let mut others = self.others;
        others.upper = others.upper.max(*least);
        self.counters.retain(|bounds| {
            let keeps = bounds.upper > others.upper;
            if !keeps {
                others.lower = others.lower.min(bounds.lower);
            }
            keeps
        });
        self.others = others;
    }

    /// Returns the bounds of a key's count; `None` for a key that is too long.
    #[must_use]
    pub fn bounds(&self, key: &[u8]) -> Option<KeyBounds> {
        let is_taken = key.len() <= self.config.key_bytes_max;
        let found = self.counters.find(self.hash(key), key);
        is_taken.then(|| found.map_or(self.others, |at| self.counters.bounds(at)))
    }

    /// Returns the bounds of the count of each key that is not followed.
    #[must_use]
    pub const fn others(&self) -> KeyBounds {
        self.others
    }

    /// Returns the `count` keys with the greatest upper bounds, greatest first; among equal bounds the greater lower
    /// bound comes first, then the smaller key. The count of a key that is not listed is at most the last one's upper
    /// bound or that of the [`others`](Self::others). Keys whose counts cannot be above 0 are not listed.
    #[must_use]
    pub fn top(&self, count: usize) -> Vec<EstimatedKey> {
        let mut all: Vec<_> = self.counters.iter().filter(|(_, it)| it.upper > 0).collect();
        all.sort_unstable_by_key(|(key, it)| (Reverse(it.upper), Reverse(it.lower), *key));
        let next = all.get(count).map_or(0, |(_, it)| it.upper);
        let outside = self.others.upper.max(next);
        let listed = all.into_iter().take(count);
        listed
            .map(|(key, bounds)| EstimatedKey {
                key: key.to_vec(),
                bounds,
                is_certain: bounds.lower > 0 && bounds.lower >= outside,
            })
            .collect()
    }

    /// Returns the total of all additions, without subtractions and keys that are too long.
    #[must_use]
    pub const fn added(&self) -> i64 {
        self.added
    }

    /// Returns the number of additions and subtractions of keys that are too long to be followed.
    #[must_use]
    pub const fn too_long(&self) -> u64 {
        self.too_long
    }

    /// Returns the number of keys that are followed now.
    #[must_use]
    pub fn followed(&self) -> usize {
        self.counters.len()
    }

    /// Returns the sizes that it was created with.
    #[must_use]
    pub const fn config(&self) -> &EstimateConfig {
        &self.config
    }

    /// RAM that it takes, in bytes.
    #[must_use]
    pub fn ram_bytes(&self) -> u64 {
        self.config.ram_bytes()
    }
}
