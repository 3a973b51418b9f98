//! Memory that counts and fails syncs, fails writes, delays syncs, and knows what a power cut leaves.

use std::ops::Range;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use nandex_device::{
    Completion, Device, EngineReport, Error, Geometry, MemoryDevice, Op, OpKind, PageId, Queue,
    Result,
};

#[derive(Default, Debug)]
struct State {
    /// The bytes at the last sync.
    durable: Mutex<Vec<u8>>,
    syncs: AtomicU64,
    fail_syncs: AtomicBool,
    fail_writes: AtomicBool,
    newest_first: AtomicBool,
    /// Held by a test to make syncs wait.
    gate: Mutex<()>,
    waiting: AtomicU64,
}

/// The device of the log's tests. Clones share everything.
#[derive(Clone, Debug, Default)]
pub(super) struct Probe {
    memory: MemoryDevice,
    state: Arc<State>,
}

impl Probe {
    pub fn from_image(image: Vec<u8>) -> Self {
        Self { memory: MemoryDevice::from_image(image), state: Arc::default() }
    }

    /// All bytes as written.
    pub fn image(&self) -> Vec<u8> {
        self.memory.image()
    }

    /// The bytes as a power cut that loses every unsynced write leaves them.
    pub fn durable_image(&self) -> Vec<u8> {
        self.state.durable.lock().unwrap().clone()
    }

    pub fn syncs(&self) -> u64 {
        self.state.syncs.load(Ordering::SeqCst)
    }

    pub fn fail_syncs(&self, fail: bool) {
        self.state.fail_syncs.store(fail, Ordering::SeqCst);
    }

    pub fn fail_writes(&self, fail: bool) {
        self.state.fail_writes.store(fail, Ordering::SeqCst);
    }

    /// Makes each wait return a single write, the newest.
    pub fn complete_newest_first(&self) {
        self.state.newest_first.store(true, Ordering::SeqCst);
    }

    /// Runs `act` while every sync waits; `act` may wait for a sync to have begun.
    pub fn with_syncs_held<T>(&self, act: impl FnOnce() -> T) -> T {
        let _gate = self.state.gate.lock().unwrap();
        act()
    }

    /// The number of syncs that wait at the gate.
    pub fn syncs_waiting(&self) -> u64 {
        self.state.waiting.load(Ordering::SeqCst)
    }
}

fn failure(operation: &'static str) -> Error {
    let source = std::io::Error::other("made to fail");
    Error::Io { operation, page: PageId(0), pages: 1, source }
}

impl Device for Probe {
    fn geometry(&self) -> Geometry {
        self.memory.geometry()
    }

    fn page_count(&self) -> u64 {
        self.memory.page_count()
    }

    fn grow(&self, page_count: u64) -> Result<()> {
        self.memory.grow(page_count)
    }

    fn queue(&self, depth: usize) -> Result<Box<dyn Queue>> {
        let inner = self.memory.queue(depth)?;
        Ok(Box::new(ProbeQueue { inner, state: Arc::clone(&self.state), held: Vec::new() }))
    }

    fn sync(&self) -> Result<()> {
        let image = self.memory.image();
        self.state.waiting.fetch_add(1, Ordering::SeqCst);
        drop(self.state.gate.lock());
        self.state.waiting.fetch_sub(1, Ordering::SeqCst);
        if self.state.fail_syncs.load(Ordering::SeqCst) {
            return Err(failure("sync"));
        }
        *self.state.durable.lock().unwrap() = image;
        self.state.syncs.fetch_add(1, Ordering::SeqCst);
        Ok(())
    }

    fn discard(&self, pages: Range<PageId>) -> Result<()> {
        self.memory.discard(pages)
    }

    fn now(&self) -> u64 {
        self.memory.now()
    }

    fn engine(&self) -> EngineReport {
        self.memory.engine()
    }
}

struct ProbeQueue {
    inner: Box<dyn Queue>,
    state: Arc<State>,
    /// Finished operations that were not returned yet.
    held: Vec<Completion>,
}

impl Queue for ProbeQueue {
    fn push(&mut self, op: Op) -> Result<()> {
        self.inner.push(op)
    }

    fn wait(&mut self, count_min: usize, done: &mut Vec<Completion>) -> Result<()> {
        if self.state.newest_first.load(Ordering::SeqCst) {
            self.inner.wait(0, &mut self.held)?;
            done.extend(self.held.pop());
            return Ok(());
        }
        self.inner.wait(count_min, done)?;
        if self.state.fail_writes.load(Ordering::SeqCst) {
            for completion in done.iter_mut().filter(|done| done.kind == OpKind::Write) {
                completion.result = Err(failure("write"));
            }
        }
        // Completions come in any order; the log must handle that.
        done.reverse();
        Ok(())
    }

    fn in_flight(&self) -> usize {
        self.inner.in_flight() + self.held.len()
    }

    fn depth(&self) -> usize {
        self.inner.depth()
    }
}
