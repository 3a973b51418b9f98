//! Buffers, read lanes and work that wait for somebody.

use std::collections::VecDeque;
use std::sync::{Condvar, Mutex, MutexGuard};
use std::time::Duration;

use nandex_device::{Completion, PageBuf, Queue};
use nandex_store::buffer::Buffer;
use nandex_store::ring::SegmentId;

use super::flush::Scratch;

/// Empty buffers, for super tables whose own is full.
#[derive(Debug, Default)]
pub(super) struct BufferPool {
    buffers: Mutex<Vec<Buffer>>,
    changed: Condvar,
}

impl BufferPool {
    pub(super) fn new(buffers: Vec<Buffer>) -> Self {
        Self { buffers: Mutex::new(buffers), changed: Condvar::new() }
    }

    fn lock(&self) -> MutexGuard<'_, Vec<Buffer>> {
        self.buffers.lock().expect("no holder of the pool's lock panics")
    }

    /// Takes a buffer, unless only `leave` are left.
    pub(super) fn take(&self, leave: usize) -> Option<Buffer> {
        let mut buffers = self.lock();
        if buffers.len() <= leave { None } else { buffers.pop() }
    }

    /// Takes a buffer back, emptied.
    pub(super) fn give(&self, mut buffer: Buffer) {
        buffer.reset();
        self.lock().push(buffer);
        self.changed.notify_all();
    }

    pub(super) fn notify(&self) {
        self.changed.notify_all();
    }

    /// Waits a little for a buffer, or for any flush to finish.
    pub(super) fn wait(&self) {
        // Whether time or a buffer woke us, the caller tries again.
        drop(self.changed.wait_timeout(self.lock(), Duration::from_millis(2)));
    }
}

/// A caller's lane to the device, with its page buffers; used by one lookup or batch at a time.
pub(super) struct Lane {
    pub(super) queue: Box<dyn Queue>,
    pub(super) pages: Vec<PageBuf>,
    pub(super) done: Vec<Completion>,
}

/// Lanes that nobody uses just now.
#[derive(Default)]
pub(super) struct LanePool {
    lanes: Mutex<Vec<Lane>>,
    pages: Mutex<Vec<PageBuf>>,
}

impl LanePool {
    pub(super) fn take_lane(&self) -> Option<Lane> {
        self.lanes.lock().expect("no holder of the lanes' lock panics").pop()
    }

    pub(super) fn give_lane(&self, lane: Lane) {
        self.lanes.lock().expect("no holder of the lanes' lock panics").push(lane);
    }

    pub(super) fn take_page(&self) -> PageBuf {
        let page = self.pages.lock().expect("no holder of the pages' lock panics").pop();
        page.unwrap_or_else(|| PageBuf::zeroed(1))
    }

    pub(super) fn give_page(&self, page: PageBuf) {
        self.pages.lock().expect("no holder of the pages' lock panics").push(page);
    }

    /// RAM it holds, in bytes; lanes in use are not counted.
    pub(super) fn ram_bytes(&self) -> usize {
        let lanes = self.lanes.lock().expect("no holder of the lanes' lock panics");
        let in_lanes: usize = lanes.iter().map(|lane| lane.pages.len()).sum();
        let pages = self.pages.lock().expect("no holder of the pages' lock panics").len();
        (in_lanes + pages) * nandex_device::PAGE_BYTES
    }
}

impl std::fmt::Debug for LanePool {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("LanePool")
    }
}

/// What flushes need again and again, where they run on the threads of callers.
#[derive(Default)]
pub(super) struct ScratchPool(Mutex<Vec<Scratch>>);

impl ScratchPool {
    pub(super) fn take(&self) -> Option<Scratch> {
        self.0.lock().expect("no holder of the scratches' lock panics").pop()
    }

    pub(super) fn give(&self, scratch: Scratch) {
        self.0.lock().expect("no holder of the scratches' lock panics").push(scratch);
    }
}

impl std::fmt::Debug for ScratchPool {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("ScratchPool")
    }
}

/// Something for the background threads to do.
#[derive(Debug)]
pub(super) enum Job {
    /// Write the oldest frozen buffer of a super table.
    Flush(usize),
    /// Put an entry that was found on flash back into the buffer (LRU).
    Reinsert {
        table: usize,
        key: Vec<u8>,
        value: Vec<u8>,
        /// Where it was found.
        source: SegmentId,
        /// The newest incarnation's number when the lookup began.
        newest_sequence: u64,
    },
    /// Load the filters of a super table after an open.
    LoadFilters(usize),
}

/// What the background threads have to do, in order; flushes first.
#[derive(Debug, Default)]
pub(super) struct WorkQueue {
    state: Mutex<Work>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct Work {
    flushes: VecDeque<Job>,
    others: VecDeque<Job>,
    running: usize,
    stop: bool,
}

/// Re-insertions that may wait; beyond it they are dropped, which only makes LRU less exact.
const OTHERS_MAX: usize = 4096;

impl WorkQueue {
    fn lock(&self) -> MutexGuard<'_, Work> {
        self.state.lock().expect("no holder of the work's lock panics")
    }

    pub(super) fn push(&self, job: Job) {
        let mut work = self.lock();
        match job {
            Job::Flush(_) => work.flushes.push_back(job),
            Job::LoadFilters(_) => work.others.push_back(job),
            Job::Reinsert { .. } if work.others.len() < OTHERS_MAX => work.others.push_back(job),
            Job::Reinsert { .. } => return,
        }
        drop(work);
        self.changed.notify_all();
    }

    /// The next job; nothing when the queue was stopped and no flush is left.
    pub(super) fn next(&self) -> Option<Job> {
        let mut work = self.lock();
        loop {
            if let Some(job) = work.flushes.pop_front() {
                work.running += 1;
                return Some(job);
            }
            if work.stop {
                return None;
            }
            if let Some(job) = work.others.pop_front() {
                work.running += 1;
                return Some(job);
            }
            work = self.changed.wait(work).expect("no holder of the work's lock panics");
        }
    }

    pub(super) fn done(&self) {
        self.lock().running -= 1;
        self.changed.notify_all();
    }

    /// The next job, if there is one now.
    pub(super) fn next_now(&self) -> Option<Job> {
        let mut work = self.lock();
        let job = work.flushes.pop_front().or_else(|| work.others.pop_front());
        work.running += usize::from(job.is_some());
        job
    }

    /// Waits a little until no flush waits and nothing runs; tells whether it is so.
    pub(super) fn wait_idle(&self) -> bool {
        let busy = |work: &mut Work| !work.flushes.is_empty() || work.running > 0;
        let period = Duration::from_millis(20);
        let wait = self.changed.wait_timeout_while(self.lock(), period, busy);
        let (mut work, _) = wait.expect("no holder of the work's lock panics");
        !busy(&mut work)
    }

    /// Waits until nothing at all waits or runs.
    #[cfg(test)]
    pub(super) fn wait_quiet(&self) {
        let mut work = self.lock();
        while !work.flushes.is_empty() || !work.others.is_empty() || work.running > 0 {
            work = self.changed.wait(work).expect("no holder of the work's lock panics");
        }
    }

    pub(super) fn stop(&self) {
        self.lock().stop = true;
        self.changed.notify_all();
    }
}
