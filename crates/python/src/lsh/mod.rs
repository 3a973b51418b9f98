//! The index below `nandex.datasketch.MinHashLSH`: signatures come in as rows of numbers, and go into buckets on flash.
//!
//! ```text
//!   hashvalues, a row a document --bands--> a bucket key of 8 bytes for each band --> LshIndex
//!   key: str, bytes, int, pickled ----------------------------------------------> its name
//! ```

mod generation;
mod index;
mod name;
mod record;
mod state;

use std::path::PathBuf;
use std::sync::{Arc, Weak};

use nandex::signature::{Bands, ErrorWeights};
use nandex::size;
use nandex::store::hash::{HashKind, KeyHasher};
use numpy::{IntoPyArray, PyArray1, PyReadonlyArray1};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict, PyList};

use crate::amount::whole;
use crate::batch::SLICE;
use crate::error::{Raised, raise};
use crate::handle::{Closing, Handle, note_open};
use index::{Inserted, LshIndex, LshOptions, Repeats};
use name::Pickling;
use record::Record;

/// What makes the bucket key of a band: XXH3 with the key 0, so that indexes can be merged. It is on flash.
const BAND_HASH: KeyHasher = KeyHasher::new(HashKind::Xxh3, 0);

/// Adds the index.
pub fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<Lsh>()?;
    module.add_function(wrap_pyfunction!(lsh_bands, module)?)?;
    module.add_function(wrap_pyfunction!(lsh_hashes, module)?)
}

/// The number of bands and the values in each that are best for a threshold: those of datasketch's `MinHashLSH`.
#[pyfunction]
#[pyo3(name = "_lsh_bands")]
fn lsh_bands(
    py: Python<'_>,
    threshold: f64,
    num_perm: u32,
    weights: (f64, f64),
) -> PyResult<(u32, u32)> {
    let (false_positives, false_negatives) = weights;
    let weights = ErrorWeights { false_positives, false_negatives };
    let bands = py.detach(|| Bands::optimal(threshold, num_perm, weights)).map_err(raise)?;
    Ok((bands.count, bands.rows))
}

/// A bucket key for each band of each signature. The shape is the numbers of a signature, those of a band, and how many
/// bands there are.
#[pyfunction]
#[pyo3(name = "_lsh_hashes")]
fn lsh_hashes<'py>(
    py: Python<'py>,
    values: PyReadonlyArray1<'py, u64>,
    shape: (usize, usize, usize),
) -> PyResult<Bound<'py, PyArray1<u64>>> {
    let (row_values, band_values, bands) = shape;
    let numbers = numbers(&values)?;
    if row_values == 0 || band_values == 0 || band_values.saturating_mul(bands) > row_values {
        return Err(Raised::Input.new(format!(
            "{bands} bands of {band_values} numbers in signatures of {row_values}: give fewer"
        )));
    }
    let keys = py.detach(|| {
        let mut keys = Vec::with_capacity(numbers.len() / row_values * bands);
        let mut bytes = Vec::with_capacity(8 * band_values);
        for row in numbers.chunks_exact(row_values) {
            for band in row.chunks_exact(band_values).take(bands) {
                bytes.clear();
                bytes.extend(band.iter().flat_map(|value| value.to_le_bytes()));
                keys.push(BAND_HASH.hash(&bytes).place);
            }
        }
        keys
    });
    Ok(keys.into_pyarray(py))
}

fn numbers<'a>(array: &'a PyReadonlyArray1<'_, u64>) -> PyResult<&'a [u64]> {
    array.as_slice().map_err(|error| Raised::Input.new(error.to_string()))
}

impl Closing for Handle<LshIndex> {
    fn close_open(&self, py: Python<'_>) -> PyResult<()> {
        if self.is_inherited() { Ok(()) } else { self.close(py, LshIndex::close) }
    }
}

/// An index of signatures by their bands. `nandex.datasketch.MinHashLSH` is the way to use it.
#[pyclass(module = "nandex._nandex", name = "_Lsh", frozen, weakref)]
pub struct Lsh {
    handle: Arc<Handle<LshIndex>>,
    pickling: Option<Pickling>,
    tables: usize,
}

