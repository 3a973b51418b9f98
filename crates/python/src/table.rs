//! Tables of fixed widths: `nandex.Table`.

use std::sync::Arc;

use nandex::{AnyTable, Table as _, Value};
use numpy::IntoPyArray;
use pyo3::IntoPyObjectExt;
use pyo3::prelude::*;
use pyo3::types::PyDict;

use crate::batch::{Asked, Batch, Pairs, helpers};
use crate::entries::{Entries, Part, counted};
use crate::error::Raised;
use crate::handle::{Closing, Handle};
use crate::kind::{Answers, Kind};
use crate::stats;
use crate::text_form::TextForm;

/// A hash table with keys of one width, 8 to 32 bytes, and values of one width, 0 to 64 bytes.
///
/// Keys and values of 8 bytes are numbers, `int` from 0 to 2**64 - 1, unless the table was opened with their bytes:
/// `db.table("digests", key=20, value=12)`. All calls may come from any thread.
///
/// >>> with db.table("seen", entries=100_000) as seen:
/// ...     seen[7] = 42
/// ...     seen.insert_many(np.arange(3, dtype=np.uint64), np.array([5, 6, 7], np.uint64))
/// ...     seen[7], seen.get(1), seen.get(99), 2 in seen
/// (42, 6, None, True)
#[pyclass(module = "nandex", frozen, weakref)]
pub struct Table {
    handle: Arc<Handle<AnyTable>>,
    key: Kind,
    value: Kind,
}

impl Closing for Handle<AnyTable> {
    fn close_open(&self, py: Python<'_>) -> PyResult<()> {
        if self.is_inherited() { Ok(()) } else { self.close(py, AnyTable::close) }
    }
}

impl Table {
    /// Creates a table whose keys and values have these kinds in Python.
    pub fn new(handle: Arc<Handle<AnyTable>>, key: Kind, value: Kind) -> Self {
        Self { handle, key, value }
    }

    fn one(&self, py: Python<'_>, key: &Bound<'_, PyAny>) -> PyResult<Option<Value>> {
        let key = self.key.bytes(key, "key")?;
        self.handle.call(py, |table| table.get(key.get()))
    }

    fn pairs<'py>(
        &self,
        keys: &Bound<'py, PyAny>,
        values: Option<&Bound<'py, PyAny>>,
    ) -> PyResult<(Asked<'py>, Pairs<'py>)> {
        let (keys, values) = match values {
            Some(values) => (keys.clone(), values.clone()),
            None => helpers(keys.py())?.call_method1("pairs", (keys,))?.extract()?,
        };
        let keys = Batch::new(&keys, "key", self.key.fits())?;
        let values = Batch::new(&values, "value", self.value.fits())?;
        Ok((keys.asked(), Pairs::new(keys, values)?))
    }

    fn entries(&self, part: Part) -> PyResult<Entries> {
        let (key, value) = (self.key, self.value);
        Entries::new(&self.handle, (part, TextForm::Bytes), move |table, sink| {
            for entry in table.iter() {
                let (found, bytes) = entry?;
                if !sink((key.datum(&found), value.datum(&bytes))) {
                    break;
                }
            }
            Ok(())
        })
    }
}

#[pymethods]
impl Table {
    /// Inserts a value under a key, and replaces the previous value.
    fn insert(
        &self,
        py: Python<'_>,
        key: &Bound<'_, PyAny>,
        value: &Bound<'_, PyAny>,
    ) -> PyResult<()> {
        let (key, value) = (self.key.bytes(key, "key")?, self.value.bytes(value, "value")?);
        self.handle.call(py, |table| table.insert(key.get(), value.get()))
    }

    /// Returns the value of a key, or the default. Reads about one page if the key is not in RAM.
    #[pyo3(signature = (key, default=None))]
    fn get(
        &self,
        py: Python<'_>,
        key: &Bound<'_, PyAny>,
        default: Option<Py<PyAny>>,
    ) -> PyResult<Py<PyAny>> {
        match self.one(py, key)? {
            Some(value) => self.value.to_object(py, &value),
            None => Ok(default.unwrap_or_else(|| py.None())),
        }
    }

    /// Removes a key; does nothing if it is absent.
    fn remove(&self, py: Python<'_>, key: &Bound<'_, PyAny>) -> PyResult<()> {
        let key = self.key.bytes(key, "key")?;
        self.handle.call(py, |table| table.remove(key.get()))
    }

