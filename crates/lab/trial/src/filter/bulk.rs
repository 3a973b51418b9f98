//! Calls for many keys at once: the content of another filter, streams in the order of the hash, removals,
//! and keys that may be absent.

use std::sync::Arc;

use nandex::device::MemoryDevice;
use nandex::{AnyFilter, Counting, Durability, Result, Volume, VolumeOptions};
use nandex_sim::workload::SplitMix64;

use super::{AMOUNTS, FilterSetup};
use crate::contract::{Stop, pick};
use crate::session::Session;

/// The number of keys of another filter for each one that was removed there.
const REMOVED: u64 = 3;

/// A key and the amount to add to its count.
type Amount = (Vec<u8>, i64);

fn borrowed(amounts: &[Amount]) -> Vec<(&[u8], i64)> {
    amounts.iter().map(|(key, amount)| (&key[..], *amount)).collect()
}

impl Session<FilterSetup> {
    /// Absorbs a filter of the same configuration that has had these keys, and has lost every third one
    /// again. A filter that cannot absorb inserts the keys that are absent.
    ///
    /// # Errors
    /// Fails as [`Contract::call`](crate::Contract::call) does.
    pub fn absorb(&mut self, keys: &[u64], rng: &mut SplitMix64) -> std::result::Result<(), Stop> {
        if self.cascade().is_none() && self.counting().is_none() {
            return self.insert_absent(keys);
        }
        let (lost, kept): (Vec<u64>, Vec<u64>) =
            keys.iter().partition(|key| key.is_multiple_of(REMOVED));
        let mut amounts = |keys: &[u64]| -> Vec<Amount> {
            keys.iter().map(|key| (self.setup().key(*key), pick(rng, &AMOUNTS))).collect()
        };
        let (of_kept, of_lost) = (amounts(&kept), amounts(&lost));
        let attempts = kept.iter().zip(&of_kept);
        attempts.for_each(|(key, (_, amount))| self.past.attempt(*key, *amount));
        let other = self.other(&of_kept, &of_lost)?;
        let result = self.absorb_other(&other);
        self.saved(&kept, result)
    }

    /// Adds amounts in the order of the hash. If keys share fingerprints, or streams are not supported, they
    /// are added as a batch.
    ///
    /// # Errors
    /// Fails as [`Contract::call`](crate::Contract::call) does.
    pub fn absorb_sorted(
        &mut self,
        keys: &[u64],
        rng: &mut SplitMix64,
    ) -> std::result::Result<(), Stop> {
        if self.counting().is_none() || !self.setup().is_exact() {
            return self.insert_absent(keys);
        }
        let mut amounts = self.draw_amounts(keys, rng);
        let hasher = self.volume().hasher();
        amounts.sort_by_cached_key(|(key, _)| (hasher.hash(key).place, key.clone()));
        let result = self.absorb_stream(&amounts);
        self.saved(keys, result)
    }

    /// Adds amounts of keys that are in the order of the hash.
    pub(super) fn absorb_stream(&self, amounts: &[Amount]) -> Result<()> {
        let Some(counting) = self.counting() else { return Ok(()) };
        let mut absorbing = counting.absorb_sorted();
        amounts.iter().try_for_each(|(key, amount)| absorbing.push(key, *amount))?;
        absorbing.finish()
    }

    /// Sets the counts of these keys to 0, if no other keys share their fingerprints.
    ///
    /// # Errors
    /// Fails as [`Contract::call`](crate::Contract::call) does.
    pub fn remove_many(&mut self, keys: &[u64]) -> std::result::Result<(), Stop> {
        if self.counting().is_none() || !self.setup().is_exact() {
            return self.delete_many(keys);
        }
        keys.iter().for_each(|key| self.past.attempt_removal(*key));
        let bytes: Vec<_> = keys.iter().map(|key| self.setup().key(*key)).collect();
        let bytes: Vec<_> = bytes.iter().map(|key| &key[..]).collect();
        let result = match (self.counting(), &bytes[..]) {
            (Some(counting), [one]) => counting.remove(one),
            (Some(counting), all) => counting.remove_many(all),
            (None, _) => Ok(()),
        };
        self.updated(keys, result)
    }

