//! What near-duplicates are: how text becomes shingles, how these are hashed, and from which similarity on two
//! documents are the same.

use nandex::signature::{Bands, ErrorWeights, Family, Scheme};
use serde::{Deserialize, Serialize};

use crate::{Error, Result};

/// The most words or characters of a shingle.
pub const SHINGLE_LENGTH_MAX: usize = 64;

/// The least RAM of an index, in bytes.
pub const RAM_BYTES_MIN: u64 = 64 << 20;

/// The most threads that compute signatures.
pub const SKETCH_THREADS_MAX: usize = 64;

/// What shingles are made of.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Unit {
    /// Words: runs of letters, numbers, marks and `_`.
    #[default]
    Words,
    /// Characters, where all white space in a row is one.
    Characters,
}

/// How text becomes shingles: all runs of that many words or characters. A text with fewer has one shingle, of all it
/// has; a text with none has no shingle, and is like no other.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Shingling {
    /// Of what.
    pub unit: Unit,
    /// Words or characters of a shingle, 1 to [`SHINGLE_LENGTH_MAX`]; 3 by default.
    pub length: usize,
    /// Characters that can be written in several ways become one (NFC of Unicode). On by default.
    pub nfc: bool,
    /// Capitals become small letters, and `ς` becomes `σ`. On by default.
    pub fold_case: bool,
}

impl Default for Shingling {
    fn default() -> Self {
        Self { unit: Unit::Words, length: 3, nfc: true, fold_case: true }
    }
}

impl Shingling {
    /// Refuses what cannot work.
    ///
    /// # Errors
    /// [`Error::Options`]: a length of 0, or more than [`SHINGLE_LENGTH_MAX`].
    pub fn validate(&self) -> Result<()> {
        let reason = format!("{}; give 1 to {SHINGLE_LENGTH_MAX}", self.length);
        let fits = (1..=SHINGLE_LENGTH_MAX).contains(&self.length);
        if fits { Ok(()) } else { Err(Error::option("shingle", reason)) }
    }
}

/// Which documents are near-duplicates. An index is good for one choice, and keeps it.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct NearOptions {
    /// How text becomes shingles.
    pub shingling: Shingling,
    /// Documents of this estimate of Jaccard similarity or more are near-duplicates; 0.8 by default.
    pub threshold: f64,
    /// Permutations of a MinHash: 4 bytes of flash each for a document, and the more, the better the estimate; 128 by
    /// default.
    pub permutations: u32,
    /// How signatures become bucket keys. `None`, the default, takes what datasketch takes for the threshold.
    pub bands: Option<Bands>,
    /// Whose hashes; ours by default.
    pub scheme: Scheme,
    /// Which permutations; 1 by default.
    pub seed: u64,
}

impl Default for NearOptions {
    fn default() -> Self {
        Self {
            shingling: Shingling::default(),
            threshold: 0.8,
            permutations: 128,
            bands: None,
            scheme: Scheme::Fast,
            seed: 1,
        }
    }
}

impl NearOptions {
    /// The family of hashes of these options.
    ///
    /// # Errors
    /// [`Error::Options`], [`Error::Index`]: what cannot work.
    pub fn family(&self) -> Result<Family> {
        self.shingling.validate()?;
        check_threshold(self.threshold)?;
        let permutations = self.permutations;
        let chosen = || Bands::optimal(self.threshold, permutations, ErrorWeights::default());
        let bands = self.bands.map_or_else(chosen, Ok)?;
        let family = Family::MinHash { permutations, bands, scheme: self.scheme, seed: self.seed };
        family.validate()?;
        Ok(family)
    }
}

pub(crate) fn check_threshold(threshold: f64) -> Result<()> {
    let reason = format!("{threshold}; give a similarity above 0 and up to 1");
    let fits = threshold > 0.0 && threshold <= 1.0;
    if fits { Ok(()) } else { Err(Error::option("threshold", reason)) }
}

/// What an index may take.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct IndexConfig {
    /// RAM of all its tables, in bytes; 256 MiB by default and at least [`RAM_BYTES_MIN`].
    pub ram_bytes: u64,
    /// Documents with different texts that a new index is for; a million by default. It refuses more. Flash for their
    /// buckets is set aside, and is taken as it is written.
    pub documents: u64,
    /// Ids that a bucket keeps, the oldest, of a new index; 64 by default. Where more documents share a bucket, later
    /// ones still find these.
    pub bucket_ids_max: u32,
    /// Threads that compute signatures of a batch of documents, 1 to [`SKETCH_THREADS_MAX`]; by default one for each
    /// processor. Answers are the same with any number.
    pub sketch_threads: usize,
}

impl Default for IndexConfig {
    fn default() -> Self {
        let processors = std::thread::available_parallelism().map_or(1, usize::from);
        Self {
            ram_bytes: 256 << 20,
            documents: 1_000_000,
            bucket_ids_max: 64,
            sketch_threads: processors.min(SKETCH_THREADS_MAX),
        }
    }
}

impl IndexConfig {
    /// Refuses what cannot work.
    ///
    /// # Errors
    /// [`Error::Options`], naming the field.
    pub fn validate(&self) -> Result<()> {
        if self.ram_bytes < RAM_BYTES_MIN || self.ram_bytes > 1 << 40 {
            let reason = format!(
                "{} bytes; give {RAM_BYTES_MIN} (64 MiB) or more, and at most 1 TiB",
                self.ram_bytes
            );
            return Err(Error::option("ram_bytes", reason));
        }
        if self.documents == 0 || self.documents > 1 << 40 {
            return Err(Error::option("documents", format!("{}; give 1 to 2^40", self.documents)));
        }
        let threads = self.sketch_threads;
        if !(1..=SKETCH_THREADS_MAX).contains(&threads) {
            let reason = format!("{threads}; give 1 to {SKETCH_THREADS_MAX}");
            return Err(Error::option("sketch_threads", reason));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_out_of_range_are_refused_by_name_with_what_would_do() {
        let refusal = |options: NearOptions| options.family().unwrap_err().to_string();
        let usual = NearOptions::default();
        let shingling = Shingling { length: 0, ..usual.shingling };
        assert!(
            refusal(NearOptions { shingling, ..usual }).starts_with("shingle: 0; give 1 to 64")
        );
        for threshold in [0.0, -1.0, 1.01, f64::NAN] {
            let found = refusal(NearOptions { threshold, ..usual });
            assert!(found.starts_with("threshold: "), "{found}");
        }
        let bands = Some(Bands { count: 65, rows: 2 });
        assert!(refusal(NearOptions { bands, ..usual }).contains("bands: 65 of 2 values each"));
        let config = IndexConfig { ram_bytes: 1, ..IndexConfig::default() };
        assert!(config.validate().unwrap_err().to_string().starts_with("ram_bytes: 1 bytes; give"));
        let config = IndexConfig { documents: 0, ..IndexConfig::default() };
        assert!(config.validate().unwrap_err().to_string().starts_with("documents: 0; give"));
        let config = IndexConfig { sketch_threads: 65, ..IndexConfig::default() };
        let found = config.validate().unwrap_err().to_string();
        assert!(found.starts_with("sketch_threads: 65; give 1 to 64"), "{found}");
    }

    #[test]
    fn the_usual_bands_are_those_of_datasketch() {
        let family = NearOptions::default().family().unwrap();
        let Family::MinHash { bands, .. } = family else { panic!("{family:?}") };
        assert_eq!(bands, Bands { count: 9, rows: 13 });
    }
}
