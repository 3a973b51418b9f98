//! The arithmetic on hashes that the filters share. It is part of the flash format: a stored filter must find
//! the same rows when it is loaded again.

/// Spreads every bit of a hash over the high bits. Some bits of the hash select the super table, and are the same for
/// all of its keys; afterwards the result is uniform whichever bits those were.
pub(super) const fn mix(hash: u64) -> u64 {
    let folded = (hash ^ (hash >> 32)).wrapping_mul(0x9E37_79B9_7F4A_7C15);
    folded ^ (folded >> 29)
}

/// Returns a second value from a mixed hash, for an odd `salt`.
pub(super) const fn remix(mixed: u64, salt: u64) -> u64 {
    let product = (mixed ^ salt).wrapping_mul(salt);
    product ^ (product >> 32)
}

/// Maps a uniform 64-bit value to 0..range: the high word of the product.
pub(super) fn reduce(value: u64, range: u32) -> u32 {
    let product = u128::from(value) * u128::from(range);
    low_half((product >> 64) as u64)
}

/// Returns the low 32 bits.
pub(super) const fn low_half(value: u64) -> u32 {
    (value & 0xFFFF_FFFF) as u32
}

/// Returns the high 32 bits.
pub(super) const fn high_half(value: u64) -> u32 {
    (value >> 32) as u32
}
