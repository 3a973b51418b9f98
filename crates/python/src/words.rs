//! Texts from Python: names, words and paths. A message that refuses one has the name of its argument, what is
//! expected, and what was given.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::os::unix::ffi::OsStringExt;
use std::path::PathBuf;

use nandex::Policy;
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyBytes, PyMapping, PyString};

use crate::error::Raised;
use crate::number::{index, is_bool, shown, wrong_type};

/// Parameters of a structure, by name.
pub type Parameters = BTreeMap<String, String>;

/// Reads a text.
///
/// # Errors
/// Fails for another type, and for a text that is not valid Unicode.
pub fn text(given: &Bound<'_, PyAny>, name: &str) -> PyResult<String> {
    let Ok(text) = given.cast::<PyString>() else {
        return Err(wrong_type(given, name, "give a str"));
    };
    text.extract().map_err(|_| {
        Raised::Config.new(format!("{name}: {}; give a str that is valid Unicode", shown(given)))
    })
}

/// Reads the name of a structure.
///
/// # Errors
/// As [`text`]; a text that is no name.
pub fn name(given: &Bound<'_, PyAny>) -> PyResult<String> {
    let name = text(given, "name")?;
    let fits = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '/');
    // Names of parts have more characters, and are refused where they are used.
    if name.is_empty() || !name.chars().all(fits) {
        return Err(Raised::Config.new(format!(
            "name: {}; give 1 to 64 letters, digits, underscores and hyphens",
            shown(given)
        )));
    }
    Ok(name)
}

/// Reads a flag.
///
/// # Errors
/// Fails for anything but True and False.
pub fn flag(given: &Bound<'_, PyAny>, name: &str) -> PyResult<bool> {
    let numpy = || is_bool(given).then(|| given.is_truthy());
    match given.cast::<PyBool>() {
        Ok(flag) => Ok(flag.is_true()),
        Err(_) => numpy().unwrap_or_else(|| Err(wrong_type(given, name, "give True or False"))),
    }
}

/// Reads the policy of a full structure.
///
/// # Errors
/// As [`text`]; a word that is no policy.
pub fn policy(given: &Bound<'_, PyAny>, name: &str) -> PyResult<Policy> {
    let parsed = text(given, name)?.parse();
    parsed.map_err(|reason: String| Raised::Config.new(format!("{name}: {reason}")))
}

/// Reads parameters: a mapping from names to texts, numbers or flags.
///
/// # Errors
/// Fails for another type.
pub fn parameters(given: &Bound<'_, PyAny>, name: &str) -> PyResult<Parameters> {
    let Ok(mapping) = given.cast::<PyMapping>() else {
        return Err(wrong_type(given, name, "give a dict, such as {\"fan_out\": 8}"));
    };
    let mut parameters = Parameters::new();
    for item in mapping.items()? {
        let (key, value): (Bound<'_, PyAny>, Bound<'_, PyAny>) = item.extract()?;
        let key = text(&key, name)?;
        let value = parameter(&value, &key)?;
        parameters.insert(key, value);
    }
    Ok(parameters)
}

fn parameter(given: &Bound<'_, PyAny>, name: &str) -> PyResult<String> {
    if is_bool(given) {
        return flag(given, name).map(|flag| flag.to_string());
    }
    if let Some(number) = index(given) {
        return Ok(number.str()?.to_string_lossy().into_owned());
    }
    if given.is_instance_of::<pyo3::types::PyFloat>() {
        return Ok(given.str()?.to_string_lossy().into_owned());
    }
    text(given, name)
}

/// Reads a path: a `str`, `bytes`, or an object with `__fspath__`.
///
/// # Errors
/// Fails for another type.
pub fn path(given: &Bound<'_, PyAny>, name: &str) -> PyResult<PathBuf> {
    let found = match given.py().import("os")?.call_method1("fspath", (given,)) {
        Ok(found) => found,
        Err(_) => return Err(wrong_type(given, name, "give a str, bytes or an os.PathLike")),
    };
    if let Ok(bytes) = found.cast::<PyBytes>() {
        return Ok(OsString::from_vec(bytes.as_bytes().to_vec()).into());
    }
    found.extract()
}
