//! An open structure behind a Python object: the interpreter's lock is released around each call, and calls
//! on a handle that is closed, or that was inherited over a fork, fail with an exception of their own.

use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Mutex, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard, Weak, mpsc};
use std::time::Duration;

use pyo3::prelude::*;

use crate::error::{Raised, raise};

/// The number of forks between this process and the one that loaded the module.
static FORKS: AtomicU32 = AtomicU32::new(0);

/// The interval at which a long call checks for signals.
const SIGNALS_EVERY: Duration = Duration::from_millis(50);

/// All open handles, which are closed before the interpreter ends.
static OPEN: Mutex<Vec<Weak<dyn Closing>>> = Mutex::new(Vec::new());

/// Registers the functions that the package's Python files call.
pub fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_function(wrap_pyfunction!(after_fork, module)?)?;
    module.add_function(wrap_pyfunction!(close_all, module)?)
}

/// A handle that can be closed without knowing its type.
pub trait Closing: Send + Sync {
    /// Closes it, unless it is closed or inherited.
    ///
    /// # Errors
    /// Fails if closing the structure fails.
    fn close_open(&self, py: Python<'_>) -> PyResult<()>;
}

/// Registers an open handle. A structure comes after the database that it is in.
pub fn note_open(opened: Weak<dyn Closing>) {
    let mut open = OPEN.lock().unwrap_or_else(PoisonError::into_inner);
    open.retain(|it| it.strong_count() > 0);
    open.push(opened);
}

/// Closes all open handles, the latest first: `atexit` calls it.
///
/// # Errors
/// Returns the first failure; the others are closed nevertheless.
#[pyfunction]
#[pyo3(name = "_close_all")]
fn close_all(py: Python<'_>) -> PyResult<()> {
    let open = std::mem::take(&mut *OPEN.lock().unwrap_or_else(PoisonError::into_inner));
    close_each(py, &open)
}

/// Closes the handles that still exist, the latest first.
///
/// # Errors
/// Returns the first failure; the others are closed nevertheless.
pub fn close_each(py: Python<'_>, open: &[Weak<dyn Closing>]) -> PyResult<()> {
    let mut closed = Ok(());
    for it in open.iter().rev().filter_map(Weak::upgrade) {
        closed = closed.and(it.close_open(py));
    }
    closed
}

/// Notes that this process is a new child: `os.register_at_fork` calls it.
#[pyfunction]
#[pyo3(name = "_after_fork")]
fn after_fork() {
    FORKS.fetch_add(1, Ordering::Relaxed);
}

/// An open structure, until it is closed.
///
/// Calls may come from any thread. `close` waits for running calls.
#[derive(Debug)]
pub struct Handle<T: Send + Sync> {
    what: String,
    forks: u32,
    closing: AtomicBool,
    inner: RwLock<Option<T>>,
}

/// The reason why a call on a handle failed.
pub enum Failure {
    /// The handle was closed.
    Closed,
    /// The index's own failure.
    Index(nandex::Error),
    /// A defect of nandex, with the panic's message.
    Panicked(String),
}

impl<T: Send + Sync> Handle<T> {
    /// Creates a handle of `what`, such as `map "pages"`.
    pub fn new(what: String, inner: T) -> Self {
        let forks = FORKS.load(Ordering::Relaxed);
        let closing = AtomicBool::new(false);
        Self { what, forks, closing, inner: RwLock::new(Some(inner)) }
    }

    /// The kind and name of the structure, for messages.
    pub fn what(&self) -> &str {
        &self.what
    }

    /// Returns the handle's `repr`.
    pub fn shown(&self) -> String {
        let state = if self.is_closed() { "closed " } else { "" };
        format!("<{state}nandex {}>", self.what)
    }

    /// Returns whether the handle is closed or inherited.
    pub fn is_closed(&self) -> bool {
        self.is_inherited() || self.read().is_none()
    }

