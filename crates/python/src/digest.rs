//! Digests of keys of any size, for `nandex.shards`: the first 16 bytes of BLAKE3. They are keys on flash.

use numpy::{IntoPyArray, PyArray1};
use pyo3::prelude::*;

use crate::batch::{Batch, Fits};

/// The length of a digest in bytes.
const DIGEST_BYTES: usize = 16;

/// Registers the function.
pub fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_function(wrap_pyfunction!(digests, module)?)
}

/// Returns the digests of a batch of keys, one after another.
#[pyfunction]
#[pyo3(name = "_digests")]
fn digests<'py>(py: Python<'py>, keys: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyArray1<u8>>> {
    let mut keys = Batch::new(keys, "key", Fits::Any)?;
    let mut digests = Vec::with_capacity(keys.len().unwrap_or(0) * DIGEST_BYTES);
    while let Some(keys) = keys.next_slice()? {
        py.detach(|| {
            for key in keys.all() {
                digests.extend_from_slice(&blake3::hash(key).as_bytes()[..DIGEST_BYTES]);
            }
        });
        py.check_signals()?;
    }
    Ok(digests.into_pyarray(py))
}
