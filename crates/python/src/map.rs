//! Maps of keys and values of any size: `nandex.Map`, a `MutableMapping`.

use std::ops::ControlFlow;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use nandex::{AnyTable, LargeTable};
use numpy::IntoPyArray;
use pyo3::IntoPyObjectExt;
use pyo3::prelude::*;
use pyo3::types::PyDict;

use crate::answers::{LargeAnswers, Values};
use crate::batch::{Asked, Batch, Fits, Pairs, SLICE, Slice, bytes_of, helpers};
use crate::entries::{Datum, Entries, Part};
use crate::error::Raised;
use crate::handle::{Closing, Handle};
use crate::stats;
use crate::text_form::TextForm;
use crate::views;

/// A table of keys and values of any size.
pub type Large = LargeTable<AnyTable>;

impl Closing for Handle<Large> {
    fn close_open(&self, py: Python<'_>) -> PyResult<()> {
        if self.is_inherited() { Ok(()) } else { self.close(py, Large::close) }
    }
}

/// A mapping from keys of up to 64 KiB to values of up to 16 MiB: a `MutableMapping` of bytes.
///
/// Keys and values are `bytes`, or `str` as UTF-8; a map returns `bytes`, or `str` if it was opened with
/// `text=True`. A map grows until its RAM or the
/// device is used up, unless it was made with `entries` or `bytes`. Iteration is in no order. All calls may
/// come from any thread. As a `dict`, it is equal to a mapping of the same keys and values, and cannot be
/// hashed; a key of another type than bytes and text is refused rather than absent.
///
/// >>> with db.map("pages") as pages:
/// ...     pages["https://example.org/"] = b"<html>..."
/// ...     pages["https://example.org/"], pages.get("https://example.com/", b"")
/// (b'<html>...', b'')
#[pyclass(module = "nandex", frozen, weakref, mapping)]
pub struct Map {
    handle: Arc<Handle<Large>>,
    form: TextForm,
}

impl Map {
    /// Creates the map of a handle, whose keys and values Python gets in this form.
    pub fn new(handle: Arc<Handle<Large>>, form: TextForm) -> Self {
        Self { handle, form }
    }

    fn one(&self, py: Python<'_>, key: &Bound<'_, PyAny>) -> PyResult<Option<Py<PyAny>>> {
        let key = bytes_of(key, "key")?;
        let value = self.handle.call(py, |map| map.get(&key))?;
        value.map(|value| self.form.object(py, &value)).transpose()
    }

    fn walk(&self, part: Part) -> PyResult<Entries> {
        Entries::new(&self.handle, (part, self.form), |map, sink| {
            for entry in map.iter()? {
                let (key, value) = entry?;
                if !sink((Datum::Bytes(key), Datum::Bytes(value))) {
                    break;
                }
            }
            Ok(())
        })
    }

    fn put_pairs(&self, py: Python<'_>, mut pairs: Pairs<'_>) -> PyResult<()> {
        while let Some((keys, values)) = pairs.next_slices()? {
            self.handle.call(py, |map| {
                let pairs: Vec<_> = keys.all().into_iter().zip(values.all()).collect();
                map.put_many(&pairs)
            })?;
            py.check_signals()?;
        }
        Ok(())
    }

    fn pop_key(&self, py: Python<'_>, key: &Bound<'_, PyAny>) -> PyResult<Option<Py<PyAny>>> {
        let Some(value) = self.one(py, key)? else { return Ok(None) };
        let key = bytes_of(key, "key")?;
        self.handle.call(py, |map| map.remove(&key))?;
        Ok(Some(value))
    }
}

/// Returns keys and values as two batches; without values, those of one object.
fn pairs_of<'py>(
    keys: &Bound<'py, PyAny>,
    values: Option<&Bound<'py, PyAny>>,
) -> PyResult<(Asked<'py>, Pairs<'py>)> {
    let (keys, values) = match values {
        Some(values) => (keys.clone(), values.clone()),
        None => helpers(keys.py())?.call_method1("pairs", (keys,))?.extract()?,
    };
    let (keys, values) =
        (Batch::new(&keys, "key", Fits::Any)?, Batch::new(&values, "value", Fits::Any)?);
    Ok((keys.asked(), Pairs::new(keys, values)?))
}

