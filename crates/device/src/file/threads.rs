//! The engine of threads: each waits for one transfer at a time; there are as many threads as the depth.
//!
//! It replaces io_uring where that is unavailable, as in most containers. A device has up to [`THREADS_MAX`] threads,
//! shared by its queues. A thread is started when there is work and none is idle. As with a ring, `push` only records
//! an operation; `wait` submits all of them under one lock.

use std::collections::VecDeque;
use std::fmt;
use std::sync::{Arc, Condvar, Mutex};
use std::thread::{self, JoinHandle};

use super::handle::Handle;
use crate::{Completion, Error, Op, Queue, Result};

/// The most threads of one device: a queue of this depth keeps a flash device busy.
const THREADS_MAX: usize = 32;

/// The stack of a thread. It only transfers, so a small one is enough.
const STACK_BYTES: usize = 128 * 1024;

/// The threads of one device. Dropping it, after all its queues, ends them.
pub(super) struct Pool {
    shared: Arc<Shared>,
    threads: Mutex<Vec<JoinHandle<()>>>,
}

struct Shared {
    handle: Arc<Handle>,
    work: Mutex<Work>,
    ready: Condvar,
}

#[derive(Default)]
struct Work {
    jobs: VecDeque<Job>,
    idle: usize,
    threads: usize,
    is_closed: bool,
}

struct Job {
    op: Op,
    results: Arc<FinishedOps>,
}

/// The finished operations of one queue.
#[derive(Default)]
struct FinishedOps {
    finished: Mutex<Finished>,
    enough: Condvar,
}

#[derive(Default)]
struct Finished {
    completions: Vec<Completion>,
    /// The number of results that the queue sleeps for; zero while it is awake.
    wanted: usize,
}

impl Pool {
    /// Creates a pool without threads.
    pub(super) fn new(handle: Arc<Handle>) -> Self {
        let shared = Shared { handle, work: Mutex::default(), ready: Condvar::new() };
        Self { shared: Arc::new(shared), threads: Mutex::default() }
    }

    /// Creates a queue whose operations these threads do.
    pub(super) fn queue(self: &Arc<Self>, depth: usize) -> ThreadsQueue {
        let (pool, results, staged) = (Arc::clone(self), Arc::default(), Vec::new());
        ThreadsQueue { pool, results, staged, depth, in_flight: 0 }
    }

    /// Submits all the jobs under one lock, and wakes or starts as many threads as they need.
    fn submit(&self, staged: &mut Vec<Job>) {
        let mut work = self.shared.work.lock().expect("no holder of this lock panics");
        let awake = staged.len().min(work.idle);
        work.jobs.extend(staged.drain(..));
        let missing = work.jobs.len().saturating_sub(work.idle);
        let started = missing.min(THREADS_MAX - work.threads);
        work.threads += started;
        drop(work);
        (0..awake).for_each(|_| self.shared.ready.notify_one());
        (0..started).for_each(|_| self.start_thread());
    }

    /// Starts a thread that is counted already. If the kernel cannot start it, running threads do the work, and if
    /// there are none, the caller does.
    fn start_thread(&self) {
        let shared = Arc::clone(&self.shared);
        let builder = thread::Builder::new().name("nandex-io".into()).stack_size(STACK_BYTES);
        if let Ok(thread) = builder.spawn(move || shared.work_until_closed()) {
            self.threads.lock().expect("no holder of this lock panics").push(thread);
            return;
        }
        let mut work = self.shared.work.lock().expect("no holder of this lock panics");
        work.threads -= 1;
        while work.threads == 0 {
            let Some(job) = work.jobs.pop_front() else { return };
            drop(work);
            job.run(&self.shared.handle);
            work = self.shared.work.lock().expect("no holder of this lock panics");
        }
    }
}

impl Shared {
    fn work_until_closed(&self) {
        let mut work = self.work.lock().expect("no holder of this lock panics");
        loop {
            if let Some(job) = work.jobs.pop_front() {
                drop(work);
                job.run(&self.handle);
                work = self.work.lock().expect("no holder of this lock panics");
            } else if work.is_closed {
                return;
            } else {
                work.idle += 1;
                work = self.ready.wait(work).expect("no holder of this lock panics");
                work.idle -= 1;
            }
        }
    }
}

impl Job {
    fn run(mut self, handle: &Handle) {
        let result = handle.transfer(&mut self.op);
        let mut finished = self.results.finished.lock().expect("no holder of this lock panics");
        finished.completions.push(self.op.finished(result));
        let is_enough = finished.wanted > 0 && finished.completions.len() >= finished.wanted;
        drop(finished);
        if is_enough {
            self.results.enough.notify_one();
        }
    }
}

impl Drop for Pool {
    fn drop(&mut self) {
        // The threads of a parent process do not exist in its child, and its locks may be held.
        if self.shared.handle.is_inherited() {
            return;
        }
        if let Ok(mut work) = self.shared.work.lock() {
            work.is_closed = true;
        }
        self.shared.ready.notify_all();
        if let Ok(threads) = self.threads.get_mut() {
            for thread in threads.drain(..) {
                // The thread's panic has nothing more to report.
                let _ = thread.join();
            }
        }
    }
}

impl fmt::Debug for Pool {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Pool(of at most {THREADS_MAX} threads)")
    }
}

/// A queue whose operations the pool does.
pub(super) struct ThreadsQueue {
    pool: Arc<Pool>,
    results: Arc<FinishedOps>,
    /// Operations pushed since the last wait, which submits them together.
    staged: Vec<Job>,
    depth: usize,
    in_flight: usize,
}

impl ThreadsQueue {
    fn collect(&mut self, count_min: usize, done: &mut Vec<Completion>) {
        let wanted = count_min.min(self.in_flight);
        if !self.staged.is_empty() {
            self.pool.submit(&mut self.staged);
        }
        let mut finished = self.results.finished.lock().expect("no holder of this lock panics");
        while finished.completions.len() < wanted {
            finished.wanted = wanted;
            finished = self.results.enough.wait(finished).expect("no holder of this lock panics");
        }
        finished.wanted = 0;
        self.in_flight -= finished.completions.len();
        done.append(&mut finished.completions);
    }
}

impl Queue for ThreadsQueue {
    fn push(&mut self, op: Op) -> Result<()> {
        self.pool.shared.handle.check(&op)?;
        if self.in_flight >= self.depth {
            return Err(Error::QueueFull { depth: self.depth });
        }
        self.in_flight += 1;
        self.staged.push(Job { op, results: Arc::clone(&self.results) });
        Ok(())
    }

    fn wait(&mut self, count_min: usize, done: &mut Vec<Completion>) -> Result<()> {
        self.pool.shared.handle.check_process()?;
        self.collect(count_min, done);
        Ok(())
    }

    fn in_flight(&self) -> usize {
        self.in_flight
    }

    fn depth(&self) -> usize {
        self.depth
    }
}

impl Drop for ThreadsQueue {
    fn drop(&mut self) {
        if !self.pool.shared.handle.is_inherited() {
            self.collect(self.in_flight, &mut Vec::new());
        }
    }
}