    /// Inserts each of these keys that is absent, and judges the answer which ones these are.
    pub(super) fn insert_absent(&mut self, keys: &[u64]) -> std::result::Result<(), Stop> {
        keys.iter().for_each(|key| self.past.attempt_absent(*key));
        let bytes: Vec<_> = keys.iter().map(|key| self.setup().key(*key)).collect();
        let bytes: Vec<_> = bytes.iter().map(|key| &key[..]).collect();
        let are_new = match self.handle().insert_if_absent_many(&bytes) {
            Ok(are_new) => are_new,
            Err(error) => return self.updated(&[], Err(error)),
        };
        let mut inserted = Vec::with_capacity(keys.len());
        for (key, is_new) in keys.iter().zip(are_new) {
            self.past.retract(*key);
            self.judge(*key, super::Found::Presence(!is_new))?;
            if is_new {
                self.past.attempt(*key, 1);
                inserted.push(*key);
            }
        }
        self.updated(&inserted, Ok(()))
    }

    /// Merges all content into one part, if it can.
    pub(super) fn compact(&mut self) -> std::result::Result<(), Stop> {
        let result = match (self.cascade(), self.counting()) {
            (Some(cascade), _) => cascade.compact(),
            (_, Some(counting)) => counting.compact(),
            _ => return Ok(()),
        };
        self.synced(result)
    }

    /// Tries each of these calls when none may be acknowledged any more.
    pub(super) fn bulk_updates(&mut self) -> Vec<(&'static str, Result<()>)> {
        if self.cascade().is_none() && self.counting().is_none() {
            return Vec::new();
        }
        self.past.attempt(0, 1);
        let one = [(self.setup().key(0), 1)];
        let absorbed = self.other(&one, &[]).and_then(|other| self.absorb_other(&other));
        let mut tried = vec![("absorb", absorbed)];
        tried.extend(self.cascade().map(|cascade| ("compact", cascade.compact())));
        if let Some(counting) = self.counting() {
            tried.push(("compact", counting.compact()));
            tried.push(("remove", counting.remove(&one[0].0)));
            tried.push(("absorb_sorted", self.absorb_stream(&one)));
        }
        tried
    }

    /// Creates another filter, in RAM, that has the amounts `kept` and has lost the amounts `lost` again.
    pub(super) fn other(&self, kept: &[Amount], lost: &[Amount]) -> Result<AnyFilter> {
        let setup = self.setup().inline();
        let options = VolumeOptions { durability: Durability::Never, ..setup.volume() };
        let volume = Volume::create(Arc::new(MemoryDevice::new()), options)?;
        let (config, options) = setup.made();
        let other = AnyFilter::create_with(&volume, "other", &config, &options)?;
        let Some(counter) = other.counter() else { return Ok(other) };
        counter.add_many(&borrowed(lost))?;
        counter.add_many(&borrowed(kept))?;
        let taken: Vec<_> = lost.iter().map(|(key, amount)| (key.clone(), -amount)).collect();
        match other.of::<Counting>().filter(|_| setup.is_exact()) {
            Some(counting) => {
                let lost: Vec<_> = lost.iter().map(|(key, _)| &key[..]).collect();
                counting.remove_many(&lost)?;
            }
            None => counter.add_many(&borrowed(&taken))?,
        }
        Ok(other)
    }

    /// Adds the content of the other filter.
    pub(super) fn absorb_other(&self, other: &AnyFilter) -> Result<()> {
        match (self.cascade(), self.counting()) {
            (Some(cascade), _) => other.of().map_or(Ok(()), |other| cascade.absorb(other)),
            (_, Some(counting)) => other.of().map_or(Ok(()), |other| counting.absorb(other)),
            _ => Ok(()),
        }
    }
}
