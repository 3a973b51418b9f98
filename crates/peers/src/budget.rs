//! Parts of a memory budget.

/// A part of the budget, as the `usize` that caches want.
#[allow(dead_code, reason = "which engines use it depends on the features")]
pub fn part(bytes: u64, numerator: u64, denominator: u64) -> usize {
    usize::try_from(bytes / denominator * numerator).unwrap_or(usize::MAX)
}
