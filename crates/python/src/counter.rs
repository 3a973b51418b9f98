//! Exact counts of keys: `nandex.Counter`.
//!
//! The table stores keys of one width: a key of up to `key_form::LONGEST_MAX` bytes is followed by zeros and by
//! its length, as the command `nandex count` stores it.

use std::ops::{ControlFlow, RangeInclusive};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use nandex::{Counter as _, Counting, Filter as _};
use numpy::IntoPyArray;
use pyo3::IntoPyObjectExt;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyMapping, PyTuple};

use crate::batch::{Batch, Fits, SLICE, bytes_of};
use crate::entries::{Datum, Entries, Part};
use crate::error::Raised;
use crate::handle::{Closing, Handle};
use crate::key_form::KeyForm;
use crate::number::{integer, optional};
use crate::stats;
use crate::text_form::TextForm;
use crate::views;

/// The amounts that can be added or subtracted.
const AMOUNTS: RangeInclusive<i64> = -i64::MAX..=i64::MAX;

impl Closing for Handle<Counting> {
    fn close_open(&self, py: Python<'_>) -> PyResult<()> {
        if self.is_inherited() { Ok(()) } else { self.close(py, Counting::close) }
    }
}

/// Exact counts of keys of up to `longest` bytes, 31 at most, larger than RAM, with the
/// operations of `collections.Counter`.
///
/// A key that was never added has the count 0. A count below 0, after subtractions, is kept and reads as 0.
/// Keys are returned as `bytes`, or as `str` if it was opened with `text=True`. All calls may come from any thread.
///
/// >>> with db.counter("words", keys=100_000) as words:
/// ...     words.update("the cat and the hat".split())
/// ...     words["the"], words["dog"], words.most_common(1)
/// (2, 0, [(b'the', 2)])
#[pyclass(module = "nandex", frozen, weakref)]
pub struct Counter {
    handle: Arc<Handle<Counting>>,
    form: KeyForm,
    text: TextForm,
}

impl Counter {
    /// Creates the counter of a handle, whose keys Python gets in the form `text`.
    pub fn new(handle: Arc<Handle<Counting>>, form: KeyForm, text: TextForm) -> Self {
        Self { handle, form, text }
    }

    fn add_each(&self, keys: &Bound<'_, PyAny>, amount: i64) -> PyResult<()> {
        let (py, form) = (keys.py(), self.form);
        let mut keys = Batch::new(keys, "key", Fits::Any)?;
        while let Some(keys) = keys.next_slice()? {
            self.handle.call(py, |counting| {
                let stored = form.store_all(&keys)?;
                let amounts: Vec<_> =
                    stored.chunks_exact(form.width()).map(|key| (key, amount)).collect();
                counting.add_many(&amounts)
            })?;
            py.check_signals()?;
        }
        Ok(())
    }

    /// Adds the amounts of a mapping, times `sign`.
    fn add_amounts(&self, amounts: &Bound<'_, PyAny>, sign: i64) -> PyResult<()> {
        let py = amounts.py();
        let mut items = amounts.call_method0("items")?.try_iter()?;
        loop {
            let mut stored = Vec::new();
            let mut changes = Vec::new();
            for item in items.by_ref().take(SLICE) {
                let (key, amount): (Bound<'_, PyAny>, Bound<'_, PyAny>) = item?.extract()?;
                let key = bytes_of(&key, "key")?;
                self.form.store(&key, &mut stored).map_err(crate::error::raise)?;
                changes.push(sign * integer(&amount, "amount", AMOUNTS)?);
            }
            if changes.is_empty() {
                return Ok(());
            }
            self.handle.call(py, |counting| {
                let keys = stored.chunks_exact(self.form.width());
                counting.add_many(&keys.zip(changes).collect::<Vec<_>>())
            })?;
            py.check_signals()?;
        }
    }

    fn change(
        &self,
        given: Option<&Bound<'_, PyAny>>,
        named: Option<&Bound<'_, PyDict>>,
        sign: i64,
    ) -> PyResult<()> {
        if let Some(given) = given {
            // A Series has items too, and is a batch.
            match given.cast::<PyMapping>().is_ok() || given.cast::<Self>().is_ok() {
                true => self.add_amounts(given, sign)?,
                false => self.add_each(given, sign)?,
            }
        }
        named.map_or(Ok(()), |named| self.add_amounts(named, sign))
    }

