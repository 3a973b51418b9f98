//! Files of named structures: `nandex.Database`.

use std::ops::ControlFlow;
use std::path::PathBuf;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex, PoisonError, Weak};

use nandex::Database as Db;
use pyo3::IntoPyObjectExt;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList};

use crate::catalog::{self, Again, OpenByName, Opener};
use crate::counter::Counter;
use crate::dedup::{self, How};
use crate::filter::{Filter, OpenFilter};
use crate::handle::{Closing, Handle, close_each, note_open};
use crate::key_form::{KeyForm, LONGEST_MAX, longest_of};
use crate::kind::Kind;
use crate::map::Map;
use crate::number::{Reals, count, optional, real, size};
use crate::opening::{stating, with};
use crate::progress;
use crate::stats;
use crate::table::Table;
use crate::text_form::TextForm;
use crate::words;

/// Registers the classes.
pub fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<Database>()?;
    module.add_class::<Table>()?;
    module.add_class::<Map>()?;
    module.add_class::<Filter>()?;
    module.add_class::<Counter>()
}

/// A file of named structures: tables, maps, filters, counters. `nandex.open` opens one.
///
/// Each method opens the structure of a name, or makes it. All open structures share the RAM of the database;
/// one without its own `ram` takes as much as it works well with, and at most half of what is free when it is
/// opened. Tables and maps that grow take more as they need it. Closing the database closes its structures. A
/// structure that Python no longer refers to is closed too.
#[pyclass(module = "nandex", frozen, weakref)]
pub struct Database {
    path: PathBuf,
    inner: Arc<OpenFile>,
}

/// An open file and the structures that were opened from it.
struct OpenFile {
    handle: Handle<Db>,
    structures: Mutex<Vec<Weak<dyn Closing>>>,
    by_name: OpenByName,
}

impl Database {
    /// Creates the object of an open file.
    pub fn new(path: PathBuf, db: Db) -> Self {
        let handle = Handle::new(format!("database {:?}", path.display().to_string()), db);
        let (structures, by_name) = (Mutex::default(), OpenByName::default());
        let inner = Arc::new(OpenFile { handle, structures, by_name });
        note_open(Arc::downgrade(&inner) as Weak<dyn Closing>);
        Self { path, inner }
    }
}

impl Closing for OpenFile {
    fn close_open(&self, py: Python<'_>) -> PyResult<()> {
        if self.handle.is_inherited() { Ok(()) } else { self.close(py) }
    }
}

impl OpenFile {
    /// Closes the structures, the latest first, and then the file.
    fn close(&self, py: Python<'_>) -> PyResult<()> {
        self.handle.refuse_inherited()?;
        let structures = &self.structures;
        let opened =
            std::mem::take(&mut *structures.lock().unwrap_or_else(PoisonError::into_inner));
        let closed = close_each(py, &opened);
        let file = self.handle.close(py, |db| {
            drop(db);
            Ok(())
        });
        closed.and(file)
    }

    /// Registers a structure, so that it is closed with the file and found by its name. `object` makes the Python
    /// object of a handle.
    fn adopt<T: Send + Sync + 'static, P>(
        &self,
        (kind, name): (&str, &str),
        opened: T,
        object: impl Fn(Arc<Handle<T>>) -> P + Send + Sync + 'static,
    ) -> P
    where
        Handle<T>: Closing,
        P: for<'py> IntoPyObjectExt<'py>,
    {
        let handle = Arc::new(Handle::new(format!("{kind} {name:?}"), opened));
        let weak: Weak<dyn Closing> = Arc::downgrade(&handle) as Weak<dyn Closing>;
        let mut structures = self.structures.lock().unwrap_or_else(PoisonError::into_inner);
        structures.retain(|it| it.strong_count() > 0);
        structures.push(weak.clone());
        note_open(weak);
        let (made, weak) = (object(Arc::clone(&handle)), Arc::downgrade(&handle));
        let again: Again = Box::new(move |py| {
            let handle = weak.upgrade().filter(|handle| !handle.is_closed())?;
            Some(object(handle).into_py_any(py))
        });
        self.by_name.note(name, again);
        made
    }
}

