//! Files of named structures: `nandex.open` and `nandex.Database`.

use std::collections::BTreeMap;
use std::ops::ControlFlow;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError, Weak};

use nandex::device::Create;
use nandex::{Database as Db, Policy};
use pyo3::IntoPyObjectExt;
use pyo3::prelude::*;
use pyo3::types::PyDict;

use crate::counter::{Counter, KeyForm, longest_of};
use crate::dedup::{self, How};
use crate::error::{Raised, raise};
use crate::filter::Filter;
use crate::handle::{Closing, Handle, close_each, note_open};
use crate::map::Map;
use crate::number::{Reals, count, durability, integer, optional, real, size};
use crate::stats;
use crate::table::{Kind, Table};

/// Registers the functions that open a file, and their classes.
pub fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<Database>()?;
    module.add_class::<Table>()?;
    module.add_class::<Map>()?;
    module.add_class::<Filter>()?;
    module.add_class::<Counter>()?;
    module.add_function(wrap_pyfunction!(parameters, module)?)?;
    module.add_function(wrap_pyfunction!(open, module)?)
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

    /// Registers a structure, so that it is closed with the file.
    fn adopt<T: Send + Sync + 'static>(&self, what: String, opened: T) -> Arc<Handle<T>>
    where
        Handle<T>: Closing,
    {
        let handle = Arc::new(Handle::new(what, opened));
        let weak: Weak<dyn Closing> = Arc::downgrade(&handle) as Weak<dyn Closing>;
        let mut structures = self.structures.lock().unwrap_or_else(PoisonError::into_inner);
        structures.retain(|it| it.strong_count() > 0);
        structures.push(weak.clone());
        note_open(weak);
        handle
    }
}

/// Opens a file, and makes it if it does not exist.
///
/// `ram` is the RAM of all structures together, such as "256MiB"; 64 MiB by default. `mode` is "c" to make
/// the file if it does not exist, "x" if it must be new, "w" if it must exist, and "r" for read-only, which
/// several processes may do at one time. `log` is the length of a new file's write-ahead log: by default
/// twice the RAM, and at least 32 MiB. `durability` is when an update is durable: within a number of seconds,
/// 0.1 by default; "always", before a call returns; or "never", only at `sync` and `close`. `hash_key` is a
/// number for new files whose filters and counters are to be merged with those of other files.
///
/// >>> with nandex.open(path, ram="32MiB") as db:
/// ...     db.map("m")["key"] = "value"
/// >>> with nandex.open(path, mode="r") as db:
/// ...     db.map("m")["key"]
/// b'value'
#[pyfunction]
#[pyo3(signature = (path, ram=None, *, mode="c", log=None, durability=None, hash_key=None))]
fn open(
    py: Python<'_>,
    path: PathBuf,
    ram: Option<&Bound<'_, PyAny>>,
    mode: &str,
    log: Option<&Bound<'_, PyAny>>,
    durability: Option<&Bound<'_, PyAny>>,
    hash_key: Option<&Bound<'_, PyAny>>,
) -> PyResult<Database> {
    let durability = optional(durability, "durability", self::durability)?;
    let hash_key = optional(hash_key, "hash_key", |key, name| integer(key, name, 0..=u128::MAX))?;
    let options = nandex::options();
    let options = with(options, optional(ram, "ram", size)?, |options, ram| options.ram(ram));
    let options = with(options, optional(log, "log", size)?, |options, log| options.log(log));
    let options = with(options, durability, |options, it| options.durability(it));
    let options = with(options, hash_key, |options, key| options.hash_key(key));
    let options = match mode {
        "c" => options,
        "r" => options.read_only(),
        "w" => options.create(Create::Open),
        "x" => options.create(Create::New),
        _ => {
            return Err(Raised::Config.new(format!(
                "mode: {mode:?} is none; give \"c\" to make the file if it does not exist, \"x\" if it must be new, \
                 \"w\" if it must exist, or \"r\" to read only"
            )));
        }
    };
    let db = py.detach(|| options.open(&path)).map_err(raise)?;
    let handle = Handle::new(format!("database {:?}", path.display().to_string()), db);
    let inner = Arc::new(OpenFile { handle, structures: Mutex::default() });
    note_open(Arc::downgrade(&inner) as Weak<dyn Closing>);
    Ok(Database { path, inner })
}

