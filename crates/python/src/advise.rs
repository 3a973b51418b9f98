//! The advice of `nandex.advise`: which structure fits given requirements.

use nandex::raw::model::Load;
use nandex::{Advice, Policy, Prediction, Requirements};
use pyo3::prelude::*;
use pyo3::types::PyDict;

use crate::error::raise;
use crate::kind::{KEY_BYTES, VALUE_BYTES};
use crate::number::{Reals, count, integer, optional, real, size};
use crate::words;

/// The most operations a second.
const RATE_MAX: f64 = 1e12;

/// Adds `advise`.
pub fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_function(wrap_pyfunction!(advise, module)?)
}

/// Recommends a structure for a table of `entries` entries before it is made, with reasons and costs.
///
/// Returns a dict: `structure`, `reasons`, the figures of that structure, those of all structures in
/// `candidates`, and in `refused` why the others do not fit. Its `str` is readable text. `update_share`, 0 to
/// 1, is the share of inserts whose key is already present: a table that refuses or grows when it is full is
/// cleaned for these.
///
/// >>> advice = nandex.advise(1_000_000_000, ram="1GiB")
/// >>> advice["structure"], round(advice["ram_bytes_per_entry"])
/// ('slicehash', 1)
#[pyfunction]
#[expect(clippy::too_many_arguments, reason = "keywords in Python")]
#[pyo3(
    signature = (
        entries, *, key_bytes=8, value_bytes=8, ram=None, flash=None, policy=Policy::Fifo,
        inserts_per_s=0.0, lookups_per_s=0.0, miss_share=0.5, update_share=0.0
    ),
    text_signature = "(entries, *, key_bytes=8, value_bytes=8, ram=None, flash=None, policy='fifo', \
                      inserts_per_s=0.0, lookups_per_s=0.0, miss_share=0.5, update_share=0.0)"
)]
fn advise<'py>(
    py: Python<'py>,
    entries: &Bound<'py, PyAny>,
    #[pyo3(from_py_with = key_bytes)] key_bytes: u32,
    #[pyo3(from_py_with = value_bytes)] value_bytes: u32,
    ram: Option<&Bound<'py, PyAny>>,
    flash: Option<&Bound<'py, PyAny>>,
    #[pyo3(from_py_with = policy_of)] policy: Policy,
    #[pyo3(from_py_with = inserts_per_s)] inserts_per_s: f64,
    #[pyo3(from_py_with = lookups_per_s)] lookups_per_s: f64,
    #[pyo3(from_py_with = miss_share)] miss_share: f64,
    #[pyo3(from_py_with = update_share)] update_share: f64,
) -> PyResult<Bound<'py, PyAny>> {
    let entries = count(entries, "entries")?;
    let requirements = Requirements {
        ram_bytes: optional(ram, "ram", size)?,
        flash_bytes: optional(flash, "flash", size)?,
        load: Load { inserts_per_s, lookups_per_s, miss_share, update_share },
        policy,
        ..Requirements::new(entries, key_bytes, value_bytes)
    };
    let advice = py.detach(|| requirements.advise()).map_err(raise)?;
    let dict = dict_of(py, &advice)?;
    py.import("nandex._stats")?.getattr("Advice")?.call1((advice.to_string(), dict))
}

fn policy_of(given: &Bound<'_, PyAny>) -> PyResult<Policy> {
    words::policy(given, "policy")
}

fn key_bytes(given: &Bound<'_, PyAny>) -> PyResult<u32> {
    integer(given, "key_bytes", KEY_BYTES)
}

fn value_bytes(given: &Bound<'_, PyAny>) -> PyResult<u32> {
    integer(given, "value_bytes", VALUE_BYTES)
}

fn inserts_per_s(given: &Bound<'_, PyAny>) -> PyResult<f64> {
    real(given, "inserts_per_s", Reals::Within(0.0..=RATE_MAX))
}

fn lookups_per_s(given: &Bound<'_, PyAny>) -> PyResult<f64> {
    real(given, "lookups_per_s", Reals::Within(0.0..=RATE_MAX))
}

fn miss_share(given: &Bound<'_, PyAny>) -> PyResult<f64> {
    real(given, "miss_share", Reals::Within(0.0..=1.0))
}

fn update_share(given: &Bound<'_, PyAny>) -> PyResult<f64> {
    real(given, "update_share", Reals::Within(0.0..=1.0))
}

fn dict_of<'py>(py: Python<'py>, advice: &Advice) -> PyResult<Bound<'py, PyDict>> {
    let dict = figures(py, advice.chosen())?;
    dict.set_item("structure", advice.row().kind)?;
    dict.set_item("reasons", advice.reasons())?;
    let candidates = PyDict::new(py);
    let refused = PyDict::new(py);
    for candidate in &advice.candidates {
        match &candidate.answer {
            Ok(prediction) => candidates.set_item(candidate.row.kind, figures(py, prediction)?)?,
            Err(error) => refused.set_item(candidate.row.kind, error.to_string())?,
        }
    }
    dict.set_item("candidates", candidates)?;
    dict.set_item("refused", refused)?;
    Ok(dict)
}

fn figures<'py>(py: Python<'py>, it: &Prediction) -> PyResult<Bound<'py, PyDict>> {
    let dict = PyDict::new(py);
    dict.set_item("entries", it.requirements.entries)?;
    dict.set_item("entries_capacity", it.entries_capacity)?;
    dict.set_item("ram_bytes", it.ram_bytes())?;
    dict.set_item("ram_bytes_per_entry", it.ram_bytes_per_entry())?;
    dict.set_item("flash_bytes", it.flash_bytes)?;
    dict.set_item("reads_per_hit", it.costs.reads_per_hit)?;
    dict.set_item("reads_per_miss", it.costs.reads_per_miss)?;
    dict.set_item("hit_ns", it.hit_ns())?;
    dict.set_item("miss_ns", it.miss_ns())?;
    dict.set_item("insert_amortised_ns", it.insert_amortised_ns)?;
    dict.set_item("insert_worst_ns", it.insert_worst_ns)?;
    dict.set_item("write_amplification", it.write_amplification())?;
    dict.set_item("write_amplification_with_log", it.write_amplification_with_log())?;
    dict.set_item("update_read_bytes", it.costs.update_read_bytes())?;
    dict.set_item("update_write_bytes", it.costs.update_write_bytes())?;
    Ok(dict)
}
