//! A thread-safe filter of keys: it hashes keys to fingerprints, guards the filter of fingerprints with a lock, and
//! doubles it when it is full.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Mutex, MutexGuard, RwLock, RwLockReadGuard, RwLockWriteGuard};

use nandex_store::fingerprint::{Split, Universe};
use nandex_store::hash::KeyHasher;
use nandex_store::run::Entry;

use super::{Config, Growth, QuotientFilter, REPEATS_MAX};
use crate::api::{Counter, Filter, FilterStats, READS_HISTOGRAM_LEN};
use crate::{Error, Result};

/// An approximate multiset of keys in RAM, or counts of them: a [`Filter`] and a [`Counter`].
///
/// Lookups run in parallel; updates and lookups wait for each other. While an update doubles the slots, other updates
/// wait and lookups continue. Nothing is on flash.
///
/// ```
/// use nandex::Filter;
/// use nandex::raw::quotient::{Config, SharedFilter};
///
/// let filter = SharedFilter::new(Config::new(100_000, 0.01))?;
/// filter.insert(b"flash")?;
/// assert!(filter.contains(b"flash")?);
/// filter.delete(b"flash")?;
/// assert!(!filter.contains(b"flash")?);
/// # Ok::<(), nandex::Error>(())
/// ```
#[derive(Debug)]
pub struct SharedFilter {
    config: Config,
    hasher: KeyHasher,
    universe: Universe,
    /// Held for the whole of an update, and taken before the filter's lock.
    updates: Mutex<()>,
    filter: RwLock<QuotientFilter>,
    counters: Counters,
}

/// The filter, locked by an update.
type Locked<'f> = RwLockWriteGuard<'f, QuotientFilter>;

/// The counts of calls.
#[derive(Debug, Default)]
struct Counters {
    inserts: AtomicU64,
    deletes: AtomicU64,
    positives: AtomicU64,
    negatives: AtomicU64,
}

impl SharedFilter {
    /// Creates an empty filter.
    ///
    /// # Errors
    /// [`Error::Config`]; see [`Config::shape`].
    pub fn new(config: Config) -> Result<Self> {
        let filter = QuotientFilter::new(config.shape()?);
        Ok(Self::of(config, filter))
    }

    /// Creates a filter from these fingerprints, which must have been made for the same keys, rate and hash.
    ///
    /// # Errors
    /// [`Error::Config`] if they have another universe or store counts in another way.
    pub fn with_filter(config: Config, filter: QuotientFilter) -> Result<Self> {
        let (expected, found) = (config.shape()?, filter.shape());
        let (size, other) = (expected.split().universe().size(), found.split().universe().size());
        if size != other {
            let reason = format!(
                "a filter of {other} fingerprints where {size} are expected; give the keys and the rate that it \
                 was made for"
            );
            return Err(Error::Config { field: "universe", reason });
        }
        if config.counts != found.counts() {
            let reason =
                format!("{:?} in the filter, {:?} are expected", found.counts(), config.counts);
            return Err(Error::Config { field: "counts", reason });
        }
        Ok(Self::of(config, filter))
    }

    /// Encodes the filter with its hash function and the rest of its configuration: [`decode`](Self::decode) needs
    /// nothing else. The bytes contain the hash key. Someone who reads it can choose keys that collide.
    #[must_use]
    pub fn encode(&self) -> Vec<u8> {
        self.filter().encode_keys(&self.config)
    }

    /// Decodes a filter. For bytes from [`QuotientFilter::encode`], use [`with_filter`](Self::with_filter).
    ///
    /// # Errors
    /// [`Error::FilterDamaged`]; [`Error::Config`] for bytes that are not a filter of keys.
    pub fn decode(bytes: &[u8]) -> Result<Self> {
        let (filter, config) = QuotientFilter::decode_keys(bytes)?;
        Self::with_filter(config, filter)
    }

    fn of(config: Config, filter: QuotientFilter) -> Self {
        let universe = filter.shape().split().universe();
        Self {
            config,
            hasher: config.hasher(),
            universe,
            updates: Mutex::default(),
            filter: RwLock::new(filter),
            counters: Counters::default(),
        }
    }

