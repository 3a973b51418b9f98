//! The structures of a database as a mapping: by name, each opened as the kind that it is.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};

use nandex::Database as Db;
use nandex::db::{MAP, TableOrMap};
use nandex::raw::registry::{self, Family};
use pyo3::prelude::*;

use crate::error::Raised;

/// Returns the Python object of an open structure; none once it is closed.
pub type Again = Box<dyn Fn(Python<'_>) -> Option<PyResult<Py<PyAny>>> + Send + Sync>;

/// The open structures of a file, by name.
#[derive(Default)]
pub struct OpenByName(Mutex<BTreeMap<String, Again>>);

impl OpenByName {
    /// Notes a structure that was opened.
    pub fn note(&self, name: &str, again: Again) {
        let mut open = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        open.insert(name.to_owned(), again);
    }

    /// Returns another object for a structure that is open; none if it is not.
    ///
    /// # Errors
    /// Fails if there is no memory.
    pub fn get(&self, py: Python<'_>, name: &str) -> PyResult<Option<Py<PyAny>>> {
        let open = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        open.get(name).and_then(|again| again(py)).transpose()
    }
}

/// The builder that opens a structure.
pub enum Opener {
    Map,
    /// With the bytes of its keys and values.
    Table(u32, u32),
    Filter,
    Counter,
}

/// The kind of counters in the catalog.
const COUNTING: &str = nandex::counting::KIND;

/// Returns what opens a structure of this name and kind.
///
/// # Errors
/// Fails for a kind that only another module opens, and as the opening of a table does.
pub fn opener(db: &Db, name: &str, kind: &str) -> nandex::Result<Option<Opener>> {
    let family = registry::find(kind).map(|row| &row.family);
    Ok(match family {
        _ if kind == MAP => Some(Opener::Map),
        _ if kind == COUNTING => Some(Opener::Counter),
        Some(Family::Filter(_)) => Some(Opener::Filter),
        Some(Family::Table(_)) => {
            let table: TableOrMap = db.table_or_map(name)?;
            let widths = table.widths();
            table.close()?;
            widths.map(|(key, value)| Opener::Table(key as u32, value as u32))
        }
        _ => None,
    })
}

/// The error of a name that no structure has.
pub fn missing(name: &str, structures: &[(String, String)]) -> PyErr {
    let names: Vec<_> = structures.iter().map(|(name, _)| format!("{name:?}")).collect();
    let found = if names.is_empty() { "nothing".to_owned() } else { names.join(", ") };
    Raised::KeyNotFound.new(format!("the file has no structure named {name:?}; it has {found}"))
}

/// The error of a structure that has no class of its own in Python.
pub fn not_opened(name: &str, kind: &str) -> PyErr {
    Raised::Unsupported.new(format!(
        "{name:?} is a {kind}, which db[{name:?}] does not open; the module that made it does"
    ))
}
