//! Workloads, and their streams of operations.

use std::time::Duration;

use clap::ValueEnum;
use serde::{Deserialize, Serialize};

use crate::keys::{ABSENT_START, Picker, Rng};
pub use crate::kind::Kind;

/// The operations on the engine. A lookup in an index of neighbours requests the candidates of a document.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, ValueEnum)]
#[serde(rename_all = "kebab-case")]
pub enum Workload {
    /// Loads a table, untimed, and leaves it for the lookups of a later run.
    Load,
    /// Fills an empty table with unique random keys.
    Insert,
    /// Looks up present keys.
    #[value(alias = "candidates")]
    LookupHit,
    /// Looks up absent keys.
    #[value(alias = "candidates-miss")]
    LookupMiss,
    /// Looks up present keys, each thread's in one stream, without waiting for the end of a batch.
    #[value(alias = "candidates-stream")]
    LookupStream,
    /// Looks up absent keys, each thread's in one stream.
    #[value(alias = "candidates-miss-stream")]
    LookupMissStream,
    /// Looks up present keys, alternately alone and while another thread inserts at a given rate.
    #[serde(rename = "lookup-beside-inserts")]
    #[value(name = "lookup-beside-inserts")]
    LookupDuringInserts,
    /// Lookups and inserts of new keys, in stated proportions.
    Mixed,
    /// Overwrites present keys.
    Update,
    /// Inserts a new key and removes the oldest, so that the number of keys is constant; both are one
    /// operation.
    Churn,
    /// Filters: undoes inserts.
    Delete,
    /// Counters: adds 1 to the counts of picked keys of an empty counter.
    CountAdd,
    /// Counters: looks up the counts of keys that were added.
    CountHit,
    /// Counters: looks up the counts of keys that were not.
    CountMiss,
    /// Counters: looks up the counts of keys that were added, each thread's in one stream.
    CountStream,
    /// Indexes of neighbours: queries the candidates of new documents and inserts them, in one call.
    InsertAndQuery,
}

impl Workload {
    /// Returns whether it leaves the table unchanged, so that the next run can use it again.
    #[must_use]
    pub const fn only_reads(self) -> bool {
        match self {
            Self::Load
            | Self::LookupHit
            | Self::LookupMiss
            | Self::LookupStream
            | Self::LookupMissStream => true,
            _ => self.asks_counts(),
        }
    }

    /// Returns whether it looks up keys of a loaded engine, so that the device's limit is that of reading the
    /// engine's pages.
    #[must_use]
    pub const fn looks_up(self) -> bool {
        match self {
            Self::LookupDuringInserts | Self::Mixed | Self::InsertAndQuery => true,
            Self::Load => false,
            _ => self.only_reads(),
        }
    }

    /// Returns whether it makes only changes, each by a call of its own unless a batch is requested.
    #[must_use]
    pub const fn only_changes(self) -> bool {
        matches!(self, Self::Insert | Self::Update | Self::Churn | Self::Delete | Self::CountAdd)
    }

    /// Returns whether rounds of `--settle` may precede it.
    #[must_use]
    pub const fn settles(self) -> bool {
        matches!(self, Self::Update | Self::Churn | Self::Mixed)
    }

    /// Returns whether it looks up counts.
    #[must_use]
    pub const fn asks_counts(self) -> bool {
        matches!(self, Self::CountHit | Self::CountMiss | Self::CountStream)
    }

    /// Returns whether it counts.
    #[must_use]
    pub const fn counts(self) -> bool {
        self.asks_counts() || matches!(self, Self::CountAdd)
    }

    /// Returns whether it looks up only absent keys.
    #[must_use]
    pub const fn misses(self) -> bool {
        matches!(self, Self::LookupMiss | Self::LookupMissStream | Self::CountMiss)
    }

    /// Returns its name in reports and on the command line.
    #[must_use]
    pub fn name(self) -> String {
        let value = self.to_possible_value().expect("no workload is hidden");
        value.get_name().to_owned()
    }

