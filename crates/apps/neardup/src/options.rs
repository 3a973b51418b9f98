//! The definition of near-duplicates: how text becomes shingles, the hashes of documents, and the threshold.

use nandex::raw::signature::{Bands, ErrorWeights, Family, Scheme, SimHashBits};
use serde::{Deserialize, Serialize};

use crate::{Error, Result};

/// The most words or characters of a shingle.
pub const SHINGLE_LENGTH_MAX: usize = 64;

/// The least RAM of an index, in bytes.
pub const RAM_BYTES_MIN: u64 = 64 << 20;

/// The most threads that compute signatures.
pub const SKETCH_THREADS_MAX: usize = 64;

/// The units of shingles.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Unit {
    /// Words: runs of letters, numbers, marks and `_`.
    #[default]
    Words,
    /// Characters, where all white space in a row is one.
    Characters,
}

/// The division of text into shingles: all runs of `length` words or characters. A text with fewer has one shingle, of
/// all its units; a text with none has no shingle, and is not near any other.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Shingling {
    /// The unit.
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
    /// Checks the values.
    ///
    /// # Errors
    /// [`Error::Options`]: a length of 0, or more than [`SHINGLE_LENGTH_MAX`].
    pub fn validate(&self) -> Result<()> {
        let reason = format!("{}; give 1 to {SHINGLE_LENGTH_MAX}", self.length);
        let fits = (1..=SHINGLE_LENGTH_MAX).contains(&self.length);
        if fits { Ok(()) } else { Err(Error::option("shingle", reason)) }
    }
}

/// The most cells next to its own that a lookup of a vector tries in each table.
pub const PROBES_MAX: u32 = 64;

/// The definition of near-duplicates. An index has one definition, which cannot change.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub struct NearOptions {
    /// The division of text into shingles. A vector has none.
    pub shingling: Shingling,
    /// The hashes of documents, and the threshold.
    pub hashing: Hashing,
}

/// The hashes of documents, and the threshold: the three families of [`nandex::raw::signature`].
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Hashing {
    /// Sets of shingles by their Jaccard similarity; the default.
    MinHash(MinHashing),
    /// Shingles with their counts, by the bits in which signatures differ.
    SimHash(SimHashing),
    /// Vectors by their Euclidean distance.
    PStable(VectorHashing),
}

impl Default for Hashing {
    fn default() -> Self {
        Self::MinHash(MinHashing::default())
    }
}

/// Sets of shingles by their Jaccard similarity.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct MinHashing {
    /// Documents of this estimate of Jaccard similarity or more are near-duplicates; 0.8 by default.
    pub threshold: f64,
    /// Permutations of a MinHash: 4 bytes of flash each for a document, and the more, the better the estimate; 128 by
    /// default.
    pub permutations: u32,
    /// The division of signatures into bucket keys. `None`, the default, uses the bands that datasketch uses for the
    /// threshold.
    pub bands: Option<Bands>,
    /// The origin of the hashes; the project's own by default.
    pub scheme: Scheme,
    /// The seed of the permutations; 1 by default.
    pub seed: u64,
}

impl Default for MinHashing {
    fn default() -> Self {
        Self { threshold: 0.8, permutations: 128, bands: None, scheme: Scheme::Fast, seed: 1 }
    }
}

/// Shingles by the bits in which signatures differ.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct SimHashing {
    /// Bits of a signature; 64 by default.
    pub bits: SimHashBits,
    /// Documents whose signatures differ in at most this number of bits are near-duplicates, and all of them are found;
    /// 3 by default. There is one table more than that, so at most 63.
    pub distance: u32,
}

impl Default for SimHashing {
    fn default() -> Self {
        Self { bits: SimHashBits::Bits64, distance: 3 }
    }
}

/// Vectors by their Euclidean distance.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct VectorHashing {
    /// Numbers of a vector.
    pub dimensions: u32,
    /// Vectors of this estimate of their distance or less are near-duplicates. The estimate is by the lines of all
    /// tables; with the usual 80 its relative standard error is 8 %.
    pub distance: f64,
    /// Tables; 10 is usual, and at most 64.
    pub tables: u32,
    /// Lines of each table, 8 is usual: 4 bytes of flash each for a document. More make fewer candidates.
    pub projections: u32,
    /// The width of a cell; `None` takes four times the distance.
    pub width: Option<f32>,
    /// Cells next to its own that a lookup tries in each table, the nearest first: each costs a lookup more, and finds
    /// more. 8 is usual, and at most [`PROBES_MAX`]; 0 tries none.
    pub probes: u32,
    /// The seed of the lines.
    pub seed: u64,
}