    /// Returns the value of a key; if it has none, puts this one and returns None. If several threads do this
    /// with a new key at one time, exactly one gets None.
    ///
    /// >>> seen = db.table("seen", entries=100_000)
    /// >>> seen.get_or_insert(7, 42) is None, seen.get_or_insert(7, 43)
    /// (True, 42)
    fn get_or_insert(
        &self,
        py: Python<'_>,
        key: &Bound<'_, PyAny>,
        value: &Bound<'_, PyAny>,
    ) -> PyResult<Option<Py<PyAny>>> {
        let (key, value) = (self.key.bytes(key, "key")?, self.value.bytes(value, "value")?);
        let found = self.handle.call(py, |table| table.get_or_insert(key.get(), value.get()))?;
        found.map(|found| self.value.to_object(py, &found)).transpose()
    }

    /// Puts each pair, in order: keys and values as two batches; or a mapping, an iterable of pairs, or an
    /// Arrow RecordBatch of two columns. Contiguous arrays of uint64, of `S` or `V`, of uint8 in rows, and of
    /// Arrow are not copied.
    ///
    /// >>> seen = db.table("seen", entries=100_000)
    /// >>> seen.insert_many([1, 2], [10, 20])
    /// >>> seen.insert_many({3: 30})
    /// >>> seen.get_many([1, 2, 3])
    /// [10, 20, 30]
    #[pyo3(signature = (keys, values=None))]
    fn insert_many(
        &self,
        py: Python<'_>,
        keys: &Bound<'_, PyAny>,
        values: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<()> {
        let (_, mut pairs) = self.pairs(keys, values)?;
        while let Some((keys, values)) = pairs.next_slices()? {
            self.handle.call(py, |table| {
                let pairs: Vec<_> = keys.all().into_iter().zip(values.all()).collect();
                table.insert_many(&pairs)
            })?;
            py.check_signals()?;
        }
        Ok(())
    }

    /// Returns the values of all keys, in their order; the reads overlap. For a list: a list, with the
    /// default for an absent key. For a numpy array: the values, and an array of bool that tells which keys
    /// are present. For an Arrow array: an Arrow array with nulls. For a column of pandas or polars: a Series.
    ///
    /// >>> seen = db.table("seen", entries=100_000)
    /// >>> seen[1] = 10
    /// >>> seen.get_many([1, 2], default=0)
    /// [10, 0]
    /// >>> values, found = seen.get_many(np.array([1, 2], np.uint64))
    /// >>> values[found].tolist(), found.tolist()
    /// ([10], [True, False])
    #[pyo3(signature = (keys, default=None))]
    fn get_many(
        &self,
        py: Python<'_>,
        keys: &Bound<'_, PyAny>,
        default: Option<Py<PyAny>>,
    ) -> PyResult<Py<PyAny>> {
        let mut keys = Batch::new(keys, "key", self.key.fits())?;
        let mut answers = Answers::new(self.value, keys.len().unwrap_or(0));
        while let Some(keys) = keys.next_slice()? {
            self.handle.call(py, |table| {
                answers.extend(&table.get_many(&keys.all())?);
                Ok(())
            })?;
            py.check_signals()?;
        }
        answers.into_object(py, keys.asked(), default)
    }

    /// Returns which keys are present: an array of bool, in their order. The reads overlap.
    fn contains_many(&self, py: Python<'_>, keys: &Bound<'_, PyAny>) -> PyResult<Py<PyAny>> {
        let mut keys = Batch::new(keys, "key", self.key.fits())?;
        let mut found = Vec::with_capacity(keys.len().unwrap_or(0));
        while let Some(keys) = keys.next_slice()? {
            self.handle.call(py, |table| {
                found.extend(table.get_many(&keys.all())?.iter().map(Option::is_some));
                Ok(())
            })?;
            py.check_signals()?;
        }
        found.into_pyarray(py).into_py_any(py)
    }

    /// Calls `get_or_insert` with each pair, in order; the reads overlap. The result has the form of that of
    /// `get_many`: new keys have no value in it.
    ///
    /// >>> seen = db.table("seen", entries=100_000)
    /// >>> seen.get_or_insert_many([1, 1, 2], [10, 11, 20])
    /// [None, 10, None]
    #[pyo3(signature = (keys, values=None, default=None))]
    fn get_or_insert_many(
        &self,
        py: Python<'_>,
        keys: &Bound<'_, PyAny>,
        values: Option<&Bound<'_, PyAny>>,
        default: Option<Py<PyAny>>,
    ) -> PyResult<Py<PyAny>> {
        let (asked, mut pairs) = self.pairs(keys, values)?;
        let mut answers = Answers::new(self.value, 0);
        while let Some((keys, values)) = pairs.next_slices()? {
            self.handle.call(py, |table| {
                let pairs: Vec<_> = keys.all().into_iter().zip(values.all()).collect();
                answers.extend(&table.get_or_insert_many(&pairs)?);
                Ok(())
            })?;
            py.check_signals()?;
        }
        answers.into_object(py, asked, default)
    }

    /// Returns an iterator over the keys, in no order. It reads the whole table.
    fn keys(&self) -> PyResult<Entries> {
        self.entries(Part::Keys)
    }

    /// Returns an iterator over the values, in no order. It reads the whole table.
    fn values(&self) -> PyResult<Entries> {
        self.entries(Part::Values)
    }

    /// Returns an iterator over the keys and values, in no order. Entries put meanwhile may or may not be
    /// seen.
    ///
    /// >>> seen = db.table("seen", entries=100_000)
    /// >>> seen.insert_many([1, 2], [10, 20])
    /// >>> sorted(seen.items())
    /// [(1, 10), (2, 20)]
    fn items(&self) -> PyResult<Entries> {
        self.entries(Part::Items)
    }

    /// Makes everything acknowledged so far durable, whatever the durability of the database.
    fn sync(&self, py: Python<'_>) -> PyResult<()> {
        self.handle.call(py, |table| table.sync())
    }

    /// Writes everything buffered to flash and makes it durable.
    fn flush(&self, py: Python<'_>) -> PyResult<()> {
        self.handle.call(py, |table| table.flush())
    }

    /// Returns the table's figures, and the work done since it was opened: a dict whose `str` is a table.
    ///
    /// >>> seen = db.table("seen", entries=100_000)
    /// >>> seen[7] = 42
    /// >>> seen.stats()["entries"], seen.stats()["structure"]
    /// (1, 'bufferhash')
    fn stats<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        let (figures, structure) =
            self.handle.call(py, |table| Ok((table.stats(), table.kind())))?;
        let dict = stats::of_table(py, &figures)?;
        dict.set_item("structure", structure)?;
        dict.set_item("entry_bytes", self.key.width() + self.value.width())?;
        stats::shown(dict, self.handle.what())
    }

