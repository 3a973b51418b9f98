//! Parts of a memory budget, and sizes of transactions.

/// Returns a part of the budget, as the `usize` that caches take.
#[allow(dead_code, reason = "which engines use it depends on the features")]
pub fn part(bytes: u64, numerator: u64, denominator: u64) -> usize {
    usize::try_from(bytes / denominator * numerator).unwrap_or(usize::MAX)
}

/// Returns the number of pairs of `entry_bytes` that take as many bytes as `pairs` pairs of 8 + 8 bytes.
#[allow(dead_code, reason = "which engines use it depends on the features")]
pub fn pairs_as_long_as(pairs: usize, entry_bytes: u64) -> usize {
    let bytes = pairs as u64 * 16;
    usize::try_from(bytes / entry_bytes).unwrap_or(usize::MAX).max(1)
}
