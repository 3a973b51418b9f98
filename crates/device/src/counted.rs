//! A device that counts its operations, so that claims of cost are tests.

use std::ops::Sub;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use crate::watched::{Call, Ended, Observer, Watched};
use crate::{Device, Error, OpKind, Result};

/// The operations of a [`Counted`] device since it was created.
///
/// The difference of two snapshots is the number of operations between them.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Counts {
    /// Reads started, whatever their length.
    pub reads: u64,
    /// Writes started, whatever their length.
    pub writes: u64,
    /// Pages of those reads.
    pub pages_read: u64,
    /// Pages of those writes.
    pub pages_written: u64,
    /// Calls of `sync`.
    pub syncs: u64,
    /// Calls of `grow`.
    pub grows: u64,
    /// Calls of `discard`.
    pub discards: u64,
    /// Reads and writes finished, successfully or not.
    pub completions: u64,
}

impl Counts {
    /// Returns the operations between the snapshot `earlier` and this one.
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

/// Counts every operation of the device inside. Rejected operations are not counted.
///
/// `D` may be an `Arc<dyn Device>`. Each count costs one atomic addition.
pub type Counted<D> = Watched<D, Counters>;

/// The observer of a [`Counted`] device.
#[derive(Debug, Default)]
pub struct Counters {
    reads: AtomicU64,
    writes: AtomicU64,
    pages_read: AtomicU64,
    pages_written: AtomicU64,
    syncs: AtomicU64,
    grows: AtomicU64,
    discards: AtomicU64,
    completions: AtomicU64,
}

impl Observer for Counters {
    fn before(&self, call: Call<'_>) -> Result<()> {
        match call {
            Call::Grow { .. } => self.grows.fetch_add(1, Relaxed),
            Call::Sync => self.syncs.fetch_add(1, Relaxed),
            Call::Discard { .. } => self.discards.fetch_add(1, Relaxed),
            Call::Start { .. } | Call::Wait { .. } => 0,
        };
        Ok(())
    }

    fn after(&self, call: Call<'_>, result: std::result::Result<(), &Error>) {
        let (Call::Start { kind, pages, .. }, Ok(())) = (call, result) else { return };
        let (operations, total) = match kind {
            OpKind::Read => (&self.reads, &self.pages_read),
            OpKind::Write => (&self.writes, &self.pages_written),
        };
        operations.fetch_add(1, Relaxed);
        total.fetch_add(pages, Relaxed);
    }

    fn ended(&self, _ended: Ended<'_>) {
        self.completions.fetch_add(1, Relaxed);
    }
}

impl<D: Device> Counted<D> {
    /// Creates a counted device over `inner`, with counts of zero.
    pub fn new(inner: D) -> Self {
        Self::with(inner, Arc::default())
    }

    /// Returns the current counts. Each is exact; together they are exact while nothing runs.
    #[must_use]
    pub fn snapshot(&self) -> Counts {
        let counters = self.observer();
        let now = |counter: &AtomicU64| counter.load(Relaxed);
        Counts {
            reads: now(&counters.reads),
            writes: now(&counters.writes),
            pages_read: now(&counters.pages_read),
            pages_written: now(&counters.pages_written),
            syncs: now(&counters.syncs),
            grows: now(&counters.grows),
            discards: now(&counters.discards),
            completions: now(&counters.completions),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{MemoryDevice, Op, PageBuf, PageId};

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
