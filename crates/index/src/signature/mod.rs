//! Signatures: a few numbers that represent a document, by which documents are compared, and the bucket keys that an
//! index of neighbours takes. This code does not use a device.
//!
//! ```text
//!   shingles, features, or a vector --Sketcher--> Signature --bucket_keys--> a key for each table
//!                                                     |
//!                                                     '-- similarity of a candidate
//! ```
//!
//! | family | a document is | near means | tables | a signature has |
//! |---|---|---|---|---|
//! | [`Family::MinHash`] | a set of hashes | a high Jaccard similarity | bands | 4 bytes for each permutation |
//! | [`Family::SimHash`] | features with weights | a low Hamming distance | the distance plus 1 | 8 or 16 bytes |
//! | [`Family::PStable`] | a vector | a low Euclidean distance | as stated | 4 bytes for each line |
//!
//! A family and its seed give the same signatures on every machine and in every version: they are on flash.

mod bands;
mod curve;
mod family;
mod format;
mod minhash;
mod numbers;
mod pstable;
mod rensa;
mod simhash;
mod sketcher;
#[cfg(test)]
mod tests;

pub use bands::{Bands, ErrorWeights};
pub use family::{Family, PERMUTATIONS_MAX, SimHashBits, TABLES_MAX};
pub use format::FAMILY_BYTES_MAX;
pub use minhash::Scheme;
pub use sketcher::Sketcher;

/// The signature of a document.
#[derive(Clone, PartialEq, Debug)]
pub enum Signature {
    /// The smallest value of each permutation; all bits set for an empty set.
    MinHash(Vec<u32>),
    /// The bits, starting with the lowest.
    SimHash(u128),
    /// The position of the vector on each line, in cells.
    PStable(Vec<f32>),
}

/// The similarity of two documents.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Similarity {
    /// An estimate of the Jaccard similarity, 0 to 1: the share of equal values.
    Jaccard(f64),
    /// The number of differing bits.
    Hamming(u32),
    /// An estimate of the Euclidean distance.
    Distance(f64),
}

impl Signature {
    /// Appends its encoding.
    pub fn encode(&self, family: &Family, bytes: &mut Vec<u8>) {
        match self {
            Self::MinHash(values) => bytes.extend(values.iter().flat_map(|it| it.to_le_bytes())),
            Self::SimHash(bits) => {
                let length = family.signature_bytes().min(16);
                bytes.extend_from_slice(&bits.to_le_bytes()[..length]);
            }
            Self::PStable(places) => bytes.extend(places.iter().flat_map(|it| it.to_le_bytes())),
        }
    }
}