    /// Makes a call, with the interpreter's lock released.
    ///
    /// # Errors
    /// Fails for a handle that is closed or inherited, and if the call fails.
    pub fn call<R: Send>(
        &self,
        py: Python<'_>,
        call: impl FnOnce(&T) -> nandex::Result<R> + Send,
    ) -> PyResult<R> {
        self.refuse_inherited()?;
        py.detach(|| self.try_call(call)).map_err(|failure| self.explain(failure))
    }

    /// Makes a call that may take long, on a thread of its own. A signal's exception, such as
    /// `KeyboardInterrupt`, sets the flag that the call gets, and is raised when the call has ended.
    ///
    /// # Errors
    /// Fails as [`call`](Self::call) does, and with the exception of a signal.
    pub fn call_watched<R: Send>(
        &self,
        py: Python<'_>,
        call: impl FnOnce(&T, &AtomicBool) -> nandex::Result<R> + Send,
    ) -> PyResult<R> {
        self.refuse_inherited()?;
        let done = watched(py, |stop| self.try_call(|inner| call(inner, stop)))?;
        done.map_err(|failure| self.explain(failure))
    }

    /// Removes the structure from the handle and closes it. Does nothing if it is closed.
    ///
    /// # Errors
    /// Fails for an inherited handle, and if closing the structure fails.
    pub fn close(
        &self,
        py: Python<'_>,
        close: impl FnOnce(T) -> nandex::Result<()> + Send,
    ) -> PyResult<()> {
        self.refuse_inherited()?;
        self.closing.store(true, Ordering::Relaxed);
        let closed = py.detach(|| {
            let taken = self.write().take();
            guarded(|| read_only_is_closed(taken.map_or(Ok(()), close)))
        });
        closed.map_err(|failure| self.explain(failure))
    }

    /// Puts what `remake` makes of the structure in its place. After a failure the handle is closed.
    ///
    /// # Errors
    /// Fails for a handle that is closed or inherited, and as `remake` does.
    pub fn replace(
        &self,
        py: Python<'_>,
        remake: impl FnOnce(T) -> nandex::Result<T> + Send,
    ) -> PyResult<()> {
        self.refuse_inherited()?;
        let replaced = py.detach(|| {
            let mut inner = self.write();
            let old = inner.take().ok_or(Failure::Closed)?;
            *inner = Some(guarded(|| remake(old))?);
            Ok(())
        });
        replaced.map_err(|failure| self.explain(failure))
    }

    /// Makes a call from a thread that the interpreter does not know.
    pub fn try_call<R>(&self, call: impl FnOnce(&T) -> nandex::Result<R>) -> Result<R, Failure> {
        let inner = self.read();
        let inner = inner.as_ref().ok_or(Failure::Closed)?;
        guarded(|| call(inner))
    }

    /// Merges another structure of the same kind into this one, on a thread that a signal stops.
    ///
    /// # Errors
    /// Fails for a handle that is closed or inherited, if the other one is the structure itself, if `absorb`
    /// fails, and with the exception of a signal.
    pub fn merge(
        &self,
        py: Python<'_>,
        other: &Self,
        absorb: impl FnOnce(&T, &T, &AtomicBool) -> nandex::Result<()> + Send,
    ) -> PyResult<()> {
        self.refuse_inherited()?;
        other.refuse_inherited()?;
        if std::ptr::eq(self, other) {
            return Err(Raised::Input.new(format!("{} cannot be merged into itself", self.what)));
        }
        let merged = watched(py, |stop| {
            self.try_call(|into| Ok(other.try_call(|other| absorb(into, other, stop))))
        })?;
        let absorbed = merged.map_err(|failure| self.explain(failure))?;
        absorbed.map_err(|failure| other.explain(failure))
    }

    /// Refuses a handle that was inherited over a fork.
    ///
    /// # Errors
    /// Fails with `ForkedError`.
    pub fn refuse_inherited(&self) -> PyResult<()> {
        if !self.is_inherited() {
            return Ok(());
        }
        let what = &self.what;
        Err(Raised::Forked.new(format!(
            "{what} was opened by the parent of this process; open the file in the child, after the parent has closed \
             it, or start workers with the method 'spawn' and open one file in each"
        )))
    }

