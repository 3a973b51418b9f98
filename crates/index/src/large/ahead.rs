//! Looks up a batch before it is put: the reads of its old records overlap, and a put need not read while it holds its
//! fingerprint's stripe.
//!
//! Another thread may replace a record between the two. So [`Updates`](super::publish::Updates) has the fingerprints
//! that were looked up ahead, and a thread that replaces a record removes its fingerprint. A put whose fingerprint was
//! removed looks it up again.

use std::collections::BTreeMap;

use nandex_store::values::ValueRef;

use super::cache::Found;
use super::format::{ENTRY_HEADER_BYTES, Fingerprint, HEADER_BYTES, only_pair};
use super::{Inner, lock};
use crate::Result;
use crate::api::Table;

/// Pairs that are looked up together.
pub(super) const AHEAD_MAX: usize = 1024;

/// The old records of a batch, by fingerprint, except those that also hold other keys.
#[derive(Debug)]
pub(super) struct LookedUp<'a, T: Table> {
    inner: &'a Inner<T>,
    /// The batch's number among those in [`Updates`](super::publish::Updates).
    batch: u64,
    places: BTreeMap<Fingerprint, OldPair>,
}

/// The record of a key before it is put.
#[derive(Clone, Copy, Debug)]
pub(super) struct OldPair {
    /// The record of its fingerprint.
    pub(super) reference: Option<ValueRef>,
    /// The bytes of its value; `None` if it has none, or its record is gone.
    pub(super) value_bytes: Option<u64>,
}

/// Returns what a cache's record of a key's fingerprint says about the key; `None` if it holds other keys.
fn old_pair(found: Found<'_>, print: &Fingerprint, key: &[u8]) -> Option<OldPair> {
    let (reference, record) = match found {
        Found::Absent => return Some(OldPair { reference: None, value_bytes: None }),
        Found::Place(_) => return None,
        Found::Record(reference, record) => (reference, record),
    };
    let (only, value_bytes) = only_pair(record, print)?;
    let value_bytes = Some(u64::from(value_bytes));
    (only == key).then_some(OldPair { reference: Some(reference), value_bytes })
}

impl<T: Table> LookedUp<'_, T> {
    /// Returns the record that a put may replace unread. The caller holds the stripe.
    pub(super) fn old(&self, fingerprint: &Fingerprint) -> Option<OldPair> {
        let place = self.places.get(fingerprint)?;
        lock(&self.inner.updates).is_ahead(self.batch, fingerprint).then_some(*place)
    }
}

impl<T: Table> Drop for LookedUp<'_, T> {
    fn drop(&mut self) {
        lock(&self.inner.updates).forget_ahead(self.batch);
    }
}

impl<T: Table> Inner<T> {
    /// Returns what the cache knows of a key before it is put; `None` if it knows nothing, or if the record holds other
    /// keys.
    pub(super) fn known_of(&self, print: &Fingerprint, key: &[u8]) -> Option<OldPair> {
        self.cache.get()?.ask(print, |found| old_pair(found, print, key)).ok().flatten()
    }

    /// Removes the keys that the cache knows, in the order of their fingerprints; returns the remaining fingerprints.
    fn take_known(
        &self,
        keys: &mut BTreeMap<Fingerprint, &[u8]>,
        prints: Vec<Fingerprint>,
        places: &mut BTreeMap<Fingerprint, OldPair>,
    ) -> Vec<Fingerprint> {
        let Some(cache) = self.cache.get() else { return prints };
        let of_keys: Vec<_> = keys.values().copied().collect();
        let mut known = vec![None; prints.len()];
        cache.ask_many(prints.iter(), |number, found| {
            let old = |found| old_pair(found, &prints[number], of_keys[number]);
            known[number] = found.ok().and_then(old);
        });
        let all = prints.iter().zip(&known);
        *places = all.filter_map(|(print, old)| Some((*print, (*old)?))).collect();
        if places.is_empty() {
            return prints;
        }
        keys.retain(|print, _| !places.contains_key(print));
        keys.keys().copied().collect()
    }

    /// Looks up the records of these keys, and whether each holds only its key.
    pub(super) fn look_ahead<'k>(
        &self,
        keys_given: impl Iterator<Item = &'k [u8]>,
    ) -> Result<LookedUp<'_, T>> {
        let mut keys = BTreeMap::new();
        for key in keys_given {
            keys.entry(self.fingerprint(key)).or_insert(key);
        }
        let prints: Vec<_> = keys.keys().copied().collect();
        // Before the lookups, so that no replacement is missed.
        let batch = lock(&self.updates).note_ahead(&prints);
        let mut ahead = LookedUp { inner: self, batch, places: BTreeMap::new() };
        let prints = self.take_known(&mut keys, prints, &mut ahead.places);
        self.count_unknown(prints.len());
        let located = self.locate_many(&prints)?;
        let limit = |key: &[u8]| HEADER_BYTES + ENTRY_HEADER_BYTES + key.len();
        let old = keys.values().zip(&located).filter_map(|(key, at)| Some(((*at)?, limit(key))));
        let mut starts = self.values.read_starts(&old.collect::<Vec<_>>())?.into_iter();
        for ((print, key), place) in keys.into_iter().zip(located) {
            let start = place.and_then(|_| starts.next().flatten());
            // A record that is gone is replaced as if it were empty.
            let value_bytes = match &start {
                None => None,
                Some(start) => match only_pair(start, &print) {
                    Some((found, value_bytes)) if found == key => Some(u64::from(value_bytes)),
                    _ => continue,
                },
            };
            ahead.places.insert(print, OldPair { reference: place, value_bytes });
        }
        Ok(ahead)
    }
}
