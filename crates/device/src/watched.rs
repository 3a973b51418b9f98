//! A device that reports every call to an observer, so that tests and experiments can count, record, compare, reject or
//! delay the calls of a structure. There is one such wrapper for all of them.

use std::fmt::Debug;
use std::ops::Range;
use std::sync::Arc;

use crate::{Completion, Device, EngineReport, Error, Geometry, Op, OpKind, PageBuf, PageId};
use crate::{Queue, Result};

/// A call to a device.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Call<'b> {
    /// Start a read or write.
    Start {
        /// Read or write.
        kind: OpKind,
        /// The first page.
        page: PageId,
        /// The number of pages.
        pages: u64,
        /// The bytes to write. Empty for a read, and once the device has the buffer.
        bytes: &'b [u8],
    },
    /// Wait for operations of one queue.
    Wait {
        /// The least number of operations; 0 polls.
        count_min: usize,
    },
    /// Make the device longer.
    Grow {
        /// The current number of pages.
        from: u64,
        /// The requested number of pages.
        to: u64,
    },
    /// Make completed writes durable.
    Sync,
    /// Discard pages.
    Discard {
        /// The first page.
        page: PageId,
        /// The number of pages.
        pages: u64,
    },
}

/// A read or write that has ended.
#[derive(Clone, Copy, Debug)]
pub struct Ended<'b> {
    /// The caller's token; 0 for a blocking call.
    pub token: u64,
    /// Read or write.
    pub kind: OpKind,
    /// The first page.
    pub page: PageId,
    /// The bytes that were read or written, or the error.
    pub bytes: std::result::Result<&'b [u8], &'b Error>,
}

/// Observes a [`Watched`] device. Each method does nothing by default.
///
/// The threads that use the device call it, and it may use the device itself.
pub trait Observer: Send + Sync + Debug {
    /// Called before a call reaches the device. May wait.
    ///
    /// # Errors
    /// An error goes to the caller, and the device is not called.
    fn before(&self, _call: Call<'_>) -> Result<()> {
        Ok(())
    }

    /// Called when the device has accepted or rejected the call. An accepted read or write may fail later.
    fn after(&self, _call: Call<'_>, _result: std::result::Result<(), &Error>) {}

    /// Called when a read or write has ended and is returned.
    fn ended(&self, _ended: Ended<'_>) {}

    /// Returns the time to report, given the device's.
    fn now(&self, device_ns: u64) -> u64 {
        device_ns
    }
}

/// A device and its observer. Clones share the observer.
///
/// `D` may be an `Arc<dyn Device>`.
#[derive(Debug)]
pub struct Watched<D, O> {
    inner: D,
    observer: Arc<O>,
}

impl<D: Clone, O> Clone for Watched<D, O> {
    fn clone(&self) -> Self {
        Self { inner: self.inner.clone(), observer: Arc::clone(&self.observer) }
    }
}

impl<D: Device, O: Observer + 'static> Watched<D, O> {
    /// Creates a device with this observer.
    pub const fn with(inner: D, observer: Arc<O>) -> Self {
        Self { inner, observer }
    }

    /// The device inside.
    pub const fn inner(&self) -> &D {
        &self.inner
    }

    /// The observer.
    pub fn observer(&self) -> &O {
        &self.observer
    }

    /// Performs a blocking read or write. Rejected calls are not started, and do not end.
    fn run(
        &self,
        kind: OpKind,
        page: PageId,
        buf: PageBuf,
        run: impl FnOnce(PageBuf) -> Result<PageBuf>,
    ) -> Result<PageBuf> {
        let observer = &*self.observer;
        let pages = buf.pages() as u64;
        observer.before(Call::Start { kind, page, pages, bytes: written(kind, &buf) })?;
        let result = run(buf);
        let refused = result.as_ref().err().filter(|error| !matches!(error, Error::Io { .. }));
        let start = Call::Start { kind, page, pages, bytes: &[] };
        observer.after(start, refused.map_or(Ok(()), Err));
        if refused.is_none() {
            observer.ended(Ended { token: 0, kind, page, bytes: result.as_deref() });
        }
        result
    }
}

/// Reports a call before and after it.
fn observed<T>(
    observer: &impl Observer,
    call: Call<'_>,
    run: impl FnOnce() -> Result<T>,
) -> Result<T> {
    observer.before(call)?;
    let result = run();
    observer.after(call, result.as_ref().map(|_| ()));
    result
}

/// Returns the bytes of a write.
fn written(kind: OpKind, buf: &[u8]) -> &[u8] {
    if kind == OpKind::Write { buf } else { &[] }
}

impl<D: Device, O: Observer + 'static> Device for Watched<D, O> {
    fn geometry(&self) -> Geometry {
        self.inner.geometry()
    }

    fn page_count(&self) -> u64 {
        self.inner.page_count()
    }

    fn grow(&self, page_count: u64) -> Result<()> {
        let call = Call::Grow { from: self.inner.page_count(), to: page_count };
        observed(&*self.observer, call, || self.inner.grow(page_count))
    }

    fn queue(&self, depth: usize) -> Result<Box<dyn Queue>> {
        let inner = self.inner.queue(depth)?;
        Ok(Box::new(WatchedQueue { inner, observer: Arc::clone(&self.observer) }))
    }

    fn sync(&self) -> Result<()> {
        observed(&*self.observer, Call::Sync, || self.inner.sync())
    }

    fn discard(&self, pages: Range<PageId>) -> Result<()> {
        let count = pages.end.0.saturating_sub(pages.start.0);
        let call = Call::Discard { page: pages.start, pages: count };
        observed(&*self.observer, call, || self.inner.discard(pages))
    }

