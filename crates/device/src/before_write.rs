//! Copies of devices as they were at one moment, while writes to them continue: copy-before-write.
//!
//! A writer of a page that is not copied yet copies it first. So the copies hold every write that had completed at the
//! moment, none that was started after it, and any part of those in flight: what a power cut at that moment would have
//! left. Writers wait only for the copies of the pages that they overwrite.

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering::{Acquire, SeqCst};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::watched::{Call, Observer, Watched};
use crate::{Device, Error, OpKind, PageBuf, PageId, Result};

/// The number of pages that are copied at once, while the writers of this device wait.
const CHUNK_PAGES: u64 = 256;

/// Devices whose common state at one moment can be copied.
#[derive(Clone, Debug, Default)]
pub struct CopyBeforeWrite {
    shared: Arc<Shared>,
}

#[derive(Debug, Default)]
struct Shared {
    /// Whether there are pages to copy. Read before every write.
    is_active: AtomicBool,
    copies: Mutex<Vec<PageCopy>>,
}

/// The pages of a watched device to copy, and the target.
#[derive(Clone, Debug)]
pub struct CopyOrder {
    /// The device below the one that [`CopyBeforeWrite::watch`] returned for it.
    pub from: Arc<dyn Device>,
    /// An empty device of the same length.
    pub to: Arc<dyn Device>,
    /// The pages, in runs that do not overlap.
    pub pages: Vec<Range<PageId>>,
}

impl CopyBeforeWrite {
    /// Returns the device with its writes watched. All writes must go through the result.
    #[must_use]
    pub fn watch(&self, device: Arc<dyn Device>) -> Arc<dyn Device> {
        let guard = WriteGuard { device: Arc::clone(&device), shared: Arc::clone(&self.shared) };
        Arc::new(Watched::with(device, Arc::new(guard)))
    }

    /// Copies pages as they are at the moment of the call. The moment is the same for all devices. `started` is called
    /// once it has passed.
    ///
    /// # Errors
    /// A failed read, or a failed write of a copy. The devices themselves are not affected.
    ///
    /// # Panics
    /// If another call is still copying.
    pub fn copy(&self, orders: Vec<CopyOrder>, started: impl FnOnce()) -> Result<()> {
        let targets: Vec<_> = orders.iter().map(|order| Arc::clone(&order.to)).collect();
        {
            let mut copies = self.shared.lock();
            assert!(copies.is_empty(), "one copy at a time");
            copies.extend(orders.into_iter().map(PageCopy::new));
            self.shared.is_active.store(true, SeqCst);
        }
        started();
        while self.shared.copy_next() {}
        self.shared.finish()?;
        targets.iter().try_for_each(|target| target.sync())
    }
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, Vec<PageCopy>> {
        // A panic in a copy leaves pages to copy, and the copy's caller unwinds.
        self.copies.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Copies a chunk; returns whether there was one.
    fn copy_next(&self) -> bool {
        self.lock().iter_mut().any(PageCopy::copy_next)
    }

    fn finish(&self) -> Result<()> {
        let mut copies = self.lock();
        self.is_active.store(false, SeqCst);
        let failures: Vec<Error> = copies.drain(..).filter_map(|copy| copy.failure).collect();
        failures.into_iter().next().map_or(Ok(()), Err)
    }
}

/// The pages of one device that are not copied yet.
#[derive(Debug)]
struct PageCopy {
    from: Arc<dyn Device>,
    to: Arc<dyn Device>,
    /// Runs of pages by their first page, each with the page after its last.
    pending: BTreeMap<u64, u64>,
    /// The error that ended the copy.
    failure: Option<Error>,
}

impl PageCopy {
    fn new(order: CopyOrder) -> Self {
        let CopyOrder { from, to, pages } = order;
        let pending = pages
            .into_iter()
            .filter(|run| run.start < run.end)
            .map(|run| (run.start.0, run.end.0))
            .collect();
        Self { from, to, pending, failure: None }
    }

    /// Copies from the end of the last run, so that the pages that lead to all others come last.
    fn copy_next(&mut self) -> bool {
        let Some((&start, &end)) = self.pending.last_key_value() else { return false };
        self.copy_pending(start.max(end.saturating_sub(CHUNK_PAGES))..end);
        true
    }

    /// Copies those of the pages that are not copied yet.
    fn copy_pending(&mut self, pages: Range<u64>) {
        while let Some(run) = self.take(&pages) {
            if let Err(error) = copy_pages(&*self.from, &*self.to, run) {
                self.failure.get_or_insert(error);
                self.pending.clear();
            }
        }
    }

