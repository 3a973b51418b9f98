//! The families of hashes for documents, and their parameters.

use super::{Bands, Scheme, Signature};
use crate::{Error, Result};

/// The maximum number of permutations of a MinHash.
pub const PERMUTATIONS_MAX: u32 = 1024;

/// The maximum number of tables of a family.
pub const TABLES_MAX: u32 = 1024;

/// The maximum number of numbers of all lines of a p-stable family together; 64 MiB of RAM.
const COORDINATES_MAX: u64 = 16 << 20;

/// A family of hashes for documents, with its parameters. They are valid for one index, which stores them.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Family {
    /// Sets by their Jaccard similarity.
    MinHash {
        /// Values of a signature, at most [`PERMUTATIONS_MAX`]. The standard error of an estimate is at most half the
        /// reciprocal of its root: 0.044 for 128.
        permutations: u32,
        /// The way in which these become bucket keys; see [`Bands::optimal`].
        bands: Bands,
        /// The implementation whose hashes these are.
        scheme: Scheme,
        /// The choice of permutations. datasketch's default is 1, and its seeds have 32 bits.
        seed: u64,
    },
    /// Weighted features by their Hamming distance.
    SimHash {
        /// Bits of a signature.
        bits: SimHashBits,
        /// Signatures that differ in at most this number of bits always share a bucket. Less than the bits.
        distance: u32,
    },
    /// Vectors by their Euclidean distance.
    PStable {
        /// Numbers of a vector.
        dimensions: u32,
        /// Tables.
        tables: u32,
        /// Lines of each table: with more there are fewer candidates.
        projections: u32,
        /// The width of a cell, more than 0: a few times the distance that counts as near.
        width: f32,
        /// The choice of lines.
        seed: u64,
    },
}

/// The length of a SimHash.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum SimHashBits {
    /// 64 bits.
    Bits64,
    /// 128 bits.
    Bits128,
}

impl SimHashBits {
    /// Returns the number of bits.
    #[must_use]
    pub const fn count(self) -> u32 {
        match self {
            Self::Bits64 => 64,
            Self::Bits128 => 128,
        }
    }

    /// Returns the length with `count` bits, if there is one.
    #[must_use]
    pub fn of(count: u32) -> Option<Self> {
        [Self::Bits64, Self::Bits128].into_iter().find(|bits| bits.count() == count)
    }
}

impl Family {
    /// Fails for parameters that cannot work.
    ///
    /// # Errors
    /// [`Error::Config`], naming the parameter.
    pub fn validate(&self) -> Result<()> {
        match *self {
            Self::MinHash { permutations, bands, scheme, seed } => {
                within("permutations", permutations, PERMUTATIONS_MAX)?;
                within("bands", bands.count, TABLES_MAX)?;
                within("rows", bands.rows, permutations)?;
                if u64::from(bands.count) * u64::from(bands.rows) > permutations.into() {
                    let Bands { count, rows } = bands;
                    let reason = format!(
                        "{count} of {rows} values each, of {permutations} permutations; give fewer or shorter bands"
                    );
                    return Err(Error::Config { field: "bands", reason });
                }
                if scheme.has_narrow_seed() && u32::try_from(seed).is_err() {
                    let reason = format!("{seed}; numpy takes 0 to {}", u32::MAX);
                    return Err(Error::Config { field: "seed", reason });
                }
                Ok(())
            }
            Self::SimHash { bits, distance } => {
                let reason = format!("{distance}; give fewer than the {} bits", bits.count());
                let fits = distance < bits.count();
                if fits { Ok(()) } else { Err(Error::Config { field: "distance", reason }) }
            }
            Self::PStable { dimensions, tables, projections, width, .. } => {
                within("dimensions", dimensions, 1 << 16)?;
                within("tables", tables, TABLES_MAX)?;
                within("projections", projections, 64)?;
                let lines = u64::from(tables) * u64::from(projections);
                if lines * u64::from(dimensions) > COORDINATES_MAX {
                    let reason = format!(
                        "{dimensions} on {lines} lines; give at most {COORDINATES_MAX} numbers together"
                    );
                    return Err(Error::Config { field: "dimensions", reason });
                }
                let reason = format!("{width}; give a number above 0");
                let fits = width.is_normal() && width > 0.0;
                if fits { Ok(()) } else { Err(Error::Config { field: "width", reason }) }
            }
        }
    }

    /// The number of hash tables, which is the number of bucket keys of a document.
    #[must_use]
    pub const fn tables(&self) -> u32 {
        match self {
            Self::MinHash { bands, .. } => bands.count,
            Self::SimHash { distance, .. } => *distance + 1,
            Self::PStable { tables, .. } => *tables,
        }
    }

    /// The bytes of a signature, as [`Signature::encode`] writes it.
    #[must_use]
    pub const fn signature_bytes(&self) -> usize {
        match self {
            Self::MinHash { permutations, .. } => *permutations as usize * 4,
            Self::SimHash { bits, .. } => bits.count() as usize / 8,
            Self::PStable { tables, projections, .. } => (*tables * *projections) as usize * 4,
        }
    }

    /// Reads a signature of this family.
    ///
    /// # Errors
    /// [`Error::Config`]: another number of bytes.
    pub fn decode_signature(&self, bytes: &[u8]) -> Result<Signature> {
        let expected = self.signature_bytes();
        if bytes.len() != expected {
            let reason = format!(
                "expected {expected} bytes, found {}; it is of another family",
                bytes.len()
            );
            return Err(Error::Config { field: "signature", reason });
        }
        let (words, _) = bytes.as_chunks::<4>();
        Ok(match self {
            Self::MinHash { .. } => {
                Signature::MinHash(words.iter().map(|word| u32::from_le_bytes(*word)).collect())
            }
            Self::SimHash { .. } => {
                let mut all = [0; 16];
                all[..bytes.len()].copy_from_slice(bytes);
                Signature::SimHash(u128::from_le_bytes(all))
            }
            Self::PStable { .. } => {
                Signature::PStable(words.iter().map(|word| f32::from_le_bytes(*word)).collect())
            }
        })
    }
}

fn within(field: &'static str, found: u32, max: u32) -> Result<()> {
    let reason = format!("{found}; give 1 to {max}");
    if (1..=max).contains(&found) { Ok(()) } else { Err(Error::Config { field, reason }) }
}
