//! Spare buffers and queued work.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Condvar, Mutex, MutexGuard};
use std::time::Duration;

use super::WriteBuffer;
use crate::Error;

/// Empty buffers, for partitions whose own is full.
#[derive(Debug)]
pub(crate) struct BufferPool<B> {
    buffers: Mutex<Vec<B>>,
    changed: Condvar,
    /// Are no spare buffers needed any more?
    is_retired: AtomicBool,
}

impl<B: WriteBuffer> BufferPool<B> {
    pub(crate) fn new(buffers: Vec<B>) -> Self {
        Self {
            buffers: Mutex::new(buffers),
            changed: Condvar::new(),
            is_retired: AtomicBool::new(false),
        }
    }

    fn lock(&self) -> MutexGuard<'_, Vec<B>> {
        self.buffers.lock().expect("no holder of the pool's lock panics")
    }

    /// Takes a buffer, unless only `leave` remain.
    pub(crate) fn take(&self, leave: usize) -> Option<B> {
        let mut buffers = self.lock();
        if buffers.len() <= leave { None } else { buffers.pop() }
    }

    /// Takes a buffer back, emptied.
    pub(crate) fn give(&self, mut buffer: B) {
        buffer.clear();
        let mut buffers = self.lock();
        if !self.is_retired() {
            buffers.push(buffer);
        }
        drop(buffers);
        self.changed.notify_all();
    }

    /// Frees the spare buffers, and those that come back: nothing will be inserted any more.
    pub(super) fn retire(&self) {
        let mut buffers = self.lock();
        self.is_retired.store(true, Relaxed);
        *buffers = Vec::new();
    }

    /// Will nothing be inserted any more?
    pub(crate) fn is_retired(&self) -> bool {
        self.is_retired.load(Relaxed)
    }

    pub(crate) fn notify(&self) {
        self.changed.notify_all();
    }

    /// Waits a short time for a buffer, or for any flush to finish; the caller tries again.
    pub(crate) fn wait(&self, longest: Duration) {
        drop(self.changed.wait_timeout(self.lock(), longest));
    }

    /// RAM of the spare buffers, in bytes.
    pub(crate) fn ram_bytes(&self) -> u64 {
        self.lock().iter().map(WriteBuffer::ram_bytes).sum()
    }
}

/// Memory that flushes reuse, where they run on the threads of callers.
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

/// Background work.
#[derive(Debug)]
pub(crate) enum Job<J> {
    /// Write the oldest frozen buffer of a partition.
    Flush(usize),
    /// Work of the layout's own.
    Own(J),
    /// Free the memory that flushes reuse.
    FreeScratch,
}

/// The background threads' work queue. Flushes come first.
#[derive(Debug)]
pub(crate) struct WorkQueue<J> {
    state: Mutex<Work<J>>,
    changed: Condvar,
}

#[derive(Debug)]
struct Work<J> {
    flushes: VecDeque<usize>,
    others: VecDeque<J>,
    /// Threads that shall free what flushes reuse.
    frees: usize,
    running: usize,
    stop: bool,
    /// Why a flush failed that will be tried again; kept until an update or a flush reports it.
    fault: Option<Error>,
}

impl<J> Work<J> {
    fn pop(&mut self) -> Option<Job<J>> {
        let flush = self.flushes.pop_front().map(Job::Flush);
        let job = flush.or_else(|| self.others.pop_front().map(Job::Own)).or_else(|| {
            self.frees = self.frees.checked_sub(1)?;
            Some(Job::FreeScratch)
        });
        self.running += usize::from(job.is_some());
        job
    }
}

/// Optional jobs, which the table's promises do not need, wait up to this number; more are dropped.
const OPTIONAL_MAX: usize = 4096;

impl<J> Default for WorkQueue<J> {
    fn default() -> Self {
        let (flushes, others) = (VecDeque::new(), VecDeque::new());
        let work = Work { flushes, others, frees: 0, running: 0, stop: false, fault: None };
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
            Job::FreeScratch => work.frees += 1,
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

    /// The next job; nothing when the queue was stopped and no flush remains.
    pub(crate) fn next(&self) -> Option<Job<J>> {
        let mut work = self.lock();
        loop {
            if work.stop && (work.flushes.is_empty() || work.fault.is_some()) {
                return None;
            }
            // A failed flush is tried again only after its failure was reported.
            if work.fault.is_none()
                && let Some(job) = work.pop()
            {
                return Some(job);
            }
            work = self.changed.wait(work).expect("no holder of the work's lock panics");
        }
    }

    pub(crate) fn done(&self) {
        self.lock().running -= 1;
        self.changed.notify_all();
    }

    /// Queues a failed flush again, before all others.
    pub(crate) fn retry(&self, index: usize) {
        self.lock().flushes.push_front(index);
        self.changed.notify_all();
    }

    /// Keeps the failure of a background flush until somebody takes it.
    pub(crate) fn keep_fault(&self, error: Error) {
        self.lock().fault = Some(error);
        self.changed.notify_all();
    }

    /// Reports, once, why a background flush has failed; the flush is then tried again.
    ///
    /// # Errors
    /// The failure of that flush.
    pub(crate) fn report_fault(&self) -> crate::Result<()> {
        let fault = self.lock().fault.take();
        self.changed.notify_all();
        fault.map_or(Ok(()), Err)
    }

    /// The next job, if there is one now.
    pub(crate) fn next_now(&self) -> Option<Job<J>> {
        self.lock().pop()
    }

    /// Waits a little until no flush is queued and nothing runs; returns whether that happened.
    pub(crate) fn wait_idle(&self) -> bool {
        let busy = |work: &mut Work<J>| {
            work.fault.is_none() && !work.flushes.is_empty() || work.running > 0
        };
        let period = Duration::from_millis(20);
        let wait = self.changed.wait_timeout_while(self.lock(), period, busy);
        let (mut work, _) = wait.expect("no holder of the work's lock panics");
        !busy(&mut work)
    }

    /// Waits until nothing is queued and nothing runs.
    #[cfg(test)]
    pub(crate) fn wait_quiet(&self) {
        let mut work = self.lock();
        let busy = |work: &Work<J>| {
            !work.flushes.is_empty() || !work.others.is_empty() || work.frees + work.running > 0
        };
        while busy(&work) {
            work = self.changed.wait(work).expect("no holder of the work's lock panics");
        }
    }

    pub(crate) fn stop(&self) {
        self.lock().stop = true;
        self.changed.notify_all();
    }
}
