//! Streams of records, similar to a dump of a database, and streams that repeat a stated share of another.
//!
//! A record has 32 unique bytes, as hexadecimal digits, and words that all records have. So a new stream shrinks by
//! compression alone, and that is measured too.

use std::io::Write;

/// The length of the pieces in which streams repeat others, some chunks each.
pub(super) const PIECE_BYTES: usize = 32 << 10;

/// Returns `bytes` bytes of records, all different with another seed.
pub(super) fn records(bytes: usize, seed: [u64; 3]) -> Vec<u8> {
    let mut hasher = blake3::Hasher::new();
    seed.iter().for_each(|word| {
        hasher.update(&word.to_le_bytes());
    });
    let mut noise = hasher.finalize_xof();
    let mut text = Vec::with_capacity(bytes + 256);
    let (mut unique, mut number) = ([0; 32], 0_u64);
    while text.len() < bytes {
        noise.fill(&mut unique);
        let digits = blake3::Hash::from_bytes(unique).to_hex();
        writeln!(text, "INSERT INTO events VALUES ({number}, '{digits}', 'delivered');")
            .expect("a vector takes all that is written");
        number += 1;
    }
    text.truncate(bytes);
    text
}

/// Returns a stream as long as `base`: this share of its pieces, from 0 to 1, spread evenly, and records of this seed
/// for the others.
pub(super) fn repeating(base: &[u8], share: f64, seed: [u64; 3]) -> Vec<u8> {
    let mut stream = records(base.len(), seed);
    let pieces = stream.chunks_mut(PIECE_BYTES).zip(base.chunks(PIECE_BYTES));
    for (index, (new, known)) in pieces.enumerate() {
        let kept_before = |pieces: usize| (pieces as f64 * share).floor();
        if kept_before(index + 1) > kept_before(index) {
            new.copy_from_slice(known);
        }
    }
    stream
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn records_are_the_same_for_a_seed_and_others_for_another() {
        let first = records(100_000, [1, 0, 0]);
        assert_eq!(first.len(), 100_000);
        assert_eq!(first, records(100_000, [1, 0, 0]));
        assert_ne!(first, records(100_000, [1, 0, 1]));
    }

    #[test]
    fn a_stream_repeats_the_stated_share_of_pieces() {
        let base = records(100 * PIECE_BYTES, [1, 0, 0]);
        for (share, expected) in [(0.0, 0), (0.5, 50), (0.9, 90), (1.0, 100)] {
            let stream = repeating(&base, share, [2, 0, 0]);
            let pieces = stream.chunks(PIECE_BYTES).zip(base.chunks(PIECE_BYTES));
            assert_eq!(pieces.filter(|(new, known)| new == known).count(), expected);
            assert_eq!(stream.len(), base.len());
        }
        assert_eq!(repeating(&base[..1000], 1.0, [2, 0, 0]), &base[..1000]);
    }
}
