//! Measures of how near two documents are: each family's measure, as a stored number and as a displayed one.

use nandex::raw::signature::{Family, Signature, Similarity, Sketcher};
use serde::Serialize;

/// A measure of how near two documents are.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Measure {
    /// An estimate of the Jaccard similarity, 0 to 1: the higher, the nearer. Equal texts have 1.
    Jaccard,
    /// The number of differing bits of signatures: the fewer, the nearer. Equal texts have 0.
    Hamming,
    /// An estimate of the Euclidean distance: the less, the nearer. Equal vectors have 0.
    Euclidean,
}

impl Measure {
    /// Returns the measure of a family.
    #[must_use]
    pub const fn of(family: &Family) -> Self {
        match family {
            Family::MinHash { .. } => Self::Jaccard,
            Family::SimHash { .. } => Self::Hamming,
            Family::PStable { .. } => Self::Euclidean,
        }
    }

    /// Returns its word in lists and in JSON: `estimate` for a similarity, and `distance`.
    #[must_use]
    pub const fn word(self) -> &'static str {
        match self {
            Self::Jaccard => "estimate",
            Self::Hamming | Self::Euclidean => "distance",
        }
    }

    /// Returns its name in sentences.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Jaccard => "Jaccard similarity",
            Self::Hamming => "bits that differ",
            Self::Euclidean => "Euclidean distance",
        }
    }

    /// Returns the value for equal texts.
    #[must_use]
    pub const fn of_equal(self) -> f64 {
        match self {
            Self::Jaccard => 1.0,
            Self::Hamming | Self::Euclidean => 0.0,
        }
    }

    /// Returns the estimate as a number that rises with how near documents are.
    pub(crate) fn rising(self, estimate: f64) -> f64 {
        if self == Self::Jaccard { estimate } else { -estimate }
    }
}

/// Computes from signatures how near they are: a whole number that rises the nearer two documents are. Records store
/// these.
///
/// | family | a nearness is |
/// |---|---|
/// | MinHash | values that are the same |
/// | SimHash | bits that are the same |
/// | p-stable | 2^32 - 1, less the bits of the distance as a float of 32 bits |
///
/// The bits of floats that are not negative rise with them.
pub(crate) fn nearness(sketcher: &Sketcher, left: &Signature, right: &Signature) -> u32 {
    if let (Signature::MinHash(left), Signature::MinHash(right)) = (left, right) {
        return same(left, right);
    }
    match (sketcher.similarity(left, right), sketcher.family()) {
        (Ok(Similarity::Hamming(differ)), Family::SimHash { bits, .. }) => {
            bits.count().saturating_sub(differ)
        }
        (Ok(Similarity::Distance(distance)), _) => of_distance(distance),
        // The signatures of two families.
        _ => 0,
    }
}

/// Computes the [`nearness`] to a stored signature from its bytes; returns 0 if they are of another length.
pub(crate) fn nearness_to_bytes(sketcher: &Sketcher, left: &Signature, right: &[u8]) -> u32 {
    if let Signature::MinHash(values) = left {
        // Without a copy, since there are many candidates.
        return same_as_bytes(values, right);
    }
    let right = sketcher.family().decode_signature(right);
    right.map_or(0, |right| nearness(sketcher, left, &right))
}

/// Returns the least nearness of two near documents.
pub(crate) fn nearness_min(family: &Family, threshold: f64) -> u32 {
    match family {
        Family::MinHash { permutations, .. } => {
            let is_near = |same: &u32| f64::from(*same) / f64::from(*permutations) >= threshold;
            (0..=*permutations).find(is_near).unwrap_or(*permutations)
        }
        Family::SimHash { bits, distance } => bits.count().saturating_sub(*distance),
        Family::PStable { .. } => of_distance(threshold),
    }
}

/// Converts a nearness into the family's measure.
pub(crate) fn estimate(family: &Family, nearness: u32) -> f64 {
    match family {
        Family::MinHash { permutations, .. } => f64::from(nearness) / f64::from(*permutations),
        Family::SimHash { bits, .. } => bits.count().saturating_sub(nearness).into(),
        Family::PStable { .. } => f32::from_bits(u32::MAX - nearness).into(),
    }
}

fn of_distance(distance: f64) -> u32 {
    u32::MAX - (distance as f32).to_bits()
}

fn same(left: &[u32], right: &[u32]) -> u32 {
    left.iter().zip(right).map(|(left, right)| u32::from(left == right)).sum()
}

fn same_as_bytes(left: &[u32], right: &[u8]) -> u32 {
    let (words, rest) = right.as_chunks::<4>();
    if words.len() != left.len() || !rest.is_empty() {
        return 0;
    }
    let same = |(left, right): (&u32, &[u8; 4])| u32::from(*left == u32::from_le_bytes(*right));
    left.iter().zip(words).map(same).sum()
}

/// Describes a family in words.
pub(crate) fn described(family: &Family) -> String {
    match family {
        Family::MinHash { permutations, bands, scheme, seed } => format!(
            "MinHash of {permutations} permutations ({scheme:?}, seed {seed}), {} bands of {} values",
            bands.count, bands.rows
        ),
        Family::SimHash { bits, distance } => {
            format!("SimHash of {} bits in {} parts", bits.count(), distance + 1)
        }
        Family::PStable { dimensions, tables, projections, width, seed } => format!(
            "p-stable hashes of {dimensions} numbers, {tables} tables of {projections} lines (seed {seed}), cells {width} \
             wide"
        ),
    }
}

#[cfg(test)]
mod tests {
    use nandex::raw::signature::SimHashBits;

    use super::*;

    #[test]
    fn the_nearer_two_vectors_are_the_higher_is_their_nearness_and_it_reads_back() {
        let (dimensions, tables, projections, width, seed) = (2, 4, 4, 4.0, 1);
        let family = Family::PStable { dimensions, tables, projections, width, seed };
        let sketcher = family.sketcher().unwrap();
        let at = |x: f32| sketcher.of_vector(&[x, 0.0]).unwrap();
        let found: Vec<u32> =
            [0.0, 0.5, 1.0, 7.0].map(|x| nearness(&sketcher, &at(0.0), &at(x))).to_vec();
        assert!(found.windows(2).all(|it| it[0] > it[1]), "{found:?}");
        assert!(found[0] == u32::MAX && estimate(&family, found[0]) == 0.0);
        let distance = estimate(&family, found[2]);
        assert!((0.4..2.5).contains(&distance), "{distance}");
        assert!(nearness_min(&family, distance) == found[2]);
        let mut bytes = Vec::new();
        at(1.0).encode(&family, &mut bytes);
        assert_eq!(nearness_to_bytes(&sketcher, &at(0.0), &bytes), found[2]);
        assert_eq!(nearness_to_bytes(&sketcher, &at(0.0), &bytes[1..]), 0);
    }

    #[test]
    fn bits_that_are_the_same_are_a_nearness() {
        let family = Family::SimHash { bits: SimHashBits::Bits128, distance: 3 };
        let sketcher = family.sketcher().unwrap();
        let found = nearness(&sketcher, &Signature::SimHash(0b1011), &Signature::SimHash(0));
        assert_eq!((found, estimate(&family, found)), (125, 3.0));
        assert_eq!(nearness_min(&family, 3.0), 125);
        let bytes = 0_u128.to_le_bytes();
        assert_eq!(nearness_to_bytes(&sketcher, &Signature::SimHash(0b1011), &bytes), 125);
        assert_eq!(nearness_to_bytes(&sketcher, &Signature::SimHash(0b1011), &bytes[..8]), 0);
    }
}
