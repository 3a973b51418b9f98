//! Iterators over all entries of a structure. A thread reads ahead, since a structure's iterator borrows the
//! structure; the thread ends with the Python object, and when the structure is closed.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, TrySendError, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use pyo3::IntoPyObjectExt;
use pyo3::prelude::*;

use crate::handle::{Failure, Handle};
use crate::text_form::TextForm;

/// The number of entries that are passed to the interpreter at a time.
const BATCH: usize = 256;

/// The number of batches that are read ahead.
const BATCHES_AHEAD: usize = 2;

/// The interval at which a waiting side checks whether the other wants to stop.
const WAIT: Duration = Duration::from_millis(2);

/// A key or value of an entry.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Datum {
    /// Bytes.
    Bytes(Vec<u8>),
    /// A 64-bit number.
    Number(u64),
}

impl Datum {
    fn to_object(&self, py: Python<'_>, form: TextForm) -> PyResult<Py<PyAny>> {
        match self {
            Self::Bytes(bytes) => form.object(py, bytes),
            Self::Number(number) => number.into_py_any(py),
        }
    }
}

/// A key and its value.
pub type Entry = (Datum, Datum);

/// The part of an entry that an iterator returns.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Part {
    Keys,
    Values,
    Items,
}

/// Takes an entry, and returns false if no more are wanted.
pub type Sink<'s> = dyn FnMut(Entry) -> bool + 's;

/// A message of the reading thread; an empty batch is the end.
type Message = Result<Vec<Entry>, Failure>;

/// An iterator over entries, as they were when it reached them.
#[pyclass(module = "nandex", name = "Entries", frozen)]
pub struct Entries {
    part: Part,
    form: TextForm,
    reading: Mutex<Option<Reading>>,
    inherited: Box<dyn Fn() -> PyResult<()> + Send + Sync>,
    explain: Box<dyn Fn(Failure) -> PyErr + Send + Sync>,
}

/// The running thread, and the batch it has sent.
struct Reading {
    receiver: Receiver<Message>,
    thread: JoinHandle<()>,
    batch: std::vec::IntoIter<Entry>,
    ended: bool,
}

impl Entries {
    /// Creates an iterator over the entries that `walk` passes to the sink.
    pub fn new<T: Send + Sync + 'static>(
        handle: &Arc<Handle<T>>,
        (part, form): (Part, TextForm),
        walk: impl FnOnce(&T, &mut Sink<'_>) -> nandex::Result<()> + Send + 'static,
    ) -> PyResult<Self> {
        handle.refuse_inherited()?;
        let (sender, receiver) = sync_channel(BATCHES_AHEAD);
        let reader = Arc::clone(handle);
        let thread = thread::spawn(move || read(&reader, &sender, walk));
        let batch = Vec::new().into_iter();
        let reading = Reading { receiver, thread, batch, ended: false };
        let (for_inherited, for_failures) = (Arc::clone(handle), Arc::clone(handle));
        Ok(Self {
            part,
            form,
            reading: Mutex::new(Some(reading)),
            inherited: Box::new(move || for_inherited.refuse_inherited()),
            explain: Box::new(move |failure| for_failures.explain(failure)),
        })
    }

    /// Returns the next entry; none at the end.
    ///
    /// # Errors
    /// Fails on a failed read, damage, a closed structure, or a signal.
    pub fn next_entry(&self, py: Python<'_>) -> PyResult<Option<Entry>> {
        (self.inherited)()?;
        // Most entries are in a batch that has arrived.
        if let Ok(mut reading) = self.reading.try_lock()
            && let Some(entry) = reading.as_mut().and_then(|reading| reading.batch.next())
        {
            return Ok(Some(entry));
        }
        loop {
            let next = py.detach(|| {
                let mut reading = self.reading.lock().unwrap_or_else(PoisonError::into_inner);
                reading.as_mut().map_or(Next::Ended, Reading::next)
            });
            match next {
                Next::Entry(entry) => return Ok(Some(entry)),
                Next::Ended => return Ok(None),
                Next::Failed(failure) => return Err((self.explain)(failure)),
                Next::Waiting => py.check_signals()?,
            }
        }
    }
}

/// The result of a poll of the reading thread.
enum Next {
    Entry(Entry),
    Ended,
    Failed(Failure),
    Waiting,
}

