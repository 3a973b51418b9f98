//! The behaviour of a structure when it is full: one choice for all structures that have only these.

/// The behaviour of a structure when it is full. Each structure offers some of these, with its own names and encoding.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum WhenFull {
    /// Evicts the oldest content: a value log overwrites its oldest segment, whatever is in it, and a full slice loses
    /// its oldest entries.
    #[default]
    EvictOldest,
    /// Fails an update that finds no space, and drops nothing that is live. A value log copies live records out of a
    /// segment before it reuses it; a filter's rate stays as required.
    Refuse,
    /// Grows. A value log with no segment that is half garbage gets more segments, until the volume has no space; a
    /// filter's rate of false positives grows with its keys.
    Grow,
}

impl WhenFull {
    /// Returns whether live content may be dropped.
    #[must_use]
    pub const fn evicts(self) -> bool {
        matches!(self, Self::EvictOldest)
    }
}