/// Returns the present values, and puts the others. The lookups overlap; of two equal keys, the second finds
/// the first's value.
fn get_or_put(map: &Large, keys: &Slice<'_>, values: &Slice<'_>) -> nandex::Result<Values> {
    let (keys, values) = (keys.all(), values.all());
    let mut found = map.get_many(&keys)?;
    for ((key, value), found) in keys.iter().zip(values).zip(&mut found) {
        if found.is_none() && !map.put_if_absent(key, value)? {
            *found = map.get(key)?;
        }
    }
    Ok(found)
}

#[pymethods]
impl Map {
    /// Returns the value of a key, or the default. Reads about two pages if the key is not in RAM: one for
    /// its location, and its record.
    #[pyo3(signature = (key, default=None))]
    fn get(
        &self,
        py: Python<'_>,
        key: &Bound<'_, PyAny>,
        default: Option<Py<PyAny>>,
    ) -> PyResult<Py<PyAny>> {
        match self.one(py, key)? {
            Some(value) => Ok(value),
            None => Ok(default.unwrap_or_else(|| py.None())),
        }
    }

    /// Returns the values of all keys, in their order, with the default for absent keys; the reads overlap.
    /// The result is a list; for an Arrow array of keys an Arrow array with nulls, and for a column of pandas or
    /// polars a Series.
    ///
    /// >>> pages = db.map("pages")
    /// >>> pages.put_many(["a", "b"], [b"1", b"2"])
    /// >>> pages.get_many(["a", "x", "b"])
    /// [b'1', None, b'2']
    #[pyo3(signature = (keys, default=None))]
    fn get_many(
        &self,
        py: Python<'_>,
        keys: &Bound<'_, PyAny>,
        default: Option<Py<PyAny>>,
    ) -> PyResult<Py<PyAny>> {
        let mut keys = Batch::new(keys, "key", Fits::Any)?;
        let mut answers = LargeAnswers::new(keys.asked(), self.form, default);
        while let Some(keys) = keys.next_slice()? {
            let values = self.handle.call(py, |map| map.get_many(&keys.all()))?;
            answers.extend(values)?;
            py.check_signals()?;
        }
        answers.into_object(py)
    }

    /// Returns which keys are present: an array of bool, in their order. The reads overlap.
    fn contains_many(&self, py: Python<'_>, keys: &Bound<'_, PyAny>) -> PyResult<Py<PyAny>> {
        let mut keys = Batch::new(keys, "key", Fits::Any)?;
        let mut found = Vec::with_capacity(keys.len().unwrap_or(0));
        while let Some(keys) = keys.next_slice()? {
            self.handle.call(py, |map| {
                found.extend(map.get_many(&keys.all())?.iter().map(Option::is_some));
                Ok(())
            })?;
            py.check_signals()?;
        }
        found.into_pyarray(py).into_py_any(py)
    }

