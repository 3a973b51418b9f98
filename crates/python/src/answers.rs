//! The values of many keys of a map.

use numpy::IntoPyArray;
use pyo3::prelude::*;
use pyo3::types::PyList;

use crate::batch::{Asked, Form, helpers};
use crate::text_form::TextForm;

/// The values of some keys.
pub type Values = Vec<Option<Vec<u8>>>;

/// The values of many keys, in the form of the keys: a list, which may become a column, or bytes and offsets for
/// Arrow.
pub enum LargeAnswers<'py> {
    List {
        asked: Asked<'py>,
        form: TextForm,
        list: Bound<'py, PyList>,
        /// The value of an absent key.
        default: Option<Py<PyAny>>,
    },
    Arrow {
        form: TextForm,
        data: Vec<u8>,
        offsets: Vec<i64>,
        found: Vec<bool>,
    },
}

impl<'py> LargeAnswers<'py> {
    /// Creates the answers for keys of this form; an absent key has the default.
    pub fn new(asked: Asked<'py>, form: TextForm, default: Option<Py<PyAny>>) -> Self {
        if asked.0 == Form::Arrow {
            return Self::Arrow { form, data: vec![], offsets: vec![0], found: vec![] };
        }
        let list = PyList::empty(asked.1.py());
        Self::List { asked, form, list, default }
    }

    /// Adds the values of the next keys.
    ///
    /// # Errors
    /// Fails if there is no memory.
    pub fn extend(&mut self, values: Values) -> PyResult<()> {
        match self {
            Self::List { form, list, default, .. } => {
                let py = list.py();
                for value in values {
                    match (value, &*default) {
                        (Some(value), _) => list.append(form.object(py, &value)?)?,
                        (None, Some(default)) => list.append(default)?,
                        (None, None) => list.append(py.None())?,
                    }
                }
            }
            Self::Arrow { data, offsets, found, .. } => {
                for value in values {
                    found.push(value.is_some());
                    data.extend(value.unwrap_or_default());
                    offsets.push(data.len() as i64);
                }
            }
        }
        Ok(())
    }

    /// Returns the values in the form of the keys.
    ///
    /// # Errors
    /// Fails if there is no memory.
    pub fn into_object(self, py: Python<'py>) -> PyResult<Py<PyAny>> {
        match self {
            Self::List { asked: (form @ (Form::Pandas | Form::Polars), given), list, .. } => {
                Ok(helpers(py)?.call_method1("in_form", (form.word(), given, list))?.unbind())
            }
            Self::List { list, .. } => Ok(list.into_any().unbind()),
            Self::Arrow { form, data, offsets, found } => {
                let data = (data.into_pyarray(py), offsets.into_pyarray(py));
                let parts = (data.0, data.1, found.into_pyarray(py), form == TextForm::Text);
                Ok(helpers(py)?.call_method1("spans_answer", parts)?.unbind())
            }
        }
    }
}