/// Returns all `parameters=` of a kind of structure: a dict for each, with its `name`, its `meaning`, the
/// `values` that it can have, its `default` for a million entries or keys, and whether it is `kept` in the
/// file; options of an opening are not.
///
/// >>> {it["name"] for it in nandex.parameters("cascade")} >= {"fan_out", "read_depth"}
/// True
#[pyfunction]
fn parameters<'py>(py: Python<'py>, kind: &str) -> PyResult<Vec<Bound<'py, PyDict>>> {
    let all = nandex::db::parameters(kind).map_err(raise)?;
    let one = |it: nandex::raw::Statable| {
        let dict = PyDict::new(py);
        dict.set_item("name", it.name)?;
        dict.set_item("meaning", it.meaning)?;
        dict.set_item("values", it.values)?;
        dict.set_item("default", it.default)?;
        dict.set_item("kept", it.is_kept)?;
        Ok(dict)
    };
    all.into_iter().map(one).collect()
}

/// Returns the builder with an option, if the option is given.
fn with<B, T>(builder: B, given: Option<T>, set: impl FnOnce(B, T) -> B) -> B {
    match given {
        Some(given) => set(builder, given),
        None => builder,
    }
}

/// Parameters of a structure, by name.
type Parameters = BTreeMap<String, String>;

/// Returns the builder with each of the parameters.
fn stating<B>(
    builder: B,
    parameters: Option<Parameters>,
    state: impl Fn(B, String, String) -> B,
) -> B {
    let parameters = parameters.into_iter().flatten();
    parameters.fold(builder, |builder, (name, value)| state(builder, name, value))
}