    /// Puts each pair, in order: keys and values as two batches; or a mapping, an iterable of pairs, or an
    /// Arrow RecordBatch of two columns. If each update is durable at once, the batch shares the sync.
    #[pyo3(signature = (keys, values=None))]
    fn put_many(
        &self,
        py: Python<'_>,
        keys: &Bound<'_, PyAny>,
        values: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<()> {
        let (_, pairs) = pairs_of(keys, values)?;
        self.put_pairs(py, pairs)
    }

    /// Returns the values of all keys; for each key without one it puts the given value and returns None. If
    /// several threads do this with a new key at one time, exactly one puts. The lookups overlap.
    ///
    /// >>> pages = db.map("pages")
    /// >>> pages.get_or_insert_many(["a", "a", "b"], ["1", "2", "3"])
    /// [None, b'1', None]
    #[pyo3(signature = (keys, values=None, default=None))]
    fn get_or_insert_many(
        &self,
        py: Python<'_>,
        keys: &Bound<'_, PyAny>,
        values: Option<&Bound<'_, PyAny>>,
        default: Option<Py<PyAny>>,
    ) -> PyResult<Py<PyAny>> {
        let (asked, mut pairs) = pairs_of(keys, values)?;
        let mut answers = LargeAnswers::new(asked, self.form, default);
        while let Some((keys, values)) = pairs.next_slices()? {
            let found = self.handle.call(py, |map| get_or_put(map, &keys, &values))?;
            answers.extend(found)?;
            py.check_signals()?;
        }
        answers.into_object(py)
    }

    /// Puts pairs as `dict.update` does, also from the batches of `put_many`.
    ///
    /// >>> pages = db.map("pages")
    /// >>> pages.update({"a": "1"}, b="2")
    /// >>> sorted(pages.items())
    /// [(b'a', b'1'), (b'b', b'2')]
    #[pyo3(signature = (other=None, /, **named))]
    fn update(
        &self,
        py: Python<'_>,
        other: Option<&Bound<'_, PyAny>>,
        named: Option<&Bound<'_, PyDict>>,
    ) -> PyResult<()> {
        if let Some(other) = other {
            self.put_pairs(py, pairs_of(other, None)?.1)?;
        }
        match named {
            Some(named) => self.put_pairs(py, pairs_of(named, None)?.1),
            None => Ok(()),
        }
    }

    /// Returns the value of a key; puts the default and returns it if there is none. Atomic. Without a default
    /// that is bytes or text, an absent key is refused.
    #[pyo3(signature = (key, default=None))]
    fn setdefault(
        &self,
        py: Python<'_>,
        key: &Bound<'_, PyAny>,
        default: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<Py<PyAny>> {
        let Some(default) = default else {
            let none = py.None().into_bound(py);
            let refuse = || {
                bytes_of(&none, "value").map_or_else(Err, |_| Err(Raised::KeyNotFound.with(key)))
            };
            return self.one(py, key)?.map_or_else(refuse, Ok);
        };
        let (bytes, value) = (bytes_of(key, "key")?, bytes_of(default, "value")?);
        loop {
            if self.handle.call(py, |map| map.put_if_absent(&bytes, &value))? {
                return self.form.object(py, &value);
            }
            // Another thread may remove the key in between.
            if let Some(found) = self.one(py, key)? {
                return Ok(found);
            }
        }
    }

    /// Removes a key and returns its value, or the default. Two threads may both get the value.
    #[pyo3(signature = (key, default=None), text_signature = "($self, key, default=...)")]
    fn pop(
        &self,
        py: Python<'_>,
        key: &Bound<'_, PyAny>,
        #[pyo3(from_py_with = given)] default: Option<Py<PyAny>>,
    ) -> PyResult<Py<PyAny>> {
        match self.pop_key(py, key)?.or(default) {
            Some(value) => Ok(value),
            None => Err(Raised::KeyNotFound.with(key)),
        }
    }

    /// Removes an arbitrary key and returns it with its value.
    fn popitem(&self, py: Python<'_>) -> PyResult<(Py<PyAny>, Py<PyAny>)> {
        loop {
            let Some((Datum::Bytes(key), _)) = self.walk(Part::Items)?.next_entry(py)? else {
                return Err(Raised::KeyNotFound.new("the map is empty"));
            };
            let key = self.form.object(py, &key)?.into_bound(py);
            if let Some(value) = self.pop_key(py, &key)? {
                return Ok((key.unbind(), value));
            }
        }
    }

    /// Removes all keys, one by one.
    fn clear(&self, py: Python<'_>) -> PyResult<()> {
        let keys = self.walk(Part::Keys)?;
        let mut removed = 0_usize;
        while let Some((Datum::Bytes(key), _)) = keys.next_entry(py)? {
            self.handle.call(py, |map| map.remove(&key))?;
            removed += 1;
            if removed.is_multiple_of(SLICE) {
                py.check_signals()?;
            }
        }
        Ok(())
    }

    /// Returns a view of the keys. Iterating over it reads the whole map.
    fn keys(slf: &Bound<'_, Self>) -> PyResult<Py<PyAny>> {
        view(slf, "MapKeys")
    }

    /// Returns a view of the values. Iterating over it reads the whole map once.
    fn values(slf: &Bound<'_, Self>) -> PyResult<Py<PyAny>> {
        view(slf, "MapValues")
    }

    /// Returns a view of the keys and values. Iterating over it reads the whole map once.
    fn items(slf: &Bound<'_, Self>) -> PyResult<Py<PyAny>> {
        view(slf, "MapItems")
    }

    fn _walk_values(&self) -> PyResult<Entries> {
        self.walk(Part::Values)
    }

    fn _walk_items(&self) -> PyResult<Entries> {
        self.walk(Part::Items)
    }

    /// Makes everything acknowledged so far durable, whatever the durability of the database.
    fn sync(&self, py: Python<'_>) -> PyResult<()> {
        self.handle.call(py, Large::sync)
    }

    /// Writes everything buffered to flash and makes it durable.
    fn flush(&self, py: Python<'_>) -> PyResult<()> {
        self.handle.call(py, Large::flush)
    }

    /// Returns the map's figures, and the work done since it was opened: a dict whose `str` is a table.
    /// `entries` is the number of keys to within a percent, and costs nothing; `len` is exact, and reads the
    /// map's table of keys once after updates.
    fn stats<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        let figures = self.handle.call(py, |map| Ok(map.stats()))?;
        stats::shown(stats::of_map(py, &figures)?, self.handle.what())
    }

    /// Returns all parameters that the map's table of keys was created with, by the names that `parameters`
    /// of `db.map` takes.
    #[getter]
    fn parameters<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let config = self.handle.call(py, |map| Ok(map.table().config()))?;
        stats::of_config(py, &config)
    }

