//! Looking up a batch before it is put: the reads of its old records overlap, and a put needs none while it holds its
//! fingerprint's stripe.
//!
//! Somebody else may replace a record between the two. So [`Updates`](super::publish::Updates) knows the fingerprints
//! that were looked up ahead, and whoever replaces a record takes its fingerprint out. A put whose fingerprint is no
//! longer there looks it up again.

use std::collections::BTreeMap;

use nandex_store::values::ValueRef;

use super::format::{ENTRY_HEADER_BYTES, Fingerprint, HEADER_BYTES, only_pair};
use super::{Inner, lock};
use crate::Result;
use crate::api::Table;

/// Pairs that are looked up together.
pub(super) const AHEAD_MAX: usize = 1024;

/// Old records of a batch, by fingerprint. Those that hold other keys too are not among them.
#[derive(Debug)]
pub(super) struct LookedUp<'a, T: Table> {
    inner: &'a Inner<T>,
    /// The batch's number among those in [`Updates`](super::publish::Updates).
    batch: u64,
    places: BTreeMap<Fingerprint, OldPair>,
}

/// What was there of a key before it is put.
#[derive(Clone, Copy, Debug)]
pub(super) struct OldPair {
    /// The record of its fingerprint.
    pub(super) reference: Option<ValueRef>,
    /// The bytes of its value; `None` if it has none, or its record is gone.
    pub(super) value_bytes: Option<u64>,
}

impl<T: Table> LookedUp<'_, T> {
    /// The record that a put may replace unread. The caller holds the stripe.
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
    /// Looks up where the records of these keys are, and whether each holds only its key.
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
        let located = self.locate_many(&prints)?;
        let limit = |key: &[u8]| HEADER_BYTES + ENTRY_HEADER_BYTES + key.len();
        let old = keys.values().zip(&located).filter_map(|(key, at)| Some(((*at)?, limit(key))));
        let mut starts = self.values.read_starts(&old.collect::<Vec<_>>())?.into_iter();
        for ((print, key), place) in keys.into_iter().zip(located) {
            let start = place.and_then(|_| starts.next().flatten());
            // A record that is gone is replaced as if it held nothing.
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
