//! Bucket keys of texts and of signatures, for `nandex.ray.near_dup`. They are keys on flash.

use nandex::signature::{Bands, Sketcher};
use nandex_neardup::lsh::BandShape;
use nandex_neardup::{Error, Hashing, MinHashing, NearOptions, Shingles, Shingling};
use numpy::{IntoPyArray, PyArray1, PyReadonlyArray1};
use pyo3::prelude::*;

use crate::batch::{Batch, Fits};
use crate::error::{Raised, raise};

/// Adds the functions.
pub fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_function(wrap_pyfunction!(text_keys, module)?)?;
    module.add_function(wrap_pyfunction!(signature_keys, module)?)
}

/// The bucket keys of texts, a row for each: those of a MinHash of its shingles, by `bands`, a count and the values of
/// each. A text without words has the key of its bytes in all bands.
#[pyfunction]
#[pyo3(name = "_text_keys", signature = (texts, *, num_perm, bands, shingle))]
fn text_keys<'py>(
    py: Python<'py>,
    texts: &Bound<'py, PyAny>,
    num_perm: u32,
    bands: (u32, u32),
    shingle: usize,
) -> PyResult<Bound<'py, PyArray1<u64>>> {
    let mut texts = Batch::new(texts, "text", Fits::Any)?;
    let mut hasher = TextHasher::new(num_perm, bands, shingle)?;
    let mut keys = Vec::new();
    while let Some(texts) = texts.next_slice()? {
        py.detach(|| texts.all().into_iter().try_for_each(|text| hasher.add_keys(text, &mut keys)))
            .map_err(raise)?;
        py.check_signals()?;
    }
    Ok(keys.into_pyarray(py))
}

/// What computes the bucket keys of one text after another.
struct TextHasher {
    shingles: Shingles,
    hashing: MinHashing,
    sketcher: Sketcher,
    hashes: Vec<u64>,
    bands: usize,
}

impl TextHasher {
    fn new(permutations: u32, (count, rows): (u32, u32), length: usize) -> PyResult<Self> {
        let shingling = Shingling { length, ..Shingling::default() };
        let bands = Some(Bands { count, rows });
        let hashing = MinHashing { permutations, bands, ..MinHashing::default() };
        let options = NearOptions { shingling, hashing: Hashing::MinHash(hashing) };
        let sketcher = options.family().map_err(explain)?.sketcher().map_err(raise)?;
        let (shingles, hashes) = (Shingles::new(shingling), Vec::new());
        Ok(Self { shingles, hashing, sketcher, hashes, bands: count as usize })
    }

    fn add_keys(&mut self, text: &[u8], keys: &mut Vec<u64>) -> nandex::Result<()> {
        let Self { shingles, hashing, sketcher, hashes, .. } = self;
        // Bytes that are no UTF-8 separate words, as punctuation does.
        shingles.take(&String::from_utf8_lossy(text));
        shingles.hash(hashing.scheme, hashes);
        if hashes.is_empty() {
            let key = hashing.scheme.hash(text);
            keys.extend(std::iter::repeat_n(key, self.bands));
            return Ok(());
        }
        sketcher.bucket_keys(&sketcher.of_hashes(hashes)?, keys)
    }
}

fn explain(error: Error) -> PyErr {
    match error {
        Error::Index(error) => raise(error),
        error => Raised::Config.new(error.to_string()),
    }
}

/// The bucket keys of signatures that are one after the other, a row for each. The shape is the numbers of a signature,
/// those of a band, and how many bands there are.
#[pyfunction]
#[pyo3(name = "_signature_keys")]
fn signature_keys<'py>(
    py: Python<'py>,
    values: PyReadonlyArray1<'py, u64>,
    shape: (usize, usize, usize),
) -> PyResult<Bound<'py, PyArray1<u64>>> {
    let shape = BandShape { row_values: shape.0, band_values: shape.1, bands: shape.2 };
    if !shape.is_possible() {
        return Err(Raised::Config.new(format!("{shape:?}: give bands that are in a signature")));
    }
    let values = values.as_slice().map_err(|error| Raised::Input.new(error.to_string()))?;
    let mut keys = Vec::new();
    py.detach(|| shape.add_keys(values, &mut keys));
    Ok(keys.into_pyarray(py))
}
