//! Who merges, who waits for it, and how long.

use std::collections::VecDeque;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::{Condvar, Mutex, MutexGuard};
use std::time::Duration;

use crate::{Error, Result};

/// How often those who wait look for themselves.
const LOOK: Duration = Duration::from_millis(2);

/// How long an update waits at most for a merge that is behind, each time: about what it takes to merge ten
/// thousand fingerprints.
const PACE: Duration = Duration::from_micros(400);

/// Parts whose buffers wait to be merged.
#[derive(Debug, Default)]
pub(super) struct Work {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct State {
    parts: VecDeque<usize>,
    stop: bool,
    /// What a merge in the background failed of, until an update or a flush reports it.
    fault: Option<Error>,
}

impl Work {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().expect("no holder of the work's lock panics")
    }

    pub(super) fn push(&self, part: usize) {
        self.lock().parts.push_back(part);
        self.changed.notify_all();
    }

    /// Puts a part back whose merge has failed, with the reason; nobody tries again before that is told.
    pub(super) fn fail(&self, part: usize, error: Error) {
        let mut state = self.lock();
        state.parts.push_front(part);
        state.fault = Some(error);
        drop(state);
        self.changed.notify_all();
    }

    /// Tells, once, what a merge in the background failed of; the next one tries again.
    pub(super) fn report_fault(&self) -> Result<()> {
        self.lock().fault.take().map_or(Ok(()), Err)
    }

    /// The next part, when there is one; nothing when it is time to stop.
    pub(super) fn next(&self) -> Option<usize> {
        let mut state = self.lock();
        loop {
            if state.stop {
                return None;
            }
            if state.fault.is_none()
                && let Some(part) = state.parts.pop_front()
            {
                return Some(part);
            }
            let waited = self.changed.wait_timeout(state, 50 * LOOK);
            state = waited.expect("no holder of the work's lock panics").0;
        }
    }

    /// The next part, if there is one now.
    pub(super) fn next_now(&self) -> Option<usize> {
        self.lock().parts.pop_front()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.lock().parts.is_empty()
    }

    pub(super) fn stop(&self) {
        self.lock().stop = true;
        self.changed.notify_all();
    }

    pub(super) fn changed(&self) {
        self.changed.notify_all();
    }

    /// Waits until something changes, or a little while: the caller looks again.
    pub(super) fn wait(&self) {
        drop(self.changed.wait_timeout(self.lock(), LOOK));
    }

    fn wait_for_progress(&self) {
        drop(self.changed.wait_timeout(self.lock(), PACE));
    }
}

/// Lets buffers fill only as fast as merges get on while there are some, in waits far below a millisecond,
/// so that nobody waits for the whole of a merge in the end.
#[derive(Debug)]
pub(super) struct Pace {
    /// Updates since a buffer was last full.
    done: AtomicU64,
    /// How many there may be.
    allowed: AtomicU64,
    /// Updates that take as long as a merge may: those that fill a buffer.
    part_entries: u64,
}

impl Pace {
    pub(super) fn new(part_entries: u64) -> Self {
        Self { done: AtomicU64::new(0), allowed: AtomicU64::new(u64::MAX), part_entries }
    }

    /// Waits a moment where updates are ahead of merges.
    pub(super) fn keep(&self, work: &Work) {
        if self.done.load(Relaxed) > self.allowed.load(Relaxed) {
            work.wait_for_progress();
        }
    }

    pub(super) fn updated(&self, count: usize) {
        self.done.fetch_add(count as u64, Relaxed);
    }

    /// A buffer is full and waits.
    pub(super) fn full(&self) {
        self.done.store(0, Relaxed);
        self.allowed.store(self.part_entries / 4, Relaxed);
    }

    /// A merge has done so much of its work.
    pub(super) fn progress(&self, share: f64) {
        let allowed = (0.25 + share) * self.part_entries as f64;
        self.allowed.store(allowed as u64, Relaxed);
    }

    /// Nothing waits to be merged.
    pub(super) fn idle(&self) {
        self.allowed.store(u64::MAX, Relaxed);
    }
}