    /// Returns the configuration that it was created with.
    #[must_use]
    pub const fn config(&self) -> &Config {
        &self.config
    }

    /// The fingerprint of a key.
    #[must_use]
    pub fn fingerprint(&self, key: &[u8]) -> u64 {
        self.universe.of(self.hasher.hash(key).filter)
    }

    /// Locks the filter of fingerprints, for saving or merging it. Updates wait until the guard is dropped.
    pub fn filter(&self) -> RwLockReadGuard<'_, QuotientFilter> {
        self.filter.read().expect("no holder of this lock panics")
    }

    fn hold_updates(&self) -> MutexGuard<'_, ()> {
        self.updates.lock().expect("no holder of this lock panics")
    }

    fn filter_mut(&self) -> Locked<'_> {
        self.filter.write().expect("no holder of this lock panics")
    }

    fn entry(&self, key: &[u8], count: i64) -> Entry {
        Entry { fingerprint: self.fingerprint(key), count }
    }

    fn update(&self, key: &[u8], amount: i64) -> Result<()> {
        self.apply(&[self.entry(key, amount)])
    }

    fn update_many<'k>(&self, updates: impl Iterator<Item = (&'k [u8], i64)>) -> Result<()> {
        self.apply(&updates.map(|(key, amount)| self.entry(key, amount)).collect::<Vec<_>>())
    }

    /// Applies updates in order.
    fn apply(&self, updates: &[Entry]) -> Result<()> {
        let _updates = self.hold_updates();
        let mut filter = self.filter_mut();
        for alike in updates.chunk_by(|one, next| (one.count < 0) == (next.count < 0)) {
            if alike[0].count < 0 {
                alike.iter().try_for_each(|update| self.subtract(&mut filter, *update))?;
            } else {
                filter = self.add_all(filter, alike)?;
            }
        }
        Ok(())
    }

    /// Adds counts, and grows the filter if it is full.
    fn add_all<'f>(&'f self, mut filter: Locked<'f>, updates: &[Entry]) -> Result<Locked<'f>> {
        let mut done = 0;
        loop {
            let added = filter.add_entries(&updates[done..])?;
            self.counters.inserts.fetch_add(added as u64, Relaxed);
            done += added;
            let Some(Entry { fingerprint, count }) = updates.get(done) else { return Ok(filter) };
            let has_grown;
            (filter, has_grown) = self.grow(filter)?;
            if !has_grown {
                filter.add(*fingerprint, *count)?;
                return Ok(filter);
            }
        }
    }

    /// Replaces the filter by one with twice the slots, if that is allowed and helps. The caller holds the lock of
    /// updates; lookups continue.
    fn grow<'f>(&'f self, full: Locked<'f>) -> Result<(Locked<'f>, bool)> {
        drop(full);
        let grown = self.grown(&self.filter())?;
        let (mut filter, has_grown) = (self.filter_mut(), grown.is_some());
        if let Some(grown) = grown {
            *filter = grown;
        }
        Ok((filter, has_grown))
    }

    /// Adds one occurrence of each absent key, in order; no other update comes in between.
    fn add_absent(&self, keys: &[&[u8]]) -> Result<Vec<bool>> {
        let _updates = self.hold_updates();
        let mut filter = self.filter_mut();
        let mut added = Vec::with_capacity(keys.len());
        for key in keys {
            let entry = self.entry(key, 1);
            let is_new = filter.count(entry.fingerprint) <= 0;
            if is_new {
                filter = self.add_all(filter, &[entry])?;
            }
            let counter = if is_new { &self.counters.negatives } else { &self.counters.positives };
            counter.fetch_add(1, Relaxed);
            added.push(is_new);
        }
        Ok(added)
    }

    /// Subtracts from a count, which never gets below zero, since there is no other filter with the inserts.
    fn subtract(&self, filter: &mut QuotientFilter, update: Entry) -> Result<()> {
        let Entry { fingerprint, count: amount } = update;
        let count = filter.count(fingerprint);
        if count.checked_add(amount).is_none_or(|sum| sum < 0) {
            return Err(Error::NotThere { count, amount });
        }
        filter.add(fingerprint, amount)?;
        self.counters.deletes.fetch_add(1, Relaxed);
        Ok(())
    }

    /// Returns a filter with twice the slots, if that is allowed and helps. A filter that is full with half of its
    /// slots free does not need more: its keys have similar hashes, or its counts are too large.
    fn grown(&self, filter: &QuotientFilter) -> Result<Option<QuotientFilter>> {
        let shape = filter.shape();
        let quotients = shape.split().quotients();
        let is_half_free = filter.entries() + (REPEATS_MAX as u64) < shape.entries_max() / 2;
        let is_widest = Split::new(self.universe, quotients + 1).quotients() == quotients;
        if self.config.growth == Growth::Refuse || is_half_free || is_widest {
            return Ok(None);
        }
        filter.resized(2 * quotients).map(Some)
    }

    /// Returns the counts of keys.
    fn counts(&self, keys: &[&[u8]]) -> Vec<u64> {
        let fingerprints: Vec<_> = keys.iter().map(|key| self.fingerprint(key)).collect();
        let mut counts = Vec::new();
        self.filter().count_many(&fingerprints, &mut counts);
        let present = counts.iter().filter(|count| **count > 0).count();
        self.counters.positives.fetch_add(present as u64, Relaxed);
        self.counters.negatives.fetch_add((counts.len() - present) as u64, Relaxed);
        counts.into_iter().map(|count| u64::try_from(count).unwrap_or_default()).collect()
    }

    fn current_count(&self, key: &[u8]) -> u64 {
        let count = self.filter().count(self.fingerprint(key));
        let counter = if count > 0 { &self.counters.positives } else { &self.counters.negatives };
        counter.fetch_add(1, Relaxed);
        u64::try_from(count).unwrap_or_default()
    }

    fn current_stats(&self) -> FilterStats {
        let (filter, counters) = (self.filter(), &self.counters);
        let lookups = [&counters.positives, &counters.negatives].map(|count| count.load(Relaxed));
        let mut reads_histogram = [0; READS_HISTOGRAM_LEN];
        reads_histogram[0] = lookups.iter().sum();
        FilterStats {
            entries: filter.entries(),
            buffered: filter.entries(),
            rate: self.universe.rate(filter.entries()),
            rate_made_for: self.config.rate,
            keys_made_for: self.config.keys,
            ram_bytes: filter.ram_bytes() as u64,
            inserts: counters.inserts.load(Relaxed),
            deletes: counters.deletes.load(Relaxed),
            positives: lookups[0],
            negatives: lookups[1],
            reads_histogram,
            ..FilterStats::default()
        }
    }
}