    /// Makes everything durable and closes the map. Waits for calls of other threads. Closing a closed map is
    /// allowed.
    fn close(&self, py: Python<'_>) -> PyResult<()> {
        self.handle.close(py, Large::close)
    }

    /// Whether the map returns `str`, as it was opened.
    #[getter]
    fn text(&self) -> bool {
        self.form == TextForm::Text
    }

    /// Whether the map is closed.
    #[getter]
    fn closed(&self) -> bool {
        self.handle.is_closed()
    }

    fn __getitem__(&self, py: Python<'_>, key: &Bound<'_, PyAny>) -> PyResult<Py<PyAny>> {
        match self.one(py, key)? {
            Some(value) => Ok(value),
            None => Err(Raised::KeyNotFound.with(key)),
        }
    }

    fn __setitem__(
        &self,
        py: Python<'_>,
        key: &Bound<'_, PyAny>,
        value: &Bound<'_, PyAny>,
    ) -> PyResult<()> {
        let (key, value) = (bytes_of(key, "key")?, bytes_of(value, "value")?);
        self.handle.call(py, |map| map.put(&key, &value))
    }

    fn __delitem__(&self, py: Python<'_>, key: &Bound<'_, PyAny>) -> PyResult<()> {
        match self.pop_key(py, key)? {
            Some(_) => Ok(()),
            None => Err(Raised::KeyNotFound.with(key)),
        }
    }

    fn __contains__(&self, py: Python<'_>, key: &Bound<'_, PyAny>) -> PyResult<bool> {
        let key = bytes_of(key, "key")?;
        self.handle.call(py, |map| Ok(map.get(&key)?.is_some()))
    }

    fn __len__(&self, py: Python<'_>) -> PyResult<usize> {
        let keys = self.handle.call_watched(py, |map, stop| {
            map.count_keys(&|_| match stop.load(Ordering::Relaxed) {
                true => ControlFlow::Break(()),
                false => ControlFlow::Continue(()),
            })
        })?;
        Ok(keys as usize)
    }

    fn __eq__(slf: &Bound<'_, Self>, other: &Bound<'_, PyAny>) -> PyResult<Py<PyAny>> {
        views(slf.py())?.getattr("is_equal")?.call1((slf, other)).map(Bound::unbind)
    }

    fn __bool__(&self, py: Python<'_>) -> PyResult<bool> {
        Ok(self.walk(Part::Keys)?.next_entry(py)?.is_some())
    }

    fn __iter__(&self) -> PyResult<Entries> {
        self.walk(Part::Keys)
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
        stats::html(slf.as_any(), "map")
    }
}

/// A default that was given, which may be None.
fn given(default: &Bound<'_, PyAny>) -> PyResult<Option<Py<PyAny>>> {
    Ok(Some(default.clone().unbind()))
}

/// Creates a view of `nandex/_views.py`.
fn view(map: &Bound<'_, Map>, class: &str) -> PyResult<Py<PyAny>> {
    Ok(views(map.py())?.getattr(class)?.call1((map,))?.unbind())
}
