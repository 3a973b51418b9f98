//! Sets of keys that may contain an absent one, at a known rate: `nandex.Filter`.

use std::ops::Deref;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use nandex::{AnyFilter, Cascade, Counting, Error, OpenOptions, Volume};
use numpy::IntoPyArray;
use pyo3::IntoPyObjectExt;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyTuple};

use crate::batch::{Batch, Fits, bytes_of};
use crate::error::Raised;
use crate::handle::{Closing, Handle};
use crate::stats;

/// An open filter, with what makes another one in its place.
#[derive(Debug)]
pub struct OpenFilter {
    filter: AnyFilter,
    volume: Volume,
    name: String,
}

impl OpenFilter {
    /// Creates it from a filter of this name in the volume.
    pub fn new(filter: AnyFilter, volume: &Volume, name: &str) -> Self {
        Self { filter, volume: volume.clone(), name: name.to_owned() }
    }

    fn close(self) -> nandex::Result<()> {
        self.filter.close()
    }

    /// Drops the filter, and makes an empty one of its configuration.
    fn cleared(self) -> nandex::Result<Self> {
        let Self { filter, volume, name } = self;
        let config = filter.config();
        filter.close()?;
        volume.drop_structure(&name)?;
        let filter = AnyFilter::create_with(&volume, &name, &config, &OpenOptions::default())?;
        Ok(Self { filter, volume, name })
    }
}

impl Deref for OpenFilter {
    type Target = AnyFilter;

    fn deref(&self) -> &AnyFilter {
        &self.filter
    }
}

impl Closing for Handle<OpenFilter> {
    fn close_open(&self, py: Python<'_>) -> PyResult<()> {
        if self.is_inherited() { Ok(()) } else { self.close(py, OpenFilter::close) }
    }
}

/// A set of keys with false positives: it may report an absent key as present, at the rate that it was made
/// for, and never reports a present key as absent. It takes 11 to 13 bits of flash a key at a rate of 1 %,
/// and hardly any RAM.
///
/// It counts: a key that was added twice is present until it was discarded twice. All calls may come from any
/// thread.
///
/// >>> with db.filter("seen", keys=100_000, rate=0.01) as seen:
/// ...     seen.update(["a", "b"])
/// ...     seen.discard("a")
/// ...     "a" in seen, "b" in seen
/// (False, True)
#[pyclass(module = "nandex", frozen, weakref)]
pub struct Filter {
    handle: Arc<Handle<OpenFilter>>,
}

impl Filter {
    /// Creates the filter of a handle.
    pub fn new(handle: Arc<Handle<OpenFilter>>) -> Self {
        Self { handle }
    }

    /// Calls the index with each slice of the keys.
    fn each<R: Send>(
        &self,
        keys: &Bound<'_, PyAny>,
        call: impl Fn(&AnyFilter, &[&[u8]]) -> nandex::Result<Vec<R>> + Sync,
    ) -> PyResult<Vec<R>> {
        let py = keys.py();
        let mut keys = Batch::new(keys, "key", Fits::Any)?;
        let mut answers = Vec::new();
        while let Some(keys) = keys.next_slice()? {
            answers.extend(self.handle.call(py, |filter| call(filter, &keys.all()))?);
            py.check_signals()?;
        }
        Ok(answers)
    }
}

#[pymethods]
impl Filter {
    /// Adds a key once.
    fn add(&self, py: Python<'_>, key: &Bound<'_, PyAny>) -> PyResult<()> {
        let key = bytes_of(key, "key")?;
        self.handle.call(py, |filter| filter.insert(&key))
    }

    /// Adds a key unless it is present, and returns whether it was added. If several threads do this with a
    /// new key at one time, exactly one gets True.
    ///
    /// >>> seen = db.filter("seen", keys=100_000)
    /// >>> seen.add_new("a"), seen.add_new("a")
    /// (True, False)
    fn add_new(&self, py: Python<'_>, key: &Bound<'_, PyAny>) -> PyResult<bool> {
        let key = bytes_of(key, "key")?;
        self.handle.call(py, |filter| filter.insert_if_absent(&key))
    }

