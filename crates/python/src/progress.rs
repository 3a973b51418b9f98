//! Reports of the progress of long calls, and lines of the logger `nandex`. `nandex/_progress.py` has the part for
//! users.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};

use pyo3::prelude::*;

/// The function that reports are passed to, if there is one.
static REPORT: Mutex<Option<Py<PyAny>>> = Mutex::new(None);

/// Whether there is one: without it a call costs nothing more.
static IS_ON: AtomicBool = AtomicBool::new(false);

/// Registers the function.
pub fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_function(wrap_pyfunction!(report_to, module)?)
}

/// Sets the function that reports are passed to, and returns the one before.
#[pyfunction]
#[pyo3(name = "_report_to")]
fn report_to(function: Option<Py<PyAny>>) -> Option<Py<PyAny>> {
    let mut report = REPORT.lock().unwrap_or_else(PoisonError::into_inner);
    IS_ON.store(function.is_some(), Ordering::Relaxed);
    std::mem::replace(&mut report, function)
}

/// Returns whether reports are wanted.
pub fn is_on() -> bool {
    IS_ON.load(Ordering::Relaxed)
}

/// Reports how many of `what` are done, and how many there are if that is known.
///
/// # Errors
/// Fails as the function does.
pub fn report(py: Python<'_>, what: &str, done: usize, total: Option<usize>) -> PyResult<()> {
    if !is_on() {
        return Ok(());
    }
    let function = {
        let report = REPORT.lock().unwrap_or_else(PoisonError::into_inner);
        report.as_ref().map(|function| function.clone_ref(py))
    };
    function.map_or(Ok(()), |function| function.call1(py, (what, done, total)).map(|_| ()))
}

/// Writes a line to the logger `nandex`.
///
/// # Errors
/// Fails as a handler or filter of the program does.
pub fn log(py: Python<'_>, line: &str) -> PyResult<()> {
    let logger = py.import("logging")?.call_method1("getLogger", ("nandex",))?;
    logger.call_method1("info", ("%s", line)).map(|_| ())
}
