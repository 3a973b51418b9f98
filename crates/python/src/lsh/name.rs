//! Document keys as bytes: a letter for the type, and the content.
//!
//! `str`, `bytes` and `int` have forms of their own, so that equal keys have equal bytes and reading them
//! runs no code. Everything else is pickled, if the index's owner allows that.

use pyo3::IntoPyObjectExt;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyString};

use crate::error::Raised;
use crate::number::type_name;

const TEXT: u8 = b's';
const BYTES: u8 = b'b';
const NUMBER: u8 = b'i';
const PICKLED: u8 = b'p';

/// Functions that pickle keys of other types and read them again.
pub struct Pickling {
    dumps: Py<PyAny>,
    loads: Py<PyAny>,
}

impl Pickling {
    /// Loads those of the module `pickle`.
    ///
    /// # Errors
    /// Fails if the import fails.
    pub fn new(py: Python<'_>) -> PyResult<Self> {
        let pickle = py.import("pickle")?;
        let get = |name| pickle.getattr(name).map(Bound::unbind);
        Ok(Self { dumps: get("dumps")?, loads: get("loads")? })
    }
}

/// Returns the bytes of a key.
///
/// # Errors
/// Fails for a type that must be pickled where that is not allowed, or that cannot be pickled.
pub fn encode(key: &Bound<'_, PyAny>, pickling: Option<&Pickling>) -> PyResult<Vec<u8>> {
    let tagged = |tag: u8, content: &[u8]| [&[tag], content].concat();
    if let Ok(text) = key.cast::<PyString>()
        && let Ok(text) = text.to_str()
    {
        return Ok(tagged(TEXT, text.as_bytes()));
    }
    if let Ok(bytes) = key.cast::<PyBytes>() {
        return Ok(tagged(BYTES, bytes.as_bytes()));
    }
    if let Ok(number) = key.extract::<i64>() {
        return Ok(tagged(NUMBER, &number.to_le_bytes()));
    }
    let Some(pickling) = pickling else {
        return Err(Raised::InputType.new(format!(
            "a key of the type {}: give bytes, str or int, or make the index with prepickle=True",
            type_name(key)
        )));
    };
    let pickled = pickling.dumps.bind(key.py()).call1((key,))?;
    Ok(tagged(PICKLED, pickled.cast::<PyBytes>()?.as_bytes()))
}

/// Reads a key from its bytes.
///
/// # Errors
/// Fails for bytes that are no key, and for a pickled key that is not allowed or cannot be read.
pub fn decode(py: Python<'_>, bytes: &[u8], pickling: Option<&Pickling>) -> PyResult<Py<PyAny>> {
    let broken =
        || Raised::Internal.new(format!("a key of the bytes {bytes:?}: make the index again"));
    let (tag, content) = bytes.split_first().ok_or_else(broken)?;
    match (*tag, pickling) {
        (TEXT, _) => std::str::from_utf8(content).map_err(|_| broken())?.into_py_any(py),
        (BYTES, _) => PyBytes::new(py, content).into_py_any(py),
        (NUMBER, _) => {
            let number = <[u8; 8]>::try_from(content).map_err(|_| broken())?;
            i64::from_le_bytes(number).into_py_any(py)
        }
        (PICKLED, Some(pickling)) => {
            pickling.loads.call1(py, (PyBytes::new(py, content),))
        }
        (PICKLED, None) => Err(Raised::InputType.new(
            "the index has pickled keys: open it with prepickle=True, if you trust who has written the file",
        )),
        _ => Err(broken()),
    }
}
