//! MinHash: the smallest of a set's hashes under each of several permutations. Two sets have the same smallest hash
//! with the probability of their Jaccard similarity.

use nandex_device::{VectorLoop, run_in_vectors};
use sha1::{Digest, Sha1};
use twox_hash::XxHash3_64;

use super::numbers::{MersenneTwister, SplitMix, Xoshiro};
use super::rensa;

/// The implementation whose hashes and permutations a MinHash uses. Signatures of different schemes cannot be compared.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Scheme {
    /// Our own, and the fastest: XXH3 of a shingle, 32 bits of which are permuted by a multiplication and an addition,
    /// both modulo 2^32. The multipliers are odd, so that a permutation has no collisions.
    #[default]
    Fast,
    /// datasketch before 2.0, and its `scheme="legacy"`: 32 bits of SHA-1, permuted modulo 2^61 - 1.
    DatasketchLegacy,
    /// datasketch from 2.0 on, `scheme="affine32"`: 32 bits of SHA-1, mixed and then permuted like our own.
    DatasketchAffine,
    /// rensa's `RMinHash` up to 0.4: the hash of rustc-hash 2, permuted modulo 2^64; the upper half is used.
    Rensa,
    /// rensa's `RMinHash` from 0.5 on: the same hash, in buckets of three rounds, which cost less than permutations.
    /// For a set that is small for the signature, permutations supply the values.
    RensaBuckets,
}

impl Scheme {
    /// All schemes, with their numbers on flash. These never change.
    pub(super) const NUMBERS: [(Self, u8); 5] = [
        (Self::Fast, 1),
        (Self::DatasketchLegacy, 2),
        (Self::DatasketchAffine, 3),
        (Self::Rensa, 4),
        (Self::RensaBuckets, 5),
    ];

    /// Returns the hash of a shingle's bytes that its permutations take.
    #[inline]
    #[must_use]
    pub fn hash(self, shingle: &[u8]) -> u64 {
        match self {
            Self::Fast => XxHash3_64::oneshot(shingle),
            Self::DatasketchLegacy | Self::DatasketchAffine => sha1_hash32(shingle).into(),
            Self::Rensa | Self::RensaBuckets => rensa::hash(shingle),
        }
    }

    /// Returns whether seeds have 32 bits, as numpy's do.
    pub(super) const fn has_narrow_seed(self) -> bool {
        matches!(self, Self::DatasketchLegacy | Self::DatasketchAffine)
    }
}

/// Returns the first four bytes of SHA-1, like datasketch's `sha1_hash32`.
fn sha1_hash32(bytes: &[u8]) -> u32 {
    let [a, b, c, d, ..] = <[u8; 20]>::from(Sha1::digest(bytes));
    u32::from_le_bytes([a, b, c, d])
}

/// The permutations of a scheme and a seed.
#[derive(Clone, Debug)]
pub(super) enum Permutations {
    /// `a * h + b` modulo 2^32, of a hash that is optionally mixed first.
    Affine { factors: Vec<u32>, terms: Vec<u32>, is_mixed: bool },
    /// `(a * h + b modulo 2^64) modulo 2^61 - 1`; the lower 32 bits are used.
    Legacy { factors: Vec<u64>, terms: Vec<u64> },
    /// `a * h + b` modulo 2^64; the upper 32 bits are used.
    Upper { factors: Vec<u64>, terms: Vec<u64> },
    /// Buckets of three rounds; a value that no round has reached is that of `Upper` for a hash that is mixed first.
    Buckets { factors: Vec<u64>, terms: Vec<u64> },
}

/// 2^61 - 1, a prime.
const MERSENNE_PRIME: u64 = (1 << 61) - 1;

impl Permutations {
    pub(super) fn new(scheme: Scheme, count: usize, seed: u64) -> Self {
        match scheme {
            Scheme::Fast => Self::fast(count, seed),
            Scheme::DatasketchAffine => Self::affine(count, seed as u32),
            Scheme::DatasketchLegacy => Self::legacy(count, seed as u32),
            Scheme::Rensa => {
                let (factors, terms) = Self::rensa(count, seed);
                Self::Upper { factors, terms }
            }
            Scheme::RensaBuckets => {
                let (factors, terms) = Self::rensa(count, seed);
                Self::Buckets { factors, terms }
            }
        }
    }

    fn rensa(count: usize, seed: u64) -> (Vec<u64>, Vec<u64>) {
        let mut numbers = Xoshiro::new(seed);
        (0..count).map(|_| (numbers.next() | 1, numbers.next())).unzip()
    }

    fn fast(count: usize, seed: u64) -> Self {
        let mut numbers = SplitMix(seed);
        let pair = |_| {
            let word = numbers.next();
            ((word >> 32) as u32 | 1, word as u32)
        };
        let (factors, terms) = (0..count).map(pair).unzip();
        Self::Affine { factors, terms, is_mixed: false }
    }

