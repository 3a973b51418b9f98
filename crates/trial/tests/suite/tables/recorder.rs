//! A device that writes down what it is asked for, and whose clock is the number of questions.

use std::ops::Range;
use std::sync::{Arc, Mutex, MutexGuard};

use nandex::device::{
    Completion, Device, EngineReport, Geometry, MemoryDevice, Op, OpKind, PageId, Queue, Result,
};

/// Nanoseconds that each operation and each look at the clock takes.
const TICK_NS: u64 = 20_000;

/// One thing that a device was asked for: its sort, its place and length in pages, and a checksum of what
/// was written.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Asked {
    pub sort: &'static str,
    pub page: u64,
    pub pages: u64,
    pub sum: u64,
}

#[derive(Default, Debug)]
struct State {
    asked: Vec<Asked>,
    clock_ns: u64,
}

/// Passes everything on to memory, and keeps the list. Clones share both.
#[derive(Clone, Debug, Default)]
pub struct Recorder {
    memory: MemoryDevice,
    state: Arc<Mutex<State>>,
}

impl Recorder {
    /// All bytes as they are now.
    pub fn image(&self) -> Vec<u8> {
        self.memory.image()
    }

    /// Everything it was asked for, in order.
    pub fn asked(&self) -> Vec<Asked> {
        self.lock().asked.clone()
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap()
    }

    fn note(&self, sort: &'static str, page: u64, pages: u64, sum: u64) {
        let mut state = self.lock();
        state.clock_ns += TICK_NS;
        state.asked.push(Asked { sort, page, pages, sum });
    }
}

/// FNV-1a over words; it only has to tell two runs apart.
fn sum(bytes: &[u8]) -> u64 {
    let words = bytes.chunks_exact(8).map(super::support::number_of);
    words.fold(0xcbf2_9ce4_8422_2325, |sum, word| (sum ^ word).wrapping_mul(0x0100_0000_01b3))
}

impl Device for Recorder {
    fn geometry(&self) -> Geometry {
        self.memory.geometry()
    }

    fn page_count(&self) -> u64 {
        self.memory.page_count()
    }

    fn grow(&self, page_count: u64) -> Result<()> {
        self.note("grow", 0, page_count, 0);
        self.memory.grow(page_count)
    }

    fn queue(&self, depth: usize) -> Result<Box<dyn Queue>> {
        let inner = self.memory.queue(depth)?;
        Ok(Box::new(RecorderQueue { inner, device: self.clone() }))
    }

    fn sync(&self) -> Result<()> {
        self.note("sync", 0, 0, 0);
        self.memory.sync()
    }

    fn discard(&self, pages: Range<PageId>) -> Result<()> {
        self.note("discard", pages.start.0, pages.end.0 - pages.start.0, 0);
        self.memory.discard(pages)
    }

    fn now(&self) -> u64 {
        let mut state = self.lock();
        state.clock_ns += TICK_NS;
        state.clock_ns
    }

    fn engine(&self) -> EngineReport {
        self.memory.engine()
    }
}

struct RecorderQueue {
    inner: Box<dyn Queue>,
    device: Recorder,
}

impl Queue for RecorderQueue {
    fn push(&mut self, op: Op) -> Result<()> {
        let written = if op.kind == OpKind::Write { sum(&op.buf) } else { 0 };
        self.device.note(op.kind.name(), op.page.0, op.buf.pages() as u64, written);
        self.inner.push(op)
    }

    fn wait(&mut self, count_min: usize, done: &mut Vec<Completion>) -> Result<()> {
        self.inner.wait(count_min, done)
    }

    fn in_flight(&self) -> usize {
        self.inner.in_flight()
    }

    fn depth(&self) -> usize {
        self.inner.depth()
    }
}
