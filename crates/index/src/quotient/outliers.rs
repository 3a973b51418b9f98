//! What slots have no room for: great counts, and the repetitions of a fingerprint that is there very often.
//!
//! A slot that says "outlier" has its whole count here. Where slots say no counts, a fingerprint has at most
//! [`REPEATS_MAX`] slots, and what goes beyond is here, so that one hot key neither fills the filter nor makes
//! a run of slots without end.

use std::collections::BTreeMap;

/// Slots of one fingerprint at most.
pub const REPEATS_MAX: usize = 8;

/// RAM of one outlier, about, in bytes.
const OUTLIER_BYTES: usize = 32;

/// Counts beside the slots, by fingerprint.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Outliers {
    counts: BTreeMap<u64, i64>,
}

impl Outliers {
    /// What stands here for a fingerprint; 0 where nothing does.
    #[must_use]
    pub fn get(&self, fingerprint: u64) -> i64 {
        if self.counts.is_empty() {
            return 0;
        }
        self.counts.get(&fingerprint).copied().unwrap_or_default()
    }

    /// Notes a count; 0 takes it out.
    pub fn set(&mut self, fingerprint: u64, count: i64) {
        if count == 0 {
            self.counts.remove(&fingerprint);
        } else {
            self.counts.insert(fingerprint, count);
        }
    }

    /// All of them, in ascending order.
    pub fn iter(&self) -> impl Iterator<Item = (u64, i64)> + '_ {
        self.counts.iter().map(|(fingerprint, count)| (*fingerprint, *count))
    }

    /// How many.
    #[must_use]
    pub fn len(&self) -> usize {
        self.counts.len()
    }

    /// None?
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.counts.is_empty()
    }

    /// Forgets all.
    pub fn clear(&mut self) {
        self.counts.clear();
    }

    /// RAM they take, in bytes.
    #[must_use]
    pub fn ram_bytes(&self) -> usize {
        self.counts.len() * OUTLIER_BYTES
    }
}
