//! `nandex_neardup`'s index of bucket keys below `nandex.datasketch.MinHashLSH`: signatures come in as arrays, names as
//! Python's objects.
//!
//! Single calls take a MinHash whose scheme is the index's and whose hash values are a numpy array of a usual
//! type. For others they return None, and the Python side makes an array.

mod name;

use std::path::PathBuf;
use std::sync::{Arc, Weak};

use nandex::raw::signature::{Bands, ErrorWeights};
use nandex_neardup::lsh::{BandShape, Found, Inserted, LshIndex, LshOptions, Record, Repeats};
use numpy::{IntoPyArray, PyArray1, PyArrayMethods, PyReadonlyArray1};
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict, PyList};

use crate::batch::SLICE;
use crate::error::{Raised, raise};
use crate::handle::{Closing, Handle, note_open};
use crate::number::{Reals, count, integer, real, size};
use crate::sketch::{VALUES_MAX, band_shape, num_perm_of};
use name::Pickling;

/// Registers the index.
pub fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<Lsh>()?;
    module.add_function(wrap_pyfunction!(lsh_bands, module)?)
}

/// Returns the number of bands, and of values in each, that are best for a threshold: those of datasketch's
/// `MinHashLSH`.
#[pyfunction]
#[pyo3(name = "_lsh_bands")]
fn lsh_bands(
    py: Python<'_>,
    threshold: &Bound<'_, PyAny>,
    #[pyo3(from_py_with = num_perm_of)] num_perm: u32,
    weights: (Bound<'_, PyAny>, Bound<'_, PyAny>),
) -> PyResult<(u32, u32)> {
    let share = |given: &Bound<'_, PyAny>, name| real(given, name, Reals::Within(0.0..=1.0));
    let threshold = share(threshold, "threshold")?;
    let false_positives = share(&weights.0, "weights")?;
    let false_negatives = share(&weights.1, "weights")?;
    let weights = ErrorWeights { false_positives, false_negatives };
    let bands = py.detach(|| Bands::optimal(threshold, num_perm, weights)).map_err(raise)?;
    Ok((bands.count, bands.rows))
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
    shape: BandShape,
}

/// The position of the key at which an insertion stopped because it was already present.
type Stopped = Option<usize>;

/// The number to continue from, keys, and the bucket keys of all, one row each.
type Scanned<'py> = (u64, Bound<'py, PyList>, Bound<'py, PyArray1<u64>>);

#[pymethods]
impl Lsh {
    /// Opens the index of a file, or makes it; without a path, in memory. The shape is the number of values
    /// of a signature, the values of a band, and the number of bands.
    #[new]
    #[pyo3(signature = (path, *, ram, documents, shape, about, pickles))]
    fn new(
        py: Python<'_>,
        path: Option<PathBuf>,
        ram: &Bound<'_, PyAny>,
        documents: &Bound<'_, PyAny>,
        #[pyo3(from_py_with = band_shape)] shape: BandShape,
        about: String,
        pickles: bool,
    ) -> PyResult<Self> {
        let tables = u32::try_from(shape.bands).unwrap_or(u32::MAX);
        let (ram_bytes, documents) = (size(ram, "ram")?, count(documents, "documents")?);
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
        Ok(Self { handle, pickling, shape })
    }

    /// The scheme of the signatures under datasketch's name, if it is known.
    #[getter]
    fn scheme(&self, py: Python<'_>) -> PyResult<Option<String>> {
        self.handle.call(py, |index| Ok(index.scheme()))
    }

    /// Stores the scheme permanently.
    fn set_scheme(&self, py: Python<'_>, scheme: &str) -> PyResult<()> {
        self.handle.call(py, |index| index.set_scheme(scheme))
    }