    fn count(&self, py: Python<'_>, key: &Bound<'_, PyAny>) -> PyResult<u64> {
        let key = bytes_of(key, "key")?;
        self.handle.call(py, |counting| match self.form.stored(&key) {
            Ok(stored) => counting.count(&stored),
            // It was never added.
            Err(_) => Ok(0),
        })
    }

    /// Folds all counts above 0, until a signal stops it.
    fn fold<T: Send>(
        &self,
        py: Python<'_>,
        first: T,
        add: impl Fn(T, u64) -> T + Sync,
    ) -> PyResult<T> {
        self.handle.call_watched(py, |counting, stop| {
            let counts = counting.iter().take_while(|_| !stop.load(Ordering::Relaxed));
            { counts }.try_fold(first, |folded, counted| match u64::try_from(counted?.1) {
                Ok(count) if count > 0 => Ok(add(folded, count)),
                _ => Ok(folded),
            })
        })
    }

    fn entries(&self, part: Part) -> PyResult<Entries> {
        let form = self.form;
        Entries::new(&self.handle, (part, self.text), move |counting, sink| {
            for counted in counting.iter() {
                let (stored, sum) = counted?;
                let Ok(count) = u64::try_from(sum) else { continue };
                let key = form.key_of(&stored).to_vec();
                if !sink((Datum::Bytes(key), Datum::Number(count))) {
                    break;
                }
            }
            Ok(())
        })
    }
}

#[pymethods]
impl Counter {
    /// Adds an amount to the count of a key.
    #[pyo3(signature = (key, amount=1))]
    fn add(
        &self,
        py: Python<'_>,
        key: &Bound<'_, PyAny>,
        #[pyo3(from_py_with = amount)] amount: i64,
    ) -> PyResult<()> {
        let key = bytes_of(key, "key")?;
        self.handle.call(py, |counting| counting.add(&self.form.stored(&key)?, amount))
    }

    /// Adds 1 for each key of a batch, or the amounts of a mapping, as `collections.Counter` does.
    ///
    /// >>> words = db.counter("words", keys=100_000)
    /// >>> words.update({"the": 3}, cat=1)
    /// >>> words["the"], words["cat"]
    /// (3, 1)
    #[pyo3(signature = (keys=None, /, **named))]
    fn update(
        &self,
        keys: Option<&Bound<'_, PyAny>>,
        named: Option<&Bound<'_, PyDict>>,
    ) -> PyResult<()> {
        self.change(keys, named, 1)
    }

    /// Subtracts 1 for each key of a batch, or the amounts of a mapping.
    #[pyo3(signature = (keys=None, /, **named))]
    fn subtract(
        &self,
        keys: Option<&Bound<'_, PyAny>>,
        named: Option<&Bound<'_, PyDict>>,
    ) -> PyResult<()> {
        self.change(keys, named, -1)
    }

    /// Returns the counts of all keys: an array of uint64, in their order. The reads overlap.
    ///
    /// >>> words = db.counter("words", keys=100_000)
    /// >>> words.update(["the", "the", "cat"])
    /// >>> words.get_many(["cat", "the", "dog"]).tolist()
    /// [1, 2, 0]
    fn get_many(&self, py: Python<'_>, keys: &Bound<'_, PyAny>) -> PyResult<Py<PyAny>> {
        let form = self.form;
        let mut keys = Batch::new(keys, "key", Fits::Any)?;
        let mut counts = Vec::with_capacity(keys.len().unwrap_or(0));
        while let Some(keys) = keys.next_slice()? {
            self.handle.call(py, |counting| {
                let stored = form.store_all_or_none(&keys);
                let keys: Vec<_> = stored.chunks_exact(form.width()).collect();
                counts.extend(counting.count_many(&keys)?);
                Ok(())
            })?;
            py.check_signals()?;
        }
        counts.into_pyarray(py).into_py_any(py)
    }

