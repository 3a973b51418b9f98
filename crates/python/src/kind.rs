//! Keys and values of tables: what they are in Python, and the values of many keys.

use std::ops::RangeInclusive;

use nandex::Value;
use numpy::IntoPyArray;
use pyo3::IntoPyObjectExt;
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyBytes, PyString};

use crate::batch::{Asked, Fits, bytes_of, helpers};
use crate::entries::Datum;
use crate::error::Raised;
use crate::number::{integer, is_bool, shown, type_name};

/// The lengths in bytes that keys of a table may have.
pub const KEY_BYTES: RangeInclusive<u32> = 8..=32;
pub const VALUE_BYTES: RangeInclusive<u32> = 0..=64;

/// The Python type of a table's keys or values.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Kind {
    /// An `int` from 0 to 2^64 - 1; 8 bytes, little-endian.
    U64,
    /// `bytes` of this length.
    Bytes(u32),
}

impl Kind {
    /// Reads the kind of a table's keys.
    ///
    /// # Errors
    /// Fails as [`of_value`](Self::of_value) does.
    pub fn of_key(given: &Bound<'_, PyAny>) -> PyResult<Self> {
        Self::of(given, "key", KEY_BYTES)
    }

    /// Reads the kind of a table's values.
    ///
    /// # Errors
    /// Fails for a word other than "u64", for a length outside the range, and for another type.
    pub fn of_value(given: &Bound<'_, PyAny>) -> PyResult<Self> {
        Self::of(given, "value", VALUE_BYTES)
    }

    fn of(given: &Bound<'_, PyAny>, name: &str, bytes: RangeInclusive<u32>) -> PyResult<Self> {
        let Ok(word) = given.cast::<PyString>() else {
            return integer(given, name, bytes).map(Self::Bytes);
        };
        if word.to_str().is_ok_and(|word| word == "u64") {
            return Ok(Self::U64);
        }
        let (found, least, most) = (shown(given), bytes.start(), bytes.end());
        Err(Raised::Config.new(format!(
            "{name}: {found}; give \"u64\" for numbers, or how many bytes each has, {least} to {most}"
        )))
    }

    /// Returns the kind of an existing table's keys or values: numbers, if they have 8 bytes.
    pub fn of_width(bytes: u32) -> Self {
        if bytes == 8 { Self::U64 } else { Self::Bytes(bytes) }
    }

    /// The length of each in bytes.
    pub fn width(self) -> u32 {
        match self {
            Self::U64 => 8,
            Self::Bytes(bytes) => bytes,
        }
    }

    pub fn fits(self) -> Fits {
        match self {
            Self::U64 => Fits::U64,
            Self::Bytes(bytes) => Fits::Width(bytes as usize),
        }
    }

    pub fn datum(self, bytes: &[u8]) -> Datum {
        match (self, bytes.try_into()) {
            (Self::U64, Ok(number)) => Datum::Number(u64::from_le_bytes(number)),
            _ => Datum::Bytes(bytes.to_vec()),
        }
    }

    pub fn to_object(self, py: Python<'_>, bytes: &[u8]) -> PyResult<Py<PyAny>> {
        match (self, bytes.try_into()) {
            (Self::U64, Ok(number)) => u64::from_le_bytes(number).into_py_any(py),
            _ => PyBytes::new(py, bytes).into_py_any(py),
        }
    }

    /// Returns the bytes of one key or value.
    pub fn bytes<'a>(self, given: &'a Bound<'_, PyAny>, what: &str) -> PyResult<One<'a>> {
        if self != Self::U64 {
            return bytes_of(given, what).map(One::Bytes);
        }
        if !given.is_instance_of::<PyBool>()
            && let Ok(number) = given.extract::<u64>()
        {
            return Ok(One::Number(number.to_le_bytes()));
        }
        let is_number = given.hasattr("__index__")? && !is_bool(given);
        let (raised, found) = match is_number {
            true => (Raised::Input, shown(given)),
            false => {
                let of = format!("{} of the type {}", shown(given), type_name(given));
                (Raised::InputType, of)
            }
        };
        Err(raised.new(format!("a {what} {found}: the table has numbers from 0 to 2**64 - 1")))
    }
}

/// The bytes of one key or value.
pub enum One<'a> {
    Number([u8; 8]),
    Bytes(std::borrow::Cow<'a, [u8]>),
}

impl One<'_> {
    /// The bytes.
    pub fn get(&self) -> &[u8] {
        match self {
            Self::Number(bytes) => bytes,
            Self::Bytes(bytes) => bytes,
        }
    }
}

/// The values of many keys, in the layout of numpy and Arrow.
pub struct Answers {
    kind: Kind,
    numbers: Vec<u64>,
    bytes: Vec<u8>,
    found: Vec<bool>,
}

impl Answers {
    /// Creates the answers for about `count` keys.
    pub fn new(kind: Kind, count: usize) -> Self {
        let mut answers = Self { kind, numbers: vec![], bytes: vec![], found: vec![] };
        answers.found.reserve(count);
        match kind {
            Kind::U64 => answers.numbers.reserve(count),
            Kind::Bytes(width) => answers.bytes.reserve(count.saturating_mul(width as usize)),
        }
        answers
    }

    /// Adds the values of the next keys.
    pub fn extend(&mut self, values: &[Option<Value>]) {
        self.found.extend(values.iter().map(Option::is_some));
        match self.kind {
            Kind::U64 => self.numbers.extend(values.iter().map(number_of)),
            Kind::Bytes(width) => {
                for value in values {
                    let end = self.bytes.len() + width as usize;
                    self.bytes.extend(value.iter().flat_map(|value| value.iter()));
                    self.bytes.resize(end, 0);
                }
            }
        }
    }

    /// Returns the values in the form of the keys.
    ///
    /// # Errors
    /// Fails if there is no memory.
    pub fn into_object(
        self,
        py: Python<'_>,
        (form, given): Asked<'_>,
        default: Option<Py<PyAny>>,
    ) -> PyResult<Py<PyAny>> {
        let (values, width) = match self.kind {
            Kind::U64 => (self.numbers.into_pyarray(py).into_any(), None),
            Kind::Bytes(width) => (self.bytes.into_pyarray(py).into_any(), Some(width)),
        };
        let found = self.found.into_pyarray(py);
        let answer = helpers(py)?
            .call_method1("fixed_answers", (form.word(), given, values, found, width, default))?;
        Ok(answer.unbind())
    }
}

/// Returns a value of 8 bytes as a number; 0 if there is none.
fn number_of(value: &Option<Value>) -> u64 {
    let bytes = value.as_ref().and_then(|value| value.first_chunk().copied());
    u64::from_le_bytes(bytes.unwrap_or_default())
}