/// Where an insertion has stopped: the place of the key that was there already.
type Stopped = Option<usize>;

/// A number to go on from, keys, and the bucket keys of all, a row for each.
type Scanned<'py> = (u64, Bound<'py, PyList>, Bound<'py, PyArray1<u64>>);

#[pymethods]
impl Lsh {
    /// Opens the index at a path, or makes it; without a path it is in RAM.
    #[new]
    #[pyo3(signature = (path, *, ram, documents, tables, about, pickles))]
    fn new(
        py: Python<'_>,
        path: Option<PathBuf>,
        ram: &Bound<'_, PyAny>,
        documents: &Bound<'_, PyAny>,
        tables: u32,
        about: String,
        pickles: bool,
    ) -> PyResult<Self> {
        let ram_bytes = whole(ram, "ram", size::parse)?;
        let documents = whole(documents, "documents", size::parse_count)?;
        let options = LshOptions { ram_bytes, documents, tables, about };
        let what = match &path {
            Some(path) => format!("the index {}", path.display()),
            None => "the index in RAM".to_owned(),
        };
        let opened = py.detach(|| LshIndex::create_or_open(path.as_deref(), options));
        let handle = Arc::new(Handle::new(what, opened.map_err(raise)?));
        let weak: Weak<dyn Closing> = Arc::downgrade(&handle) as Weak<dyn Closing>;
        note_open(weak);
        let pickling = pickles.then(|| Pickling::new(py)).transpose()?;
        Ok(Self { handle, pickling, tables: tables as usize })
    }

    /// Adds documents by their bucket keys. Returns the place of the first whose key was there; those before it are in.
    fn insert_many(
        &self,
        py: Python<'_>,
        keys: &Bound<'_, PyList>,
        hashes: PyReadonlyArray1<'_, u64>,
        check: bool,
    ) -> PyResult<Stopped> {
        let rows = self.rows(&hashes, keys.len())?;
        let names = self.names(keys)?;
        let repeats = if check { Repeats::Refuse } else { Repeats::Add };
        let mut done = 0;
        for (names, rows) in names.chunks(SLICE).zip(rows.chunks(SLICE * self.tables)) {
            let inserted = self.handle.call(py, |index| {
                let names: Vec<&[u8]> = names.iter().map(Vec::as_slice).collect();
                index.insert_many(&names, rows, repeats)
            })?;
            if let Inserted::Before(place) = inserted {
                return Ok(Some(done + place));
            }
            done += names.len();
            py.check_signals()?;
        }
        Ok(None)
    }

