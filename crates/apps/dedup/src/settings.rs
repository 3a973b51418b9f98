//! What an index was made with: fingerprints of one chunker, average chunk and hash are of no use to another.
//!
//! The name of the index's table says it, so it is in the volume's catalog, where no eviction reaches it:
//! `fingerprints-fastcdc-8192-blake3`.

use crate::{Chunking, Hash};

/// The first word of the name of an index's table.
const WORD: &str = "fingerprints";

/// How the chunks of an index are cut and named.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct IndexSettings {
    /// How files are cut.
    pub chunking: Chunking,
    /// How chunks are named.
    pub hash: Hash,
}

impl IndexSettings {
    /// The name of tables that were made before names had settings.
    pub const UNNAMED: &str = WORD;

    /// The name of the table of such an index.
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

    /// The settings that a table's name says; `None` for any other name.
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