    /// Calls `add_new` with each key, in order, and returns an array of bool. The reads overlap.
    ///
    /// >>> seen = db.filter("seen", keys=100_000)
    /// >>> seen.add_new_many(["a", "b", "a"]).tolist()
    /// [True, True, False]
    fn add_new_many(&self, py: Python<'_>, keys: &Bound<'_, PyAny>) -> PyResult<Py<PyAny>> {
        let new = self.each(keys, |filter, keys| filter.insert_if_absent_many(keys))?;
        new.into_pyarray(py).into_py_any(py)
    }

    /// Adds each key of each batch once.
    #[pyo3(signature = (*batches))]
    fn update(&self, batches: &Bound<'_, PyTuple>) -> PyResult<()> {
        for keys in batches {
            self.each(&keys, |filter, keys| filter.insert_many(keys).map(|()| Vec::<()>::new()))?;
        }
        Ok(())
    }

    /// Removes a key once, if it is present. Do not discard a key that was not added: at the filter's rate
    /// that removes another key.
    fn discard(&self, py: Python<'_>, key: &Bound<'_, PyAny>) -> PyResult<()> {
        let key = bytes_of(key, "key")?;
        self.handle.call(py, |filter| match filter.contains(&key)? {
            true => filter.delete(&key),
            false => Ok(()),
        })
    }

    /// Removes a key once, as `discard` does, but raises `KeyNotFoundError` if it is absent.
    fn remove(&self, py: Python<'_>, key: &Bound<'_, PyAny>) -> PyResult<()> {
        let bytes = bytes_of(key, "key")?;
        let is_there = self.handle.call(py, |filter| {
            let is_there = filter.contains(&bytes)?;
            if is_there { filter.delete(&bytes).map(|()| true) } else { Ok(false) }
        })?;
        if is_there { Ok(()) } else { Err(Raised::KeyNotFound.with(key)) }
    }

    /// Returns which keys are present: an array of bool, in their order. The reads overlap.
    ///
    /// >>> seen = db.filter("seen", keys=100_000)
    /// >>> seen.update(["a", "b"])
    /// >>> seen.contains_many(["b", "c"]).tolist()
    /// [True, False]
    fn contains_many(&self, py: Python<'_>, keys: &Bound<'_, PyAny>) -> PyResult<Py<PyAny>> {
        let found = self.each(keys, |filter, keys| filter.contains_many(keys))?;
        found.into_pyarray(py).into_py_any(py)
    }

    /// Adds all keys of other filters, in one pass over each; the others do not change. All must be made for
    /// the same keys and rate, and two files must be made with the same `hash_key`. A merge cannot be stopped
    /// half way: a KeyboardInterrupt is raised when the filter is whole. `|=` merges one filter.
    #[pyo3(signature = (*others))]
    fn merge(&self, py: Python<'_>, others: &Bound<'_, PyTuple>) -> PyResult<()> {
        for other in others {
            let other = other.cast_into::<Self>().map_err(|error| {
                Raised::InputType.new(format!("a merge takes filters: {error}"))
            })?;
            self.handle.merge(py, &other.get().handle, absorb)?;
        }
        Ok(())
    }

    fn __ior__(&self, py: Python<'_>, other: &Bound<'_, Self>) -> PyResult<()> {
        self.handle.merge(py, &other.get().handle, absorb)
    }

    /// Refuses: a union needs a name in a file. The message has the calls that make one.
    fn __or__(&self, other: &Bound<'_, Self>) -> PyResult<Py<PyAny>> {
        let (this, other) = (self.handle.what(), other.get().handle.what().to_owned());
        Err(Raised::Unsupported.new(format!(
            "a union of {this} and {other} needs a name: make a filter for the keys of both with db.filter(name, ...), \
             and give it both with its merge(), or add one to the other with |="
        )))
    }