    /// The keys that share a bucket with each row of bucket keys.
    fn query_many<'py>(
        &self,
        py: Python<'py>,
        hashes: PyReadonlyArray1<'py, u64>,
    ) -> PyResult<Bound<'py, PyList>> {
        let all = PyList::empty(py);
        let hashes = self.rows(&hashes, hashes.len()? / self.tables)?;
        for rows in hashes.chunks(SLICE * self.tables) {
            let found = self.handle.call(py, |index| index.query_many(rows))?;
            for row in found {
                let keys = row.iter().map(|name| self.key(py, name));
                all.append(PyList::new(py, keys.collect::<PyResult<Vec<_>>>()?)?)?;
            }
            py.check_signals()?;
        }
        Ok(all)
    }

    /// The bucket keys of each key's document, as bytes; none where the key is not there.
    fn hashes_many<'py>(
        &self,
        py: Python<'py>,
        keys: &Bound<'_, PyList>,
    ) -> PyResult<Vec<Option<Vec<Bound<'py, PyBytes>>>>> {
        let bytes = |record: Record| {
            record.keys.iter().map(|key| PyBytes::new(py, &key.to_be_bytes())).collect()
        };
        Ok(self.get_many(py, keys)?.into_iter().map(|it| it.map(bytes)).collect())
    }

    /// Whether each key is there.
    fn contains_many<'py>(
        &self,
        py: Python<'py>,
        keys: &Bound<'_, PyList>,
    ) -> PyResult<Bound<'py, PyArray1<bool>>> {
        let found: Vec<bool> = self.get_many(py, keys)?.iter().map(Option::is_some).collect();
        Ok(found.into_pyarray(py))
    }

    /// The keys in a bucket of a table.
    fn bucket(&self, py: Python<'_>, table: usize, hash: [u8; 8]) -> PyResult<Vec<Py<PyAny>>> {
        let key = u64::from_be_bytes(hash);
        let names = self.handle.call(py, |index| index.bucket(table, key))?;
        names.iter().map(|name| self.key(py, name)).collect()
    }

    /// Takes out a key; false if it is not there.
    fn remove(&self, py: Python<'_>, key: &Bound<'_, PyAny>) -> PyResult<bool> {
        let name = name::encode(key, self.pickling.as_ref())?;
        self.handle.call(py, |index| index.remove(&name))
    }

    /// Some documents from a number on, and where to go on; no keys at the end.
    fn scan<'py>(&self, py: Python<'py>, start: u64) -> PyResult<Scanned<'py>> {
        let (next, records) = self.handle.call(py, |index| index.scan(start))?;
        let keys = records.iter().map(|(_, record)| self.key(py, &record.name));
        let keys = PyList::new(py, keys.collect::<PyResult<Vec<_>>>()?)?;
        let hashes: Vec<u64> = records.into_iter().flat_map(|(_, record)| record.keys).collect();
        py.check_signals()?;
        Ok((next, keys, hashes.into_pyarray(py)))
    }

    /// How many keys there are.
    fn __len__(&self, py: Python<'_>) -> PyResult<usize> {
        let documents = self.handle.call(py, |index| Ok(index.documents()))?;
        Ok(usize::try_from(documents).unwrap_or(usize::MAX))
    }

    /// Its figures.
    fn stats<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let figures = |index: &LshIndex| Ok((index.documents(), index.sizes(), index.dropped()));
        let (documents, (ram_bytes, flash_bytes, generations), dropped) =
            self.handle.call(py, figures)?;
        let dict = PyDict::new(py);
        dict.set_item("documents", documents)?;
        dict.set_item("ram_bytes", ram_bytes)?;
        dict.set_item("flash_bytes", flash_bytes)?;
        dict.set_item("generations", generations)?;
        dict.set_item("dropped", dropped)?;
        Ok(dict)
    }

    /// Makes everything durable.
    fn sync(&self, py: Python<'_>) -> PyResult<()> {
        self.handle.call(py, LshIndex::sync)
    }

    /// Makes everything durable and closes the file.
    fn close(&self, py: Python<'_>) -> PyResult<()> {
        self.handle.close(py, LshIndex::close)
    }

    #[getter]
    fn closed(&self) -> bool {
        self.handle.is_closed()
    }
}

impl Lsh {
    fn names(&self, keys: &Bound<'_, PyList>) -> PyResult<Vec<Vec<u8>>> {
        keys.iter().map(|key| name::encode(&key, self.pickling.as_ref())).collect()
    }

    fn get_many(&self, py: Python<'_>, keys: &Bound<'_, PyList>) -> PyResult<Vec<Option<Record>>> {
        let names = self.names(keys)?;
        let names: Vec<&[u8]> = names.iter().map(Vec::as_slice).collect();
        self.handle.call(py, |index| index.get_many(&names))
    }

    fn key(&self, py: Python<'_>, name: &[u8]) -> PyResult<Py<PyAny>> {
        name::decode(py, name, self.pickling.as_ref())
    }

    /// The bucket keys of an array that has a row for each of that many documents.
    fn rows<'a>(&self, array: &'a PyReadonlyArray1<'_, u64>, count: usize) -> PyResult<&'a [u64]> {
        let (keys, tables) = (numbers(array)?, self.tables);
        if keys.len() == count * tables {
            return Ok(keys);
        }
        Err(Raised::Input.new(format!(
            "{} bucket keys for {count} documents: give {tables} for each",
            keys.len()
        )))
    }
}
