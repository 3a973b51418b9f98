//! Spare buffers and queued work.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Condvar, Mutex, MutexGuard, OnceLock};
use std::time::Duration;

use nandex_store::Asker;

use super::WriteBuffer;
use crate::Error;

/// Empty buffers, for partitions whose buffer is full.
#[derive(Debug)]
pub(crate) struct BufferPool<B> {
    buffers: Mutex<Vec<B>>,
    changed: Condvar,
    /// Whether no more spare buffers are needed.
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

    /// Takes a buffer, unless only `leave` buffers remain.
    pub(crate) fn take(&self, leave: usize) -> Option<B> {
        let mut buffers = self.lock();
        if buffers.len() <= leave { None } else { buffers.pop() }
    }

    /// Takes a buffer back and clears it.
    pub(crate) fn give(&self, mut buffer: B) {
        buffer.clear();
        let mut buffers = self.lock();
        if !self.is_retired() {
            buffers.push(buffer);
        }
        drop(buffers);
        self.changed.notify_all();
    }

    /// Frees the spare buffers, and those that are returned later: no more inserts follow.
    pub(super) fn retire(&self) {
        let mut buffers = self.lock();
        self.is_retired.store(true, Relaxed);
        *buffers = Vec::new();
    }

    /// Returns whether no more inserts follow.
    pub(crate) fn is_retired(&self) -> bool {
        self.is_retired.load(Relaxed)
    }

    pub(crate) fn notify(&self) {
        self.changed.notify_all();
    }

    /// Waits a short time for a buffer, or for any flush to finish; the caller then tries again.
    pub(crate) fn wait(&self, longest: Duration) {
        drop(self.changed.wait_timeout(self.lock(), longest));
    }

    /// Returns the RAM of the spare buffers, in bytes.
    pub(crate) fn ram_bytes(&self) -> u64 {
        self.lock().iter().map(WriteBuffer::ram_bytes).sum()
    }
}

/// Memory that flushes reuse.
pub(crate) struct ScratchPool<S>(Mutex<Scratches<S>>);

struct Scratches<S> {
    idle: Vec<S>,
    /// The number that are lent.
    lent: usize,
    /// The bytes of all that were allocated since there were none.
    bytes: u64,
    /// Whether none is kept any more.
    is_retired: bool,
}

impl<S> Scratches<S> {
    fn free_idle(&mut self) {
        self.idle = Vec::new();
        if self.lent == 0 {
            self.bytes = 0;
        }
    }
}

impl<S> Default for ScratchPool<S> {
    fn default() -> Self {
        let (idle, is_retired) = (Vec::new(), false);
        Self(Mutex::new(Scratches { idle, lent: 0, bytes: 0, is_retired }))
    }
}

impl<S> ScratchPool<S> {
    fn lock(&self) -> MutexGuard<'_, Scratches<S>> {
        self.0.lock().expect("no holder of the scratches' lock panics")
    }

    /// Lends an idle one, or an empty place for one that the caller allocates.
    pub(crate) fn lend(&self) -> LentScratch<'_, S> {
        let mut all = self.lock();
        all.lent += 1;
        LentScratch { pool: self, scratch: all.idle.pop() }
    }

    /// Counts the bytes of a newly allocated one.
    pub(crate) fn count(&self, bytes: u64) {
        self.lock().bytes += bytes;
    }

    /// Returns the RAM of all, in bytes.
    pub(crate) fn ram_bytes(&self) -> u64 {
        self.lock().bytes
    }

    /// Frees the idle ones.
    pub(crate) fn free_idle(&self) {
        self.lock().free_idle();
    }

    /// Frees the idle ones, and those that are returned later.
    pub(crate) fn retire(&self) {
        let mut all = self.lock();
        all.is_retired = true;
        all.free_idle();
    }
}

impl<S> std::fmt::Debug for ScratchPool<S> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("ScratchPool")
    }
}

/// Memory that a flush uses, or an empty place for it. It is returned when this is dropped.
pub(crate) struct LentScratch<'p, S> {
    pool: &'p ScratchPool<S>,
    pub(crate) scratch: Option<S>,
}

