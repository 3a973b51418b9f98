//! A device that fails when it is told to, for tests of everything above.
//!
//! A failed operation never reaches the device inside: its pages keep what they held. Power cuts,
//! which tear, are [`CrashDevice`](crate::CrashDevice)'s part.

use std::io;
use std::ops::Range;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex};

use rustix::io::Errno;

use crate::{Completion, Device, EngineReport, Error, Geometry, Op, OpKind, PageBuf, PageId};
use crate::{Queue, Result};

/// Which operation a [`Fault`] strikes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum FaultOn {
    /// A read, queued or not.
    Read,
    /// A write, queued or not.
    Write,
    /// A `sync`.
    Sync,
    /// A `grow`.
    Grow,
}

impl From<OpKind> for FaultOn {
    fn from(kind: OpKind) -> Self {
        match kind {
            OpKind::Read => Self::Read,
            OpKind::Write => Self::Write,
        }
    }
}

/// How a struck operation fails.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum FaultKind {
    /// EIO, as from a bad sector.
    Io,
    /// ENOSPC; from `grow` as [`Error::NoSpace`].
    NoSpace,
}

impl FaultKind {
    fn error(self) -> io::Error {
        match self {
            Self::Io => Errno::IO.into(),
            Self::NoSpace => Errno::NOSPC.into(),
        }
    }
}

/// For how long a [`Fault`] strikes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum FaultSpan {
    /// Only the one operation.
    Once,
    /// That operation and every later one of its sort.
    FromThenOn,
}

/// A failure to come.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Fault {
    /// The sort of operation it strikes.
    pub on: FaultOn,
    /// Which one of that sort, counted from 1 since the device was made.
    pub at: u64,
    /// How it fails.
    pub kind: FaultKind,
    /// For how long.
    pub span: FaultSpan,
}

impl Fault {
    fn strikes(&self, on: FaultOn, number: u64) -> bool {
        let due = match self.span {
            FaultSpan::Once => number == self.at,
            FaultSpan::FromThenOn => number >= self.at,
        };
        self.on == on && due
    }
}

/// Passes everything on to the device inside, save what a [`Fault`] strikes.
#[derive(Debug)]
pub struct Faulty<D> {
    inner: D,
    plan: Arc<Plan>,
}

#[derive(Debug, Default)]
struct Plan {
    faults: Mutex<Vec<Fault>>,
    seen: [AtomicU64; 4],
}

impl Plan {
    /// Counts one operation and says how it fails, if it does.
    fn strike(&self, on: FaultOn) -> Option<FaultKind> {
        let number = self.seen[on as usize].fetch_add(1, Relaxed) + 1;
        let faults = self.faults.lock().expect("no holder of this lock panics");
        faults.iter().find(|fault| fault.strikes(on, number)).map(|fault| fault.kind)
    }
}

impl<D: Device> Faulty<D> {
    /// A device without faults so far.
    pub fn new(inner: D) -> Self {
        Self { inner, plan: Arc::default() }
    }

    /// The device inside.
    pub fn inner(&self) -> &D {
        &self.inner
    }

    /// Adds a fault to those planned.
    pub fn arm(&self, fault: Fault) {
        self.plan.faults.lock().expect("no holder of this lock panics").push(fault);
    }

    /// Takes all planned faults away.
    pub fn disarm(&self) {
        self.plan.faults.lock().expect("no holder of this lock panics").clear();
    }

    /// How many operations of that sort there have been, struck ones included. A sweep runs once
    /// to count and then once per number; `seen(on) + 1` is the next one.
    #[must_use]
    pub fn seen(&self, on: FaultOn) -> u64 {
        self.plan.seen[on as usize].load(Relaxed)
    }

    fn run(&self, op: Op) -> Result<PageBuf> {
        if let Some(fault) = self.plan.strike(op.kind.into()) {
            return Err(op.failure(fault.error()));
        }
        match op.kind {
            OpKind::Read => self.inner.read(op.page, op.buf),
            OpKind::Write => self.inner.write(op.page, op.buf),
        }
    }
}

impl<D: Device> Device for Faulty<D> {
    fn geometry(&self) -> Geometry {
        self.inner.geometry()
    }

    fn page_count(&self) -> u64 {
        self.inner.page_count()
    }

    fn grow(&self, page_count: u64) -> Result<()> {
        let wanted_bytes = page_count.saturating_mul(crate::PAGE_BYTES as u64);
        match self.plan.strike(FaultOn::Grow) {
            None => self.inner.grow(page_count),
            Some(kind @ FaultKind::NoSpace) => Err(Error::NoSpace {
                wanted_bytes,
                place: "a faulty device".into(),
                reason: kind.error().to_string(),
            }),
            Some(kind @ FaultKind::Io) => {
                let (page, pages) = (PageId(0), page_count);
                Err(Error::Io { operation: "grow", page, pages, source: kind.error() })
            }
        }
    }

