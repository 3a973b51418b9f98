//! The opening of a file, and the options of builders.

use nandex::device::Create;
use pyo3::prelude::*;
use pyo3::types::PyDict;

use crate::database::Database;
use crate::error::{Raised, raise};
use crate::number::{durability, integer, optional, size};
use crate::progress;
use crate::words::{self, Parameters};

/// Registers the functions.
pub fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_function(wrap_pyfunction!(parameters, module)?)?;
    module.add_function(wrap_pyfunction!(open, module)?)
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
#[pyo3(
    signature = (path, ram=None, *, mode="c".to_owned(), log=None, durability=None, hash_key=None),
    text_signature = "(path, ram=None, *, mode='c', log=None, durability=None, hash_key=None)"
)]
fn open(
    py: Python<'_>,
    path: &Bound<'_, PyAny>,
    ram: Option<&Bound<'_, PyAny>>,
    #[pyo3(from_py_with = mode_of)] mode: String,
    log: Option<&Bound<'_, PyAny>>,
    durability: Option<&Bound<'_, PyAny>>,
    hash_key: Option<&Bound<'_, PyAny>>,
) -> PyResult<Database> {
    let path = words::path(path, "path")?;
    let durability = optional(durability, "durability", self::durability)?;
    let hash_key = optional(hash_key, "hash_key", |key, name| integer(key, name, 0..=u128::MAX))?;
    let options = nandex::options();
    let options = with(options, optional(ram, "ram", size)?, |options, ram| options.ram(ram));
    let options = with(options, optional(log, "log", size)?, |options, log| options.log(log));
    let options = with(options, durability, |options, it| options.durability(it));
    let options = with(options, hash_key, |options, key| options.hash_key(key));
    let options = match &mode[..] {
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
    let (shown, pages) = (path.display().to_string(), db.volume().stats().pages);
    progress::log(py, &format!("opened {shown:?}, mode {mode:?}, {pages} pages"))?;
    Ok(Database::new(path, db))
}

/// Returns all `parameters=` of a kind of structure: a dict for each, with its `name`, its `meaning`, the
/// `values` that it can have, its `default` for a million entries or keys, and whether it is `kept` in the
/// file; options of an opening are not.
///
/// >>> {it["name"] for it in nandex.parameters("cascade")} >= {"fan_out", "read_depth"}
/// True
#[pyfunction]
fn parameters<'py>(
    py: Python<'py>,
    #[pyo3(from_py_with = kind_of)] kind: String,
) -> PyResult<Vec<Bound<'py, PyDict>>> {
    let all = nandex::db::parameters(&kind).map_err(raise)?;
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
pub fn with<B, T>(builder: B, given: Option<T>, set: impl FnOnce(B, T) -> B) -> B {
    match given {
        Some(given) => set(builder, given),
        None => builder,
    }
}

/// Returns the builder with each of the parameters.
pub fn stating<B>(
    builder: B,
    parameters: Option<Parameters>,
    state: impl Fn(B, String, String) -> B,
) -> B {
    let parameters = parameters.into_iter().flatten();
    parameters.fold(builder, |builder, (name, value)| state(builder, name, value))
}

fn mode_of(given: &Bound<'_, PyAny>) -> PyResult<String> {
    words::text(given, "mode")
}

fn kind_of(given: &Bound<'_, PyAny>) -> PyResult<String> {
    words::text(given, "kind")
}