impl Filter for SharedFilter {
    fn insert(&self, key: &[u8]) -> Result<()> {
        self.update(key, 1)
    }

    fn delete(&self, key: &[u8]) -> Result<()> {
        self.update(key, -1)
    }

    fn contains(&self, key: &[u8]) -> Result<bool> {
        Ok(self.current_count(key) > 0)
    }

    fn insert_many(&self, keys: &[&[u8]]) -> Result<()> {
        self.update_many(keys.iter().map(|key| (*key, 1)))
    }

    fn insert_if_absent_many(&self, keys: &[&[u8]]) -> Result<Vec<bool>> {
        self.add_absent(keys)
    }

    fn delete_many(&self, keys: &[&[u8]]) -> Result<()> {
        self.update_many(keys.iter().map(|key| (*key, -1)))
    }

    fn contains_many(&self, keys: &[&[u8]]) -> Result<Vec<bool>> {
        Ok(self.counts(keys).into_iter().map(|count| count > 0).collect())
    }

    fn sync(&self) -> Result<()> {
        Ok(())
    }

    fn flush(&self) -> Result<()> {
        Ok(())
    }

    fn stats(&self) -> FilterStats {
        self.current_stats()
    }
}

impl Counter for SharedFilter {
    fn add(&self, key: &[u8], amount: i64) -> Result<()> {
        self.update(key, amount)
    }

    fn count(&self, key: &[u8]) -> Result<u64> {
        Ok(self.current_count(key))
    }

    fn add_many(&self, amounts: &[(&[u8], i64)]) -> Result<()> {
        self.update_many(amounts.iter().copied())
    }

    fn count_many(&self, keys: &[&[u8]]) -> Result<Vec<u64>> {
        Ok(self.counts(keys))
    }
}
