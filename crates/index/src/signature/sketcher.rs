//! Computes signatures of a family, bucket keys, and similarities.

use twox_hash::XxHash3_64;

use super::minhash::Permutations;
use super::pstable::{self, Lines};
use super::{Family, Signature, Similarity, simhash};
use crate::{Error, Result};

/// The functions that a family computes with.
#[derive(Clone, Debug)]
enum Functions {
    MinHash(Permutations),
    SimHash,
    PStable(Lines),
}

/// Computes signatures and bucket keys.
///
/// ```
/// use nandex::raw::signature::{Bands, ErrorWeights, Family, Scheme, Similarity};
///
/// let bands = Bands::optimal(0.8, 128, ErrorWeights::default())?;
/// let family = Family::MinHash { permutations: 128, bands, scheme: Scheme::Fast, seed: 1 };
/// let sketcher = family.sketcher()?;
/// let sketch = |words: &str| {
///     let hashes: Vec<u64> = words.split(' ').map(|word| Scheme::Fast.hash(word.as_bytes())).collect();
///     sketcher.of_hashes(&hashes)
/// };
/// let (left, right) = (sketch("the red fish saw a blue fish")?, sketch("the red fish saw one blue fish")?);
/// let Similarity::Jaccard(estimate) = sketcher.similarity(&left, &right)? else { unreachable!() };
/// assert!(estimate > 0.4, "five of seven words, so about 0.71: {estimate}");
/// let mut keys = Vec::new();
/// sketcher.bucket_keys(&left, &mut keys)?;
/// assert_eq!(keys.len(), family.tables() as usize);
/// # Ok::<(), nandex::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct Sketcher {
    family: Family,
    functions: Functions,
}

impl Family {
    /// Returns the object that computes its signatures.
    ///
    /// # Errors
    /// As [`validate`](Self::validate).
    pub fn sketcher(&self) -> Result<Sketcher> {
        self.validate()?;
        let functions = match *self {
            Self::MinHash { permutations, scheme, seed, .. } => {
                Functions::MinHash(Permutations::new(scheme, permutations as usize, seed))
            }
            Self::SimHash { .. } => Functions::SimHash,
            Self::PStable { dimensions, tables, projections, width, seed } => {
                let lines = (tables * projections) as usize;
                Functions::PStable(Lines::new((dimensions as usize, lines), width, seed))
            }
        };
        Ok(Sketcher { family: *self, functions })
    }
}

impl Sketcher {
    /// Its family.
    #[must_use]
    pub const fn family(&self) -> &Family {
        &self.family
    }

    /// Returns the MinHash of a set, given the [hashes](super::Scheme::hash) of its elements; a repeated hash changes
    /// nothing. Costs a multiplication and an addition for each hash and permutation.
    ///
    /// # Errors
    /// [`Error::Config`]: another family.
    pub fn of_hashes(&self, hashes: &[u64]) -> Result<Signature> {
        match &self.functions {
            Functions::MinHash(permutations) => {
                Ok(Signature::MinHash(permutations.smallest(hashes)))
            }
            _ => Err(self.other("the hashes of a set, for MinHash")),
        }
    }

    /// Returns the SimHash of features, each a hash and a weight.
    ///
    /// # Errors
    /// [`Error::Config`]: another family.
    pub fn of_features(&self, features: &[(u64, u32)]) -> Result<Signature> {
        match self.family {
            Family::SimHash { bits, .. } => {
                Ok(Signature::SimHash(simhash::signature(features, bits.count())))
            }
            _ => Err(self.other("features with weights, for SimHash")),
        }
    }

    /// Returns the position of a vector on each line. Costs a multiplication for each number and line.
    ///
    /// # Errors
    /// [`Error::Config`]: another family, another number of dimensions, a number that is infinite or NaN.
    pub fn of_vector(&self, vector: &[f32]) -> Result<Signature> {
        let (Functions::PStable(lines), Family::PStable { dimensions, .. }) =
            (&self.functions, self.family)
        else {
            return Err(self.other("a vector, for p-stable hashes"));
        };
        let refuse = |reason| Err(Error::Config { field: "vector", reason });
        if vector.len() != dimensions as usize {
            return refuse(format!("expected {dimensions} numbers, found {}", vector.len()));
        }
        if let Some(number) = vector.iter().find(|number| !number.is_finite()) {
            return refuse(format!("expected numbers, found {number}; leave such vectors out"));
        }
        Ok(Signature::PStable(lines.places(vector)))
    }

