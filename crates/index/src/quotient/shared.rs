//! A filter of keys that many threads share: keys become fingerprints, a lock stands before the slots, and
//! slots double when they are full.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{RwLock, RwLockReadGuard, RwLockWriteGuard};

use nandex_store::fingerprint::{Split, Universe};
use nandex_store::hash::KeyHasher;

use super::{Config, Growth, QuotientFilter, REPEATS_MAX, Slots};
use crate::api::{Counter, Filter, FilterStats, READS_HISTOGRAM_LEN};
use crate::{Error, Result};

/// An approximate multiset of keys in RAM, or counts of them: a [`Filter`] and a [`Counter`].
///
/// Lookups go side by side; an update waits for them and they for it. Nothing of it is on flash.
///
/// ```
/// use nandex::Filter;
/// use nandex::quotient::{Config, SharedFilter};
///
/// let filter: SharedFilter = SharedFilter::new(Config::new(100_000, 0.01))?;
/// filter.insert(b"flash")?;
/// assert!(filter.contains(b"flash")?);
/// filter.delete(b"flash")?;
/// assert!(!filter.contains(b"flash")?);
/// # Ok::<(), nandex::Error>(())
/// ```
#[derive(Debug)]
pub struct SharedFilter<S = QuotientFilter> {
    config: Config,
    hasher: KeyHasher,
    universe: Universe,
    slots: RwLock<S>,
    seen: Seen,
}

/// What was asked so far.
#[derive(Debug, Default)]
struct Seen {
    inserts: AtomicU64,
    deletes: AtomicU64,
    positives: AtomicU64,
    negatives: AtomicU64,
}

impl<S: Slots> SharedFilter<S> {
    /// An empty filter.
    ///
    /// # Errors
    /// [`Error::Config`]; see [`Config::shape`].
    pub fn new(config: Config) -> Result<Self> {
        let shape = config.shape(S::FILL)?;
        Ok(Self::around(config, S::new(shape)))
    }

    /// A filter with these slots, which must have been filled by the same keys, rate and hash.
    ///
    /// # Errors
    /// [`Error::Config`] where they are of another universe, or say counts in another way.
    pub fn with_slots(config: Config, slots: S) -> Result<Self> {
        let (expected, found) = (config.shape(S::FILL)?, slots.shape());
        let (size, other) = (expected.split().universe().size(), found.split().universe().size());
        if size != other {
            let reason = format!(
                "slots of {other} fingerprints in a filter of {size}; give the keys and the rate that they \
                 were made for"
            );
            return Err(Error::Config { field: "universe", reason });
        }
        if config.counts != found.counts() {
            let reason = format!("slots have {:?}, the filter {:?}", found.counts(), config.counts);
            return Err(Error::Config { field: "counts", reason });
        }
        Ok(Self::around(config, slots))
    }

    fn around(config: Config, slots: S) -> Self {
        let universe = slots.shape().split().universe();
        let (slots, seen) = (RwLock::new(slots), Seen::default());
        Self { config, hasher: config.hasher(), universe, slots, seen }
    }

    /// What it was made for.
    #[must_use]
    pub const fn config(&self) -> &Config {
        &self.config
    }

    /// The fingerprint of a key.
    #[must_use]
    pub fn fingerprint(&self, key: &[u8]) -> u64 {
        self.universe.of(self.hasher.hash(key).filter)
    }

