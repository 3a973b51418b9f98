//! The hash of a shingle as rensa takes it: rustc-hash's `FxHasher` over the bytes, once.
//!
//! rustc-hash promises no fixed output. So it is written out here: bytes on flash must not change with a crate.

/// Digits of pi, as rustc-hash takes them.
const FIRST_SEED: u64 = 0x243f_6a88_85a3_08d3;
const SECOND_SEED: u64 = 0x1319_8a2e_0370_7344;
const NOT_ZERO: u64 = 0xa409_3822_299f_31d0;

/// The multiplier and the rotation that end a hash.
const MULTIPLIER: u64 = 0xf135_7aea_2e62_a9c5;
const ROTATION: u32 = 26;

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
            // The last 16 bytes come last, even where that repeats some.
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

/// Both halves of a product.
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
