//! A device that counts what passes through it, so that claims of cost are tests.

use std::ops::{Range, Sub};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use crate::{Completion, Device, EngineReport, Error, Geometry, Op, OpKind, PageBuf, PageId};
use crate::{Queue, Result};

/// What has passed through a [`Counted`] device since it was made.
///
/// The difference of two snapshots is what happened between them.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Counts {
    /// Reads started, whatever their length.
    pub reads: u64,
    /// Writes started, whatever their length.
    pub writes: u64,
    /// Pages asked for by those reads.
    pub pages_read: u64,
    /// Pages handed over by those writes.
    pub pages_written: u64,
    /// Calls of `sync`.
    pub syncs: u64,
    /// Calls of `grow`.
    pub grows: u64,
    /// Calls of `discard`.
    pub discards: u64,
    /// Reads and writes finished, well or badly.
    pub completions: u64,
}

impl Counts {
    /// What happened between the snapshot `earlier` and this one.
    #[must_use]
    pub fn since(&self, earlier: &Self) -> Self {
        Self {
            reads: self.reads - earlier.reads,
            writes: self.writes - earlier.writes,
            pages_read: self.pages_read - earlier.pages_read,
            pages_written: self.pages_written - earlier.pages_written,
            syncs: self.syncs - earlier.syncs,
            grows: self.grows - earlier.grows,
            discards: self.discards - earlier.discards,
            completions: self.completions - earlier.completions,
        }
    }
}

impl Sub for Counts {
    type Output = Self;

    fn sub(self, earlier: Self) -> Self {
        self.since(&earlier)
    }
}

/// Counts every operation that passes to the device inside. Refused operations are not counted.
///
/// `D` may be an `Arc<dyn Device>`. The counters are shared with the queues, and cost one atomic
/// addition each.
#[derive(Debug)]
pub struct Counted<D> {
    inner: D,
    counters: Arc<Counters>,
}

#[derive(Debug, Default)]
struct Counters {
    reads: AtomicU64,
    writes: AtomicU64,
    pages_read: AtomicU64,
    pages_written: AtomicU64,
    syncs: AtomicU64,
    grows: AtomicU64,
    discards: AtomicU64,
    completions: AtomicU64,
}

impl Counters {
    fn started(&self, kind: OpKind, pages: usize) {
        let (operations, total) = match kind {
            OpKind::Read => (&self.reads, &self.pages_read),
            OpKind::Write => (&self.writes, &self.pages_written),
        };
        operations.fetch_add(1, Relaxed);
        total.fetch_add(pages as u64, Relaxed);
    }

    /// Counts a call that waited: one that failed had started, one that was refused had not.
    fn ran(&self, kind: OpKind, pages: usize, result: &Result<PageBuf>) {
        if matches!(result, Ok(_) | Err(Error::Io { .. })) {
            self.started(kind, pages);
            self.completions.fetch_add(1, Relaxed);
        }
    }
}

impl<D: Device> Counted<D> {
    /// Counts from zero over `inner`.
    pub fn new(inner: D) -> Self {
        Self { inner, counters: Arc::default() }
    }

    /// The device inside.
    pub fn inner(&self) -> &D {
        &self.inner
    }

    /// The counts as they are now. Each is exact; together they are exact while nothing runs.
    #[must_use]
    pub fn snapshot(&self) -> Counts {
        let counters = &*self.counters;
        Counts {
            reads: counters.reads.load(Relaxed),
            writes: counters.writes.load(Relaxed),
            pages_read: counters.pages_read.load(Relaxed),
            pages_written: counters.pages_written.load(Relaxed),
            syncs: counters.syncs.load(Relaxed),
            grows: counters.grows.load(Relaxed),
            discards: counters.discards.load(Relaxed),
            completions: counters.completions.load(Relaxed),
        }
    }
}

impl<D: Device> Device for Counted<D> {
    fn geometry(&self) -> Geometry {
        self.inner.geometry()
    }

    fn page_count(&self) -> u64 {
        self.inner.page_count()
    }

    fn grow(&self, page_count: u64) -> Result<()> {
        self.counters.grows.fetch_add(1, Relaxed);
        self.inner.grow(page_count)
    }

    fn queue(&self, depth: usize) -> Result<Box<dyn Queue>> {
        let inner = self.inner.queue(depth)?;
        Ok(Box::new(CountedQueue { inner, counters: Arc::clone(&self.counters) }))
    }

    fn sync(&self) -> Result<()> {
        self.counters.syncs.fetch_add(1, Relaxed);
        self.inner.sync()
    }

    fn discard(&self, pages: Range<PageId>) -> Result<()> {
        self.counters.discards.fetch_add(1, Relaxed);
        self.inner.discard(pages)
    }

    fn now(&self) -> u64 {
        self.inner.now()
    }

    fn engine(&self) -> EngineReport {
        self.inner.engine()
    }

    fn read(&self, page: PageId, buf: PageBuf) -> Result<PageBuf> {
        let pages = buf.pages();
        let result = self.inner.read(page, buf);
        self.counters.ran(OpKind::Read, pages, &result);
        result
    }

    fn write(&self, page: PageId, buf: PageBuf) -> Result<PageBuf> {
        let pages = buf.pages();
        let result = self.inner.write(page, buf);
        self.counters.ran(OpKind::Write, pages, &result);
        result
    }
}

struct CountedQueue {
    inner: Box<dyn Queue>,
    counters: Arc<Counters>,
}

impl Queue for CountedQueue {
    fn push(&mut self, op: Op) -> Result<()> {
        let (kind, pages) = (op.kind, op.buf.pages());
        self.inner.push(op)?;
        self.counters.started(kind, pages);
        Ok(())
    }

    fn wait(&mut self, count_min: usize, done: &mut Vec<Completion>) -> Result<()> {
        let before = done.len();
        let result = self.inner.wait(count_min, done);
        self.counters.completions.fetch_add((done.len() - before) as u64, Relaxed);
        result
    }

    fn in_flight(&self) -> usize {
        self.inner.in_flight()
    }

    fn depth(&self) -> usize {
        self.inner.depth()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::MemoryDevice;

    #[test]
    fn counts_tell_operations_from_pages_and_snapshots_subtract() {
        let device = Counted::new(Arc::new(MemoryDevice::new()) as Arc<dyn Device>);
        device.grow(8).unwrap();
        device.write(PageId(0), PageBuf::zeroed(3)).unwrap();
        let before = device.snapshot();
        let mut queue = device.queue(2).unwrap();
        for token in 0..2 {
            let op = Op { token, kind: OpKind::Read, page: PageId(0), buf: PageBuf::zeroed(2) };
            queue.push(op).unwrap();
        }
        queue.wait(2, &mut Vec::new()).unwrap();
        device.sync().unwrap();
        let counts = device.snapshot() - before;
        let expected =
            Counts { reads: 2, pages_read: 4, syncs: 1, completions: 2, ..Counts::default() };
        assert_eq!(counts, expected);
        assert_eq!((before.grows, before.writes, before.pages_written), (1, 1, 3));
    }

    #[test]
    fn refused_operations_are_not_counted() {
        let device = Counted::new(MemoryDevice::new());
        device.read(PageId(0), PageBuf::zeroed(1)).unwrap_err();
        let op = Op { token: 0, kind: OpKind::Write, page: PageId(9), buf: PageBuf::zeroed(1) };
        device.queue(1).unwrap().push(op).unwrap_err();
        assert_eq!(device.snapshot(), Counts::default());
    }
}