    /// The slots, to save or to merge them. Updates wait until they are given back.
    pub fn slots(&self) -> RwLockReadGuard<'_, S> {
        self.slots.read().expect("no holder of this lock panics")
    }

    fn slots_mut(&self) -> RwLockWriteGuard<'_, S> {
        self.slots.write().expect("no holder of this lock panics")
    }

    /// Adds to the count of a key, and grows where that is needed, allowed and of use.
    fn put(&self, slots: &mut S, key: &[u8], amount: i64) -> Result<()> {
        let fingerprint = self.fingerprint(key);
        if amount == 0 {
            return Ok(());
        }
        if amount < 0 {
            // No older part of this filter lies elsewhere, so nothing waits for a tombstone.
            let count = slots.count(fingerprint);
            if count.checked_add(amount).is_none_or(|sum| sum < 0) {
                return Err(Error::NotThere { count, amount });
            }
        }
        while let Err(error) = slots.add(fingerprint, amount) {
            let Error::FilterFull { .. } = error else { return Err(error) };
            *slots = self.grown(slots)?.ok_or(error)?;
        }
        let taken = if amount > 0 { &self.seen.inserts } else { &self.seen.deletes };
        taken.fetch_add(1, Relaxed);
        Ok(())
    }

    /// Twice the slots, where that is allowed and helps. A filter that is full while half of what it may hold
    /// is free lacks no slots: its keys' hashes are all alike, or its counts too great.
    fn grown(&self, slots: &S) -> Result<Option<S>> {
        let shape = slots.shape();
        let quotients = shape.split().quotients();
        let is_half_free = slots.entries() + (REPEATS_MAX as u64) < shape.entries_max() / 2;
        let is_widest = Split::new(self.universe, quotients + 1).quotients() == quotients;
        if self.config.growth == Growth::Refuse || is_half_free || is_widest {
            return Ok(None);
        }
        slots.resized(2 * quotients).map(Some)
    }

    fn held(&self, slots: &S, key: &[u8]) -> u64 {
        let count = slots.count(self.fingerprint(key));
        let answered = if count > 0 { &self.seen.positives } else { &self.seen.negatives };
        answered.fetch_add(1, Relaxed);
        u64::try_from(count).unwrap_or_default()
    }

    fn put_many<'k>(&self, updates: impl Iterator<Item = (&'k [u8], i64)>) -> Result<()> {
        let mut slots = self.slots_mut();
        updates.into_iter().try_for_each(|(key, amount)| self.put(&mut slots, key, amount))
    }

    fn figures(&self) -> FilterStats {
        let slots = self.slots();
        let lookups = [&self.seen.positives, &self.seen.negatives].map(|seen| seen.load(Relaxed));
        let mut reads_histogram = [0; READS_HISTOGRAM_LEN];
        reads_histogram[0] = lookups.iter().sum();
        FilterStats {
            entries: slots.entries(),
            buffered: slots.entries(),
            rate: self.universe.rate(slots.entries()),
            rate_made_for: self.config.rate,
            keys_made_for: self.config.keys,
            ram_bytes: slots.ram_bytes() as u64,
            inserts: self.seen.inserts.load(Relaxed),
            deletes: self.seen.deletes.load(Relaxed),
            positives: lookups[0],
            negatives: lookups[1],
            reads_histogram,
            ..FilterStats::default()
        }
    }
}

impl<S: Slots> Filter for SharedFilter<S> {
    fn insert(&self, key: &[u8]) -> Result<()> {
        self.put(&mut self.slots_mut(), key, 1)
    }

    fn delete(&self, key: &[u8]) -> Result<()> {
        self.put(&mut self.slots_mut(), key, -1)
    }

    fn contains(&self, key: &[u8]) -> Result<bool> {
        Ok(self.held(&self.slots(), key) > 0)
    }

    fn insert_many(&self, keys: &[&[u8]]) -> Result<()> {
        self.put_many(keys.iter().map(|key| (*key, 1)))
    }

    fn delete_many(&self, keys: &[&[u8]]) -> Result<()> {
        self.put_many(keys.iter().map(|key| (*key, -1)))
    }

    fn contains_many(&self, keys: &[&[u8]]) -> Result<Vec<bool>> {
        let slots = self.slots();
        Ok(keys.iter().map(|key| self.held(&slots, key) > 0).collect())
    }

    fn sync(&self) -> Result<()> {
        Ok(())
    }

    fn flush(&self) -> Result<()> {
        Ok(())
    }

    fn stats(&self) -> FilterStats {
        self.figures()
    }
}

impl<S: Slots> Counter for SharedFilter<S> {
    fn add(&self, key: &[u8], amount: i64) -> Result<()> {
        self.put(&mut self.slots_mut(), key, amount)
    }

    fn count(&self, key: &[u8]) -> Result<u64> {
        Ok(self.held(&self.slots(), key))
    }

    fn add_many(&self, amounts: &[(&[u8], i64)]) -> Result<()> {
        self.put_many(amounts.iter().copied())
    }

    fn count_many(&self, keys: &[&[u8]]) -> Result<Vec<u64>> {
        let slots = self.slots();
        Ok(keys.iter().map(|key| self.held(&slots, key)).collect())
    }

    fn sync(&self) -> Result<()> {
        Ok(())
    }

    fn flush(&self) -> Result<()> {
        Ok(())
    }

    fn stats(&self) -> FilterStats {
        self.figures()
    }
}