    /// Appends the bucket key of each table.
    ///
    /// # Errors
    /// [`Error::Config`]: a signature of another family.
    pub fn bucket_keys(&self, signature: &Signature, keys: &mut Vec<u64>) -> Result<()> {
        self.check(signature)?;
        match (signature, self.family) {
            (Signature::MinHash(values), Family::MinHash { bands, .. }) => {
                let mut bytes = Vec::with_capacity(values.len() * 4);
                signature.encode(&self.family, &mut bytes);
                let bands = bytes.chunks_exact(bands.rows as usize * 4).take(bands.count as usize);
                keys.extend(bands.zip(0..).map(|(band, table)| key_of(table, band)));
            }
            (Signature::SimHash(word), Family::SimHash { bits, distance }) => {
                let parts = simhash::parts(*word, bits.count(), distance + 1);
                keys.extend(parts.map(|(table, part)| key_of(table.into(), &part.to_le_bytes())));
            }
            (Signature::PStable(places), Family::PStable { projections, .. }) => {
                let tables = places.chunks_exact(projections as usize).zip(0..);
                keys.extend(tables.map(|(places, table)| cell_key(table, &pstable::cells(places))));
            }
            _ => {}
        }
        Ok(())
    }

    /// Appends further rows of bucket keys for a p-stable signature: for each table the cells adjacent to its own,
    /// nearest first. Lookups of these find more near documents with fewer tables. `rows` is the number of rows; if a
    /// table has fewer cells around, its last one is repeated.
    ///
    /// # Errors
    /// [`Error::Config`]: another family, or a signature of one.
    pub fn probe_keys(
        &self,
        signature: &Signature,
        rows: usize,
        keys: &mut Vec<u64>,
    ) -> Result<()> {
        self.check(signature)?;
        let (Signature::PStable(places), Family::PStable { projections, .. }) =
            (signature, self.family)
        else {
            return Err(self.other("a signature of p-stable hashes"));
        };
        let tables = places.chunks_exact(projections as usize).zip(0..);
        let probed: Vec<Vec<u64>> = tables
            .map(|(places, table)| {
                let cells = pstable::probes(places, rows);
                cells.iter().map(|cells| cell_key(table, cells)).collect()
            })
            .collect();
        for row in 0..rows {
            let key = |probed: &Vec<u64>| probed.get(row).or(probed.last()).copied();
            keys.extend(probed.iter().filter_map(key));
        }
        Ok(())
    }

    /// Returns the similarity of two documents.
    ///
    /// # Errors
    /// [`Error::Config`]: a signature of another family.
    pub fn similarity(&self, left: &Signature, right: &Signature) -> Result<Similarity> {
        self.check(left)?;
        self.check(right)?;
        match (left, right, self.family) {
            (Signature::MinHash(left), Signature::MinHash(right), _) => {
                let same = left.iter().zip(right).filter(|(left, right)| left == right).count();
                Ok(Similarity::Jaccard(same as f64 / left.len() as f64))
            }
            (Signature::SimHash(left), Signature::SimHash(right), _) => {
                Ok(Similarity::Hamming((left ^ right).count_ones()))
            }
            (
                Signature::PStable(left),
                Signature::PStable(right),
                Family::PStable { width, .. },
            ) => Ok(Similarity::Distance(pstable::distance(left, right, width))),
            _ => Err(self.other("two signatures of its family")),
        }
    }

    /// Fails for a signature of another family or another length.
    fn check(&self, signature: &Signature) -> Result<()> {
        let bytes = match (signature, &self.family) {
            (Signature::MinHash(values), Family::MinHash { .. }) => values.len() * 4,
            (Signature::PStable(places), Family::PStable { .. }) => places.len() * 4,
            (Signature::SimHash(_), Family::SimHash { .. }) => self.family.signature_bytes(),
            _ => return Err(self.other("a signature of its family")),
        };
        let expected = self.family.signature_bytes();
        let reason = format!("expected {expected} bytes, found {bytes}; it is of another family");
        let fits = bytes == expected;
        if fits { Ok(()) } else { Err(Error::Config { field: "signature", reason }) }
    }

    fn other(&self, expected: &str) -> Error {
        let name = match self.family {
            Family::MinHash { .. } => "MinHash",
            Family::SimHash { .. } => "SimHash",
            Family::PStable { .. } => "p-stable hashes",
        };
        let reason = format!("expected {expected}; this family is {name}");
        Error::Config { field: "family", reason }
    }
}

/// Returns a bucket key; it depends on the table, so that equal bytes have different keys in each.
fn key_of(table: u64, bytes: &[u8]) -> u64 {
    XxHash3_64::oneshot_with_seed(table, bytes)
}

fn cell_key(table: u64, cells: &[i32]) -> u64 {
    let bytes: Vec<u8> = cells.iter().flat_map(|cell| cell.to_le_bytes()).collect();
    key_of(table, &bytes)
}
