//! How a run tells what it has done so far.

/// What a run has done so far. Over a run, no figure ever falls.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Done {
    /// Files read to their end and looked up.
    pub files: u64,
    /// Bytes read and looked up.
    pub bytes: u64,
    /// Bytes of those that were there before.
    pub duplicate_bytes: u64,
}

/// Told after every batch of lookups, on the thread that called [`crate::dedup`].
///
/// `()` listens to nothing.
pub trait Progress {
    /// Takes note of what is done. Its time is taken from the run's.
    fn update(&self, done: Done);
}

impl Progress for () {
    fn update(&self, _done: Done) {}
}

impl<F: Fn(Done)> Progress for F {
    fn update(&self, done: Done) {
        self(done);
    }
}
