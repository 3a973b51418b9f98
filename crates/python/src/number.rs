//! Sizes, counts and other options as Python gives them.

use std::time::Duration;

use nandex::Durability;
use nandex::size::Quantity;
use pyo3::prelude::*;
use pyo3::types::{PyInt, PyString};

use crate::error::Raised;

/// A size or a count: an `int`, a `float` such as `1e9`, or a text such as `"256MiB"`.
#[derive(Clone, Debug)]
pub struct Amount(pub Quantity);

impl<'a, 'py> FromPyObject<'a, 'py> for Amount {
    type Error = PyErr;

    fn extract(given: Borrowed<'a, 'py, PyAny>) -> PyResult<Self> {
        if let Ok(text) = given.cast::<PyString>() {
            return Ok(Self(text.to_str()?.into()));
        }
        if given.cast::<PyInt>().is_ok() {
            return number(&given).map(Self);
        }
        match given.extract::<f64>() {
            Ok(number) => Ok(Self(number.into())),
            Err(_) => Err(Raised::InputType.new(format!(
                "an amount of the type {}: give an int, a float such as 1e9, or a str such as \"256MiB\"",
                type_name(&given)
            ))),
        }
    }
}

fn number(given: &Bound<'_, PyAny>) -> PyResult<Quantity> {
    let number = given.extract::<u64>().map_err(|_| {
        Raised::Config.new(format!("an amount of {given}: give a number from 0 to 2**64 - 1"))
    })?;
    Ok(number.into())
}

/// Adds the function.
pub fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_function(wrap_pyfunction!(bytes, module)?)
}

/// The bytes that an amount is, for `nandex.shards`.
#[pyfunction]
#[pyo3(name = "_bytes")]
fn bytes(amount: &Bound<'_, PyAny>, field: &str) -> PyResult<u64> {
    whole(amount, field, nandex::size::parse)
}

/// The number of bytes or of things that an amount is.
///
/// # Errors
/// A text that is none.
pub fn whole(
    amount: &Bound<'_, PyAny>,
    field: &str,
    parse: fn(&str) -> Result<u64, String>,
) -> PyResult<u64> {
    let refuse = |reason: String| Raised::Config.new(format!("{field}: {reason}"));
    if let Ok(text) = amount.cast::<PyString>() {
        return parse(text.to_str()?).map_err(refuse);
    }
    if let Ok(number) = amount.extract::<u64>() {
        return Ok(number);
    }
    let number: f64 = amount.extract()?;
    parse(&format!("{number}")).map_err(refuse)
}

/// When an update is durable: seconds, or a word.
///
/// # Errors
/// A number of seconds below 0, or another word.
pub fn durability(given: Option<&Bound<'_, PyAny>>) -> PyResult<Durability> {
    let Some(given) = given else { return Ok(Durability::default()) };
    let refuse = || {
        Raised::Config.new(format!(
            "durability: {given:?} is none; give seconds, such as 0.1, or \"always\" or \"never\""
        ))
    };
    if let Ok(word) = given.cast::<PyString>() {
        return match word.to_str()? {
            "always" => Ok(Durability::Always),
            "never" => Ok(Durability::Never),
            _ => Err(refuse()),
        };
    }
    let seconds: f64 = given.extract().map_err(|_| refuse())?;
    Duration::try_from_secs_f64(seconds).map(Durability::Every).map_err(|_| refuse())
}

/// The name of an object's type, for messages.
pub fn type_name(object: &Bound<'_, PyAny>) -> String {
    let name = object.get_type().fully_qualified_name();
    name.map_or_else(|_| "of an unknown name".to_owned(), |name| name.to_string())
}
