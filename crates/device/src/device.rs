//! The trait and its laws.

use std::fmt::Debug;
use std::ops::Range;

use crate::{Error, Geometry, PAGE_BYTES, PageBuf, PageId, Result};

/// Flash, as an array of pages.
///
/// Laws:
/// 1. The caller aligns; the device rejects, never rounds.
/// 2. A completed write is seen by every read pushed after its completion.
/// 3. A completed write survives a crash only once a later [`sync`](Device::sync) has returned; until
///    then any subset of its pages may be old, new or torn.
/// 4. Operations in flight at the same time have no order between them.
/// 5. After a failed write or sync the affected pages may hold anything.
pub trait Device: Send + Sync + Debug {
    /// The sizes that never change while the device is open.
    fn geometry(&self) -> Geometry;

    /// The current number of pages.
    fn page_count(&self) -> u64;

    /// Makes the device at least `page_count` pages long; new pages read as zeros.
    ///
    /// # Errors
    /// [`Error::NoSpace`] if the file system is full or a block device is too small.
    fn grow(&self, page_count: u64) -> Result<()>;

    /// Opens a queue for one caller, at most `depth` operations deep.
    ///
    /// # Errors
    /// [`Error::Forked`], or the kernel's refusal.
    fn queue(&self, depth: usize) -> Result<Box<dyn Queue>>;

    /// Makes every write that completed before this call durable.
    ///
    /// # Errors
    /// The kernel's failure; the caller must then treat every unsynced write as lost.
    fn sync(&self) -> Result<()>;

    /// Tells the device that the content of these pages is no longer needed. Reads of them may return anything.
    ///
    /// # Errors
    /// As a write; a device that cannot discard does nothing and succeeds.
    fn discard(&self, pages: Range<PageId>) -> Result<()>;

    /// The device time in nanoseconds from an arbitrary start: wall-clock time on hardware, the model's time in a
    /// simulator.
    fn now(&self) -> u64;

    /// The engine of the operations, and the reason for it.
    fn engine(&self) -> EngineReport;

    /// Reads one run of pages and waits for it. The length of `buf` gives the number of pages.
    ///
    /// # Errors
    /// As a queued read.
    fn read(&self, page: PageId, buf: PageBuf) -> Result<PageBuf> {
        one(&mut *self.queue(1)?, Op { token: 0, kind: OpKind::Read, page, buf })
    }

    /// Writes one run of pages and waits for it. Returns the buffer.
    ///
    /// # Errors
    /// As a queued write.
    fn write(&self, page: PageId, buf: PageBuf) -> Result<PageBuf> {
        one(&mut *self.queue(1)?, Op { token: 0, kind: OpKind::Write, page, buf })
    }
}

fn one(queue: &mut dyn Queue, op: Op) -> Result<PageBuf> {
    queue.push(op)?;
    let mut done = Vec::with_capacity(1);
    queue.wait(1, &mut done)?;
    let completion = done.pop().expect("wait(1) gives at least one completion");
    completion.result.map(|()| completion.buf)
}

/// One caller's queue: push owned, aligned operations, take completions in any order.
///
/// Dropping a queue waits for the operations in flight.
pub trait Queue: Send {
    /// Starts an operation; the device owns the buffer until `wait` returns it.
    ///
    /// # Errors
    /// [`Error::QueueFull`], [`Error::OutOfRange`], [`Error::Unaligned`], [`Error::Refused`]: nothing was started and
    /// the buffer is gone. Errors of the operation itself are in its [`Completion`].
    fn push(&mut self, op: Op) -> Result<()>;

    /// Waits until at least `count_min` of the operations in flight are finished (all of them, when
    /// fewer are in flight) and appends every finished one to `done`. `wait(0, ..)` polls.
    ///
    /// # Errors
    /// Only when the queue itself is broken.
    fn wait(&mut self, count_min: usize, done: &mut Vec<Completion>) -> Result<()>;

    /// The number of operations pushed and not yet returned.
    fn in_flight(&self) -> usize;

    /// The depth that the queue was opened with.
    fn depth(&self) -> usize;
}

/// The kind of an operation.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum OpKind {
    /// Fill the buffer from the pages.
    Read,
    /// Put the buffer on the pages.
    Write,
}

impl OpKind {
    /// Returns `read` or `write`, for errors.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Read => "read",
            Self::Write => "write",
        }
    }
}

/// One operation on a run of pages, as long as its buffer.
#[derive(Debug)]
pub struct Op {
    /// The caller's name for it, returned in the completion.
    pub token: u64,
    /// Read or write.
    pub kind: OpKind,
    /// The first page.
    pub page: PageId,
    /// The bytes; a whole number of pages.
    pub buf: PageBuf,
}

impl Op {
    /// Checks the operation against the size of the device.
    ///
    /// # Errors
    /// [`Error::OutOfRange`].
    pub fn check(&self, page_count: u64) -> Result<()> {
        let pages = (self.buf.len() / PAGE_BYTES) as u64;
        if self.page.0.checked_add(pages).is_none_or(|end| end > page_count) {
            return Err(Error::OutOfRange { page: self.page, pages, page_count });
        }
        Ok(())
    }

    /// Turns the operation into its completion.
    #[must_use]
    pub fn finished(self, result: Result<()>) -> Completion {
        let Self { token, kind, page, buf } = self;
        Completion { token, kind, page, buf, result }
    }

    /// Returns the error of this operation when the kernel, or a model of it, has failed it.
    #[must_use]
    pub fn failure(&self, source: std::io::Error) -> Error {
        let (operation, page, pages) = (self.kind.name(), self.page, self.buf.pages() as u64);
        Error::Io { operation, page, pages, source }
    }
}

/// A finished operation.
#[derive(Debug)]
pub struct Completion {
    /// The caller's name for it.
    pub token: u64,
    /// Read or write.
    pub kind: OpKind,
    /// The first page.
    pub page: PageId,
    /// The buffer, owned by the caller again.
    pub buf: PageBuf,
    /// The result; after an error the buffer holds anything.
    pub result: Result<()>,
}

/// The engine of the operations, and the reason for it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct EngineReport {
    /// The name: `uring`, `threads`, `buffered`, `memory`, or a list of those for an array.
    pub name: String,
    /// The reason: the engine was forced, or why the better ones are unavailable.
    pub reason: String,
}
