//! A device of plain memory: for tests, and for tables that need not outlive the process.

use std::ops::Range;
use std::sync::{Arc, RwLock};
use std::time::Instant;

use crate::{Completion, Device, EngineReport, Error, Geometry, Op, OpKind, PAGE_BYTES};
use crate::{PageBuf, PageId, Queue, Result};

/// The most pages whose bytes can be counted.
const UNLIMITED: u64 = u64::MAX / PAGE_BYTES as u64;

/// Pages in memory. Clones share them, so a test can drop a volume and open it again.
#[derive(Clone, Debug)]
pub struct MemoryDevice {
    pages: Arc<RwLock<Vec<u8>>>,
    page_count_max: u64,
    start: Instant,
}

impl MemoryDevice {
    /// Creates an empty device that may grow without limit.
    #[must_use]
    pub fn new() -> Self {
        Self::with_limit(UNLIMITED)
    }

    /// Creates an empty device that may grow to at most `page_count_max` pages.
    #[must_use]
    pub fn with_limit(page_count_max: u64) -> Self {
        Self { pages: Arc::default(), page_count_max, start: Instant::now() }
    }

    /// Returns a copy of all current bytes.
    #[must_use]
    pub fn image(&self) -> Vec<u8> {
        self.pages.read().expect("no holder of this lock panics").clone()
    }

    /// Creates a device with these bytes, padded with zeros to a whole page.
    #[must_use]
    pub fn from_image(mut bytes: Vec<u8>) -> Self {
        bytes.resize(bytes.len().next_multiple_of(PAGE_BYTES), 0);
        let device = Self::new();
        *device.pages.write().expect("no holder of this lock panics") = bytes;
        device
    }

    /// Checks and does one operation.
    fn run(&self, op: &mut Op) -> Result<()> {
        match op.kind {
            OpKind::Read => {
                let pages = self.pages.read().expect("no holder of this lock panics");
                let place = place(op, pages.len())?;
                op.buf.copy_from_slice(&pages[place]);
            }
            OpKind::Write => {
                let mut pages = self.pages.write().expect("no holder of this lock panics");
                let place = place(op, pages.len())?;
                pages[place].copy_from_slice(&op.buf);
            }
        }
        Ok(())
    }
}

/// Returns the bytes of an operation in a memory of this size.
fn place(op: &Op, bytes: usize) -> Result<Range<usize>> {
    op.check((bytes / PAGE_BYTES) as u64)?;
    let start = usize::try_from(op.page.0).expect("checked against the length") * PAGE_BYTES;
    Ok(start..start + op.buf.len())
}

impl Default for MemoryDevice {
    fn default() -> Self {
        Self::new()
    }
}

impl Device for MemoryDevice {
    fn geometry(&self) -> Geometry {
        Geometry::opaque()
    }

    fn page_count(&self) -> u64 {
        (self.pages.read().expect("no holder of this lock panics").len() / PAGE_BYTES) as u64
    }

    fn grow(&self, page_count: u64) -> Result<()> {
        let no_space = || Error::NoSpace {
            wanted_bytes: page_count.saturating_mul(PAGE_BYTES as u64),
            place: "memory".into(),
            reason: match self.page_count_max {
                UNLIMITED => "the process cannot have that much".into(),
                pages => format!("the device is limited to {pages} pages"),
            },
        };
        if page_count > self.page_count_max {
            return Err(no_space());
        }
        let bytes = usize::try_from(page_count * PAGE_BYTES as u64).map_err(|_| no_space())?;
        let mut pages = self.pages.write().expect("no holder of this lock panics");
        if bytes > pages.len() {
            let missing = bytes - pages.len();
            pages.try_reserve_exact(missing).map_err(|_| no_space())?;
            pages.resize(bytes, 0);
        }
        Ok(())
    }

    fn queue(&self, depth: usize) -> Result<Box<dyn Queue>> {
        Ok(Box::new(MemoryQueue { device: self.clone(), depth, finished: Vec::new() }))
    }

    fn sync(&self) -> Result<()> {
        Ok(())
    }

    fn discard(&self, _pages: Range<PageId>) -> Result<()> {
        Ok(())
    }

    fn now(&self) -> u64 {
        u64::try_from(self.start.elapsed().as_nanos()).unwrap_or(u64::MAX)
    }

    fn engine(&self) -> EngineReport {
        EngineReport { name: "memory".into(), reason: "the device is memory".into() }
    }

    fn read(&self, page: PageId, buf: PageBuf) -> Result<PageBuf> {
        let mut op = Op { token: 0, kind: OpKind::Read, page, buf };
        self.run(&mut op).map(|()| op.buf)
    }

    fn write(&self, page: PageId, buf: PageBuf) -> Result<PageBuf> {
        let mut op = Op { token: 0, kind: OpKind::Write, page, buf };
        self.run(&mut op).map(|()| op.buf)
    }
}

/// Runs each operation at once and returns it at the next `wait`.
struct MemoryQueue {
    device: MemoryDevice,
    depth: usize,
    finished: Vec<Completion>,
}

impl Queue for MemoryQueue {
    fn push(&mut self, mut op: Op) -> Result<()> {
        if self.finished.len() >= self.depth {
            return Err(Error::QueueFull { depth: self.depth });
        }
        self.device.run(&mut op)?;
        self.finished.push(op.finished(Ok(())));
        Ok(())
    }

    fn wait(&mut self, _count_min: usize, done: &mut Vec<Completion>) -> Result<()> {
        done.append(&mut self.finished);
        Ok(())
    }

    fn in_flight(&self) -> usize {
        self.finished.len()
    }

    fn depth(&self) -> usize {
        self.depth
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_is_read() {
        let device = MemoryDevice::new();
        device.grow(4).unwrap();
        let mut buf = PageBuf::zeroed(2);
        buf.fill(7);
        device.write(PageId(1), buf).unwrap();
        let buf = device.read(PageId(0), PageBuf::zeroed(4)).unwrap();
        assert!(buf.page(0).iter().all(|&byte| byte == 0));
        assert!(buf.page(1).iter().chain(buf.page(2)).all(|&byte| byte == 7));
    }

    #[test]
    fn past_the_end_is_refused() {
        let device = MemoryDevice::new();
        device.grow(1).unwrap();
        let error = device.read(PageId(1), PageBuf::zeroed(1)).unwrap_err();
        assert!(matches!(error, Error::OutOfRange { page_count: 1, .. }), "{error}");
    }

    #[test]
    fn growth_past_the_limit_is_refused() {
        let error = MemoryDevice::with_limit(2).grow(3).unwrap_err();
        assert!(matches!(error, Error::NoSpace { .. }), "{error}");
    }

    #[test]
    fn growth_past_all_memory_is_an_error_and_no_abort() {
        let device = MemoryDevice::new();
        for page_count in [1 << 50, 1 << 51, u64::MAX / 4096, u64::MAX] {
            let error = device.grow(page_count).unwrap_err();
            assert!(matches!(error, Error::NoSpace { .. }), "{error}");
        }
        assert_eq!(device.page_count(), 0);
    }
}