    /// Returns the exception of a failure.
    pub fn explain(&self, failure: Failure) -> PyErr {
        let what = &self.what;
        match failure {
            Failure::Closed => Raised::Closed.new(format!("{what} is closed; open it again")),
            Failure::Index(error) => raise(error),
            Failure::Panicked(message) => Raised::Internal.new(format!(
                "{what}: a defect of nandex: {message}; close the file, open it again, and report this"
            )),
        }
    }
}

impl<T: Send + Sync> Handle<T> {
    /// Returns whether `close` is waiting for running calls.
    pub fn is_closing(&self) -> bool {
        self.closing.load(Ordering::Relaxed)
    }

    /// Returns whether the parent of this process opened the handle.
    pub fn is_inherited(&self) -> bool {
        self.forks != FORKS.load(Ordering::Relaxed)
    }

    fn read(&self) -> RwLockReadGuard<'_, Option<T>> {
        self.inner.read().unwrap_or_else(PoisonError::into_inner)
    }

    fn write(&self) -> RwLockWriteGuard<'_, Option<T>> {
        self.inner.write().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Saves and closes the structure, while other threads continue. An inherited structure is left alone: its
/// threads do not exist in this process, and its file belongs to the parent.
impl<T: Send + Sync> Drop for Handle<T> {
    fn drop(&mut self) {
        let inner = self.inner.get_mut().unwrap_or_else(PoisonError::into_inner).take();
        if self.is_inherited() {
            std::mem::forget(inner);
        } else if inner.is_some() {
            // Only Python objects own handles, so the thread is attached, except at the interpreter's end.
            Python::try_attach(move |py| py.detach(move || drop(inner)));
        }
    }
}

/// Runs work on a thread of its own and checks for signals meanwhile. A signal's exception sets the flag that
/// the work gets.
///
/// # Errors
/// Fails with the exception of a signal, once the work has ended.
pub fn watched<R: Send>(py: Python<'_>, work: impl FnOnce(&AtomicBool) -> R + Send) -> PyResult<R> {
    let stop = AtomicBool::new(false);
    let (sender, mut receiver) = mpsc::channel();
    std::thread::scope(|scope| {
        let stop = &stop;
        let worker = move || catch_unwind(AssertUnwindSafe(|| work(stop)));
        scope.spawn(move || sender.send(worker()));
        let mut interrupt = Ok(());
        loop {
            let receiver = &mut receiver;
            match py.detach(move || receiver.recv_timeout(SIGNALS_EVERY)) {
                Ok(done) => {
                    interrupt?;
                    return done.map_err(|payload| Raised::Internal.new(message_of(&*payload)));
                }
                Err(_) if interrupt.is_ok() => interrupt = py.check_signals(),
                Err(_) => {}
            }
            stop.store(interrupt.is_err(), Ordering::Relaxed);
        }
    })
}

/// Accepts the failure to save on closing a read-only structure: it has refused all updates, so there is
/// nothing to save.
fn read_only_is_closed(closed: nandex::Result<()>) -> nandex::Result<()> {
    use nandex::raw::{device, store};
    match closed {
        Err(
            nandex::Error::Store(
                store::Error::ReadOnly | store::Error::Device(device::Error::ReadOnly { .. }),
            )
            | nandex::Error::Device(device::Error::ReadOnly { .. }),
        ) => Ok(()),
        closed => closed,
    }
}

/// Runs a call, and turns a panic into a failure.
fn guarded<R>(call: impl FnOnce() -> nandex::Result<R>) -> Result<R, Failure> {
    match catch_unwind(AssertUnwindSafe(call)) {
        Ok(done) => done.map_err(Failure::Index),
        Err(payload) => Err(Failure::Panicked(message_of(&*payload))),
    }
}

fn message_of(payload: &(dyn Any + Send)) -> String {
    let text = payload.downcast_ref::<&str>().map(|text| (*text).to_owned());
    let text = text.or_else(|| payload.downcast_ref::<String>().cloned());
    text.unwrap_or_else(|| "a panic without a message".to_owned())
}
