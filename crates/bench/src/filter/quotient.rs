//! The quotient filter in RAM as a subject: behind a lock.
//!
//! It takes hashes, and gets the same cheap one as the filters of others in `nandex-peers-filters`.

use std::sync::{PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};

use anyhow::{Result, ensure};
use nandex::quotient::{Counts as SlotCounts, QuotientFilter, Shape};
use nandex::store::fingerprint::Universe;

use super::subject::{Counts, FilterLane, FilterSpec, FilterSubject, State, hash};

/// Slots in use when as many keys are in as it is made for.
const FILL: f64 = 0.94;
/// Bits of a slot's count, where it counts.
const COUNT_BITS: u32 = 8;

/// An open filter.
pub struct QuotientSubject {
    universe: Universe,
    filter: RwLock<QuotientFilter>,
}

impl QuotientSubject {
    /// An empty filter.
    ///
    /// # Errors
    /// Sizes that cannot work.
    pub fn create(spec: &FilterSpec) -> Result<Self> {
        let universe = Universe::for_rate(spec.keys, spec.rate)?;
        let counts = match spec.counts {
            Counts::Membership => SlotCounts::One,
            Counts::Kept => SlotCounts::Small(COUNT_BITS),
        };
        let shape = Shape::for_entries(universe, spec.keys, FILL, counts)?;
        Ok(Self { universe, filter: RwLock::new(QuotientFilter::new(shape)) })
    }

    fn read(&self) -> RwLockReadGuard<'_, QuotientFilter> {
        self.filter.read().unwrap_or_else(PoisonError::into_inner)
    }

    fn write(&self) -> RwLockWriteGuard<'_, QuotientFilter> {
        self.filter.write().unwrap_or_else(PoisonError::into_inner)
    }

    fn fingerprint(&self, key: u64) -> u64 {
        self.universe.of(hash(key))
    }
}

impl FilterSubject for QuotientSubject {
    fn lane(&self) -> Result<Box<dyn FilterLane + '_>> {
        Ok(Box::new(QuotientLane { subject: self, fingerprints: Vec::new(), counts: Vec::new() }))
    }

    fn sync(&self) -> Result<()> {
        Ok(())
    }

    fn settle(&self) -> Result<()> {
        Ok(())
    }

    fn state(&self) -> State {
        let filter = self.read();
        State {
            entries: Some(filter.entries()),
            ram_bytes: filter.ram_bytes() as u64,
            rate: self.universe.rate(filter.entries()),
            ..State::default()
        }
    }
}

struct QuotientLane<'a> {
    subject: &'a QuotientSubject,
    fingerprints: Vec<u64>,
    counts: Vec<i64>,
}

impl QuotientLane<'_> {
    fn gather(&mut self, keys: &[u64]) {
        let subject = self.subject;
        self.fingerprints.clear();
        self.fingerprints.extend(keys.iter().map(|&key| subject.fingerprint(key)));
    }

    fn look(&mut self, keys: &[u64]) {
        self.gather(keys);
        self.counts.clear();
        self.subject.read().count_many(&self.fingerprints, &mut self.counts);
    }
}

impl FilterLane for QuotientLane<'_> {
    fn insert(&mut self, key: u64) -> Result<()> {
        Ok(self.subject.write().add(self.subject.fingerprint(key), 1)?)
    }

    fn insert_many(&mut self, keys: &[u64]) -> Result<()> {
        self.gather(keys);
        let taken = self.subject.write().add_many(&self.fingerprints)?;
        ensure!(taken == keys.len(), "the quotient filter is full");
        Ok(())
    }

    fn contains(&mut self, key: u64) -> Result<bool> {
        Ok(self.subject.read().count(self.subject.fingerprint(key)) > 0)
    }

    fn contains_many(&mut self, keys: &[u64], found: &mut Vec<bool>) -> Result<()> {
        self.look(keys);
        found.extend(self.counts.iter().map(|&count| count > 0));
        Ok(())
    }

    fn delete_many(&mut self, keys: &[u64]) -> Result<()> {
        let mut filter = self.subject.write();
        keys.iter().try_for_each(|&key| Ok(filter.add(self.subject.fingerprint(key), -1)?))
    }

    fn add_many(&mut self, keys: &[u64]) -> Result<()> {
        self.insert_many(keys)
    }

    fn count_many(&mut self, keys: &[u64], counts: &mut Vec<u64>) -> Result<()> {
        self.look(keys);
        counts.extend(self.counts.iter().map(|&count| u64::try_from(count).unwrap_or(0)));
        Ok(())
    }
}