impl<S> Drop for LentScratch<'_, S> {
    fn drop(&mut self) {
        let mut all = self.pool.lock();
        all.lent -= 1;
        all.idle.extend(self.scratch.take());
        if all.is_retired {
            all.free_idle();
        }
    }
}

/// Background work.
#[derive(Debug)]
pub(crate) enum Job<J> {
    /// Write the oldest frozen buffer of a partition.
    Flush(usize),
    /// Perform the layout's own work.
    Own(J),
}

/// The queue of background work. Flushes come first.
#[derive(Debug)]
pub(crate) struct WorkQueue<J> {
    state: Mutex<Work<J>>,
    changed: Condvar,
    /// Requests a background thread; not set if there are none.
    asker: OnceLock<Asker>,
}

#[derive(Debug)]
struct Work<J> {
    flushes: VecDeque<usize>,
    others: VecDeque<J>,
    /// The number of running jobs, and of the layout's own jobs among them.
    running: usize,
    own_running: usize,
    /// The limits of jobs that run at once in the background.
    limits: JobLimits,
    stop: bool,
    /// The error of a failed flush that will be tried again; kept until an update or a flush reports it.
    fault: Option<Error>,
}

/// The maximum number of jobs that run at once in the background.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) struct JobLimits {
    /// Flushes, together with the layout's own jobs if `own` is 0.
    pub flushes: usize,
    /// The layout's own jobs, concurrently with flushes.
    pub own: usize,
}

impl<J> Work<J> {
    fn pop_flush(&mut self) -> Option<Job<J>> {
        let index = self.flushes.pop_front()?;
        self.running += 1;
        Some(Job::Flush(index))
    }

    fn pop_own(&mut self) -> Option<Job<J>> {
        let job = self.others.pop_front()?;
        self.running += 1;
        self.own_running += 1;
        Some(Job::Own(job))
    }

    fn pop(&mut self) -> Option<Job<J>> {
        self.pop_flush().or_else(|| self.pop_own())
    }

    /// Returns the next job that may run in the background now.
    fn pop_due(&mut self) -> Option<Job<J>> {
        if self.is_flush_due() {
            self.pop_flush()
        } else if self.is_own_due() {
            self.pop_own()
        } else {
            None
        }
    }

    /// Returns whether a waiting job may run in the background now. After the queue was stopped, only flushes may; and
    /// a failed flush is tried again only after its failure was reported.
    fn is_due(&self) -> bool {
        self.is_flush_due() || self.is_own_due()
    }

    fn is_flush_due(&self) -> bool {
        let aside = if self.limits.own > 0 { self.own_running } else { 0 };
        let has_place = self.running - aside < self.limits.flushes;
        !self.flushes.is_empty() && self.fault.is_none() && has_place
    }

    fn is_own_due(&self) -> bool {
        let JobLimits { flushes, own } = self.limits;
        let has_place = if own > 0 { self.own_running < own } else { self.running < flushes };
        !self.others.is_empty() && !self.stop && self.fault.is_none() && has_place
    }
}

/// The maximum number of optional jobs, which the table's promises do not need, that wait in the queue; more are
/// dropped.
const OPTIONAL_MAX: usize = 4096;

impl<J> Default for WorkQueue<J> {
    fn default() -> Self {
        let (flushes, others) = (VecDeque::new(), VecDeque::new());
        let (running, own_running, limits) = (0, 0, JobLimits::default());
        let work = Work { flushes, others, running, own_running, limits, stop: false, fault: None };
        Self { state: Mutex::new(work), changed: Condvar::new(), asker: OnceLock::new() }
    }
}

