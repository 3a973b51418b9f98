//! Pacing: updates wait for flushes a little at a time, so that no update waits for a whole flush.

use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;

/// The number of updates ahead of the flushes for each wait. A batch has a few updates for each of many partitions, and
/// would otherwise wait for every partition: a tenth of a second for a thousand updates.
const UPDATES_PER_WAIT: u64 = 64;

/// Lets buffers fill only as fast as flushes progress, while a flush is running.
///
/// Without a limit no update waits.
#[derive(Debug)]
pub(crate) struct Pace {
    /// The updates that were ahead since one last waited.
    unpaced: AtomicU64,
    /// The updates since a buffer was last full.
    done: AtomicU64,
    /// The maximum number of updates allowed since then.
    allowed: AtomicU64,
    /// The number of updates that a flush is spread over: those that fill a buffer.
    flush_updates: Option<u64>,
    /// The number of flushes that run at the same time. Each may take proportionally longer.
    flushes: f64,
}

impl Pace {
    pub(super) fn new(flush_updates: Option<u64>, flush_threads: usize) -> Self {
        let flushes = flush_threads.max(1) as f64;
        let (unpaced, done) = (AtomicU64::new(0), AtomicU64::new(0));
        Self { unpaced, done, allowed: AtomicU64::new(u64::MAX), flush_updates, flushes }
    }

    /// Returns whether updates are ahead of flushes and these `updates` must wait a little.
    pub(super) fn must_wait(&self, updates: usize) -> bool {
        if self.done.load(Relaxed) <= self.allowed.load(Relaxed) {
            return false;
        }
        let unpaced = self.unpaced.fetch_add(updates as u64, Relaxed) + updates as u64;
        let is_due = unpaced >= UPDATES_PER_WAIT;
        if is_due {
            self.unpaced.store(0, Relaxed);
        }
        is_due
    }

    pub(super) fn updated(&self, count: usize) {
        if self.flush_updates.is_some() {
            self.done.fetch_add(count as u64, Relaxed);
        }
    }

    /// Notes that a buffer is full and waits for its flush.
    pub(super) fn full(&self) {
        if let Some(updates) = self.flush_updates {
            self.done.store(0, Relaxed);
            self.allowed.store(updates / 4, Relaxed);
        }
    }

    /// Notes that a flush has done this share of its work.
    pub(crate) fn progress(&self, share: f64) {
        if let Some(updates) = self.flush_updates {
            let allowed = (0.25 + share * self.flushes) * updates as f64;
            self.allowed.store(allowed as u64, Relaxed);
        }
    }

    /// Notes that no flush waits.
    pub(super) fn idle(&self) {
        self.allowed.store(u64::MAX, Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn updates_ahead_of_a_flush_wait_once_for_64_of_them_however_they_are_divided() {
        let pace = Pace::new(Some(1000), 1);
        let waits = |updates: usize, calls: usize| {
            (0..calls).filter(|_| pace.must_wait(updates)).count() as u64
        };
        assert_eq!(waits(512, 10), 0, "nothing is flushed");
        pace.full();
        pace.updated(250);
        assert_eq!(waits(512, 10), 0, "a quarter of a buffer is free");
        pace.updated(1);
        assert_eq!(waits(1, 640), 640 / UPDATES_PER_WAIT);
        assert_eq!(waits(16, 40), 640 / UPDATES_PER_WAIT);
        assert_eq!(waits(512, 10), 10);
        pace.progress(0.5);
        assert_eq!(waits(512, 10), 0, "the flush has caught up");
        pace.updated(1000);
        pace.idle();
        assert_eq!(waits(512, 10), 0, "the flush has ended");
    }
}