impl Reading {
    fn next(&mut self) -> Next {
        if let Some(entry) = self.batch.next() {
            return Next::Entry(entry);
        }
        if self.ended {
            return Next::Ended;
        }
        self.thread.thread().unpark();
        let received = self.receiver.recv_timeout(WAIT * 25);
        self.thread.thread().unpark();
        match received {
            Ok(Ok(batch)) => self.begin(batch),
            Ok(Err(failure)) => self.end(Next::Failed(failure)),
            Err(RecvTimeoutError::Timeout) => Next::Waiting,
            // Only a closing ends the thread without a last message.
            Err(RecvTimeoutError::Disconnected) => self.end(Next::Failed(Failure::Closed)),
        }
    }

    fn begin(&mut self, batch: Vec<Entry>) -> Next {
        self.batch = batch.into_iter();
        match self.batch.next() {
            Some(entry) => Next::Entry(entry),
            None => self.end(Next::Ended),
        }
    }

    fn end(&mut self, next: Next) -> Next {
        self.ended = true;
        next
    }
}

#[pymethods]
impl Entries {
    fn __iter__(slf: Py<Self>) -> Py<Self> {
        slf
    }

    fn __next__(&self, py: Python<'_>) -> PyResult<Option<Py<PyAny>>> {
        let Some((key, value)) = self.next_entry(py)? else { return Ok(None) };
        let object = match self.part {
            Part::Keys => key.to_object(py, self.form)?,
            Part::Values => value.to_object(py, self.form)?,
            Part::Items => {
                (key.to_object(py, self.form)?, value.to_object(py, self.form)?).into_py_any(py)?
            }
        };
        Ok(Some(object))
    }
}

/// Waits for the thread, because it refers to the structure, which another opening may be waiting for. A fork
/// has no such thread.
impl Drop for Entries {
    fn drop(&mut self) {
        let reading = self.reading.get_mut().unwrap_or_else(PoisonError::into_inner).take();
        let Some(Reading { receiver, thread, .. }) = reading else { return };
        drop(receiver);
        if (self.inherited)().is_ok() {
            thread.thread().unpark();
            // A panic of the thread has been sent as a failure.
            drop(thread.join());
        }
    }
}

/// Returns the number of entries; fewer, once a signal has set the flag, whose exception is raised instead.
///
/// # Errors
/// Fails with the first entry that does.
pub fn counted<E>(
    entries: impl Iterator<Item = nandex::Result<E>>,
    stop: &AtomicBool,
) -> nandex::Result<usize> {
    let entries = entries.take_while(|_| !stop.load(Ordering::Relaxed));
    { entries }.try_fold(0, |count, entry| entry.map(|_| count + 1))
}

fn read<T: Send + Sync>(
    handle: &Handle<T>,
    sender: &SyncSender<Message>,
    walk: impl FnOnce(&T, &mut Sink<'_>) -> nandex::Result<()>,
) {
    let mut batch = Vec::with_capacity(BATCH);
    let mut wanted = true;
    let walked = handle.try_call(|inner| {
        walk(inner, &mut |entry| {
            batch.push(entry);
            if batch.len() == BATCH {
                wanted = send(handle, sender, Ok(std::mem::take(&mut batch)));
            }
            wanted = wanted && !handle.is_closing();
            wanted
        })
    });
    let last: Vec<Message> = match walked {
        Ok(()) if batch.is_empty() => vec![Ok(batch)],
        Ok(()) => vec![Ok(batch), Ok(Vec::new())],
        Err(failure) => vec![Err(failure)],
    };
    let mut last = last.into_iter();
    while wanted && let Some(message) = last.next() {
        wanted = send(handle, sender, message);
    }
}

/// Waits until the batch is taken; returns false if it is not wanted.
fn send<T: Send + Sync>(
    handle: &Handle<T>,
    sender: &SyncSender<Message>,
    mut message: Message,
) -> bool {
    loop {
        match sender.try_send(message) {
            Ok(()) => return true,
            Err(TrySendError::Disconnected(_)) => return false,
            Err(TrySendError::Full(_)) if handle.is_closing() => return false,
            Err(TrySendError::Full(unsent)) => message = unsent,
        }
        thread::park_timeout(WAIT);
    }
}