    /// Returns the keys with the greatest counts, the greatest first; of equal counts, the smaller key first.
    /// Reads the whole table once, and holds `n` keys in RAM, or all keys without `n`.
    #[pyo3(signature = (n=None))]
    fn most_common<'py>(
        &self,
        py: Python<'py>,
        n: Option<&Bound<'py, PyAny>>,
    ) -> PyResult<Vec<(Py<PyAny>, u64)>> {
        let n = optional(n, "n", |n, name| integer(n, name, 0..=usize::MAX))?;
        let (form, n) = (self.form, n.unwrap_or(usize::MAX));
        let top = self.handle.call_watched(py, |counting, stop| top(counting, n, stop))?;
        let shown = |(stored, count): (Vec<u8>, u64)| {
            Ok((self.text.object(py, form.key_of(&stored))?, count))
        };
        top.into_iter().map(shown).collect()
    }

    /// Returns the count of a key, or the default for a key without one.
    #[pyo3(signature = (key, default=None))]
    fn get(
        &self,
        py: Python<'_>,
        key: &Bound<'_, PyAny>,
        default: Option<Py<PyAny>>,
    ) -> PyResult<Py<PyAny>> {
        match self.count(py, key)? {
            0 => Ok(default.unwrap_or_else(|| py.None())),
            count => count.into_py_any(py),
        }
    }

    /// Returns the sum of all counts. Reads the whole table once.
    ///
    /// >>> words = db.counter("words", keys=100_000)
    /// >>> words.update("the cat and the hat".split())
    /// >>> words.total(), len(words)
    /// (5, 4)
    fn total(&self, py: Python<'_>) -> PyResult<u128> {
        self.fold(py, 0, |total, count| total + u128::from(count))
    }

    /// Returns an iterator over the keys, each as often as its count, in no order. It reads the whole table.
    fn elements(slf: &Bound<'_, Self>) -> PyResult<Py<PyAny>> {
        views(slf.py())?.getattr("elements")?.call1((slf,)).map(Bound::unbind)
    }

    /// Sets all counts to 0, key by key.
    fn clear(&self, py: Python<'_>) -> PyResult<()> {
        let keys = self.entries(Part::Keys)?;
        let mut removed = 0_usize;
        while let Some((Datum::Bytes(key), _)) = keys.next_entry(py)? {
            self.handle.call(py, |counting| counting.remove(&self.form.stored(&key)?))?;
            removed += 1;
            if removed.is_multiple_of(SLICE) {
                py.check_signals()?;
            }
        }
        Ok(())
    }

    /// Adds the counts of other counters, in one pass over each; the others do not change. All must have the
    /// same `longest`, and two files must be made with the same `hash_key`. After a KeyboardInterrupt, counts
    /// added so far stay.
    #[pyo3(signature = (*others))]
    fn merge(&self, py: Python<'_>, others: &Bound<'_, PyTuple>) -> PyResult<()> {
        for other in others {
            let other = other.cast_into::<Self>().map_err(|error| {
                Raised::InputType.new(format!("a merge takes counters: {error}"))
            })?;
            self.handle.merge(py, &other.get().handle, absorb)?;
        }
        Ok(())
    }

    /// Returns an iterator over the keys with a count above 0, in no order. It reads the whole table.
    fn keys(&self) -> PyResult<Entries> {
        self.entries(Part::Keys)
    }

    /// Returns an iterator over the counts, in no order. It reads the whole table.
    fn values(&self) -> PyResult<Entries> {
        self.entries(Part::Values)
    }

    /// Returns an iterator over the keys and counts, in no order. It reads the whole table.
    fn items(&self) -> PyResult<Entries> {
        self.entries(Part::Items)
    }

    /// Makes everything acknowledged so far durable, whatever the durability of the database.
    fn sync(&self, py: Python<'_>) -> PyResult<()> {
        self.handle.call(py, |counting| counting.sync())
    }

    /// Writes everything buffered to flash and makes it durable.
    fn flush(&self, py: Python<'_>) -> PyResult<()> {
        self.handle.call(py, |counting| counting.flush())
    }

    /// Returns the counter's figures, and the work done since it was opened: a dict whose `str` is a table.
    fn stats<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        let (figures, counting) =
            self.handle.call(py, |counting| Ok((counting.stats(), counting.counting_stats())))?;
        stats::shown(stats::of_counter(py, &figures, &counting)?, self.handle.what())
    }

    /// Returns all parameters that the counting table was created with, by the names that `parameters` of
    /// `db.counter` takes.
    #[getter]
    fn parameters<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let config = self.handle.call(py, |counting| Ok((*counting.config()).into()))?;
        stats::of_config(py, &config)
    }

    /// Saves buffered data and closes the counter. Waits for calls of other threads. Closing a closed counter
    /// is allowed.
    fn close(&self, py: Python<'_>) -> PyResult<()> {
        self.handle.close(py, Counting::close)
    }

    /// Whether the counter returns `str`, as it was opened.
    #[getter]
    fn text(&self) -> bool {
        self.text == TextForm::Text
    }

    /// Whether the counter is closed.
    #[getter]
    fn closed(&self) -> bool {
        self.handle.is_closed()
    }

    /// The length of the longest key that the counter takes, in bytes.
    #[getter]
    fn longest(&self) -> u8 {
        self.form.longest()
    }

    fn __getitem__(&self, py: Python<'_>, key: &Bound<'_, PyAny>) -> PyResult<u64> {
        self.count(py, key)
    }

    /// Sets the count of a key: removes it and adds the count. Of two threads that do this with one key, the
    /// counts may add up.
    fn __setitem__(
        &self,
        py: Python<'_>,
        key: &Bound<'_, PyAny>,
        #[pyo3(from_py_with = amount)] count: i64,
    ) -> PyResult<()> {
        let key = bytes_of(key, "key")?;
        self.handle.call(py, |counting| {
            let stored = self.form.stored(&key)?;
            counting.remove(&stored)?;
            if count == 0 { Ok(()) } else { counting.add(&stored, count) }
        })
    }

    fn __len__(&self, py: Python<'_>) -> PyResult<usize> {
        self.fold(py, 0, |keys, _| keys + 1)
    }

    fn __bool__(&self, py: Python<'_>) -> PyResult<bool> {
        Ok(self.entries(Part::Keys)?.next_entry(py)?.is_some())
    }

    fn __eq__(slf: &Bound<'_, Self>, other: &Bound<'_, PyAny>) -> PyResult<Py<PyAny>> {
        operator(slf, "have_equal_counts", other)
    }

    /// Returns a `collections.Counter` in RAM.
    fn __add__(slf: &Bound<'_, Self>, other: &Bound<'_, PyAny>) -> PyResult<Py<PyAny>> {
        operator(slf, "sum_of", other)
    }

    fn __radd__(slf: &Bound<'_, Self>, other: &Bound<'_, PyAny>) -> PyResult<Py<PyAny>> {
        operator(slf, "sum_of", other)
    }

    /// Adds the counts of another counter, of this package or of collections.
    fn __iadd__(slf: &Bound<'_, Self>, other: &Bound<'_, PyAny>) -> PyResult<()> {
        let (py, this) = (slf.py(), slf.get());
        match other.cast::<Self>() {
            Ok(other) if other.get().form == this.form => {
                this.handle.merge(py, &other.get().handle, absorb)
            }
            _ => this.change(Some(other), None, 1),
        }
    }

    fn __delitem__(&self, py: Python<'_>, key: &Bound<'_, PyAny>) -> PyResult<()> {
        let key = bytes_of(key, "key")?;
        self.handle.call(py, |counting| match self.form.stored(&key) {
            Ok(stored) => counting.remove(&stored),
            Err(_) => Ok(()),
        })
    }

    fn __contains__(&self, py: Python<'_>, key: &Bound<'_, PyAny>) -> PyResult<bool> {
        Ok(self.count(py, key)? > 0)
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
        stats::html(slf.as_any(), "counter")
    }
}