impl VectorHashing {
    /// Returns the usual options for vectors of `dimensions` numbers that are near at this distance.
    #[must_use]
    pub const fn new(dimensions: u32, distance: f64) -> Self {
        let (tables, projections, probes) = (10, 8, 8);
        Self { dimensions, distance, tables, projections, width: None, probes, seed: 1 }
    }
}

impl NearOptions {
    /// Returns the family of hashes of these options.
    ///
    /// # Errors
    /// [`Error::Options`], [`Error::Index`]: invalid options.
    pub fn family(&self) -> Result<Family> {
        self.shingling.validate()?;
        let family = self.hashing.family()?;
        family.validate()?;
        if family.tables() > nandex::slicelsh::TABLES_MAX {
            let (field, most) = match family {
                Family::MinHash { .. } => ("bands", nandex::slicelsh::TABLES_MAX),
                Family::SimHash { .. } => ("distance", nandex::slicelsh::TABLES_MAX - 1),
                Family::PStable { .. } => ("tables", nandex::slicelsh::TABLES_MAX),
            };
            let reason =
                format!("it takes {} tables of an index; give at most {most}", family.tables());
            return Err(Error::option(field, reason));
        }
        Ok(family)
    }
}

impl Hashing {
    fn family(&self) -> Result<Family> {
        Ok(match *self {
            Self::MinHash(MinHashing { threshold, permutations, bands, scheme, seed }) => {
                check_threshold(threshold)?;
                let chosen = || Bands::optimal(threshold, permutations, ErrorWeights::default());
                let bands = bands.map_or_else(chosen, Ok)?;
                Family::MinHash { permutations, bands, scheme, seed }
            }
            Self::SimHash(SimHashing { bits, distance }) => Family::SimHash { bits, distance },
            Self::PStable(hashing) => {
                check_distance(hashing.distance)?;
                check_probes(hashing.probes)?;
                let VectorHashing { dimensions, distance, tables, projections, seed, .. } = hashing;
                let width = hashing.width.unwrap_or(4.0 * distance as f32);
                Family::PStable { dimensions, tables, projections, width, seed }
            }
        })
    }

    /// Returns the threshold: a similarity or a distance.
    #[must_use]
    pub fn threshold(&self) -> f64 {
        match *self {
            Self::MinHash(MinHashing { threshold, .. }) => threshold,
            Self::SimHash(SimHashing { distance, .. }) => distance.into(),
            Self::PStable(VectorHashing { distance, .. }) => distance,
        }
    }

    /// Returns the number of neighbouring cells that a lookup tries.
    pub(crate) fn probes(&self) -> u32 {
        match self {
            Self::PStable(hashing) => hashing.probes,
            _ => 0,
        }
    }
}

fn check_distance(distance: f64) -> Result<()> {
    let reason = format!("{distance}; give a number above 0");
    let fits = distance > 0.0 && distance.is_finite();
    if fits { Ok(()) } else { Err(Error::option("distance", reason)) }
}

pub(crate) fn check_probes(probes: u32) -> Result<()> {
    let reason = format!("{probes}; give 0 to {PROBES_MAX}");
    if probes <= PROBES_MAX { Ok(()) } else { Err(Error::option("probes", reason)) }
}

/// Rejects a threshold that a family cannot have.
pub(crate) fn check_near(family: &Family, threshold: f64) -> Result<()> {
    match family {
        Family::MinHash { .. } => check_threshold(threshold),
        Family::SimHash { distance, .. } if threshold == f64::from(*distance) => Ok(()),
        Family::SimHash { distance, .. } => {
            Err(Error::option("distance", format!("{threshold}; this family has {distance}")))
        }
        Family::PStable { .. } => check_distance(threshold),
    }
}

fn check_threshold(threshold: f64) -> Result<()> {
    let reason = format!("{threshold}; give a similarity above 0 and up to 1");
    let fits = threshold > 0.0 && threshold <= 1.0;
    if fits { Ok(()) } else { Err(Error::option("threshold", reason)) }
}