    /// Adds a document by its sketch. Returns true if it was added, false if its key was already present, and
    /// none if the sketch is not of the usual kind, or of an unknown scheme.
    fn insert(
        &self,
        py: Python<'_>,
        key: &Bound<'_, PyAny>,
        sketch: &Bound<'_, PyAny>,
        scheme: &Bound<'_, PyAny>,
        check: bool,
    ) -> PyResult<Option<bool>> {
        let mut hashes = Vec::new();
        if !has_scheme(sketch, scheme, false)? || !self.add_hashes_of(sketch, &mut hashes)? {
            return Ok(None);
        }
        let name = name::encode(key, self.pickling.as_ref())?;
        let repeats = repeats(check);
        let inserted =
            self.handle.call(py, |index| index.insert_many(&[&name], &hashes, repeats))?;
        Ok(Some(inserted == Inserted::All))
    }

    /// Returns the keys that share a bucket with a sketch; none if it is not of the usual kind.
    fn query<'py>(
        &self,
        py: Python<'py>,
        sketch: &Bound<'py, PyAny>,
        scheme: &Bound<'py, PyAny>,
    ) -> PyResult<Option<Bound<'py, PyList>>> {
        let mut hashes = Vec::new();
        if !has_scheme(sketch, scheme, true)? || !self.add_hashes_of(sketch, &mut hashes)? {
            return Ok(None);
        }
        let found = self.handle.call(py, |index| index.query_many(&hashes))?;
        Ok(Some(self.keys(py, &found, 0)?))
    }

    /// Returns the bucket keys of sketches, one row each; none if one is not of the usual kind.
    fn hashes_of<'py>(
        &self,
        py: Python<'py>,
        sketches: &Bound<'py, PyList>,
        scheme: &Bound<'py, PyAny>,
    ) -> PyResult<Option<Bound<'py, PyArray1<u64>>>> {
        let mut hashes = Vec::with_capacity(sketches.len() * self.shape.bands);
        for sketch in sketches.iter() {
            if !has_scheme(&sketch, scheme, false)? || !self.add_hashes_of(&sketch, &mut hashes)? {
                return Ok(None);
            }
        }
        Ok(Some(hashes.into_pyarray(py)))
    }

    /// Returns the bucket keys of consecutive signatures of 4-byte or 8-byte numbers.
    fn hashes_in<'py>(
        &self,
        py: Python<'py>,
        values: &Bound<'py, PyAny>,
        row_values: &Bound<'py, PyAny>,
    ) -> PyResult<Bound<'py, PyArray1<u64>>> {
        let row_values = integer(row_values, "row_values", 1..=VALUES_MAX)?;
        let width = row_values / self.shape.row_values;
        let Self { shape: BandShape { band_values, bands, .. }, .. } = *self;
        let shape = BandShape { row_values, band_values: band_values * width, bands };
        if !shape.is_possible() {
            return Err(
                Raised::Input.new(format!("signatures of {row_values} numbers are too short"))
            );
        }
        let mut keys = Vec::new();
        if let Ok(narrow) = values.cast::<PyArray1<u32>>() {
            let narrow = narrow.try_readonly()?;
            let narrow = narrow.as_slice()?;
            py.detach(|| shape.add_keys(narrow, &mut keys));
        } else {
            let wide: PyReadonlyArray1<'_, u64> = values.extract()?;
            let wide = numbers(&wide)?;
            py.detach(|| shape.add_keys(wide, &mut keys));
        }
        Ok(keys.into_pyarray(py))
    }

    /// Adds documents by their bucket keys. Returns the position of the first whose key was present; those
    /// before it are added.
    fn insert_many(
        &self,
        py: Python<'_>,
        keys: &Bound<'_, PyList>,
        hashes: PyReadonlyArray1<'_, u64>,
        check: bool,
    ) -> PyResult<Stopped> {
        let rows = self.rows(&hashes, keys.len())?;
        let names = self.names(keys)?;
        let repeats = repeats(check);
        let mut done = 0;
        for (names, rows) in names.chunks(SLICE).zip(rows.chunks(SLICE * self.shape.bands)) {
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

    /// Returns the keys that share a bucket with each row of bucket keys.
    fn query_many<'py>(
        &self,
        py: Python<'py>,
        hashes: PyReadonlyArray1<'py, u64>,
    ) -> PyResult<Bound<'py, PyList>> {
        let all = PyList::empty(py);
        let hashes = self.rows(&hashes, hashes.len()? / self.shape.bands)?;
        for rows in hashes.chunks(SLICE * self.shape.bands) {
            let found = self.handle.call(py, |index| index.query_many(rows))?;
            for row in 0..found.rows() {
                all.append(self.keys(py, &found, row)?)?;
            }
            py.check_signals()?;
        }
        Ok(all)
    }

    /// Returns the bucket keys of each key's document, as bytes; none for an absent key.
    fn hashes_many<'py>(
        &self,
        py: Python<'py>,
        keys: &Bound<'_, PyList>,
    ) -> PyResult<Vec<Option<Vec<Bound<'py, PyBytes>>>>> {
        let bytes = |record: Record| {
            record.keys.iter().map(|key| PyBytes::new(py, &key.to_be_bytes())).collect()
        };
        let names = self.names(keys)?;
        let names: Vec<&[u8]> = names.iter().map(Vec::as_slice).collect();
        let found = self.handle.call(py, |index| index.get_many(&names))?;
        Ok(found.into_iter().map(|it| it.map(bytes)).collect())
    }

    /// Returns whether each key is present.
    fn contains_many<'py>(
        &self,
        py: Python<'py>,
        keys: &Bound<'_, PyList>,
    ) -> PyResult<Bound<'py, PyArray1<bool>>> {
        self.tell_each(py, keys, |index, names| index.contains_many(names))
    }

    /// Returns the keys in a bucket of a table.
    fn bucket(
        &self,
        py: Python<'_>,
        table: &Bound<'_, PyAny>,
        hash: [u8; 8],
    ) -> PyResult<Vec<Py<PyAny>>> {
        let table = integer(table, "table", 0..=self.shape.bands - 1)?;
        let key = u64::from_be_bytes(hash);
        let names = self.handle.call(py, |index| index.bucket(table, key))?;
        names.iter().map(|name| self.key(py, name)).collect()
    }

    /// Removes a key; returns false if it is not present.
    fn remove(&self, py: Python<'_>, key: &Bound<'_, PyAny>) -> PyResult<bool> {
        let name = name::encode(key, self.pickling.as_ref())?;
        self.handle.call(py, |index| index.remove(&name))
    }

    /// Removes keys, and returns for each whether it was present; of equal keys only the first was.
    fn remove_many<'py>(
        &self,
        py: Python<'py>,
        keys: &Bound<'_, PyList>,
    ) -> PyResult<Bound<'py, PyArray1<bool>>> {
        self.tell_each(py, keys, |index, names| index.remove_many(names))
    }

    /// Returns some documents from a number on, and the number to continue from; no keys at the end.
    fn scan<'py>(&self, py: Python<'py>, start: &Bound<'py, PyAny>) -> PyResult<Scanned<'py>> {
        let start = integer(start, "start", 0..=u64::MAX)?;
        let (next, records) = self.handle.call(py, |index| index.scan(start))?;
        let keys = records.iter().map(|record| self.key(py, &record.name));
        let keys = PyList::new(py, keys.collect::<PyResult<Vec<_>>>()?)?;
        let hashes: Vec<u64> = records.into_iter().flat_map(|record| record.keys).collect();
        py.check_signals()?;
        Ok((next, keys, hashes.into_pyarray(py)))
    }

    /// Returns the number of keys.
    fn __len__(&self, py: Python<'_>) -> PyResult<usize> {
        let documents = self.handle.call(py, |index| Ok(index.documents()))?;
        Ok(usize::try_from(documents).unwrap_or(usize::MAX))
    }

    /// Returns the figures of the index.
    fn stats<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let stats = self.handle.call(py, |index| Ok(index.stats()))?;
        let dict = PyDict::new(py);
        dict.set_item("documents", stats.documents)?;
        dict.set_item("ram_bytes", stats.ram_bytes)?;
        dict.set_item("flash_bytes", stats.flash_bytes)?;
        dict.set_item("generations", stats.generations)?;
        dict.set_item("dropped", stats.dropped)?;
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

    /// Returns, for each key, the answer of one call for all names.
    fn tell_each<'py>(
        &self,
        py: Python<'py>,
        keys: &Bound<'_, PyList>,
        tell: impl FnOnce(&LshIndex, &[&[u8]]) -> nandex::Result<Vec<bool>> + Send,
    ) -> PyResult<Bound<'py, PyArray1<bool>>> {
        let names = self.names(keys)?;
        let names: Vec<&[u8]> = names.iter().map(Vec::as_slice).collect();
        let told = self.handle.call(py, |index| tell(index, &names))?;
        Ok(told.into_pyarray(py))
    }

    fn key(&self, py: Python<'_>, name: &[u8]) -> PyResult<Py<PyAny>> {
        name::decode(py, name, self.pickling.as_ref())
    }

    /// Returns the keys of a row of results.
    fn keys<'py>(
        &self,
        py: Python<'py>,
        found: &Found,
        row: usize,
    ) -> PyResult<Bound<'py, PyList>> {
        let keys = found.row(row).map(|name| self.key(py, name));
        PyList::new(py, keys.collect::<PyResult<Vec<_>>>()?)
    }

    /// Adds the bucket keys of a sketch, if its hash values are an array of the usual kind.
    fn add_hashes_of(&self, sketch: &Bound<'_, PyAny>, hashes: &mut Vec<u64>) -> PyResult<bool> {
        let values = sketch.getattr(intern!(sketch.py(), "hashvalues"))?;
        if let Ok(narrow) = values.cast::<PyArray1<u32>>() {
            return Ok(self.add_hashes(narrow, hashes));
        }
        Ok(values.cast::<PyArray1<u64>>().is_ok_and(|wide| self.add_hashes(wide, hashes)))
    }

    fn add_hashes<N: numpy::Element + Copy + Into<u64>>(
        &self,
        values: &Bound<'_, PyArray1<N>>,
        hashes: &mut Vec<u64>,
    ) -> bool {
        let values = values.to_vec();
        let values = values.ok().filter(|values| values.len() == self.shape.row_values);
        values.is_some_and(|values| {
            self.shape.add_keys(&values, hashes);
            true
        })
    }

    /// Returns the bucket keys of an array that has a row for each of `count` documents.
    fn rows<'a>(&self, array: &'a PyReadonlyArray1<'_, u64>, count: usize) -> PyResult<&'a [u64]> {
        let (keys, bands) = (numbers(array)?, self.shape.bands);
        if keys.len() == count * bands {
            return Ok(keys);
        }
        Err(Raised::Input.new(format!(
            "{} bucket keys for {count} documents: give {bands} for each",
            keys.len()
        )))
    }
}

/// Returns whether a sketch has this scheme or states none. `if_unknown` is the answer where the index's
/// scheme is unknown.
fn has_scheme(
    sketch: &Bound<'_, PyAny>,
    scheme: &Bound<'_, PyAny>,
    if_unknown: bool,
) -> PyResult<bool> {
    match sketch.getattr_opt(intern!(sketch.py(), "scheme"))? {
        Some(own) if own.is(scheme) || own.is_none() => Ok(true),
        Some(_) if scheme.is_none() => Ok(if_unknown),
        Some(own) => own.eq(scheme),
        None => Ok(true),
    }
}

const fn repeats(check: bool) -> Repeats {
    if check { Repeats::Refuse } else { Repeats::Add }
}