#[pymethods]
impl Database {
    /// Opens or makes a table of fixed widths.
    ///
    /// `entries` is the number of entries that it must hold, a million by default. `key` and `value` are
    /// "u64" for numbers, or a number of bytes: 8 to 32 for a key, 0 to 64 for a value. `policy` is what a
    /// full table does: "reject", the default; "grow"; or evict, by "fifo", "lru" and others. `cache` is RAM,
    /// part of `ram`, for entries that are looked up often. `parameters` are the structure's parameters by
    /// name, such as `{"spare_buffers": "8"}`, and override those that follow from the requirements; a table
    /// returns them as `parameters`. An existing table must have these values. Options of this opening, such
    /// as `{"read_depth": "64"}`, are passed in the same way, and are not stored.
    #[expect(clippy::too_many_arguments, reason = "keywords in Python")]
    #[pyo3(
        signature = (
            name, *, entries=None, key=Kind::U64, value=Kind::U64, ram=None, cache=None,
            policy=None, parameters=None
        ),
        text_signature = "($self, name, *, entries=None, key='u64', value='u64', ram=None, cache=None, \
                          policy=None, parameters=None)"
    )]
    fn table(
        &self,
        py: Python<'_>,
        #[pyo3(from_py_with = words::name)] name: String,
        entries: Option<&Bound<'_, PyAny>>,
        #[pyo3(from_py_with = Kind::of_key)] key: Kind,
        #[pyo3(from_py_with = Kind::of_value)] value: Kind,
        ram: Option<&Bound<'_, PyAny>>,
        cache: Option<&Bound<'_, PyAny>>,
        policy: Option<&Bound<'_, PyAny>>,
        parameters: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<Table> {
        let policy = optional(policy, "policy", words::policy)?;
        let parameters = optional(parameters, "parameters", words::parameters)?;
        let entries = optional(entries, "entries", count)?;
        let (ram, cache) = (optional(ram, "ram", size)?, optional(cache, "cache", size)?);
        let table = self.inner.handle.call(py, |db| {
            let builder = db.table(&name).widths(key.width(), value.width());
            let builder = with(builder, entries, |it, entries| it.entries(entries));
            let builder = with(builder, ram, |it, ram| it.ram(ram));
            let builder = with(builder, cache, |it, cache| it.cache(cache));
            let builder = with(builder, policy, |it, policy| it.policy(policy));
            stating(builder, parameters, |it, name, value| it.parameter(name, value))
                .create_or_open()
        })?;
        let object = move |handle| Table::new(handle, key, value);
        Ok(self.inner.adopt(("table", &name), table, object))
    }

    /// Opens or makes a map of keys and values of any size.
    ///
    /// It grows, unless `entries` or `bytes`, the bytes of all keys and values, state its capacity; then it
    /// refuses more. `ram` is the RAM of its table and its cache of records; `cache` is the cache's part of
    /// it, by default all that the table leaves. `policy` is "grow", "reject", or "fifo" for a map that
    /// evicts the oldest. With `text` it returns keys and values as `str`. `parameters` are those of the map's
    /// table of keys, as for `table`.
    ///
    /// >>> with db.map("names", text=True) as names:
    /// ...     names["a"] = "1"
    /// ...     names["a"], list(names)
    /// ('1', ['a'])
    #[expect(clippy::too_many_arguments, reason = "keywords in Python")]
    #[pyo3(signature = (
        name, *, entries=None, bytes=None, ram=None, cache=None, policy=None, text=false,
        parameters=None
    ))]
    fn map(
        &self,
        py: Python<'_>,
        #[pyo3(from_py_with = words::name)] name: String,
        entries: Option<&Bound<'_, PyAny>>,
        bytes: Option<&Bound<'_, PyAny>>,
        ram: Option<&Bound<'_, PyAny>>,
        cache: Option<&Bound<'_, PyAny>>,
        policy: Option<&Bound<'_, PyAny>>,
        #[pyo3(from_py_with = text_of)] text: bool,
        parameters: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<Map> {
        let policy = optional(policy, "policy", words::policy)?;
        let parameters = optional(parameters, "parameters", words::parameters)?;
        let entries = optional(entries, "entries", count)?;
        let (bytes, ram) = (optional(bytes, "bytes", size)?, optional(ram, "ram", size)?);
        let cache = optional(cache, "cache", size)?;
        let map = self.inner.handle.call(py, |db| {
            let builder = with(db.map(&name), entries, |it, entries| it.entries(entries));
            let builder = with(builder, bytes, |it, bytes| it.bytes(bytes));
            let builder = with(builder, ram, |it, ram| it.ram(ram));
            let builder = with(builder, cache, |it, cache| it.cache(cache));
            let builder = with(builder, policy, |it, policy| it.policy(policy));
            stating(builder, parameters, |it, name, value| it.parameter(name, value))
                .create_or_open()
        })?;
        let form = TextForm::of(text);
        Ok(self.inner.adopt(("map", &name), map, move |it| Map::new(it, form)))
    }

    /// Opens or makes a filter for `keys` different keys, a million by default, with a false positive rate of
    /// `rate`, 0.01 by default. With more keys the rate rises, or they are refused if `grow` is false.
    /// `parameters` are those of the filter, such as `{"fan_out": "8"}`, as for `table`.
    #[expect(clippy::too_many_arguments, reason = "keywords in Python")]
    #[pyo3(signature = (name, *, keys=None, rate=None, ram=None, grow=true, parameters=None))]
    fn filter(
        &self,
        py: Python<'_>,
        #[pyo3(from_py_with = words::name)] name: String,
        keys: Option<&Bound<'_, PyAny>>,
        rate: Option<&Bound<'_, PyAny>>,
        ram: Option<&Bound<'_, PyAny>>,
        #[pyo3(from_py_with = grow_of)] grow: bool,
        parameters: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<Filter> {
        let (keys, ram) = (optional(keys, "keys", count)?, optional(ram, "ram", size)?);
        let parameters = optional(parameters, "parameters", words::parameters)?;
        let rate = optional(rate, "rate", |rate, name| real(rate, name, Reals::Between0And1))?;
        let filter = self.inner.handle.call(py, |db| {
            let builder = with(db.filter(&name), keys, |it, keys| it.keys(keys));
            let builder = with(builder, ram, |it, ram| it.ram(ram));
            let builder = with(builder, rate, |it, rate| it.rate(rate));
            let builder = if grow { builder } else { builder.refuse_when_full() };
            stating(builder, parameters, |it, name, value| it.parameter(name, value))
                .create_or_open()
                .map(|filter| OpenFilter::new(filter, db.volume(), &name))
        })?;
        Ok(self.inner.adopt(("filter", &name), filter, Filter::new))
    }

    /// Opens or makes a counter for about `keys` different keys, a million by default, of up to `longest`
    /// bytes: 31 by default, and what an existing counter has. With `text` it returns keys as `str`.
    /// `parameters` are those of the counting table, such as `{"discipline": "MB"}`, as for `table`.
    #[expect(clippy::too_many_arguments, reason = "keywords in Python")]
    #[pyo3(signature = (name, *, keys=None, longest=None, ram=None, text=false, parameters=None))]
    fn counter(
        &self,
        py: Python<'_>,
        #[pyo3(from_py_with = words::name)] name: String,
        keys: Option<&Bound<'_, PyAny>>,
        longest: Option<&Bound<'_, PyAny>>,
        ram: Option<&Bound<'_, PyAny>>,
        #[pyo3(from_py_with = text_of)] text: bool,
        parameters: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<Counter> {
        let (keys, ram) = (optional(keys, "keys", count)?, optional(ram, "ram", size)?);
        let parameters = optional(parameters, "parameters", words::parameters)?;
        let asked = optional(longest, "longest", |it, _| longest_of(it))?;
        let is_there = self.structures(py)?.iter().any(|(it, _)| *it == name);
        let stored = (!is_there).then(|| KeyForm::new(asked.unwrap_or(LONGEST_MAX)).keys());
        let counting = self.inner.handle.call(py, |db| {
            let builder = with(db.counting(&name), keys, |it, keys| it.keys(keys));
            let builder = with(builder, ram, |it, ram| it.ram(ram));
            let builder = with(builder, stored, |it, stored| it.stored(stored));
            stating(builder, parameters, |it, name, value| it.parameter(name, value))
                .create_or_open()
        })?;
        let form = KeyForm::of_existing(&name, counting.config().keys, asked)?;
        let text = TextForm::of(text);
        let object = move |it| Counter::new(it, form, text);
        Ok(self.inner.adopt(("counter", &name), counting, object))
    }

    /// Finds the duplicate chunks of files and folders, and returns the figures: `total_bytes`,
    /// `duplicate_bytes`, `largest_duplicate_files` and others, as `nandex dedup --json` does.
    ///
    /// The fingerprints stay in a table of the database, so that a later call finds the chunks of earlier
    /// ones. `average` is the average chunk size, "8KiB" by default. With `compare` the result includes what
    /// the paths share with one another. A KeyboardInterrupt ends the call; everything read so far is in the
    /// table.
    ///
    /// >>> _ = (folder / "a").write_bytes(bytes(100_000)), (folder / "b").write_bytes(bytes(100_000))
    /// >>> found = db.dedup([folder / "a", folder / "b"])
    /// >>> found["files"], found["duplicate_bytes"] >= 100_000
    /// (2, True)
    #[pyo3(signature = (
        paths, *, average=None, chunker=None, hash=None, compare=false, workers=None
    ))]
    #[expect(clippy::too_many_arguments, reason = "keywords in Python")]
    fn dedup<'py>(
        &self,
        py: Python<'py>,
        paths: &Bound<'py, PyAny>,
        average: Option<&Bound<'py, PyAny>>,
        chunker: Option<&Bound<'py, PyAny>>,
        hash: Option<&Bound<'py, PyAny>>,
        #[pyo3(from_py_with = compare_of)] compare: bool,
        workers: Option<&Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let how = How::new(paths, [average, chunker, hash], compare, workers)?;
        dedup::run(py, &self.inner.handle, how.leaving_out(self.path.clone()))
    }

    /// Returns the names and kinds of all structures in the file, in the order in which they were made. The
    /// kind of a map is "map". The database itself is a collection of the names, and `db[name]` opens one.
    ///
    /// >>> db.map("urls")["https://example.org/"] = b"<html>..."
    /// >>> db.structures(), "urls" in db, list(db)
    /// ([('urls', 'map')], True, ['urls'])
    fn structures(&self, py: Python<'_>) -> PyResult<Vec<(String, String)>> {
        self.inner.handle.call(py, |db| Ok(db.structures()))
    }

    /// Drops a structure with all that it holds, and returns the bytes of its pages, which other structures of
    /// the file use from now on. It must be closed. The file keeps its length; `nandex compact` shortens it.
    /// `del db[name]` does the same.
    ///
    /// >>> with db.map("old") as old:
    /// ...     old["a"] = "1"
    /// >>> db.drop("old") > 0, "old" in db
    /// (True, False)
    fn drop(
        &self,
        py: Python<'_>,
        #[pyo3(from_py_with = words::name)] name: String,
    ) -> PyResult<u64> {
        let structures = self.structures(py)?;
        if !structures.iter().any(|(it, _)| *it == name) {
            return Err(catalog::missing(&name, &structures));
        }
        let bytes = self.inner.handle.call(py, |db| db.drop_structure(&name))?;
        progress::log(py, &format!("dropped {name:?}, {bytes} bytes"))?;
        Ok(bytes)
    }

    fn __delitem__(
        &self,
        py: Python<'_>,
        #[pyo3(from_py_with = words::name)] name: String,
    ) -> PyResult<()> {
        self.drop(py, name).map(|_| ())
    }

    fn __contains__(&self, py: Python<'_>, name: &Bound<'_, PyAny>) -> PyResult<bool> {
        let Ok(name) = name.extract::<String>() else { return Ok(false) };
        Ok(self.structures(py)?.into_iter().any(|(it, _)| it == name))
    }

    fn __len__(&self, py: Python<'_>) -> PyResult<usize> {
        Ok(self.structures(py)?.len())
    }

    /// A database without structures is true.
    fn __bool__(&self) -> bool {
        true
    }

    fn __iter__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        let names = self.structures(py)?.into_iter().map(|(name, _)| name);
        Ok(PyList::new(py, names)?.try_iter()?.into_any())
    }

    /// Opens the structure of a name as what it is; one that is open is returned again. Keys and values of
    /// 8 bytes of a table are numbers.
    fn __getitem__(
        &self,
        py: Python<'_>,
        #[pyo3(from_py_with = words::name)] name: String,
    ) -> PyResult<Py<PyAny>> {
        if let Some(open) = self.inner.by_name.get(py, &name)? {
            return Ok(open);
        }
        let structures = self.structures(py)?;
        let Some((_, kind)) = structures.iter().find(|(it, _)| *it == name) else {
            return Err(catalog::missing(&name, &structures));
        };
        match self.inner.handle.call(py, |db| catalog::opener(db, &name, kind))? {
            Some(Opener::Map) => {
                let map = self.inner.handle.call(py, |db| db.map(&name).create_or_open())?;
                let object = |it| Map::new(it, TextForm::Bytes);
                self.inner.adopt(("map", &name), map, object).into_py_any(py)
            }
            Some(Opener::Table(key, value)) => {
                let builder = |db: &Db| db.table(&name).widths(key, value).create_or_open();
                let table = self.inner.handle.call(py, builder)?;
                let object =
                    move |handle| Table::new(handle, Kind::of_width(key), Kind::of_width(value));
                self.inner.adopt(("table", &name), table, object).into_py_any(py)
            }
            Some(Opener::Filter) => {
                let builder = |db: &Db| {
                    let filter = db.filter(&name).create_or_open()?;
                    Ok(OpenFilter::new(filter, db.volume(), &name))
                };
                let filter = self.inner.handle.call(py, builder)?;
                self.inner.adopt(("filter", &name), filter, Filter::new).into_py_any(py)
            }
            Some(Opener::Counter) => {
                let counting =
                    self.inner.handle.call(py, |db| db.counting(&name).create_or_open())?;
                let form = KeyForm::of_existing(&name, counting.config().keys, None)?;
                let object = move |it| Counter::new(it, form, TextForm::Bytes);
                self.inner.adopt(("counter", &name), counting, object).into_py_any(py)
            }
            None => Err(catalog::not_opened(&name, kind)),
        }
    }

    /// Compacts a structure into the least space, and returns the rest to the file. It must be closed. A
    /// table or map that grows is copied, and takes its new space and RAM in addition to the old until the
    /// end; if the copy is interrupted, as by a KeyboardInterrupt, the old one is unchanged. A structure of
    /// a fixed size stays as it is.
    /// Returns `entries`, `flash_bytes_before` and `flash_bytes`.
    ///
    /// >>> with db.map("compacted") as map:
    /// ...     map.update((str(n).encode(), b"x" * 100) for n in range(1000))
    /// ...     for n in range(10, 1000):
    /// ...         del map[str(n).encode()]
    /// >>> db.compact("compacted")["entries"]
    /// 10
    fn compact<'py>(
        &self,
        py: Python<'py>,
        #[pyo3(from_py_with = words::name)] name: String,
    ) -> PyResult<Bound<'py, PyAny>> {
        let report = |share: f64| {
            let done = (share * 100.0) as usize;
            // What a report raises does not end a compaction.
            Python::attach(|py| progress::report(py, "percent", done, Some(100))).unwrap_or(());
        };
        let done = self.inner.handle.call_watched(py, |db, stop| {
            let watch = |share: f64| {
                if progress::is_on() {
                    report(share);
                }
                match stop.load(Ordering::Relaxed) {
                    true => ControlFlow::Break(()),
                    false => ControlFlow::Continue(()),
                }
            };
            db.compact(&name, &watch)
        })?;
        let (before, after) = (done.flash_bytes_before, done.flash_bytes);
        progress::log(py, &format!("compacted {name:?}: {after} of {before} bytes"))?;
        let dict = PyDict::new(py);
        dict.set_item("entries", done.entries)?;
        dict.set_item("flash_bytes_before", done.flash_bytes_before)?;
        dict.set_item("flash_bytes", done.flash_bytes)?;
        stats::shown(dict, self.inner.handle.what())
    }

    /// Returns the RAM of open structures, in total and of each.
    fn stats<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        let taken = self.inner.handle.call(py, |db| Ok(db.ram_taken()))?;
        let dict = PyDict::new(py);
        dict.set_item("path", &self.path)?;
        dict.set_item("ram_bytes_taken", taken.iter().map(|(_, bytes)| bytes).sum::<u64>())?;
        for (name, bytes) in taken {
            dict.set_item(format!("ram_bytes_taken_{name}"), bytes)?;
        }
        stats::shown(dict, self.inner.handle.what())
    }

    /// Closes all open structures, and the file. Waits for calls of other threads. Closing a closed database
    /// is allowed.
    fn close(&self, py: Python<'_>) -> PyResult<()> {
        self.inner.close(py)
    }

    /// Whether the database is closed.
    #[getter]
    fn closed(&self) -> bool {
        self.inner.handle.is_closed()
    }

    /// The path of the file.
    #[getter]
    fn path(&self, py: Python<'_>) -> PyResult<Py<PyAny>> {
        self.path.as_path().into_py_any(py)
    }

    /// Whether the database is open read-only.
    #[getter]
    fn read_only(&self, py: Python<'_>) -> PyResult<bool> {
        self.inner.handle.call(py, |db| Ok(db.volume().is_read_only()))
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
        self.inner.handle.shown()
    }
}

fn grow_of(given: &Bound<'_, PyAny>) -> PyResult<bool> {
    words::flag(given, "grow")
}

fn compare_of(given: &Bound<'_, PyAny>) -> PyResult<bool> {
    words::flag(given, "compare")
}

fn text_of(given: &Bound<'_, PyAny>) -> PyResult<bool> {
    words::flag(given, "text")
}
