//! A device that hashes all that passes through it, so that two runs can be compared.

use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use nandex::device::{Completion, Device, EngineReport, Geometry, Op, OpKind, PageBuf, PageId};
use nandex::device::{Queue, Result};

use crate::contract::fold;

/// The hash, shared by all devices of a trial; it repeats where one thread uses them.
#[derive(Clone, Debug, Default)]
pub struct Trace {
    hash: Arc<AtomicU64>,
}

impl Trace {
    /// A hash of all operations so far: what was asked, with which bytes, and what came back.
    #[must_use]
    pub fn hash(&self) -> u64 {
        self.hash.load(Relaxed)
    }

    fn note(&self, numbers: &[u64]) {
        let hash = numbers.iter().fold(self.hash(), |hash, number| fold(hash, *number));
        self.hash.store(hash, Relaxed);
    }

    fn note_bytes(&self, bytes: &[u8]) {
        let words = bytes.chunks_exact(8).map(|word| word.iter().rev());
        let words = words.map(|word| word.fold(0, |number, byte| number << 8 | u64::from(*byte)));
        self.hash.store(words.fold(self.hash(), fold), Relaxed);
    }

    fn started(&self, kind: OpKind, page: PageId, buf: &PageBuf) {
        self.note(&[1 + u64::from(kind == OpKind::Write), page.0, buf.pages() as u64]);
        if kind == OpKind::Write {
            self.note_bytes(buf);
        }
    }

    fn ended(&self, token: u64, buf: Option<&PageBuf>) {
        self.note(&[3 + u64::from(buf.is_some()), token]);
        if let Some(buf) = buf {
            self.note_bytes(buf);
        }
    }
}

/// A device under a trace.
#[derive(Debug)]
pub struct Traced<D> {
    inner: D,
    trace: Trace,
}

impl<D: Device> Traced<D> {
    /// Notes in `trace` what `inner` is asked.
    pub const fn new(inner: D, trace: Trace) -> Self {
        Self { inner, trace }
    }

    fn call<T>(&self, numbers: &[u64], result: Result<T>) -> Result<T> {
        self.trace.note(numbers);
        self.trace.note(&[u64::from(result.is_ok())]);
        result
    }
}

impl<D: Device> Device for Traced<D> {
    fn geometry(&self) -> Geometry {
        self.inner.geometry()
    }

    fn page_count(&self) -> u64 {
        self.inner.page_count()
    }

    fn grow(&self, page_count: u64) -> Result<()> {
        self.call(&[5, page_count], self.inner.grow(page_count))
    }

    fn queue(&self, depth: usize) -> Result<Box<dyn Queue>> {
        let inner = self.inner.queue(depth)?;
        Ok(Box::new(TracedQueue { inner, trace: self.trace.clone() }))
    }

    fn sync(&self) -> Result<()> {
        self.call(&[6], self.inner.sync())
    }

    fn discard(&self, pages: Range<PageId>) -> Result<()> {
        let (start, end) = (pages.start.0, pages.end.0);
        self.call(&[7, start, end], self.inner.discard(pages))
    }

    fn now(&self) -> u64 {
        let now = self.inner.now();
        self.trace.note(&[8, now]);
        now
    }

    fn engine(&self) -> EngineReport {
        self.inner.engine()
    }

    fn read(&self, page: PageId, buf: PageBuf) -> Result<PageBuf> {
        self.trace.started(OpKind::Read, page, &buf);
        let result = self.inner.read(page, buf);
        self.trace.ended(page.0, result.as_ref().ok());
        result
    }

    fn write(&self, page: PageId, buf: PageBuf) -> Result<PageBuf> {
        self.trace.started(OpKind::Write, page, &buf);
        let result = self.inner.write(page, buf);
        self.trace.ended(page.0, result.as_ref().ok());
        result
    }
}

struct TracedQueue {
    inner: Box<dyn Queue>,
    trace: Trace,
}

impl Queue for TracedQueue {
    fn push(&mut self, op: Op) -> Result<()> {
        self.trace.started(op.kind, op.page, &op.buf);
        self.inner.push(op)
    }

    fn wait(&mut self, count_min: usize, done: &mut Vec<Completion>) -> Result<()> {
        let before = done.len();
        let result = self.inner.wait(count_min, done);
        for completion in &done[before..] {
            let buf = completion.result.is_ok().then_some(&completion.buf);
            self.trace.ended(completion.token, buf);
        }
        result
    }

    fn in_flight(&self) -> usize {
        self.inner.in_flight()
    }

    fn depth(&self) -> usize {
        self.inner.depth()
    }
}
