//! What a structure does when it is full: one choice for all that have no more than these.

/// What a structure does when it is full. Each offers some of these, and has its own words and bytes for them.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum WhenFull {
    /// The oldest content goes: a value log overwrites its oldest segment, whatever is in it, and a full slice loses
    /// its oldest entries.
    #[default]
    EvictOldest,
    /// An update that finds no space is an error, and nothing that is live is dropped. A value log copies live records
    /// out of a segment before it reuses it; a filter's rate stays as required.
    Refuse,
    /// The structure takes more. A value log with no segment that is half garbage gets more segments, until the volume
    /// has no space; a filter's rate of false positives grows with its keys.
    Grow,
}

impl WhenFull {
    /// Returns whether live content may be dropped.
    #[must_use]
    pub const fn evicts(self) -> bool {
        matches!(self, Self::EvictOldest)
    }
}