    /// Removes and returns the last part of `pages` that is pending.
    fn take(&mut self, pages: &Range<u64>) -> Option<Range<u64>> {
        let (&start, &end) = self.pending.range(..pages.end).next_back()?;
        let taken = start.max(pages.start)..end.min(pages.end);
        if taken.is_empty() {
            return None;
        }
        self.pending.remove(&start);
        if start < taken.start {
            self.pending.insert(start, taken.start);
        }
        if taken.end < end {
            self.pending.insert(taken.end, end);
        }
        Some(taken)
    }
}

/// Copies pages to an empty device. Pages of zeros are not written.
///
/// # Errors
/// A failed read or write.
pub fn copy_pages(from: &dyn Device, to: &dyn Device, pages: Range<u64>) -> Result<()> {
    let mut at = pages.start;
    while at < pages.end {
        let count = (pages.end - at).min(CHUNK_PAGES);
        let read = from.read(PageId(at), PageBuf::zeroed(length(count)))?;
        let is_zero = |index: usize| read.page(index).iter().all(|&byte| byte == 0);
        let mut index = 0;
        while index < read.pages() {
            let start = index;
            while index < read.pages() && !is_zero(index) {
                index += 1;
            }
            if start < index {
                let mut run = PageBuf::zeroed(index - start);
                (start..index).for_each(|page| {
                    run.page_mut(page - start).copy_from_slice(read.page(page));
                });
                to.write(PageId(at + start as u64), run)?;
            }
            index += 1;
        }
        at += count;
    }
    Ok(())
}

fn length(pages: u64) -> usize {
    usize::try_from(pages).expect("at most a chunk")
}

/// Copies pages that are about to be overwritten.
#[derive(Debug)]
struct WriteGuard {
    device: Arc<dyn Device>,
    shared: Arc<Shared>,
}

impl Observer for WriteGuard {
    fn before(&self, call: Call<'_>) -> Result<()> {
        let (page, pages) = match call {
            Call::Start { kind: OpKind::Write, page, pages, .. } => (page, pages),
            Call::Discard { page, pages } => (page, pages),
            _ => return Ok(()),
        };
        if !self.shared.is_active.load(Acquire) {
            return Ok(());
        }
        let mut copies = self.shared.lock();
        let own = copies.iter_mut().filter(|copy| Arc::ptr_eq(&copy.from, &self.device));
        own.for_each(|copy| copy.copy_pending(page.0..page.0.saturating_add(pages)));
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::MemoryDevice;

    fn filled(pages: u64, byte: u8) -> Arc<dyn Device> {
        let device = MemoryDevice::new();
        device.grow(pages).unwrap();
        (0..pages).for_each(|page| write(&device, page, byte));
        Arc::new(device)
    }

    fn write(device: &dyn Device, page: u64, byte: u8) {
        let mut buf = PageBuf::zeroed(1);
        buf.fill(byte);
        device.write(PageId(page), buf).unwrap();
    }

    fn order(from: &Arc<dyn Device>, to: &MemoryDevice, pages: &[Range<u64>]) -> CopyOrder {
        to.grow(from.page_count()).unwrap();
        let pages = pages.iter().map(|it| PageId(it.start)..PageId(it.end)).collect();
        CopyOrder { from: Arc::clone(from), to: Arc::new(to.clone()), pages }
    }

    fn bytes(device: &MemoryDevice) -> Vec<u8> {
        device.image().chunks(4096).map(|page| page[0]).collect()
    }

    #[test]
    fn what_is_written_after_the_moment_is_in_no_copy() {
        let copier = CopyBeforeWrite::default();
        let (below, other) = (filled(600, 7), filled(3, 8));
        let (device, other_device) =
            (copier.watch(Arc::clone(&below)), copier.watch(Arc::clone(&other)));
        let (to, other_to) = (MemoryDevice::new(), MemoryDevice::new());
        let orders =
            vec![order(&below, &to, &[0..500, 510..600]), order(&other, &other_to, &[0..1, 1..3])];
        copier
            .copy(orders, || {
                (0..600).step_by(7).for_each(|page| write(&*device, page, 9));
                device.discard(PageId(1)..PageId(4)).unwrap();
                write(&*other_device, 1, 9);
            })
            .unwrap();
        let copied = bytes(&to);
        assert!(
            (0..600).all(|page| copied[page] == if (500..510).contains(&page) { 0 } else { 7 })
        );
        assert_eq!(bytes(&other_to), [8; 3]);
        // The moment has passed: nothing more is copied.
        write(&*device, 0, 10);
        assert_eq!(bytes(&to)[0], 7);
    }

    #[test]
    fn a_copy_that_fails_does_not_fail_the_writer() {
        let copier = CopyBeforeWrite::default();
        let below = filled(4, 7);
        let device = copier.watch(Arc::clone(&below));
        let short: Arc<dyn Device> = Arc::new(MemoryDevice::new());
        let order = CopyOrder {
            from: below,
            to: short,
            pages: vec![PageId(0)..PageId(2), PageId(2)..PageId(4)],
        };
        copier.copy(vec![order], || write(&*device, 1, 9)).unwrap_err();
        write(&*device, 2, 9);
    }
}
