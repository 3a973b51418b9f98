//! The settings of an index: fingerprints of one chunker, average chunk and hash are useless to another.
//!
//! The name of the index's table contains them, so they are in the volume's catalog, where no eviction reaches them:
//! `fingerprints-fastcdc-8192-blake3`.

use crate::{Chunking, Hash};

/// The first word of the name of an index's table.
const WORD: &str = "fingerprints";

/// The chunking and the hash of an index.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct IndexSettings {
    /// The chunking of files.
    pub chunking: Chunking,
    /// The hash that names chunks.
    pub hash: Hash,
}

impl IndexSettings {
    /// The name of tables that were created before names had settings.
    pub const UNNAMED: &str = WORD;

    /// Returns the name of the table of an index with these settings.
    ///
    /// ```
    /// use nandex_dedup::IndexSettings;
    /// let settings = IndexSettings::default();
    /// assert_eq!(settings.table_name(), "fingerprints-fastcdc-8192-blake3");
    /// assert_eq!(IndexSettings::of_table("fingerprints-fastcdc-8192-blake3"), Some(settings));
    /// ```
    #[must_use]
    pub fn table_name(&self) -> String {
        let (chunker, average) = (self.chunking.chunker(), self.chunking.average_bytes());
        format!("{WORD}-{chunker}-{average}-{}", self.hash)
    }

    /// Returns the settings in a table's name; `None` for any other name.
    #[must_use]
    pub fn of_table(name: &str) -> Option<Self> {
        let [WORD, chunker, average, hash] = name.split('-').collect::<Vec<_>>()[..] else {
            return None;
        };
        let chunking = Chunking::new(chunker.parse().ok()?, average.parse().ok()?).ok()?;
        Some(Self { chunking, hash: hash.parse().ok()? })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Chunker;

    #[test]
    fn every_name_is_read_back_and_no_other() {
        for chunker in Chunker::ALL {
            for hash in Hash::ALL {
                let chunking = Chunking::new(chunker, 1 << 20).unwrap();
                let settings = IndexSettings { chunking, hash };
                let name = settings.table_name();
                assert!(name.len() <= 64, "{name} is too long for a volume's catalog");
                assert_eq!(IndexSettings::of_table(&name), Some(settings));
            }
        }
        for name in
            ["main", "fingerprints", "fingerprints-fastcdc-8191-blake3", "fingerprints-a-256-sha1"]
        {
            assert_eq!(IndexSettings::of_table(name), None, "{name}");
        }
    }
}
