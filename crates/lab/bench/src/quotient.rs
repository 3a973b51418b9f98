//! The quotient filter in RAM as a subject, behind a lock.
//!
//! It takes hashes, and gets the same cheap hash as the other filters in `nandex-peers-filters`.

use std::sync::{PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};

use anyhow::{Result, ensure};
use nandex::raw::model::StoredKeys;
use nandex::raw::quotient::{Counts as SlotCounts, QuotientFilter, Shape};
use nandex::raw::store::fingerprint::Universe;

use crate::subject::{Client, Counts, Spec, Status, Subject, yes};

/// The share of slots in use with all its keys.
const FILL: f64 = 0.94;
/// Bits of a slot's count, if it counts.
const COUNT_BITS: u32 = 8;

/// Hashes a key to 64 bits: one multiplication, folded. All filters in RAM that take hashes get this hash, so
/// that their hashers are not compared.
#[inline]
#[must_use]
pub const fn hash(key: u64) -> u64 {
    let product = (key ^ 0x2D35_8DCC_AA6C_78A5) as u128 * 0x8BB8_4B93_962E_ACC9;
    (product >> 64) as u64 ^ product as u64
}

/// An open filter.
pub struct QuotientSubject {
    universe: Universe,
    filter: RwLock<QuotientFilter>,
}

impl QuotientSubject {
    /// Creates an empty filter.
    ///
    /// # Errors
    /// Fails for impossible sizes.
    pub fn create(spec: &Spec) -> Result<Self> {
        let is_whole = spec.stored_keys != StoredKeys::Fingerprints;
        ensure!(!is_whole, "--stored-keys whole: a quotient filter stores fingerprints");
        ensure!(spec.discipline.is_none(), "--discipline: only a counting table has one");
        let universe = Universe::for_rate(spec.entries, spec.rate)?;
        let counts = match spec.counts {
            Counts::Membership => SlotCounts::One,
            Counts::Kept => SlotCounts::Small(COUNT_BITS),
        };
        let shape = Shape::for_entries(universe, spec.entries, FILL, counts)?;
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

impl Subject for QuotientSubject {
    fn client(&self) -> Result<Box<dyn Client + '_>> {
        Ok(Box::new(QuotientClient { subject: self, fingerprints: Vec::new(), counts: Vec::new() }))
    }

    fn sync(&self) -> Result<()> {
        Ok(())
    }

    fn status(&self) -> Status {
        let filter = self.read();
        Status {
            entries: Some(filter.entries()),
            ram_bytes: Some(filter.ram_bytes() as u64),
            rate: self.universe.rate(filter.entries()),
            ..Status::default()
        }
    }
}

struct QuotientClient<'a> {
    subject: &'a QuotientSubject,
    fingerprints: Vec<u64>,
    counts: Vec<i64>,
}

impl QuotientClient<'_> {
    fn gather(&mut self, keys: impl Iterator<Item = u64>) {
        let subject = self.subject;
        self.fingerprints.clear();
        self.fingerprints.extend(keys.map(|key| subject.fingerprint(key)));
    }

    /// Adds one to the count of each gathered fingerprint.
    fn add(&mut self) -> Result<()> {
        let taken = self.subject.write().add_many(&self.fingerprints)?;
        ensure!(taken == self.fingerprints.len(), "the quotient filter is full");
        Ok(())
    }

    fn count(&mut self, keys: &[u64]) {
        self.gather(keys.iter().copied());
        self.counts.clear();
        self.subject.read().count_many(&self.fingerprints, &mut self.counts);
    }
}

impl Client for QuotientClient<'_> {
    fn insert(&mut self, key: u64, _value: u64) -> Result<()> {
        Ok(self.subject.write().add(self.subject.fingerprint(key), 1)?)
    }

    fn insert_many(&mut self, pairs: &[(u64, u64)]) -> Result<()> {
        self.gather(pairs.iter().map(|pair| pair.0));
        self.add()
    }

    fn get(&mut self, key: u64) -> Result<Option<u64>> {
        Ok(yes(self.subject.read().count(self.subject.fingerprint(key)) > 0))
    }

    fn get_many(&mut self, keys: &[u64], found: &mut Vec<Option<u64>>) -> Result<()> {
        self.count(keys);
        found.extend(self.counts.iter().map(|&count| yes(count > 0)));
        Ok(())
    }

    fn delete_many(&mut self, keys: &[u64]) -> Result<()> {
        let mut filter = self.subject.write();
        keys.iter().try_for_each(|&key| Ok(filter.add(self.subject.fingerprint(key), -1)?))
    }

    fn add_many(&mut self, keys: &[u64]) -> Result<()> {
        self.gather(keys.iter().copied());
        self.add()
    }

    fn count_many(&mut self, keys: &[u64], counts: &mut Vec<u64>) -> Result<()> {
        self.count(keys);
        counts.extend(self.counts.iter().map(|&count| u64::try_from(count).unwrap_or(0)));
        Ok(())
    }
}