fn policy(word: Option<&str>) -> PyResult<Option<Policy>> {
    let parsed = word.map(str::parse).transpose();
    parsed.map_err(|reason: String| Raised::Config.new(format!("policy: {reason}")))
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
        name: &str,
        entries: Option<&Bound<'_, PyAny>>,
        #[pyo3(from_py_with = Kind::of_key)] key: Kind,
        #[pyo3(from_py_with = Kind::of_value)] value: Kind,
        ram: Option<&Bound<'_, PyAny>>,
        cache: Option<&Bound<'_, PyAny>>,
        policy: Option<&str>,
        parameters: Option<Parameters>,
    ) -> PyResult<Table> {
        let policy = self::policy(policy)?;
        let entries = optional(entries, "entries", count)?;
        let (ram, cache) = (optional(ram, "ram", size)?, optional(cache, "cache", size)?);
        let table = self.inner.handle.call(py, |db| {
            let builder = db.table(name).widths(key.width(), value.width());
            let builder = with(builder, entries, |it, entries| it.entries(entries));
            let builder = with(builder, ram, |it, ram| it.ram(ram));
            let builder = with(builder, cache, |it, cache| it.cache(cache));
            let builder = with(builder, policy, |it, policy| it.policy(policy));
            stating(builder, parameters, |it, name, value| it.parameter(name, value))
                .create_or_open()
        })?;
        Ok(Table::new(self.inner.adopt(format!("table {name:?}"), table), key, value))
    }

    /// Opens or makes a map of keys and values of any size.
    ///
    /// It grows, unless `entries` or `bytes`, the bytes of all keys and values, state its capacity; then it
    /// refuses more. `ram` is the RAM of its table and its cache of records; `cache` is the cache's part of
    /// it, by default all that the table leaves. `policy` is "grow", "reject", or "fifo" for a map that
    /// evicts the oldest. `parameters` are those of the map's table of keys, as for `table`.
    #[expect(clippy::too_many_arguments, reason = "keywords in Python")]
    #[pyo3(signature = (
        name, *, entries=None, bytes=None, ram=None, cache=None, policy=None, parameters=None
    ))]
    fn map(
        &self,
        py: Python<'_>,
        name: &str,
        entries: Option<&Bound<'_, PyAny>>,
        bytes: Option<&Bound<'_, PyAny>>,
        ram: Option<&Bound<'_, PyAny>>,
        cache: Option<&Bound<'_, PyAny>>,
        policy: Option<&str>,
        parameters: Option<Parameters>,
    ) -> PyResult<Map> {
        let policy = self::policy(policy)?;
        let entries = optional(entries, "entries", count)?;
        let (bytes, ram) = (optional(bytes, "bytes", size)?, optional(ram, "ram", size)?);
        let cache = optional(cache, "cache", size)?;
        let map = self.inner.handle.call(py, |db| {
            let builder = with(db.map(name), entries, |it, entries| it.entries(entries));
            let builder = with(builder, bytes, |it, bytes| it.bytes(bytes));
            let builder = with(builder, ram, |it, ram| it.ram(ram));
            let builder = with(builder, cache, |it, cache| it.cache(cache));
            let builder = with(builder, policy, |it, policy| it.policy(policy));
            stating(builder, parameters, |it, name, value| it.parameter(name, value))
                .create_or_open()
        })?;
        Ok(Map::new(self.inner.adopt(format!("map {name:?}"), map)))
    }

    /// Opens or makes a filter for `keys` different keys, a million by default, with a false positive rate of
    /// `rate`, 0.01 by default. With more keys the rate rises, or they are refused if `grow` is false.
    /// `parameters` are those of the filter, such as `{"fan_out": "8"}`, as for `table`.
    #[expect(clippy::too_many_arguments, reason = "keywords in Python")]
    #[pyo3(signature = (name, *, keys=None, rate=None, ram=None, grow=true, parameters=None))]
    fn filter(
        &self,
        py: Python<'_>,
        name: &str,
        keys: Option<&Bound<'_, PyAny>>,
        rate: Option<&Bound<'_, PyAny>>,
        ram: Option<&Bound<'_, PyAny>>,
        grow: bool,
        parameters: Option<Parameters>,
    ) -> PyResult<Filter> {
        let (keys, ram) = (optional(keys, "keys", count)?, optional(ram, "ram", size)?);
        let rate = optional(rate, "rate", |rate, name| real(rate, name, Reals::Between0And1))?;
        let filter = self.inner.handle.call(py, |db| {
            let builder = with(db.filter(name), keys, |it, keys| it.keys(keys));
            let builder = with(builder, ram, |it, ram| it.ram(ram));
            let builder = with(builder, rate, |it, rate| it.rate(rate));
            let builder = if grow { builder } else { builder.refuse_when_full() };
            stating(builder, parameters, |it, name, value| it.parameter(name, value))
                .create_or_open()
        })?;
        Ok(Filter::new(self.inner.adopt(format!("filter {name:?}"), filter)))
    }

    /// Opens or makes a counter for about `keys` different keys, a million by default, of up to `longest`
    /// bytes. `parameters` are those of the counting table, such as `{"discipline": "MB"}`, as for `table`.
    #[pyo3(signature = (name, *, keys=None, longest=31, ram=None, parameters=None))]
    fn counter(
        &self,
        py: Python<'_>,
        name: &str,
        keys: Option<&Bound<'_, PyAny>>,
        #[pyo3(from_py_with = longest_of)] longest: u8,
        ram: Option<&Bound<'_, PyAny>>,
        parameters: Option<Parameters>,
    ) -> PyResult<Counter> {
        let (keys, ram) = (optional(keys, "keys", count)?, optional(ram, "ram", size)?);
        let form = KeyForm::new(longest);
        let counting = self.inner.handle.call(py, |db| {
            let builder = with(db.counting(name), keys, |it, keys| it.keys(keys));
            let builder = with(builder, ram, |it, ram| it.ram(ram));
            let builder = builder.stored(form.keys());
            stating(builder, parameters, |it, name, value| it.parameter(name, value))
                .create_or_open()
        })?;
        Ok(Counter::new(self.inner.adopt(format!("counter {name:?}"), counting), form))
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
        chunker: Option<&str>,
        hash: Option<&str>,
        compare: bool,
        workers: Option<&Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let how = How::new(paths, (average, chunker, hash), compare, workers)?;
        dedup::run(py, &self.inner.handle, how.leaving_out(self.path.clone()))
    }

    /// Returns the names and kinds of all structures in the file. A map consists of two.
    fn structures(&self, py: Python<'_>) -> PyResult<Vec<(String, String)>> {
        self.inner.handle.call(py, |db| {
            let structures = db.volume().structures().into_iter();
            Ok(structures.map(|it| (it.name, it.kind)).collect())
        })
    }

    /// Compacts a structure into the least space, and returns the rest to the file. It must be closed. A
    /// table or map that grows is copied, and takes its new space and RAM in addition to the old until the
    /// end; if the copy is interrupted, the old one is unchanged. A structure of a fixed size stays as it is.
    /// Returns `entries`, `flash_bytes_before` and `flash_bytes`.
    ///
    /// >>> with db.map("compacted") as map:
    /// ...     map.update((str(n).encode(), b"x" * 100) for n in range(1000))
    /// ...     for n in range(10, 1000):
    /// ...         del map[str(n).encode()]
    /// >>> db.compact("compacted")["entries"]
    /// 10
    fn compact<'py>(&self, py: Python<'py>, name: &str) -> PyResult<Bound<'py, PyAny>> {
        let go_on = |_share: f64| ControlFlow::Continue(());
        let done = self.inner.handle.call(py, |db| db.compact(name, &go_on))?;
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
