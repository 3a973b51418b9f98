//! A read-only device under writes that stay in memory: for opening a volume without changing it.

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::{Acquire, Release};
use std::sync::{Arc, RwLock};

use crate::{Completion, Device, EngineReport, Error, Geometry, Op, OpKind, PAGE_BYTES};
use crate::{PageBuf, PageId, Queue, Result};

/// The pages of a device, and those written since, which are in memory and are lost with it. The device below is never
/// written, synced or grown.
///
/// Each page that is written takes 4 KiB of RAM.
#[derive(Clone, Debug)]
pub struct Overlay {
    below: Arc<dyn Device>,
    written: Arc<Written>,
}

#[derive(Debug)]
struct Written {
    pages: RwLock<BTreeMap<u64, Box<[u8]>>>,
    page_count: AtomicU64,
}

impl Overlay {
    /// Creates an overlay with nothing written yet.
    pub fn new(below: Arc<dyn Device>) -> Self {
        let page_count = AtomicU64::new(below.page_count());
        Self { below, written: Arc::new(Written { pages: RwLock::default(), page_count }) }
    }

    fn put(&self, page: PageId, buf: &PageBuf) {
        let mut pages = self.written.pages.write().expect("no holder of this lock panics");
        for (at, bytes) in (page.0..).zip(buf.chunks_exact(PAGE_BYTES)) {
            pages.insert(at, bytes.into());
        }
    }

    /// Copies the written pages over those that were read.
    fn patch(&self, page: PageId, buf: &mut PageBuf) {
        let pages = self.written.pages.read().expect("no holder of this lock panics");
        let end = page.0 + buf.pages() as u64;
        for (at, bytes) in pages.range(page.0..end) {
            let index = usize::try_from(at - page.0).expect("it is inside the buffer");
            buf.page_mut(index).copy_from_slice(bytes);
        }
    }

    /// Reads the part of a run that is within the device below; the rest is zeros.
    fn read_end(&self, page: PageId, buf: &mut PageBuf) -> Result<()> {
        buf.fill(0);
        let below = self.below.page_count().saturating_sub(page.0);
        let count = usize::try_from(below).unwrap_or(usize::MAX).min(buf.pages());
        if count > 0 {
            let read = self.below.read(page, PageBuf::zeroed(count))?;
            buf[..read.len()].copy_from_slice(&read);
        }
        Ok(())
    }
}

impl Device for Overlay {
    fn geometry(&self) -> Geometry {
        self.below.geometry()
    }

    fn page_count(&self) -> u64 {
        self.written.page_count.load(Acquire)
    }

    fn grow(&self, page_count: u64) -> Result<()> {
        self.written.page_count.fetch_max(page_count, Release);
        Ok(())
    }

    fn queue(&self, depth: usize) -> Result<Box<dyn Queue>> {
        let below = self.below.queue(depth)?;
        Ok(Box::new(OverlayQueue { device: self.clone(), below, finished: Vec::new() }))
    }

    fn sync(&self) -> Result<()> {
        Ok(())
    }

    fn discard(&self, _pages: Range<PageId>) -> Result<()> {
        Ok(())
    }

    fn now(&self) -> u64 {
        self.below.now()
    }

    fn engine(&self) -> EngineReport {
        self.below.engine()
    }
}

struct OverlayQueue {
    device: Overlay,
    below: Box<dyn Queue>,
    /// Operations that needed nothing of the device below.
    finished: Vec<Completion>,
}

impl Queue for OverlayQueue {
    fn push(&mut self, mut op: Op) -> Result<()> {
        op.check(self.device.page_count())?;
        if self.in_flight() >= self.depth() {
            return Err(Error::QueueFull { depth: self.depth() });
        }
        let end = op.page.0 + op.buf.pages() as u64;
        let result = match op.kind {
            OpKind::Read if end <= self.device.below.page_count() => return self.below.push(op),
            OpKind::Read => self.device.read_end(op.page, &mut op.buf),
            OpKind::Write => {
                self.device.put(op.page, &op.buf);
                Ok(())
            }
        };
        self.device.patch(op.page, &mut op.buf);
        self.finished.push(op.finished(result));
        Ok(())
    }

    fn wait(&mut self, count_min: usize, done: &mut Vec<Completion>) -> Result<()> {
        let ready = self.finished.len();
        done.append(&mut self.finished);
        let first = done.len();
        self.below.wait(count_min.saturating_sub(ready), done)?;
        for completion in &mut done[first..] {
            self.device.patch(completion.page, &mut completion.buf);
        }
        Ok(())
    }

    fn in_flight(&self) -> usize {
        self.below.in_flight() + self.finished.len()
    }

    fn depth(&self) -> usize {
        self.below.depth()
    }
}