    /// Removes all keys: makes an empty filter of the same parameters in the place of this one, and gives the
    /// space back. Waits for calls of other threads.
    ///
    /// >>> seen = db.filter("seen", keys=100_000)
    /// >>> seen.update(["a", "b"])
    /// >>> seen.clear()
    /// >>> "a" in seen, seen.add_new("b")
    /// (False, True)
    fn clear(&self, py: Python<'_>) -> PyResult<()> {
        self.handle.replace(py, OpenFilter::cleared)
    }

    /// The approximate number of keys, each counted as often as it was added. Raises `DamagedError` if a
    /// damaged page has some of them.
    #[getter]
    fn approx_items(&self, py: Python<'_>) -> PyResult<u64> {
        self.handle.call(py, |filter| filter.stats().all_entries())
    }

    /// Makes everything acknowledged so far durable, whatever the durability of the database.
    fn sync(&self, py: Python<'_>) -> PyResult<()> {
        self.handle.call(py, |filter| filter.sync())
    }

    /// Writes everything buffered to flash and makes it durable.
    fn flush(&self, py: Python<'_>) -> PyResult<()> {
        self.handle.call(py, |filter| filter.flush())
    }

    /// Returns the filter's figures, and the work done since it was opened: a dict whose `str` is a table.
    fn stats<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        let (figures, structure) =
            self.handle.call(py, |filter| Ok((filter.stats(), filter.config().kind())))?;
        let dict = stats::of_filter(py, &figures)?;
        dict.set_item("structure", structure)?;
        stats::shown(dict, self.handle.what())
    }

    /// Returns all parameters that the filter was created with, by the names that `parameters` of `db.filter`
    /// takes.
    #[getter]
    fn parameters<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let config = self.handle.call(py, |filter| Ok(filter.config()))?;
        stats::of_config(py, &config)
    }

    /// Saves buffered data and closes the filter. Waits for calls of other threads. Closing a closed filter
    /// is allowed.
    fn close(&self, py: Python<'_>) -> PyResult<()> {
        self.handle.close(py, OpenFilter::close)
    }

    /// Whether the filter is closed.
    #[getter]
    fn closed(&self) -> bool {
        self.handle.is_closed()
    }

    fn __contains__(&self, py: Python<'_>, key: &Bound<'_, PyAny>) -> PyResult<bool> {
        let key = bytes_of(key, "key")?;
        self.handle.call(py, |filter| filter.contains(&key))
    }

    fn __enter__(slf: Py<Self>) -> Py<Self> {
        slf
    }

    #[pyo3(signature = (_kind=None, _error=None, _traceback=None, /))]
    fn __exit__(
        &self,
        py: Python<'_>,
        _kind: Option<&Bound<'_, PyAny>>,
        _error: Option<&Bound<'_, PyAny>>,
        _traceback: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<()> {
        self.close(py)
    }

    fn __repr__(&self) -> String {
        self.handle.shown()
    }

    fn _repr_html_(slf: &Bound<'_, Self>) -> PyResult<Py<PyAny>> {
        stats::html(slf.as_any(), "filter")
    }
}

/// Adds all keys of another filter. A signal is handled after the merge, which cannot stop half way.
fn absorb(into: &OpenFilter, other: &OpenFilter, _stop: &AtomicBool) -> nandex::Result<()> {
    if let (Some(into), Some(other)) = (into.of::<Cascade>(), other.of::<Cascade>()) {
        return into.absorb(other);
    }
    if let (Some(into), Some(other)) = (into.of::<Counting>(), other.of::<Counting>()) {
        return into.absorb(other);
    }
    let kinds = (into.config().kind(), other.config().kind());
    let reason = format!(
        "a filter of the kind {:?} takes none of the kind {:?}; add the keys themselves with update()",
        kinds.0, kinds.1
    );
    Err(Error::Config { field: "merge", reason })
}