    fn now(&self) -> u64 {
        self.observer.now(self.inner.now())
    }

    fn engine(&self) -> EngineReport {
        self.inner.engine()
    }

    fn read(&self, page: PageId, buf: PageBuf) -> Result<PageBuf> {
        self.run(OpKind::Read, page, buf, |buf| self.inner.read(page, buf))
    }

    fn write(&self, page: PageId, buf: PageBuf) -> Result<PageBuf> {
        self.run(OpKind::Write, page, buf, |buf| self.inner.write(page, buf))
    }
}

struct WatchedQueue<O> {
    inner: Box<dyn Queue>,
    observer: Arc<O>,
}

impl<O: Observer> Queue for WatchedQueue<O> {
    fn push(&mut self, op: Op) -> Result<()> {
        let (kind, page, pages) = (op.kind, op.page, op.buf.pages() as u64);
        let bytes = written(kind, &op.buf);
        self.observer.before(Call::Start { kind, page, pages, bytes })?;
        let result = self.inner.push(op);
        let start = Call::Start { kind, page, pages, bytes: &[] };
        self.observer.after(start, result.as_ref().copied());
        result
    }

    fn wait(&mut self, count_min: usize, done: &mut Vec<Completion>) -> Result<()> {
        let before = done.len();
        let (inner, observer) = (&mut self.inner, &*self.observer);
        let result = observed(observer, Call::Wait { count_min }, || inner.wait(count_min, done));
        for Completion { token, kind, page, buf, result } in &done[before..] {
            let bytes = result.as_ref().map(|()| &**buf);
            self.observer.ended(Ended { token: *token, kind: *kind, page: *page, bytes });
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

#[cfg(test)]
mod tests {
    use std::sync::Mutex;

    use super::*;
    use crate::MemoryDevice;

    /// Records its calls, rejects writes of page 3, and reports a clock of its own.
    #[derive(Debug, Default)]
    struct Notes(Mutex<Vec<String>>);

    impl Notes {
        fn note(&self, note: String) {
            self.0.lock().unwrap().push(note);
        }
    }

    impl Observer for Notes {
        fn before(&self, call: Call<'_>) -> Result<()> {
            match call {
                Call::Start { kind: OpKind::Write, page: PageId(3), .. } => {
                    Err(Error::OutOfRange { page: PageId(3), pages: 1, page_count: 3 })
                }
                Call::Start { kind, page, pages, bytes } => {
                    self.note(format!("{} {} {pages} {}", kind.name(), page.0, bytes.len()));
                    Ok(())
                }
                call => {
                    self.note(format!("{call:?}"));
                    Ok(())
                }
            }
        }

        fn after(&self, _call: Call<'_>, result: std::result::Result<(), &Error>) {
            self.note(if result.is_ok() { "taken" } else { "refused" }.into());
        }

        fn ended(&self, ended: Ended<'_>) {
            self.note(format!("ended {} {}", ended.token, ended.bytes.unwrap().len()));
        }

        fn now(&self, _device_ns: u64) -> u64 {
            42
        }
    }

    fn told_of(act: impl FnOnce(&Watched<MemoryDevice, Notes>)) -> Vec<String> {
        let memory = MemoryDevice::new();
        memory.grow(8).unwrap();
        let device = Watched::with(memory, Arc::<Notes>::default());
        act(&device);
        device.observer().0.lock().unwrap().clone()
    }

    fn write(token: u64, page: u64) -> Op {
        Op { token, kind: OpKind::Write, page: PageId(page), buf: PageBuf::zeroed(1) }
    }

    #[test]
    fn an_observer_is_told_of_every_operation_before_after_and_when_it_has_ended() {
        let notes = told_of(|device| {
            let mut queue = device.queue(2).unwrap();
            queue.push(write(7, 1)).unwrap();
            queue.wait(1, &mut Vec::new()).unwrap();
            device.read(PageId(0), PageBuf::zeroed(2)).unwrap();
            assert_eq!(device.clone().now(), 42);
        });
        let wait = "Wait { count_min: 1 }";
        let queued = ["write 1 1 4096", "taken", wait, "taken", "ended 7 4096"];
        let waited = ["read 0 2 0", "taken", "ended 0 8192"];
        assert_eq!(notes, [&queued[..], &waited].concat());
    }

    #[test]
    fn what_an_observer_refuses_does_not_reach_the_device() {
        let notes = told_of(|device| {
            device.queue(1).unwrap().push(write(0, 3)).unwrap_err();
            device.write(PageId(3), PageBuf::zeroed(1)).unwrap_err();
        });
        assert!(notes.is_empty(), "{notes:?}");
    }

    #[test]
    fn what_the_device_refuses_has_not_ended() {
        let notes = told_of(|device| {
            device.write(PageId(9), PageBuf::zeroed(1)).unwrap_err();
            device.queue(1).unwrap().push(write(0, 9)).unwrap_err();
        });
        assert_eq!(notes, ["write 9 1 4096", "refused", "write 9 1 4096", "refused"]);
    }

    #[test]
    fn calls_that_are_neither_reads_nor_writes_are_told_too() {
        let notes = told_of(|device| {
            device.grow(9).unwrap();
            device.sync().unwrap();
            device.discard(PageId(2)..PageId(4)).unwrap();
        });
        let discard = "Discard { page: PageId(2), pages: 2 }";
        assert_eq!(notes, ["Grow { from: 8, to: 9 }", "taken", "Sync", "taken", discard, "taken"]);
    }
}
