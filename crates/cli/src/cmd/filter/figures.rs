//! The figures of a filter, for people and programs.

use nandex::FilterStats;
use nandex::raw::OpenFilter;
use nandex::raw::cascade::model::SHARED_HASH_KEY;
use nandex::raw::store::hash::KeyHasher;
use serde::Serialize;
use serde_json::{Map, Value};

use crate::hashing::hash_name;
use crate::lost::LostPages;
use crate::size::{show_bytes, show_count};
use crate::sizing::members;
use crate::stated::Values;

/// The figures of a filter.
#[derive(Debug, Serialize)]
pub struct FilterFigures {
    /// The number of different fingerprints; one that several parts have counts in each.
    entries: u64,
    /// Damaged pages of saved buffers, whose entries are not counted.
    #[serde(skip_serializing_if = "LostPages::is_empty")]
    lost_pages: LostPages,
    /// The number of fingerprints in buffers.
    buffered: u64,
    /// The number of deletes that wait for a merge.
    tombstones: u64,
    /// The rate of false positives, at most.
    rate: f64,
    rate_made_for: f64,
    keys_made_for: u64,
    /// The number of most recent inserts that are certainly present, in a filter that forgets older ones.
    #[serde(skip_serializing_if = "Option::is_none")]
    window_keys: Option<u64>,
    /// The levels on flash, the smallest first.
    levels: Vec<Level>,
    bits_per_key: f64,
    ram_bytes: u64,
    flash_bytes: u64,
    /// The parameters specific to the structure.
    #[serde(flatten)]
    parameters: Map<String, Value>,
    /// All parameters.
    values: Values,
    #[serde(skip)]
    shape: String,
    when_full: String,
    hash: &'static str,
    /// `shared`, or `own`.
    hash_key: &'static str,
    unmatched_deletes: u64,
}

/// A level of a filter on flash.
#[derive(Debug, Serialize)]
struct Level {
    entries: u64,
    tombstones: u64,
    pages: u64,
}

impl FilterFigures {
    /// Returns the figures of an open filter.
    pub fn of(filter: &dyn OpenFilter, hasher: KeyHasher) -> Self {
        let (stats, config) = (filter.stats(), filter.config());
        let described = config.describe();
        let bits_per_key = stats.bits_per_entry_on_flash();
        let FilterStats { entries, buffered, tombstones, ram_bytes, flash_bytes, .. } = stats;
        let level = |it: &nandex::raw::LevelStats| Level {
            entries: it.entries,
            tombstones: it.tombstones,
            pages: it.pages,
        };
        Self {
            entries,
            lost_pages: LostPages::of(&stats.lost_pages),
            buffered,
            tombstones,
            rate: stats.rate,
            rate_made_for: stats.rate_made_for,
            keys_made_for: stats.keys_made_for,
            window_keys: stats.window_keys,
            levels: stats.levels.iter().map(level).collect(),
            bits_per_key,
            ram_bytes,
            flash_bytes,
            parameters: members(&described.parameters),
            values: Values::of(&config),
            shape: described.shape,
            when_full: described.when_full,
            hash: hash_name(hasher.kind()),
            hash_key: if hasher.key() == SHARED_HASH_KEY { "shared" } else { "own" },
            unmatched_deletes: stats.unmatched_deletes,
        }
    }

    /// Returns the same figures of a run that took `ram_bytes` bytes of RAM at its peak.
    #[must_use]
    pub fn at_peak(self, ram_bytes: u64) -> Self {
        Self { ram_bytes: self.ram_bytes.max(ram_bytes), ..self }
    }

    /// Damaged pages whose entries are not counted.
    pub fn lost_pages(&self) -> &LostPages {
        &self.lost_pages
    }

    /// Returns lines of a name and a value each.
    pub fn rows(&self) -> Vec<(&'static str, String)> {
        let levels: Vec<_> = self.levels.iter().map(|it| show_count(it.entries)).collect();
        let levels = if levels.is_empty() { "none".into() } else { levels.join(" + ") };
        let mut rows = vec![
            (
                "keys",
                format!(
                    "{}, {} of them buffered",
                    show_count(self.entries),
                    show_count(self.buffered)
                ),
            ),
            ("rate", format!("{} of absent keys are reported as there", percent(self.rate))),
            (
                "made for",
                format!(
                    "{} keys at {}",
                    show_count(self.keys_made_for),
                    percent(self.rate_made_for)
                ),
            ),
            match self.window_keys {
                Some(keys) => {
                    ("window", format!("the last {} inserts are there", show_count(keys)))
                }
                None => {
                    ("levels", format!("{levels}; a lookup reads {} of them", self.levels.len()))
                }
            },
            ("shape", self.shape.clone()),
            ("when full", self.when_full.clone()),
            self.values.row(),
            ("hash", format!("{}, {} key", self.hash, self.hash_key)),
            ("RAM", show_bytes(self.ram_bytes)),
            (
                "flash",
                format!("{}, {:.2} bits per key", show_bytes(self.flash_bytes), self.bits_per_key),
            ),
        ];
        rows.extend(self.lost_pages.row());
        if self.tombstones > 0 {
            rows.push(("deletes", format!("{} wait for a merge", show_count(self.tombstones))));
        }
        rows
    }
}

/// Formats a rate for people, with three digits.
pub fn percent(rate: f64) -> String {
    let percent = rate * 100.0;
    if percent == 0.0 || percent >= 0.001 {
        format!("{percent:.3} %")
    } else {
        format!("{percent:.2e} %")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rates_are_shown_with_what_counts_of_them() {
        assert_eq!(percent(0.0), "0.000 %");
        assert_eq!(percent(0.0039), "0.390 %");
        assert_eq!(percent(1e-9), "1.00e-7 %");
    }
}
