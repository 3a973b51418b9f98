//! The hash of a shingle as rensa computes it, rustc-hash's `FxHasher` over the bytes, and the buckets of its later
//! signatures.
//!
//! rustc-hash promises no fixed output. So it is reimplemented here: bytes on flash must not change with a crate.
//!
//! From rensa 0.5 on a hash is not permuted for every value. In each of three rounds it goes to one value of the
//! signature, its bucket, with a rank. A value is the smallest rank of the first round that has one, so the rounds are
//! its highest bits; a value that no round has reached is the smallest of all hashes under a permutation, as in a
//! MinHash.

use super::numbers::SplitMix;

/// Digits of pi, as rustc-hash uses them.
const FIRST_SEED: u64 = 0x243f_6a88_85a3_08d3;
const SECOND_SEED: u64 = 0x1319_8a2e_0370_7344;
const NOT_ZERO: u64 = 0xa409_3822_299f_31d0;

/// The multiplier and the rotation that end a hash.
const MULTIPLIER: u64 = 0xf135_7aea_2e62_a9c5;
const ROTATION: u32 = 26;

/// Rounds of buckets, and the bits of a value below its round.
const ROUNDS: u32 = 3;
const RANK_BITS: u32 = 30;

/// Constants that separate the hashes of buckets, of their rounds and of permutations.
const BUCKETS: u64 = 0x6a09_e667_f3bc_c909;
const ROUND: u64 = 0x3c6e_f372_fe94_f82b;
const PERMUTED: u64 = 0xbb67_ae85_84ca_a73b;

/// From this value on no round has reached a value, and the smallest under a permutation is used.
pub(super) const UNREACHED: u32 = ROUNDS << RANK_BITS;

/// Returns the values of rounds of buckets; all bits are set where no round has reached one. `term` is that of the
/// first permutation.
pub(super) fn bucketed(hashes: &[u64], count: usize, term: u64) -> Vec<u32> {
    let mut values = vec![u32::MAX; count];
    for round in 0..ROUNDS {
        let seed = term ^ BUCKETS ^ u64::from(round).wrapping_mul(ROUND);
        for hash in hashes {
            let mixed = SplitMix(hash ^ seed).next();
            let rank = round << RANK_BITS | (mixed >> (64 - RANK_BITS)) as u32;
            let value = &mut values[bucket(mixed, count)];
            *value = (*value).min(rank);
        }
        if values.iter().all(|value| *value < (round + 1) << RANK_BITS) {
            // Later rounds are greater.
            break;
        }
    }
    values
}

/// Returns the bucket of a word among `count`, each with the same probability.
fn bucket(mut mixed: u64, count: usize) -> usize {
    let count = count as u64;
    loop {
        let product = u64::from(mixed as u32) * count;
        if u64::from(product as u32) >= (1 << 32) % count {
            return (product >> 32) as usize;
        }
        mixed = SplitMix(mixed).next();
    }
}

/// Returns a hash in the form that the permutations of unreached values take. `factor` is that of the first
/// permutation.
pub(super) fn mixed(hash: u64, factor: u64) -> u64 {
    SplitMix(hash ^ factor ^ PERMUTED).next()
}

/// Returns an unreached value, given the smallest under its permutation.
pub(super) fn unreached(smallest: u32) -> u32 {
    UNREACHED | smallest >> (32 - RANK_BITS)
}

/// The hash of a shingle's bytes.
pub(super) fn hash(bytes: &[u8]) -> u64 {
    let (mut first, mut second) = (FIRST_SEED, SECOND_SEED);
    match bytes {
        [] => {}
        [low, ..] if bytes.len() < 4 => {
            first ^= u64::from(*low);
            let (middle, last) = (bytes[bytes.len() / 2], bytes[bytes.len() - 1]);
            second ^= u64::from(last) << 8 | u64::from(middle);
        }
        _ if bytes.len() < 8 => {
            first ^= u64::from(start_u32(bytes));
            second ^= u64::from(start_u32(&bytes[bytes.len() - 4..]));
        }
        _ if bytes.len() <= 16 => {
            first ^= start_u64(bytes);
            second ^= start_u64(&bytes[bytes.len() - 8..]);
        }
        _ => {
            // The last 16 bytes come last, even if that repeats some.
            for pair in bytes[..bytes.len() - 1].chunks_exact(16) {
                let (left, right) = (start_u64(pair), start_u64(&pair[8..]));
                (first, second) = (second, folded(first ^ left, NOT_ZERO ^ right));
            }
            let end = &bytes[bytes.len() - 16..];
            first ^= start_u64(end);
            second ^= start_u64(&end[8..]);
        }
    }
    let hash = folded(first, second) ^ bytes.len() as u64;
    hash.wrapping_mul(MULTIPLIER).rotate_left(ROTATION)
}

/// Combines both halves of a product.
fn folded(left: u64, right: u64) -> u64 {
    let product = u128::from(left) * u128::from(right);
    product as u64 ^ (product >> 64) as u64
}

fn start_u64(bytes: &[u8]) -> u64 {
    bytes.first_chunk().map_or(0, |bytes| u64::from_le_bytes(*bytes))
}

fn start_u32(bytes: &[u8]) -> u32 {
    bytes.first_chunk().map_or(0, |bytes| u32::from_le_bytes(*bytes))
}
