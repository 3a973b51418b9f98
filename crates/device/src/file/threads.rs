//! The engine of threads: each waits for one transfer at a time, as deep as there are threads.
//!
//! It stands in where io_uring is refused, as in most containers. Up to [`THREADS_MAX`] threads
//! belong to a device, shared by its queues, and are started when there is work and none is idle.

use std::collections::VecDeque;
use std::fmt;
use std::sync::{Arc, Condvar, Mutex, MutexGuard};
use std::thread::{self, JoinHandle};

use super::handle::Handle;
use crate::{Completion, Error, Op, Queue, Result};

/// Threads of one device: a queue of this depth keeps a flash device busy.
const THREADS_MAX: usize = 32;

/// A thread does nothing but transfer, so a small stack is enough.
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
    lane: Arc<Lane>,
}

/// Where the finished operations of one queue gather.
#[derive(Default)]
struct Lane {
    finished: Mutex<Finished>,
    enough: Condvar,
}

#[derive(Default)]
struct Finished {
    completions: Vec<Completion>,
    /// How many the queue sleeps for; zero while it does not sleep.
    wanted: usize,
}

impl Pool {
    /// A pool of no threads yet.
    pub(super) fn new(handle: Arc<Handle>) -> Self {
        let shared = Shared { handle, work: Mutex::default(), ready: Condvar::new() };
        Self { shared: Arc::new(shared), threads: Mutex::default() }
    }

    /// A queue whose operations these threads carry out.
    pub(super) fn queue(self: &Arc<Self>, depth: usize) -> ThreadsQueue {
        ThreadsQueue { pool: Arc::clone(self), lane: Arc::default(), depth, in_flight: 0 }
    }

    fn submit(&self, job: Job) {
        let mut work = self.shared.work.lock().expect("no holder of this lock panics");
        work.jobs.push_back(job);
        if work.jobs.len() <= work.idle {
            self.shared.ready.notify_one();
        } else if work.threads < THREADS_MAX {
            self.start_thread(work);
        }
    }

    /// One thread more; where the kernel gives none and there is none, the caller does the work.
    fn start_thread(&self, mut work: MutexGuard<'_, Work>) {
        let shared = Arc::clone(&self.shared);
        let builder = thread::Builder::new().name("nandex-io".into()).stack_size(STACK_BYTES);
        match builder.spawn(move || shared.work_until_closed()) {
            Ok(thread) => {
                work.threads += 1;
                drop(work);
                self.threads.lock().expect("no holder of this lock panics").push(thread);
            }
            Err(_) if work.threads == 0 => {
                let job = work.jobs.pop_back();
                drop(work);
                job.into_iter().for_each(|job| job.run(&self.shared.handle));
            }
            Err(_) => {}
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
        let mut finished = self.lane.finished.lock().expect("no holder of this lock panics");
        finished.completions.push(self.op.finished(result));
        if finished.wanted > 0 && finished.completions.len() >= finished.wanted {
            self.lane.enough.notify_one();
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
                // A thread that panicked has nothing more to give.
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

/// A lane whose operations the pool carries out.
pub(super) struct ThreadsQueue {
    pool: Arc<Pool>,
    lane: Arc<Lane>,
    depth: usize,
    in_flight: usize,
}

impl ThreadsQueue {
    fn collect(&mut self, count_min: usize, done: &mut Vec<Completion>) {
        let wanted = count_min.min(self.in_flight);
        let mut finished = self.lane.finished.lock().expect("no holder of this lock panics");
        while finished.completions.len() < wanted {
            finished.wanted = wanted;
            finished = self.lane.enough.wait(finished).expect("no holder of this lock panics");
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
        self.pool.submit(Job { op, lane: Arc::clone(&self.lane) });
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