    /// Returns the kind of engine that it needs, if it is not for all.
    #[must_use]
    pub const fn kind(self) -> Option<Kind> {
        match self {
            Self::LookupDuringInserts | Self::Update => Some(Kind::Table),
            Self::Delete
            | Self::CountAdd
            | Self::CountHit
            | Self::CountMiss
            | Self::CountStream => Some(Kind::Filter),
            Self::InsertAndQuery => Some(Kind::Neighbors),
            Self::Load
            | Self::Insert
            | Self::LookupHit
            | Self::LookupMiss
            | Self::LookupStream
            | Self::LookupMissStream
            | Self::Churn
            | Self::Mixed => None,
        }
    }
}

/// One operation of a mixed stream.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Operation {
    /// Look up the loaded entry of this index.
    LookupHit(u64),
    /// Look up the absent key of this index.
    LookupMiss(u64),
    /// Insert a new entry.
    Insert,
}

/// The proportions of a mixed stream.
#[derive(Clone, Copy, PartialEq, Debug, Serialize, Deserialize)]
pub struct Mix {
    /// The share of the operations that are lookups, 0 to 1.
    pub lookup_fraction: f64,
    /// The share of the lookups that find their key, 0 to 1.
    pub success: f64,
}

impl Mix {
    /// Returns the next operation.
    pub fn next(self, picker: &Picker, rng: &mut Rng) -> Operation {
        if rng.unit() >= self.lookup_fraction {
            return Operation::Insert;
        }
        if rng.unit() < self.success {
            Operation::LookupHit(picker.pick(rng))
        } else {
            Operation::LookupMiss(rng.below(ABSENT_START))
        }
    }
}

/// Inserts at a steady rate.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
pub struct Flow {
    /// The number of inserts.
    pub inserts: u64,
    /// The inserts per second, or as many as the engine can if that is less.
    pub inserts_per_s: u64,
}

impl Flow {
    /// Returns the inserts that should have been made after `time`.
    pub(crate) fn due(self, time: Duration) -> u64 {
        let due = time.as_nanos() * u128::from(self.inserts_per_s) / 1_000_000_000;
        u64::try_from(due).unwrap_or(u64::MAX).min(self.inserts)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mixed_stream_keeps_its_proportions() {
        let mix = Mix { lookup_fraction: 0.7, success: 0.4 };
        let picker = Picker::new(1000, None);
        let mut rng = Rng::new(1, 0, 0);
        let mut counts = [0u32; 3];
        for _ in 0..100_000 {
            match mix.next(&picker, &mut rng) {
                Operation::LookupHit(index) => {
                    assert!(index < 1000);
                    counts[0] += 1;
                }
                Operation::LookupMiss(_) => counts[1] += 1,
                Operation::Insert => counts[2] += 1,
            }
        }
        // Six standard deviations of a binomial law of 100,000 draws are below 950.
        for (count, expected) in counts.into_iter().zip([28_000u32, 42_000, 30_000]) {
            assert!(count.abs_diff(expected) < 950, "{counts:?}");
        }
    }

    #[test]
    fn the_pure_mixes_hold_one_kind_only() {
        let picker = Picker::new(10, None);
        let mut rng = Rng::new(1, 0, 0);
        for _ in 0..1000 {
            let inserts = Mix { lookup_fraction: 0.0, success: 0.8 };
            assert_eq!(inserts.next(&picker, &mut rng), Operation::Insert);
            let misses = Mix { lookup_fraction: 1.0, success: 0.0 };
            assert!(matches!(misses.next(&picker, &mut rng), Operation::LookupMiss(_)));
        }
    }

    #[test]
    fn what_is_due_grows_with_time_up_to_the_whole() {
        let flow = Flow { inserts: 100, inserts_per_s: 10 };
        let due = [0, 99, 100, 5000, 20_000].map(|ms| flow.due(Duration::from_millis(ms)));
        assert_eq!(due, [0, 0, 1, 50, 100]);
    }
}