impl<J> WorkQueue<J> {
    fn lock(&self) -> MutexGuard<'_, Work<J>> {
        self.state.lock().expect("no holder of the work's lock panics")
    }

    /// Lets background threads do the work from now on.
    pub(crate) fn use_background(&self, asker: Asker, limits: JobLimits) {
        let mut work = self.lock();
        work.limits = limits;
        let is_first = self.asker.set(asker).is_ok();
        assert!(is_first, "the background serves a structure once");
        self.tell(work);
    }

    /// Signals a change, also to the background if a job is due.
    fn tell(&self, work: MutexGuard<'_, Work<J>>) {
        let asker = self.asker.get().filter(|_| work.is_due());
        drop(work);
        asker.into_iter().for_each(Asker::ask);
        self.changed.notify_all();
    }

    pub(crate) fn push(&self, job: Job<J>) {
        let mut work = self.lock();
        match job {
            Job::Flush(index) => work.flushes.push_back(index),
            Job::Own(job) => work.others.push_back(job),
        }
        self.tell(work);
    }

    /// Pushes a job that may be dropped.
    pub(crate) fn push_optional(&self, job: J) {
        let mut work = self.lock();
        if work.others.len() < OPTIONAL_MAX {
            work.others.push_back(job);
            self.tell(work);
        }
    }

    /// Returns the number of flushes that wait for a thread.
    pub(crate) fn flushes_waiting(&self) -> usize {
        self.lock().flushes.len()
    }

    /// Returns the next job for a background thread, if one is due. Requests another thread if another job is due.
    pub(crate) fn next_in_background(&self) -> Option<Job<J>> {
        let mut work = self.lock();
        let job = work.pop_due();
        self.tell(work);
        job
    }

    /// Requests a background thread if a job is due.
    pub(crate) fn ask_if_due(&self) {
        self.tell(self.lock());
    }

    /// Returns whether a background thread may do a waiting job.
    pub(crate) fn is_due(&self) -> bool {
        self.lock().is_due()
    }

    /// Notes that a job has ended.
    pub(crate) fn done(&self, is_own: bool) {
        let mut work = self.lock();
        work.running -= 1;
        work.own_running -= usize::from(is_own);
        drop(work);
        self.changed.notify_all();
    }

    /// Queues a failed flush again, before all other jobs.
    pub(crate) fn retry(&self, index: usize) {
        let mut work = self.lock();
        work.flushes.push_front(index);
        self.tell(work);
    }

    /// Stores the error of a background flush until it is reported.
    pub(crate) fn keep_fault(&self, error: Error) {
        self.lock().fault = Some(error);
        self.changed.notify_all();
    }

    /// Reports, once, why a background flush has failed; the flush is then tried again.
    ///
    /// # Errors
    /// The failure of that flush.
    pub(crate) fn report_fault(&self) -> crate::Result<()> {
        let mut work = self.lock();
        let Some(fault) = work.fault.take() else { return Ok(()) };
        self.tell(work);
        Err(fault)
    }

    /// Returns the next job, if there is one now.
    pub(crate) fn next_now(&self) -> Option<Job<J>> {
        self.lock().pop()
    }

    /// Waits a short time until no flush is queued and nothing runs; returns whether that happened.
    pub(crate) fn wait_idle(&self) -> bool {
        let busy = |work: &mut Work<J>| {
            work.fault.is_none() && !work.flushes.is_empty() || work.running > 0
        };
        let period = Duration::from_millis(20);
        let wait = self.changed.wait_timeout_while(self.lock(), period, busy);
        let (mut work, _) = wait.expect("no holder of the work's lock panics");
        let is_idle = !busy(&mut work);
        drop(work);
        self.help_starving();
        is_idle
    }

    /// Gives way to background work; threads that wait for it call this from time to time.
    pub(crate) fn help_starving(&self) {
        self.asker.get().into_iter().for_each(Asker::help_starving);
    }

    /// Waits until nothing is queued and nothing runs.
    #[cfg(test)]
    pub(crate) fn wait_quiet(&self) {
        let mut work = self.lock();
        let busy = |work: &Work<J>| {
            !work.flushes.is_empty() || !work.others.is_empty() || work.running > 0
        };
        while busy(&work) {
            work = self.changed.wait(work).expect("no holder of the work's lock panics");
        }
    }

    /// Ends the background work: waits for the queued flushes, unless one has failed, and for running jobs. No thread
    /// refers to the structure afterwards.
    pub(crate) fn stop(&self) {
        let mut work = self.lock();
        work.stop = true;
        // A job that panicked may have left others in the queue.
        self.tell(work);
        let Some(asker) = self.asker.get() else { return };
        while !self.wait_idle() {}
        asker.end();
    }
}