    /// numpy draws all factors and then all terms.
    fn affine(count: usize, seed: u32) -> Self {
        let mut numbers = MersenneTwister::new(seed);
        let factors = (0..count).map(|_| numbers.next_u32() << 1 | 1).collect();
        let terms = (0..count).map(|_| numbers.next_u32()).collect();
        Self::Affine { factors, terms, is_mixed: true }
    }

    /// numpy draws factor and term in turn.
    fn legacy(count: usize, seed: u32) -> Self {
        let mut numbers = MersenneTwister::new(seed);
        let pair = |_| (numbers.between(1, MERSENNE_PRIME), numbers.between(0, MERSENNE_PRIME));
        let (factors, terms) = (0..count).map(pair).unzip();
        Self::Legacy { factors, terms }
    }

    /// Returns the smallest value of each permutation; all bits are set if there are no hashes.
    pub(super) fn smallest(&self, hashes: &[u64]) -> Vec<u32> {
        run_in_vectors(Smallest { permutations: self, hashes })
    }
}

/// The smallest value of each permutation of these hashes.
struct Smallest<'p> {
    permutations: &'p Permutations,
    hashes: &'p [u64],
}

impl VectorLoop for Smallest<'_> {
    type Output = Vec<u32>;

    #[inline(always)]
    fn run(self) -> Vec<u32> {
        let hashes = self.hashes;
        match self.permutations {
            Permutations::Affine { factors, terms, is_mixed: false } => {
                smallest((factors, terms), hashes, |hash| hash as u32, affine)
            }
            Permutations::Affine { factors, terms, is_mixed: true } => {
                smallest((factors, terms), hashes, |hash| mixed(hash as u32), affine)
            }
            Permutations::Legacy { factors, terms } => {
                smallest((factors, terms), hashes, |hash| u64::from(hash as u32), legacy)
            }
            Permutations::Upper { factors, terms } => {
                smallest((factors, terms), hashes, |hash| hash, upper)
            }
            Permutations::Buckets { factors, terms } => bucketed((factors, terms), hashes),
        }
    }
}

/// Returns the values of buckets, and those of permutations where no round has reached one.
#[inline(always)]
fn bucketed((factors, terms): (&[u64], &[u64]), hashes: &[u64]) -> Vec<u32> {
    let (Some(factor), Some(term)) = (factors.first(), terms.first()) else { return Vec::new() };
    let mut values = rensa::bucketed(hashes, factors.len(), *term);
    if values.iter().all(|value| *value < rensa::UNREACHED) {
        return values;
    }
    let prepared = |hash| rensa::mixed(hash, *factor);
    let permuted = smallest((factors, terms), hashes, prepared, upper);
    for (value, permuted) in values.iter_mut().zip(permuted) {
        *value = (*value).min(rensa::unreached(permuted));
    }
    values
}

/// The loop of all schemes. It takes four hashes at a time, so that a value is loaded and stored once for four; the
/// inner loop becomes vector instructions.
/// becomes vector instructions.
#[inline(always)]
fn smallest<T: Copy>(
    (factors, terms): (&[T], &[T]),
    hashes: &[u64],
    prepared: impl Fn(u64) -> T,
    permuted: impl Fn(T, T, T) -> u32,
) -> Vec<u32> {
    let mut values = vec![u32::MAX; factors.len()];
    let (fours, rest) = hashes.as_chunks::<4>();
    for four in fours {
        let [a, b, c, d] = four.map(&prepared);
        for ((value, factor), term) in values.iter_mut().zip(factors).zip(terms) {
            let first = permuted(*factor, a, *term).min(permuted(*factor, b, *term));
            let second = permuted(*factor, c, *term).min(permuted(*factor, d, *term));
            *value = (*value).min(first).min(second);
        }
    }
    for hash in rest {
        let hash = prepared(*hash);
        for ((value, factor), term) in values.iter_mut().zip(factors).zip(terms) {
            *value = (*value).min(permuted(*factor, hash, *term));
        }
    }
    values
}

#[inline(always)]
fn affine(factor: u32, hash: u32, term: u32) -> u32 {
    factor.wrapping_mul(hash).wrapping_add(term)
}

#[inline(always)]
fn legacy(factor: u64, hash: u64, term: u64) -> u32 {
    // numpy's product wraps at 2^64 before the prime divides it.
    let sum = factor.wrapping_mul(hash).wrapping_add(term);
    let folded = (sum & MERSENNE_PRIME) + (sum >> 61);
    (if folded >= MERSENNE_PRIME { folded - MERSENNE_PRIME } else { folded }) as u32
}

#[inline(always)]
fn upper(factor: u64, hash: u64, term: u64) -> u32 {
    (factor.wrapping_mul(hash).wrapping_add(term) >> 32) as u32
}

/// MurmurHash3's finaliser of 32 bits.
#[inline(always)]
fn mixed(mut word: u32) -> u32 {
    word = (word ^ (word >> 16)).wrapping_mul(0x85eb_ca6b);
    word = (word ^ (word >> 13)).wrapping_mul(0xc2b2_ae35);
    word ^ (word >> 16)
}
