//! What a run is a list of, and where sorted entries come from.

use crate::Result;

/// A fingerprint and how often it is there. Below a newer part of a filter stand older ones, so an entry
/// says what its part adds: a tombstone is a count below zero, and entries of one fingerprint add up.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Default)]
pub struct Entry {
    /// A number below its universe's size.
    pub fingerprint: u64,
    /// What is added to its count; never 0 in a run.
    pub count: i64,
}

/// Entries in ascending order of their fingerprints, each fingerprint once.
pub trait Source: Send {
    /// Appends the next entries to `out`: as many as come at once, a page's worth or so. Gives false, and
    /// appends nothing, when there are no more.
    ///
    /// # Errors
    /// A failed read, or damage.
    fn next_batch(&mut self, out: &mut Vec<Entry>) -> Result<bool>;
}
