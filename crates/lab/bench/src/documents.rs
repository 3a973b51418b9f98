//! Documents for indexes of neighbours, as their bucket keys; a stated share of them are near-duplicates.
//!
//! All is computed from a seed, as [`keys`](crate::keys) are. Document `index` is an original, or with the
//! stated probability a near-duplicate of an earlier original. A bucket key stands for a band of a MinHash
//! signature: two documents of Jaccard similarity `s` have the same band of `r` values with the probability
//! `s^r`. So a near-duplicate has each key of its original with that probability, and one of its own
//! otherwise:
//!
//! ```text
//!   index   0   1   2   3   4          table 0   1   2   3
//!           |   |   ^   |   ^       1        a   b   c   d     an original
//!           |   '---'   |   |       2        a   e   c   f     near it: two bands of four are the same
//!           '---------------'
//! ```

use clap::Args;
use serde::Serialize;

use crate::keys::{ABSENT_START, KeySpace, below, mix, unit};
use crate::quantity::parse_fraction;

/// The settings of such documents.
#[derive(Args, Clone, Copy, PartialEq, Debug, Serialize)]
pub struct DocumentSettings {
    /// Indexes of neighbours: hash tables, which are bucket keys of a document.
    #[arg(long, default_value_t = 10)]
    pub tables: u32,
    /// Indexes of neighbours: share of the documents that are near-duplicates of earlier ones.
    #[arg(long, default_value = "0.1", value_parser = parse_fraction)]
    pub near_share: f64,
    /// Indexes of neighbours: Jaccard similarity of a near-duplicate and its original.
    #[arg(long, default_value = "0.9", value_parser = parse_fraction)]
    pub similarity: f64,
    /// Indexes of neighbours: values of a MinHash signature in the band that a bucket key stands for.
    #[arg(long, default_value_t = 12)]
    pub rows: u32,
}

impl Default for DocumentSettings {
    /// Returns the paper's settings: ten tables over 120 of 128 permutations, and a tenth of the documents
    /// near others.
    fn default() -> Self {
        Self { tables: 10, near_share: 0.1, similarity: 0.9, rows: 12 }
    }
}

/// The salts of the draws that belong to a document.
const IS_NEAR: u64 = 1;
const ORIGINAL: u64 = 2;
const TABLE: u64 = 16;

/// The documents of a seed.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Documents {
    keys: KeySpace,
    settings: DocumentSettings,
    band_share: f64,
}

impl Documents {
    /// Creates the documents of these settings whose numbers are the keys of `keys`.
    #[must_use]
    pub fn new(keys: KeySpace, settings: DocumentSettings) -> Self {
        let rows = i32::try_from(settings.rows).unwrap_or(i32::MAX);
        Self { keys, settings, band_share: settings.similarity.powi(rows) }
    }

    /// Returns the number of bucket keys of a document.
    #[must_use]
    pub const fn tables(&self) -> u32 {
        self.settings.tables
    }

    /// Returns the document that this key of the workloads stands for.
    #[must_use]
    pub const fn index_of(&self, key: u64) -> u64 {
        self.keys.index_of(key)
    }

    /// Returns the original that a document is near: itself for an original, and for one that no workload
    /// inserts.
    #[must_use]
    pub fn original(&self, index: u64) -> u64 {
        let mut original = index;
        while original > 0
            && original < ABSENT_START
            && unit(self.draw(original, IS_NEAR)) < self.settings.near_share
        {
            original = below(self.draw(original, ORIGINAL), original);
        }
        original
    }

    /// Appends the bucket keys of a document, one for each table.
    pub fn append_row(&self, index: u64, row: &mut Vec<u64>) {
        let original = self.original(index);
        row.extend((0..u64::from(self.settings.tables)).map(|table| {
            let own = self.draw(index, TABLE + table);
            let is_own = index == original || unit(mix(own)) >= self.band_share;
            if is_own { own } else { self.draw(original, TABLE + table) }
        }));
    }

    fn draw(&self, index: u64, salt: u64) -> u64 {
        mix(self.keys.key(index) ^ mix(salt))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(documents: &Documents, index: u64) -> Vec<u64> {
        let mut row = Vec::new();
        documents.append_row(index, &mut row);
        row
    }

    #[test]
    fn near_duplicates_have_the_stated_share_and_share_the_stated_part_of_their_keys() {
        let settings = DocumentSettings { near_share: 0.2, ..DocumentSettings::default() };
        let documents = Documents::new(KeySpace::new(3), settings);
        let (mut near, mut same) = (0u32, 0u32);
        for index in 0..50_000 {
            let original = documents.original(index);
            assert!(original <= index && documents.original(original) == original);
            if original != index {
                let (own, its) = (row(&documents, index), row(&documents, original));
                near += 1;
                same += own.iter().zip(its).map(|(own, its)| u32::from(*own == its)).sum::<u32>();
            }
        }
        // Six standard deviations: of 50,000 draws 540, and of a share of 100,000 draws 0.009.
        assert!(near.abs_diff(10_000) < 540, "{near}");
        let share = f64::from(same) / (10.0 * f64::from(near));
        assert!((share - 0.9_f64.powi(12)).abs() < 0.009, "{share}");
    }

    #[test]
    fn originals_and_documents_that_are_never_inserted_share_nothing() {
        let settings = DocumentSettings { near_share: 0.0, ..DocumentSettings::default() };
        let documents = Documents::new(KeySpace::new(3), settings);
        let mut keys: Vec<u64> = (0..2000)
            .chain(ABSENT_START..ABSENT_START + 2000)
            .flat_map(|it| row(&documents, it))
            .collect();
        keys.sort_unstable();
        keys.dedup();
        assert_eq!(keys.len(), 40_000);
        let near = DocumentSettings { near_share: 0.9, ..settings };
        let documents = Documents::new(KeySpace::new(3), near);
        assert!((ABSENT_START..ABSENT_START + 100).all(|it| documents.original(it) == it));
    }
}
