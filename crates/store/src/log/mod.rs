//! The write-ahead log.

use std::time::Duration;

/// When an acknowledged update is safe from a power cut.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Durability {
    /// Before it is acknowledged: writers that arrive together share one sync (group commit).
    Always,
    /// At most this long after it was acknowledged.
    Every(Duration),
    /// When its buffer is flushed, or at `sync`, `flush` and close.
    Never,
}

impl Default for Durability {
    fn default() -> Self {
        Self::Every(Duration::from_millis(100))
    }
}

/// A place in the endless stream of log bytes. It only grows; its place in the log's region is its
/// remainder by the region's size.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub struct Lsn(pub u64);

/// A stretch of the log, from `start` up to and without `end`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct LogSpan {
    /// The first place.
    pub start: Lsn,
    /// The place after the last.
    pub end: Lsn,
}

/// The log.
#[derive(Debug)]
pub struct Log;
