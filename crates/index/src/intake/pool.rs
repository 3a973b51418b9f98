//! Buffers and work that wait for somebody.

use std::collections::VecDeque;
use std::sync::{Condvar, Mutex, MutexGuard};
use std::time::Duration;

use nandex_store::buffer::Buffer;

/// Empty buffers, for partitions whose own is full.
#[derive(Debug, Default)]
pub(crate) struct BufferPool {
    buffers: Mutex<Vec<Buffer>>,
    changed: Condvar,
}

impl BufferPool {
    pub(crate) fn new(buffers: Vec<Buffer>) -> Self {
        Self { buffers: Mutex::new(buffers), changed: Condvar::new() }
    }

    fn lock(&self) -> MutexGuard<'_, Vec<Buffer>> {
        self.buffers.lock().expect("no holder of the pool's lock panics")
    }

    /// Takes a buffer, unless only `leave` are left.
    pub(crate) fn take(&self, leave: usize) -> Option<Buffer> {
        let mut buffers = self.lock();
        if buffers.len() <= leave { None } else { buffers.pop() }
    }

    /// Takes a buffer back, emptied.
    pub(crate) fn give(&self, mut buffer: Buffer) {
        buffer.reset();
        self.lock().push(buffer);
        self.changed.notify_all();
    }

    pub(crate) fn notify(&self) {
        self.changed.notify_all();
    }

    /// Waits a little for a buffer, or for any flush to finish.
    pub(crate) fn wait(&self) {
        // Whether time or a buffer woke us, the caller tries again.
        drop(self.changed.wait_timeout(self.lock(), Duration::from_millis(2)));
    }
}

/// What flushes need again and again, where they run on the threads of callers.
pub(crate) struct ScratchPool<S>(Mutex<Vec<S>>);

impl<S> Default for ScratchPool<S> {
    fn default() -> Self {
        Self(Mutex::default())
    }
}

impl<S> ScratchPool<S> {
    pub(crate) fn take(&self) -> Option<S> {
        self.0.lock().expect("no holder of the scratches' lock panics").pop()
    }

    pub(crate) fn give(&self, scratch: S) {
        self.0.lock().expect("no holder of the scratches' lock panics").push(scratch);
    }
}

impl<S> std::fmt::Debug for ScratchPool<S> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("ScratchPool")
    }
}

/// Something for the background threads to do.
#[derive(Debug)]
pub(crate) enum Job<J> {
    /// Write the oldest frozen buffer of a partition.
    Flush(usize),
    /// Something of the room's own.
    Own(J),
}

/// What the background threads have to do, in order; flushes first.
#[derive(Debug)]
pub(crate) struct WorkQueue<J> {
    state: Mutex<Work<J>>,
    changed: Condvar,
}

#[derive(Debug)]
struct Work<J> {
    flushes: VecDeque<usize>,
    others: VecDeque<J>,
    running: usize,
    stop: bool,
}

impl<J> Work<J> {
    fn pop(&mut self) -> Option<Job<J>> {
        let flush = self.flushes.pop_front().map(Job::Flush);
        let job = flush.or_else(|| self.others.pop_front().map(Job::Own));
        self.running += usize::from(job.is_some());
        job
    }
}

/// Jobs that are not needed for what the table promises may wait up to this number; beyond it they are
/// dropped.
const OPTIONAL_MAX: usize = 4096;

impl<J> Default for WorkQueue<J> {
    fn default() -> Self {
        let (flushes, others) = (VecDeque::new(), VecDeque::new());
        let work = Work { flushes, others, running: 0, stop: false };
        Self { state: Mutex::new(work), changed: Condvar::new() }
    }
}

impl<J> WorkQueue<J> {
    fn lock(&self) -> MutexGuard<'_, Work<J>> {
        self.state.lock().expect("no holder of the work's lock panics")
    }

    pub(crate) fn push(&self, job: Job<J>) {
        let mut work = self.lock();
        match job {
            Job::Flush(index) => work.flushes.push_back(index),
            Job::Own(job) => work.others.push_back(job),
        }
        drop(work);
        self.changed.notify_all();
    }

    /// Pushes a job that may be dropped.
    pub(crate) fn push_optional(&self, job: J) {
        let mut work = self.lock();
        if work.others.len() < OPTIONAL_MAX {
            work.others.push_back(job);
            drop(work);
            self.changed.notify_all();
        }
    }

    /// Flushes that wait for a thread.
    pub(crate) fn flushes_waiting(&self) -> usize {
        self.lock().flushes.len()
    }

    /// The next job; nothing when the queue was stopped and no flush is left.
    pub(crate) fn next(&self) -> Option<Job<J>> {
        let mut work = self.lock();
        loop {
            if work.stop && work.flushes.is_empty() {
                return None;
            }
            if let Some(job) = work.pop() {
                return Some(job);
            }
            work = self.changed.wait(work).expect("no holder of the work's lock panics");
        }
    }

    pub(crate) fn done(&self) {
        self.lock().running -= 1;
        self.changed.notify_all();
    }

    /// The next job, if there is one now.
    pub(crate) fn next_now(&self) -> Option<Job<J>> {
        self.lock().pop()
    }

    /// Waits a little until no flush waits and nothing runs; tells whether it is so.
    pub(crate) fn wait_idle(&self) -> bool {
        let busy = |work: &mut Work<J>| !work.flushes.is_empty() || work.running > 0;
        let period = Duration::from_millis(20);
        let wait = self.changed.wait_timeout_while(self.lock(), period, busy);
        let (mut work, _) = wait.expect("no holder of the work's lock panics");
        !busy(&mut work)
    }

    /// Waits until nothing at all waits or runs.
    #[cfg(test)]
    pub(crate) fn wait_quiet(&self) {
        let mut work = self.lock();
        while !work.flushes.is_empty() || !work.others.is_empty() || work.running > 0 {
            work = self.changed.wait(work).expect("no holder of the work's lock panics");
        }
    }

    pub(crate) fn stop(&self) {
        self.lock().stop = true;
        self.changed.notify_all();
    }
}
