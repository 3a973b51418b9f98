//! The reports of a run: its progress and its findings.

use crate::Listed;

/// The progress of a run. No figure ever decreases.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Done {
    /// The number of files read to their end and looked up.
    pub files: u64,
    /// The number of bytes read and looked up.
    pub bytes: u64,
    /// The number of those bytes that were present before.
    pub duplicate_bytes: u64,
}

/// Called after every batch of lookups, on the thread that called [`crate::dedup`].
///
/// `()` ignores it.
pub trait Progress {
    /// Receives the progress. Its time counts as the run's.
    fn update(&self, done: Done);

    /// Receives each chunk and each file, in the order of the walk. Ignores them by default.
    fn list(&self, _listed: Listed<'_>) {}
}

impl Progress for () {
    fn update(&self, _done: Done) {}
}

impl<F: Fn(Done)> Progress for F {
    fn update(&self, done: Done) {
        self(done);
    }
}
