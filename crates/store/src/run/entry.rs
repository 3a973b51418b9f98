//! The entries of a run, and the source of sorted entries.

use crate::Result;

/// A fingerprint and its count. A filter has older parts below newer ones, so an entry holds what its part adds: a
/// tombstone is a count below zero, and the counts of one fingerprint add up.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Default)]
pub struct Entry {
    /// A number below the size of its universe.
    pub fingerprint: u64,
    /// The amount added to its count; never 0 in a run.
    pub count: i64,
}

/// Entries in ascending order of their fingerprints, each fingerprint once.
pub trait Source: Send {
    /// Appends the next entries to `out`: as many as are ready at once, about a page's worth. Returns false, and
    /// appends nothing, when there are no more.
    ///
    /// # Errors
    /// A failed read, or damage.
    fn next_batch(&mut self, out: &mut Vec<Entry>) -> Result<bool>;
}
