//! Filters of other crates, in RAM.
//!
//! * All get the same hash if they take one, so that no hasher is measured.
//! * A batch takes the lock once; lookups share it.
//! * `qfilter` keeps duplicates, since only then may it delete. It is made for the keys and the rate,
//!   which it rounds to powers of two. Its counts are copies of a fingerprint, one each, and are left out.
//! * `fastbloom` gets its best number of probes for the rate.
//! * `xorf`'s binary fuse filter is static: inserts collect keys, 8 bytes each, and the sync that ends them
//!   builds it, which takes some 24 bytes of RAM per key for that time. Its rate of false positives is 1 in
//!   256.

use std::sync::{PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};

use anyhow::{Result, bail, ensure};
use fastbloom::BloomFilter;
use nandex_bench::subject::{Client, Spec, Status, Subject, yes};
use xorf::{BinaryFuse8, Filter as _};

use crate::bloom::hash;

/// The operations of a filter in RAM.
pub trait InRam: Send + Sync {
    /// Adds a key.
    fn insert(&mut self, key: u64) -> Result<()>;
    /// Returns whether a key is present.
    fn contains(&self, key: u64) -> bool;
    /// Ends the inserts.
    fn build(&mut self) -> Result<()> {
        Ok(())
    }
    /// Removes an insert.
    fn delete(&mut self, _key: u64) -> Result<()> {
        bail!("this filter cannot delete")
    }
    /// Returns its status.
    fn status(&self) -> Status;
}

/// A filter behind a lock.
pub struct Locked<F>(RwLock<F>);

impl<F> Locked<F> {
    /// Wraps a filter.
    pub fn new(filter: F) -> Self {
        Self(RwLock::new(filter))
    }

    fn read(&self) -> RwLockReadGuard<'_, F> {
        self.0.read().unwrap_or_else(PoisonError::into_inner)
    }

    fn write(&self) -> RwLockWriteGuard<'_, F> {
        self.0.write().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<F: InRam> Subject for Locked<F> {
    fn client(&self) -> Result<Box<dyn Client + '_>> {
        Ok(Box::new(self))
    }

    fn sync(&self) -> Result<()> {
        self.write().build()
    }

    fn status(&self) -> Status {
        self.read().status()
    }
}

impl<F: InRam> Client for &Locked<F> {
    fn insert(&mut self, key: u64, _value: u64) -> Result<()> {
        self.write().insert(key)
    }

    fn insert_many(&mut self, pairs: &[(u64, u64)]) -> Result<()> {
        let mut filter = self.write();
        pairs.iter().try_for_each(|&(key, _)| filter.insert(key))
    }

    fn get(&mut self, key: u64) -> Result<Option<u64>> {
        Ok(yes(self.read().contains(key)))
    }

    fn get_many(&mut self, keys: &[u64], found: &mut Vec<Option<u64>>) -> Result<()> {
        let filter = self.read();
        found.extend(keys.iter().map(|&key| yes(filter.contains(key))));
        Ok(())
    }

    fn delete_many(&mut self, keys: &[u64]) -> Result<()> {
        let mut filter = self.write();
        keys.iter().try_for_each(|&key| filter.delete(key))
    }
}

/// `qfilter`: a quotient filter with rank and select.
pub struct Qfilter(qfilter::Filter);

impl Qfilter {
    /// Creates an empty filter.
    pub fn create(spec: &Spec) -> Result<Self> {
        let filter = qfilter::Filter::new(spec.entries, spec.rate);
        Ok(Self(filter.map_err(|refusal| anyhow::anyhow!("qfilter: {refusal:?}"))?))
    }
}

impl InRam for Qfilter {
    fn insert(&mut self, key: u64) -> Result<()> {
        match self.0.insert_fingerprint(true, hash(key)) {
            Ok(_) => Ok(()),
            Err(refusal) => bail!("qfilter: {refusal:?}"),
        }
    }

    fn contains(&self, key: u64) -> bool {
        self.0.contains_fingerprint(hash(key))
    }

    fn delete(&mut self, key: u64) -> Result<()> {
        ensure!(self.0.remove_fingerprint(hash(key)), "qfilter has lost a key");
        Ok(())
    }

    fn status(&self) -> Status {
        Status {
            entries: Some(self.0.len()),
            ram_bytes: Some(self.0.memory_usage() as u64),
            rate: self.0.current_error_ratio(),
            ..Status::default()
        }
    }
}

/// `fastbloom`: a blockless Bloom filter.
pub struct FastBloom {
    filter: BloomFilter,
    keys: u64,
}

impl FastBloom {
    /// Creates an empty filter.
    pub fn create(spec: &Spec) -> Result<Self> {
        let keys = usize::try_from(spec.entries)?;
        Ok(Self { filter: BloomFilter::with_false_pos(spec.rate).expected_items(keys), keys: 0 })
    }
}

impl InRam for FastBloom {
    fn insert(&mut self, key: u64) -> Result<()> {
        self.filter.insert_hash(hash(key));
        self.keys += 1;
        Ok(())
    }

    fn contains(&self, key: u64) -> bool {
        self.filter.contains_hash(hash(key))
    }

    fn status(&self) -> Status {
        let keys = usize::try_from(self.keys).unwrap_or(usize::MAX);
        Status {
            entries: Some(self.keys),
            ram_bytes: Some(self.filter.num_bits() as u64 / 8),
            rate: self.filter.expected_false_pos(keys),
            ..Status::default()
        }
    }
}

/// `xorf`: a static binary fuse filter of 8 bits.
#[derive(Default)]
pub struct Fuse {
    keys: Vec<u64>,
    filter: Option<BinaryFuse8>,
    held: u64,
}

impl Fuse {
    /// The minimum rate, a little below one in 256: a request for 0.39 % is fine.
    const RATE_MIN: f64 = 0.00385;

    /// Creates a filter without keys.
    pub fn create(spec: &Spec) -> Result<Self> {
        ensure!(
            spec.rate >= Self::RATE_MIN,
            "a binary fuse filter of 8 bits has a false positive rate of 1 in 256, not {}; pass --fpr 0.0039",
            spec.rate
        );
        Ok(Self { keys: Vec::with_capacity(usize::try_from(spec.entries)?), ..Self::default() })
    }
}

impl InRam for Fuse {
    fn insert(&mut self, key: u64) -> Result<()> {
        ensure!(self.filter.is_none(), "a binary fuse filter takes no inserts once it is built");
        self.keys.push(key);
        Ok(())
    }

    fn contains(&self, key: u64) -> bool {
        self.filter.as_ref().is_some_and(|filter| filter.contains(&key))
    }

    fn build(&mut self) -> Result<()> {
        if self.filter.is_none() {
            let keys = std::mem::take(&mut self.keys);
            let filter = BinaryFuse8::try_from(&keys);
            self.filter = Some(filter.map_err(|refusal| anyhow::anyhow!("xorf: {refusal}"))?);
            self.held = keys.len() as u64;
        }
        Ok(())
    }

    fn status(&self) -> Status {
        let built = self.filter.as_ref().map_or(0, |filter| filter.fingerprints.len() as u64);
        Status {
            entries: Some(self.held.max(self.keys.len() as u64)),
            ram_bytes: Some(built + 8 * self.keys.capacity() as u64),
            rate: 1.0 / 256.0,
            ..Status::default()
        }
    }
}