    fn queue(&self, depth: usize) -> Result<Box<dyn Queue>> {
        let inner = self.inner.queue(depth)?;
        let plan = Arc::clone(&self.plan);
        Ok(Box::new(FaultyQueue { inner, plan, struck: Vec::new() }))
    }

    fn sync(&self) -> Result<()> {
        let Some(kind) = self.plan.strike(FaultOn::Sync) else { return self.inner.sync() };
        let (page, pages) = (PageId(0), self.page_count());
        Err(Error::Io { operation: "sync", page, pages, source: kind.error() })
    }

    fn discard(&self, pages: Range<PageId>) -> Result<()> {
        self.inner.discard(pages)
    }

    fn now(&self) -> u64 {
        self.inner.now()
    }

    fn engine(&self) -> EngineReport {
        self.inner.engine()
    }

    fn read(&self, page: PageId, buf: PageBuf) -> Result<PageBuf> {
        self.run(Op { token: 0, kind: OpKind::Read, page, buf })
    }

    fn write(&self, page: PageId, buf: PageBuf) -> Result<PageBuf> {
        self.run(Op { token: 0, kind: OpKind::Write, page, buf })
    }
}

struct FaultyQueue {
    inner: Box<dyn Queue>,
    plan: Arc<Plan>,
    struck: Vec<Completion>,
}

impl Queue for FaultyQueue {
    fn push(&mut self, op: Op) -> Result<()> {
        if self.in_flight() >= self.depth() {
            return Err(Error::QueueFull { depth: self.depth() });
        }
        let Some(fault) = self.plan.strike(op.kind.into()) else { return self.inner.push(op) };
        let result = Err(op.failure(fault.error()));
        self.struck.push(op.finished(result));
        Ok(())
    }

    fn wait(&mut self, count_min: usize, done: &mut Vec<Completion>) -> Result<()> {
        let struck = self.struck.len();
        done.append(&mut self.struck);
        self.inner.wait(count_min.saturating_sub(struck), done)
    }

    fn in_flight(&self) -> usize {
        self.inner.in_flight() + self.struck.len()
    }

    fn depth(&self) -> usize {
        self.inner.depth()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::MemoryDevice;

    fn faulty(fault: Fault) -> Faulty<MemoryDevice> {
        let device = Faulty::new(MemoryDevice::new());
        device.grow(4).unwrap();
        device.arm(fault);
        device
    }

    #[test]
    fn the_second_write_fails_once_and_leaves_its_page() {
        let (kind, span) = (FaultKind::NoSpace, FaultSpan::Once);
        let device = faulty(Fault { on: FaultOn::Write, at: 2, kind, span });
        let mut buf = PageBuf::zeroed(1);
        buf.fill(1);
        let mut buf = device.write(PageId(0), buf).unwrap();
        buf.fill(2);
        let error = device.write(PageId(0), buf).unwrap_err();
        let Error::Io { operation: "write", source, .. } = &error else { panic!("{error}") };
        assert_eq!(source.raw_os_error(), Some(Errno::NOSPC.raw_os_error()));
        assert_eq!(device.read(PageId(0), PageBuf::zeroed(1)).unwrap()[0], 1);
        device.write(PageId(0), PageBuf::zeroed(1)).unwrap();
        assert_eq!(device.seen(FaultOn::Write), 3);
    }

    #[test]
    fn syncs_fail_from_then_on_until_disarmed() {
        let (kind, span) = (FaultKind::Io, FaultSpan::FromThenOn);
        let device = faulty(Fault { on: FaultOn::Sync, at: 1, kind, span });
        for _ in 0..3 {
            assert!(matches!(device.sync(), Err(Error::Io { operation: "sync", .. })));
        }
        device.disarm();
        device.sync().unwrap();
    }

    #[test]
    fn a_queued_fault_comes_back_as_a_completion_with_its_buffer() {
        let (kind, span) = (FaultKind::Io, FaultSpan::Once);
        let device = faulty(Fault { on: FaultOn::Read, at: 2, kind, span });
        let mut queue = device.queue(3).unwrap();
        for token in 0..3 {
            let op = Op { token, kind: OpKind::Read, page: PageId(1), buf: PageBuf::zeroed(2) };
            queue.push(op).unwrap();
        }
        let mut done = Vec::new();
        queue.wait(3, &mut done).unwrap();
        done.sort_by_key(|completion| completion.token);
        let failed: Vec<bool> = done.iter().map(|completion| completion.result.is_err()).collect();
        assert_eq!(failed, [false, true, false]);
        assert!(done.iter().all(|completion| completion.buf.pages() == 2));
    }

    #[test]
    fn a_full_device_refuses_growth() {
        let (kind, span) = (FaultKind::NoSpace, FaultSpan::FromThenOn);
        let device = faulty(Fault { on: FaultOn::Grow, at: 2, kind, span });
        assert!(matches!(device.grow(9), Err(Error::NoSpace { wanted_bytes: 36_864, .. })));
        assert_eq!(device.page_count(), 4);
    }
}
