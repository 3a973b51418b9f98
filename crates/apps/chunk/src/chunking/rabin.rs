//! Rabin-Karp chunk boundaries, as in the WAN optimizer of the BufferHash paper (NSDI'10, section 8).
//!
//! The hash of the 48 bytes that end at a place is the polynomial
//!
//! ```text
//!   H = b[0] A^47 + b[1] A^46 + ... + b[46] A + b[47]      (mod 2^64)
//! ```
//!
//! with a fixed odd A. One byte further, every power rises by one, the new byte joins and the oldest
//! leaves with A^48:
//!
//! ```text
//!   H' = H A + in - out A^48
//! ```
//!
//! A chunk ends where the top k bits of H are all ones, k = log2 of the average size: by chance once in
//! 2^k places. The top bits, not the bottom ones, because bit i of a product mod 2^64 depends
//! only on bits 0..=i of its factors: the lowest bit of H is no more than the parity of the window,
//! while the top bits have taken in everything. All ones, not zeros, because a window of zeros has
//! H = 0, and long runs of zeros should give few long chunks rather than many short ones.
//!
//! A multiplication and an addition in a chain take four cycles. Two steps at once halve that:
//! with d = in - out A^48, which waits for nothing,
//!
//! ```text
//!   H1 = H A   + d1
//!   H2 = H A^2 + (d1 A + d2)
//! ```
//!
//! and only the first product of the second line is in the chain.

use super::Chunking;

/// The number of bytes of the hash's window. No minimum chunk is shorter, so a window never leaves its chunk.
const WINDOW_BYTES: usize = 48;

/// A: odd and 5 mod 8, so its powers repeat only after 2^62 steps.
const MULTIPLIER: u64 = 0x5851_F42D_4C95_7F2D;

/// A^2.
const MULTIPLIER_SQUARED: u64 = MULTIPLIER.wrapping_mul(MULTIPLIER);

/// For every byte, its term when it leaves the window: byte times A^48.
static LEAVING: [u64; 256] = leaving();

const fn leaving() -> [u64; 256] {
    let mut power = 1_u64;
    let mut step = 0;
    while step < WINDOW_BYTES {
        power = power.wrapping_mul(MULTIPLIER);
        step += 1;
    }
    let mut table = [0; 256];
    let mut byte = 1;
    while byte < table.len() {
        table[byte] = power.wrapping_add(table[byte - 1]);
        byte += 1;
    }
    table
}

/// Cuts where the window's hash reaches `boundary`.
#[derive(Clone, Debug)]
pub(super) struct Rabin {
    min_bytes: usize,
    max_bytes: usize,
    /// The least hash whose top k bits are all ones.
    boundary: u64,
}

impl Rabin {
    pub(super) fn new(chunking: &Chunking) -> Self {
        let bits = chunking.average_bytes().ilog2();
        Self {
            min_bytes: chunking.min_bytes(),
            max_bytes: chunking.max_bytes(),
            boundary: u64::MAX << (u64::BITS - bits),
        }
    }

    pub(super) fn first_len(&self, data: &[u8]) -> usize {
        let limit = data.len().min(self.max_bytes);
        if limit <= self.min_bytes {
            return limit;
        }
        let window = &data[self.min_bytes - WINDOW_BYTES..self.min_bytes];
        let hash = window_hash(window);
        if hash >= self.boundary {
            return self.min_bytes;
        }
        let joining = &data[self.min_bytes..limit];
        let leaving = &data[self.min_bytes - WINDOW_BYTES..limit - WINDOW_BYTES];
        self.min_bytes + self.scan(hash, joining, leaving)
    }

    /// Returns the number of bytes of `joining` until the hash reaches the boundary, or all of them.
    fn scan(&self, mut hash: u64, joining: &[u8], leaving: &[u8]) -> usize {
        let (joining_pairs, joining_last) = joining.as_chunks::<2>();
        let (leaving_pairs, _) = leaving.as_chunks::<2>();
        for (pair, (join, leave)) in joining_pairs.iter().zip(leaving_pairs).enumerate() {
            let first = difference(join[0], leave[0]);
            let second = difference(join[1], leave[1]);
            let after_first = hash.wrapping_mul(MULTIPLIER).wrapping_add(first);
            let both = first.wrapping_mul(MULTIPLIER).wrapping_add(second);
            hash = hash.wrapping_mul(MULTIPLIER_SQUARED).wrapping_add(both);
            if after_first >= self.boundary {
                return 2 * pair + 1;
            }
            if hash >= self.boundary {
                return 2 * pair + 2;
            }
        }
        // A last odd byte ends the data, so it belongs to this chunk whatever its hash.
        2 * joining_pairs.len() + joining_last.len()
    }
}

/// Returns the hash of a window, from its definition.
fn window_hash(window: &[u8]) -> u64 {
    window
        .iter()
        .fold(0, |hash: u64, &byte| hash.wrapping_mul(MULTIPLIER).wrapping_add(u64::from(byte)))
}

/// Returns in - out A^48.
fn difference(join: u8, leave: u8) -> u64 {
    u64::from(join).wrapping_sub(LEAVING[usize::from(leave)])
}

#[cfg(test)]
mod tests {
    use super::super::{Chunker, Chunking};
    use super::*;

    /// Returns the first cut by the definition: a whole window is hashed again at every place.
    fn first_len_by_definition(chunking: &Chunking, data: &[u8]) -> usize {
        let limit = data.len().min(chunking.max_bytes());
        let bits = chunking.average_bytes().ilog2();
        let is_cut = |len: &usize| {
            let hash = window_hash(&data[len - WINDOW_BYTES..*len]);
            hash >> (64 - bits) == (1 << bits) - 1
        };
        (chunking.min_bytes()..limit).find(is_cut).unwrap_or(limit)
    }

    #[test]
    fn rolling_finds_the_cuts_of_the_definition() {
        let data = super::super::tests::noise(200_000, 7);
        for average in [256, 1024, 4096] {
            let chunking = Chunking::new(Chunker::Rabin, average).unwrap();
            let rabin = Rabin::new(&chunking);
            let mut rest = &data[..];
            while !rest.is_empty() {
                let length = rabin.first_len(rest);
                assert_eq!(length, first_len_by_definition(&chunking, rest));
                rest = &rest[length..];
            }
        }
    }

    #[test]
    fn a_run_of_zeros_gives_the_longest_chunks() {
        let chunking = Chunking::new(Chunker::Rabin, 256).unwrap();
        assert!(chunking.split(&[0; 8192]).all(|chunk| chunk.len() == 2048));
    }
}
