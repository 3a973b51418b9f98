//! Numbers from Python: integers, real numbers, sizes and counts. A message that refuses one has the name of
//! its argument, what is allowed, and what was given; a `bool` is no number.

use std::fmt::Display;
use std::ops::RangeInclusive;
use std::time::Duration;

use nandex::Durability;
use nandex::raw::size;
use pyo3::exceptions::PyOverflowError;
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyInt, PyString};

use crate::error::Raised;

/// The number of characters of a given value that a message shows.
const SHOWN_CHARS: usize = 60;

/// The longest interval of durability, in seconds.
const DURABILITY_S_MAX: f64 = 1e9;

/// Bounds that messages write as powers.
const POWERS: [(&str, &str); 5] = [
    ("-9223372036854775808", "-2**63"),
    ("4294967295", "2**32 - 1"),
    ("9223372036854775807", "2**63 - 1"),
    ("18446744073709551615", "2**64 - 1"),
    ("340282366920938463463374607431768211455", "2**128 - 1"),
];

/// Registers the functions for the package's Python files.
pub fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_function(wrap_pyfunction!(read_size, module)?)?;
    module.add_function(wrap_pyfunction!(read_count, module)?)?;
    module.add_function(wrap_pyfunction!(read_integer, module)?)?;
    module.add_function(wrap_pyfunction!(read_real, module)?)
}

/// Reads a size in bytes.
#[pyfunction]
#[pyo3(name = "_size")]
fn read_size(given: &Bound<'_, PyAny>, name: &str) -> PyResult<u64> {
    size(given, name)
}

/// Reads a count.
#[pyfunction]
#[pyo3(name = "_count")]
fn read_count(given: &Bound<'_, PyAny>, name: &str) -> PyResult<u64> {
    count(given, name)
}

/// Reads a whole number in a range.
#[pyfunction]
#[pyo3(name = "_integer")]
fn read_integer(given: &Bound<'_, PyAny>, name: &str, least: i128, most: i128) -> PyResult<i128> {
    integer(given, name, least..=most)
}

/// Reads a real number in a range.
#[pyfunction]
#[pyo3(name = "_real")]
fn read_real(given: &Bound<'_, PyAny>, name: &str, least: f64, most: f64) -> PyResult<f64> {
    real(given, name, Reals::Within(least..=most))
}

