//! Bucket keys of texts and of signatures, for `nandex.ray.near_dup`. They are keys on flash.

use nandex::raw::signature::{Bands, PERMUTATIONS_MAX, Sketcher};
use nandex_neardup::lsh::BandShape;
use nandex_neardup::{
    Error, Hashing, MinHashing, NearOptions, SHINGLE_LENGTH_MAX, Shingles, Shingling,
};
use numpy::{IntoPyArray, PyArray1, PyReadonlyArray1};
use pyo3::prelude::*;

use crate::batch::{Batch, Fits};
use crate::error::{Raised, raise};
use crate::number::integer;

/// The maximum number of values in a signature.
pub const VALUES_MAX: usize = 1 << 20;

type Three<'py> = (Bound<'py, PyAny>, Bound<'py, PyAny>, Bound<'py, PyAny>);

/// Registers the functions.
pub fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_function(wrap_pyfunction!(text_keys, module)?)?;
    module.add_function(wrap_pyfunction!(signature_keys, module)?)
}

/// Returns the bucket keys of texts, one row each: those of a MinHash of its shingles, by `bands`, a number
/// of bands and the values of each. A text without words has the key of its bytes in all bands.
#[pyfunction]
#[pyo3(name = "_text_keys", signature = (texts, *, num_perm, bands, shingle))]
fn text_keys<'py>(
    py: Python<'py>,
    texts: &Bound<'py, PyAny>,
    #[pyo3(from_py_with = num_perm_of)] num_perm: u32,
    bands: (Bound<'py, PyAny>, Bound<'py, PyAny>),
    #[pyo3(from_py_with = shingle_of)] shingle: usize,
) -> PyResult<Bound<'py, PyArray1<u64>>> {
    let mut texts = Batch::new(texts, "text", Fits::Any)?;
    let number = |given| integer(given, "params", 1..=PERMUTATIONS_MAX);
    let bands = (number(&bands.0)?, number(&bands.1)?);
    let mut hasher = TextHasher::new(num_perm, bands, shingle)?;
    let mut keys = Vec::new();
    while let Some(texts) = texts.next_slice()? {
        py.detach(|| texts.all().into_iter().try_for_each(|text| hasher.add_keys(text, &mut keys)))
            .map_err(raise)?;
        py.check_signals()?;
    }
    Ok(keys.into_pyarray(py))
}

/// Reads the number of values of a signature.
///
/// # Errors
/// Fails for another type, and for a number that no signature has.
pub fn num_perm_of(given: &Bound<'_, PyAny>) -> PyResult<u32> {
    integer(given, "num_perm", 1..=PERMUTATIONS_MAX)
}

fn shingle_of(given: &Bound<'_, PyAny>) -> PyResult<usize> {
    integer(given, "shingle", 1..=SHINGLE_LENGTH_MAX)
}

/// Reads the number of values of a signature, the values of a band, and the number of bands.
///
/// # Errors
/// Fails for anything but such numbers, and for bands that are larger than a signature.
pub fn band_shape(given: &Bound<'_, PyAny>) -> PyResult<BandShape> {
    let (row_values, band_values, bands): Three<'_> = given.extract()?;
    let number = |given: Bound<'_, PyAny>| integer(&given, "shape", 1..=VALUES_MAX);
    let (row_values, band_values) = (number(row_values)?, number(band_values)?);
    let shape = BandShape { row_values, band_values, bands: number(bands)? };
    if shape.is_possible() {
        return Ok(shape);
    }
    Err(Raised::Config.new(format!("{shape:?}: give bands that are in a signature")))
}

/// Computes the bucket keys of one text after another.
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
        // Invalid UTF-8 separates words, as punctuation does.
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

/// Returns the bucket keys of consecutive signatures, one row each. The shape is the number of values of a
/// signature, the values of a band, and the number of bands.
#[pyfunction]
#[pyo3(name = "_signature_keys")]
fn signature_keys<'py>(
    py: Python<'py>,
    values: PyReadonlyArray1<'py, u64>,
    #[pyo3(from_py_with = band_shape)] shape: BandShape,
) -> PyResult<Bound<'py, PyArray1<u64>>> {
    let values = values.as_slice().map_err(|error| Raised::Input.new(error.to_string()))?;
    let mut keys = Vec::new();
    py.detach(|| shape.add_keys(values, &mut keys));
    Ok(keys.into_pyarray(py))
}
