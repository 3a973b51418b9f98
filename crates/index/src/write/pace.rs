//! Pacing: updates wait for flushes a little at a time, so that none waits for a whole flush.

use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;

/// Lets buffers fill only as fast as flushes progress, while any runs.
///
/// Without a limit nothing waits.
#[derive(Debug)]
pub(crate) struct Pace {
    /// Updates since a buffer was last full.
    done: AtomicU64,
    /// The most updates allowed until then.
    allowed: AtomicU64,
    /// Updates over which a flush is spread: those that fill a buffer.
    flush_updates: Option<u64>,
    /// Flushes that run at the same time. Each may take that many times as long.
    flushes: f64,
}

impl Pace {
    pub(super) fn new(flush_updates: Option<u64>, flush_threads: usize) -> Self {
        let flushes = flush_threads.max(1) as f64;
        Self { done: AtomicU64::new(0), allowed: AtomicU64::new(u64::MAX), flush_updates, flushes }
    }

    /// Are updates ahead of flushes?
    pub(super) fn is_ahead(&self) -> bool {
        self.done.load(Relaxed) > self.allowed.load(Relaxed)
    }

    pub(super) fn updated(&self, count: usize) {
        if self.flush_updates.is_some() {
            self.done.fetch_add(count as u64, Relaxed);
        }
    }

    /// A buffer is full and waits for its flush.
    pub(super) fn full(&self) {
        if let Some(updates) = self.flush_updates {
            self.done.store(0, Relaxed);
            self.allowed.store(updates / 4, Relaxed);
        }
    }

    /// A flush has done this share of its work.
    pub(crate) fn progress(&self, share: f64) {
        if let Some(updates) = self.flush_updates {
            let allowed = (0.25 + share * self.flushes) * updates as f64;
            self.allowed.store(allowed as u64, Relaxed);
        }
    }

    /// No flush waits.
    pub(super) fn idle(&self) {
        self.allowed.store(u64::MAX, Relaxed);
    }
}
