//! The Python package `nandex`: the short form of [`nandex::db`] as Python classes.
//!
//! A class holds its structure in a `handle::Handle`, which releases the interpreter's lock around each call,
//! detects closed and inherited structures, and turns a failure into an exception of `error`. The package's
//! Python files, in `python/nandex`, add what is easier to write in Python; `_nandex.pyi` documents all that
//! users see.
#![forbid(unsafe_code)]

mod advise;
mod answers;
mod batch;
mod catalog;
mod counter;
mod database;
mod dedup;
mod digest;
mod entries;
mod error;
mod filter;
mod handle;
mod key_form;
mod kind;
mod lsh;
mod map;
mod number;
mod opening;
mod progress;
mod sketch;
mod stats;
mod table;
mod terms;
mod text_form;
mod tfidf;
mod words;

use pyo3::prelude::*;

/// The extension module; `nandex/__init__.py` exports the part for users.
#[pymodule]
fn _nandex(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add("__version__", env!("CARGO_PKG_VERSION"))?;
    number::register(module)?;
    handle::register(module)?;
    database::register(module)?;
    opening::register(module)?;
    progress::register(module)?;
    advise::register(module)?;
    digest::register(module)?;
    lsh::register(module)?;
    tfidf::register(module)?;
    sketch::register(module)?;
    terms::register(module)
}

/// Returns the package's Python file of what structures share with mappings of Python.
fn views(py: Python<'_>) -> PyResult<Bound<'_, PyModule>> {
    py.import("nandex._views")
}