/// Reads an argument that may be left out.
///
/// # Errors
/// Fails as `read` does.
pub fn optional<T>(
    given: Option<&Bound<'_, PyAny>>,
    name: &str,
    read: impl FnOnce(&Bound<'_, PyAny>, &str) -> PyResult<T>,
) -> PyResult<Option<T>> {
    given.map(|given| read(given, name)).transpose()
}

/// Reads a whole number in a range: an `int`, or an object with `__index__`.
///
/// # Errors
/// Fails for another type, and for a number outside the range.
pub fn integer<N>(given: &Bound<'_, PyAny>, name: &str, range: RangeInclusive<N>) -> PyResult<N>
where
    N: PartialOrd + Display + for<'a, 'py> FromPyObject<'a, 'py>,
{
    let expected = || {
        let [least, most] = [range.start(), range.end()].map(|bound| power(bound.to_string()));
        format!("give a whole number from {least} to {most}")
    };
    let index = index(given).ok_or_else(|| wrong_type(given, name, &expected()))?;
    let number = index.extract::<N>().ok().filter(|number| range.contains(number));
    number.ok_or_else(|| out_of_range(given, name, &expected()))
}

/// The real numbers that an argument may be.
pub enum Reals {
    /// The numbers of a range, bounds included.
    Within(RangeInclusive<f64>),
    /// The numbers between 0 and 1, bounds excluded.
    Between0And1,
}

/// Reads a real number: a `float`, an `int`, or an object with `__float__`.
///
/// # Errors
/// Fails for another type, for a number outside the range, and for NaN.
pub fn real(given: &Bound<'_, PyAny>, name: &str, reals: Reals) -> PyResult<f64> {
    let expected = || match &reals {
        Reals::Within(range) => {
            format!("give a number from {} to {}", range.start(), range.end())
        }
        Reals::Between0And1 => "give a number between 0 and 1".to_owned(),
    };
    let fits = |number: f64| match &reals {
        Reals::Within(range) => range.contains(&number),
        Reals::Between0And1 => number > 0.0 && number < 1.0,
    };
    match float(given) {
        Some(number) if fits(number) => Ok(number),
        Some(_) => Err(out_of_range(given, name, &expected())),
        None => Err(wrong_type(given, name, &expected())),
    }
}

/// Reads a size in bytes: a whole number, or a text such as `"256MiB"`.
///
/// # Errors
/// Fails for another type, and for a number or a text that is no size.
pub fn size(given: &Bound<'_, PyAny>, name: &str) -> PyResult<u64> {
    amount(given, name, (size::parse, "256MiB"))
}

/// Reads a count: a whole number, or a text such as `"64M"`.
///
/// # Errors
/// Fails for another type, and for a number or a text that is no count.
pub fn count(given: &Bound<'_, PyAny>, name: &str) -> PyResult<u64> {
    amount(given, name, (size::parse_count, "64M"))
}

/// Parses a text; an error is the reason why it fails.
type Parse = fn(&str) -> Result<u64, String>;

fn amount(given: &Bound<'_, PyAny>, name: &str, (parse, example): (Parse, &str)) -> PyResult<u64> {
    let expected =
        || format!("give a whole number from 0 to 2**64 - 1, or a text such as {example:?}");
    if let Ok(text) = given.cast::<PyString>() {
        let refuse = |reason: String| Raised::Config.new(format!("{name}: {reason}"));
        let text = text.to_str().map_err(|_| out_of_range(given, name, &expected()))?;
        return parse(text).map_err(refuse);
    }
    if let Some(index) = index(given) {
        return index.extract().map_err(|_| out_of_range(given, name, &expected()));
    }
    let number = float(given).ok_or_else(|| wrong_type(given, name, &expected()))?;
    let is_whole = (0.0..2f64.powi(64)).contains(&number) && number.fract() == 0.0;
    if is_whole { Ok(number as u64) } else { Err(out_of_range(given, name, &expected())) }
}

/// Reads the durability of updates: seconds, or a word.
///
/// # Errors
/// Fails for another type, for seconds outside the range, and for another word.
pub fn durability(given: &Bound<'_, PyAny>, name: &str) -> PyResult<Durability> {
    let expected = format!(
        "give \"always\", \"never\", or seconds from 0 to {DURABILITY_S_MAX:e}, such as 0.1"
    );
    if let Ok(word) = given.cast::<PyString>() {
        return match word.to_str() {
            Ok("always") => Ok(Durability::Always),
            Ok("never") => Ok(Durability::Never),
            _ => Err(out_of_range(given, name, &expected)),
        };
    }
    let seconds = float(given).ok_or_else(|| wrong_type(given, name, &expected))?;
    match Duration::try_from_secs_f64(seconds) {
        Ok(period) if seconds <= DURABILITY_S_MAX => Ok(Durability::Every(period)),
        _ => Err(out_of_range(given, name, &expected)),
    }
}

/// Returns whether an object is a `bool`, of Python or of numpy: they have the methods of numbers.
pub fn is_bool(given: &Bound<'_, PyAny>) -> bool {
    given.is_instance_of::<PyBool>()
        || matches!(&type_name(given)[..], "numpy.bool" | "numpy.bool_")
}

/// Returns an `int`, or that of an object with `__index__`.
pub fn index<'py>(given: &Bound<'py, PyAny>) -> Option<Bound<'py, PyInt>> {
    if let Ok(number) = given.cast::<PyInt>() {
        return Some(number.clone()).filter(|number| !number.is_instance_of::<PyBool>());
    }
    let number = given.call_method0("__index__").ok().filter(|_| !is_bool(given))?;
    number.cast_into().ok()
}

/// Returns an object as a real number; infinity for integers that are larger than all real numbers.
fn float(given: &Bound<'_, PyAny>) -> Option<f64> {
    match given.extract::<f64>() {
        _ if is_bool(given) => None,
        Err(error) if error.is_instance_of::<PyOverflowError>(given.py()) => Some(f64::INFINITY),
        number => number.ok(),
    }
}

fn power(bound: String) -> String {
    let power = POWERS.iter().find(|(digits, _)| *digits == bound);
    power.map_or(bound, |(_, power)| (*power).to_owned())
}

/// The error of a value of another type.
pub fn wrong_type(given: &Bound<'_, PyAny>, name: &str, expected: &str) -> PyErr {
    let (found, of) = (shown(given), type_name(given));
    Raised::InputType.new(format!("{name}: {found} of the type {of}; {expected}"))
}

fn out_of_range(given: &Bound<'_, PyAny>, name: &str, expected: &str) -> PyErr {
    Raised::Config.new(format!("{name}: {}; {expected}", shown(given)))
}

/// Returns the `repr` of a given value, truncated if it is long. Python shows no integers of thousands of
/// digits.
pub fn shown(given: &Bound<'_, PyAny>) -> String {
    let Ok(text) = given.repr() else { return "a value that cannot be shown".to_owned() };
    let text = text.to_string_lossy();
    let mut shown: String = text.chars().take(SHOWN_CHARS).collect();
    if shown.len() < text.len() {
        shown.push_str("...");
    }
    shown
}

/// Returns the name of an object's type, for messages.
pub fn type_name(object: &Bound<'_, PyAny>) -> String {
    let name = object.get_type().fully_qualified_name();
    name.map_or_else(|_| "of an unknown name".to_owned(), |name| name.to_string())
}