    /// Returns all parameters that the table was created with, by the names that `parameters` of `db.table`
    /// takes.
    #[getter]
    fn parameters<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let config = self.handle.call(py, |table| Ok(table.config()))?;
        stats::of_config(py, &config)
    }

    /// Saves buffered data and closes the table. Waits for calls of other threads. Closing a closed table is
    /// allowed.
    fn close(&self, py: Python<'_>) -> PyResult<()> {
        self.handle.close(py, AnyTable::close)
    }

    /// Whether the table is closed.
    #[getter]
    fn closed(&self) -> bool {
        self.handle.is_closed()
    }

    /// The length of each key in bytes.
    #[getter]
    fn key_bytes(&self) -> u32 {
        self.key.width()
    }

    /// The length of each value in bytes.
    #[getter]
    fn value_bytes(&self) -> u32 {
        self.value.width()
    }

    fn __getitem__(&self, py: Python<'_>, key: &Bound<'_, PyAny>) -> PyResult<Py<PyAny>> {
        match self.one(py, key)? {
            Some(value) => self.value.to_object(py, &value),
            None => Err(Raised::KeyNotFound.with(key)),
        }
    }

    fn __setitem__(
        &self,
        py: Python<'_>,
        key: &Bound<'_, PyAny>,
        value: &Bound<'_, PyAny>,
    ) -> PyResult<()> {
        self.insert(py, key, value)
    }

    fn __delitem__(&self, py: Python<'_>, key: &Bound<'_, PyAny>) -> PyResult<()> {
        if self.one(py, key)?.is_none() {
            return Err(Raised::KeyNotFound.with(key));
        }
        self.remove(py, key)
    }

    fn __contains__(&self, py: Python<'_>, key: &Bound<'_, PyAny>) -> PyResult<bool> {
        let key = self.key.bytes(key, "key")?;
        self.handle.call(py, |table| table.contains(key.get()))
    }

    fn __len__(&self, py: Python<'_>) -> PyResult<usize> {
        self.handle.call_watched(py, |table, stop| counted(table.iter(), stop))
    }

    fn __bool__(&self, py: Python<'_>) -> PyResult<bool> {
        Ok(self.keys()?.next_entry(py)?.is_some())
    }

    fn __iter__(&self) -> PyResult<Entries> {
        self.keys()
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
        stats::html(slf.as_any(), "table")
    }
}
