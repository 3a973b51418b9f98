//! Counts that do not fit slots: large counts, and the repetitions of a fingerprint that is added very often.
//!
//! With [`Counts::Small`](super::Counts) a slot may mark an outlier, and its whole count is here. With the others a
//! fingerprint has at most [`REPEATS_MAX`](super::REPEATS_MAX) slots, and the rest of its count is here. So one hot key
//! neither fills the filter nor makes an endless run.

use std::collections::BTreeMap;
use std::ops::Range;

/// The approximate RAM of one outlier, in bytes.
const OUTLIER_BYTES: usize = 32;

/// Counts that do not fit slots, by fingerprint.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Outliers {
    counts: BTreeMap<u64, i64>,
}

impl Outliers {
    /// The outlier of a fingerprint; 0 for none.
    #[must_use]
    pub fn get(&self, fingerprint: u64) -> i64 {
        if self.counts.is_empty() {
            return 0;
        }
        self.counts.get(&fingerprint).copied().unwrap_or_default()
    }

    /// Stores an outlier; 0 removes it.
    pub(super) fn set(&mut self, fingerprint: u64, count: i64) {
        if count == 0 {
            self.counts.remove(&fingerprint);
        } else {
            self.counts.insert(fingerprint, count);
        }
    }

    /// Adds to an outlier.
    pub(crate) fn add(&mut self, fingerprint: u64, amount: i64) {
        self.set(fingerprint, self.get(fingerprint) + amount);
    }

    /// Returns the outliers of a range of fingerprints, in ascending order.
    pub(crate) fn range(&self, fingerprints: Range<u64>) -> impl Iterator<Item = (u64, i64)> + '_ {
        self.counts.range(fingerprints).map(|(fingerprint, count)| (*fingerprint, *count))
    }

    /// All of them, in ascending order.
    pub fn iter(&self) -> impl Iterator<Item = (u64, i64)> + '_ {
        self.counts.iter().map(|(fingerprint, count)| (*fingerprint, *count))
    }

    /// The number of outliers.
    #[must_use]
    pub fn len(&self) -> usize {
        self.counts.len()
    }

    /// Returns whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.counts.is_empty()
    }

    /// Removes all.
    pub(super) fn clear(&mut self) {
        self.counts.clear();
    }

    /// The RAM that they take, in bytes.
    #[must_use]
    pub fn ram_bytes(&self) -> usize {
        self.counts.len() * OUTLIER_BYTES
    }
}
