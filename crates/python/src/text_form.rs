//! Whether Python gets keys and values as bytes or as text.

use pyo3::IntoPyObjectExt;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyString};

use crate::error::Raised;
use crate::number::shown;

/// The form in which a structure returns what is stored as bytes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum TextForm {
    /// `bytes`.
    Bytes,
    /// `str`: what is stored is UTF-8.
    Text,
}

impl TextForm {
    /// Returns the form for a flag `text`.
    pub fn of(is_text: bool) -> Self {
        if is_text { Self::Text } else { Self::Bytes }
    }

    /// Returns what is stored as an object.
    ///
    /// # Errors
    /// Fails for bytes that are not UTF-8 where text is expected.
    pub fn object(self, py: Python<'_>, stored: &[u8]) -> PyResult<Py<PyAny>> {
        if self == Self::Bytes {
            return PyBytes::new(py, stored).into_py_any(py);
        }
        match std::str::from_utf8(stored) {
            Ok(text) => PyString::new(py, text).into_py_any(py),
            Err(_) => Err(Raised::Input.new(format!(
                "{} is stored, which is not UTF-8; open the structure without text=True",
                shown(PyBytes::new(py, stored).as_any())
            ))),
        }
    }
}