/// The limits of an index.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct IndexConfig {
    /// RAM of all its tables, in bytes; 256 MiB by default and at least [`RAM_BYTES_MIN`].
    pub ram_bytes: u64,
    /// Documents with different texts that a new index is for; a million by default. It rejects more. Flash for their
    /// buckets is reserved, and is used as it is written.
    pub documents: u64,
    /// Ids that a bucket keeps, the oldest, of a new index; 64 by default. Where more documents share a bucket, later
    /// ones still find these.
    pub bucket_ids_max: u32,
    /// Threads that compute signatures of a batch of documents, 1 to [`SKETCH_THREADS_MAX`]; by default one for each
    /// processor. Results do not depend on the number.
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
    /// Checks the values.
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
        let minhash = |hashing| NearOptions { hashing: Hashing::MinHash(hashing), ..usual };
        for threshold in [0.0, -1.0, 1.01, f64::NAN] {
            let found = refusal(minhash(MinHashing { threshold, ..MinHashing::default() }));
            assert!(found.starts_with("threshold: "), "{found}");
        }
        let bands = Some(Bands { count: 65, rows: 2 });
        let found = refusal(minhash(MinHashing { bands, ..MinHashing::default() }));
        assert!(found.contains("bands: 65 of 2 values each"), "{found}");
        let (permutations, bands) = (1024, Some(Bands { count: 65, rows: 2 }));
        let many = MinHashing { permutations, bands, ..MinHashing::default() };
        let found = refusal(minhash(many));
        assert!(found.starts_with("bands: it takes 65 tables of an index; give at most 64"));
        let config = IndexConfig { ram_bytes: 1, ..IndexConfig::default() };
        assert!(config.validate().unwrap_err().to_string().starts_with("ram_bytes: 1 bytes; give"));
        let config = IndexConfig { documents: 0, ..IndexConfig::default() };
        assert!(config.validate().unwrap_err().to_string().starts_with("documents: 0; give"));
        let config = IndexConfig { sketch_threads: 65, ..IndexConfig::default() };
        let found = config.validate().unwrap_err().to_string();
        assert!(found.starts_with("sketch_threads: 65; give 1 to 64"), "{found}");
    }

    #[test]
    fn distances_and_what_vectors_are_hashed_by_are_refused_by_name() {
        let refusal = |hashing: Hashing| {
            let options = NearOptions { hashing, ..NearOptions::default() };
            options.family().unwrap_err().to_string()
        };
        let simhash = |bits, distance| Hashing::SimHash(SimHashing { bits, distance });
        let found = refusal(simhash(SimHashBits::Bits64, 64));
        assert!(found.contains("distance: 64; give fewer than the 64 bits"), "{found}");
        let found = refusal(simhash(SimHashBits::Bits128, 64));
        assert!(found.starts_with("distance: it takes 65 tables of an index; give at most 63"));
        let usual = VectorHashing::new(8, 0.5);
        for distance in [0.0, -1.0, f64::NAN, f64::INFINITY] {
            let found = refusal(Hashing::PStable(VectorHashing { distance, ..usual }));
            assert!(found.starts_with("distance: "), "{found}");
        }
        for (hashing, field) in [
            (VectorHashing { probes: 65, ..usual }, "probes: 65; give 0 to 64"),
            (VectorHashing { tables: 65, ..usual }, "tables: it takes 65"),
            (VectorHashing { dimensions: 0, ..usual }, "dimensions: 0"),
            (VectorHashing { width: Some(0.0), ..usual }, "width: 0"),
        ] {
            let found = refusal(Hashing::PStable(hashing));
            assert!(found.contains(field), "{found}");
        }
        let options = NearOptions { hashing: Hashing::PStable(usual), ..NearOptions::default() };
        let Family::PStable { width, .. } = options.family().unwrap() else { panic!("vectors") };
        assert!(width == 2.0, "four times the distance");
    }

    #[test]
    fn the_usual_bands_are_those_of_datasketch() {
        let family = NearOptions::default().family().unwrap();
        let Family::MinHash { bands, .. } = family else { panic!("{family:?}") };
        assert_eq!(bands, Bands { count: 9, rows: 13 });
    }
}
