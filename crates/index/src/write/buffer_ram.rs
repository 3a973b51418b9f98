//! The total RAM and the total entries of a structure's buffers, for buffers that take RAM as they fill up.

use std::sync::atomic::Ordering::Relaxed;
use std::sync::atomic::{AtomicBool, AtomicU64};

/// The total of all buffers of a structure, and the shape that they share.
#[derive(Debug)]
pub(crate) struct BufferRam<S> {
    pub(crate) shape: S,
    bytes: AtomicU64,
    bytes_max: u64,
    entries: AtomicU64,
    /// Whether buffers are being filled from a log. Then no limit applies: they take what they took before a crash.
    is_recovering: AtomicBool,
}

impl<S> BufferRam<S> {
    /// Creates the totals for buffers of this shape, which may take `bytes_max` bytes together once the structure has
    /// recovered.
    pub(crate) fn new(shape: S, bytes_max: u64) -> Self {
        let (bytes, entries) = (AtomicU64::new(0), AtomicU64::new(0));
        Self { shape, bytes, bytes_max, entries, is_recovering: AtomicBool::new(true) }
    }

    /// The entries in all buffers.
    pub(crate) fn entries(&self) -> u64 {
        self.entries.load(Relaxed)
    }

    /// The RAM of all buffers in bytes.
    #[cfg(test)]
    pub(crate) fn bytes(&self) -> u64 {
        self.bytes.load(Relaxed)
    }

    /// Ends recovery; the limit applies from now on.
    pub(crate) fn recovered(&self) {
        self.is_recovering.store(false, Relaxed);
    }

    /// Returns whether buffers are being filled from a log.
    pub(crate) fn is_recovering(&self) -> bool {
        self.is_recovering.load(Relaxed)
    }

    /// Returns whether a buffer may take `bytes` more.
    pub(crate) fn may_take(&self, bytes: u64) -> bool {
        self.is_recovering() || self.bytes.load(Relaxed) + bytes <= self.bytes_max
    }

    /// Notes the bytes and entries of a buffer, before and after a change.
    pub(crate) fn note(&self, before: (u64, u64), now: (u64, u64)) {
        // Every amount that is subtracted was added before, so the sums are correct after each step.
        if before.0 != now.0 {
            self.bytes.fetch_add(now.0.wrapping_sub(before.0), Relaxed);
        }
        if before.1 != now.1 {
            self.entries.fetch_add(now.1.wrapping_sub(before.1), Relaxed);
        }
    }
}