/// Calls a function of `nandex/_views.py` with a counter and another operand.
fn operator(
    counter: &Bound<'_, Counter>,
    name: &str,
    other: &Bound<'_, PyAny>,
) -> PyResult<Py<PyAny>> {
    views(counter.py())?.getattr(name)?.call1((counter, other)).map(Bound::unbind)
}

fn amount(given: &Bound<'_, PyAny>) -> PyResult<i64> {
    integer(given, "amount", AMOUNTS)
}

/// Returns the keys with the greatest counts.
fn top(
    counting: &Counting,
    count: usize,
    stop: &AtomicBool,
) -> nandex::Result<Vec<(Vec<u8>, u64)>> {
    let mut top = nandex::counting::TopKeys::new(count);
    for counted in counting.iter() {
        let (stored, sum) = counted?;
        top.offer(&stored, sum);
        if stop.load(Ordering::Relaxed) {
            break;
        }
    }
    Ok(top.into_sorted())
}

/// Adds all counts of another counter, until a signal stops it. Counts added so far stay.
fn absorb(into: &Counting, other: &Counting, stop: &AtomicBool) -> nandex::Result<()> {
    let watch = |_: f64| match stop.load(Ordering::Relaxed) {
        true => ControlFlow::Break(()),
        false => ControlFlow::Continue(()),
    };
    into.absorb_watched(other, &watch)
}
