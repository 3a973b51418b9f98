//! Keys and values from Python as slices of bytes: single ones, and batches from lists, numpy arrays, Arrow
//! arrays, and columns of pandas and polars. The bytes of most arrays are not copied; a batch is
//! processed in slices, so that signals are handled between them.

use std::borrow::Cow;

use numpy::PyReadonlyArray1;
use pyo3::prelude::*;
use pyo3::pybacked::{PyBackedBytes, PyBackedStr};
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyByteArray, PyBytes, PyIterator, PyList, PyModule, PyString, PyTuple};

use crate::error::Raised;
use crate::number::type_name;
use crate::progress;

/// The number of keys that one call of the index takes. The index reads them all at once, and a slice takes
/// well below a second on the slowest drive.
pub const SLICE: usize = 8192;

/// A single key or value.
///
/// # Errors
/// Fails for another type, and for a `str` that is not valid UTF-8.
pub fn bytes_of<'a>(given: &'a Bound<'_, PyAny>, what: &str) -> PyResult<Cow<'a, [u8]>> {
    if let Ok(bytes) = given.cast::<PyBytes>() {
        return Ok(Cow::Borrowed(bytes.as_bytes()));
    }
    if let Ok(text) = given.cast::<PyString>() {
        let text = text.to_str().map_err(|error| no_utf8(given.py(), what, error))?;
        return Ok(Cow::Borrowed(text.as_bytes()));
    }
    if let Ok(bytes) = given.cast::<PyByteArray>() {
        return Ok(Cow::Owned(bytes.to_vec()));
    }
    Err(wrong_type(given, what))
}

fn wrong_type(given: &Bound<'_, PyAny>, what: &str) -> PyErr {
    Raised::InputType.new(format!(
        "a {what} of the type {}: give bytes or str, such as str({what}) or {what}.to_bytes(8, \"little\")",
        type_name(given)
    ))
}

fn no_utf8(py: Python<'_>, what: &str, cause: PyErr) -> PyErr {
    let message = format!(
        "a {what} is a str without UTF-8: {}; encode it, such as with {what}.encode(\"utf-8\", \"surrogateescape\")",
        cause.value(py)
    );
    let error = Raised::Input.new(message);
    error.set_cause(py, Some(cause));
    error
}

/// An object that keeps its bytes in place while the interpreter's lock is released.
#[derive(Debug)]
enum Kept {
    Bytes(PyBackedBytes),
    Text(PyBackedStr),
}

impl Kept {
    fn new(given: Bound<'_, PyAny>, what: &str) -> PyResult<Self> {
        let py = given.py();
        let given = match given.cast_into::<PyString>() {
            Ok(text) => {
                let kept = PyBackedStr::try_from(text);
                return kept.map(Self::Text).map_err(|error| no_utf8(py, what, error));
            }
            Err(error) => error.into_inner(),
        };
        given.extract().map(Self::Bytes).map_err(|_| wrong_type(&given, what))
    }

    fn bytes(&self) -> &[u8] {
        match self {
            Self::Bytes(bytes) => bytes,
            Self::Text(text) => text.as_bytes(),
        }
    }
}

/// The form in which a batch was given, and in which its answers are returned.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Form {
    /// A list, or another iterable.
    List,
    /// A numpy array.
    Numpy,
    /// An Arrow array.
    Arrow,
    /// A Series, or another column, of pandas.
    Pandas,
    /// A Series of polars.
    Polars,
}

impl Form {
    /// Returns its name in `nandex/_batches.py`.
    pub fn word(self) -> &'static str {
        match self {
            Self::List => "list",
            Self::Numpy => "numpy",
            Self::Arrow => "arrow",
            Self::Pandas => "pandas",
            Self::Polars => "polars",
        }
    }

    fn of(word: &str) -> Self {
        let all = [Self::Numpy, Self::Arrow, Self::Pandas, Self::Polars];
        all.into_iter().find(|form| form.word() == word).unwrap_or(Self::List)
    }
}

/// The form of a batch, and the object that was given, whose index or name its answers may have.
pub type Asked<'py> = (Form, Bound<'py, PyAny>);

/// A batch of keys or of values.
pub struct Batch<'py> {
    what: &'static str,
    asked: Asked<'py>,
    /// The number of elements, if it is known before the end.
    len: Option<usize>,
    source: Source<'py>,
    done: usize,
}

enum Source<'py> {
    Objects(Bound<'py, PyIterator>),
    Packed(Packed<'py>),
    Spans { data: PyReadonlyArray1<'py, u8>, offsets: PyReadonlyArray1<'py, i64> },
}

/// Elements of one width, stored consecutively.
struct Packed<'py> {
    data: PyReadonlyArray1<'py, u8>,
    width: usize,
    /// Whether zeros at the end of an element are padding, as in numpy's `S`.
    strips: bool,
}

/// Some elements of a batch, which may be read while the interpreter's lock is released.
pub struct Slice<'a> {
    elements: Elements<'a>,
    len: usize,
}

enum Elements<'a> {
    Kept(Vec<Kept>),
    Packed { data: &'a [u8], width: usize, strips: bool },
    Spans { data: &'a [u8], offsets: &'a [i64] },
}

/// The kind of elements that a batch is used for, which decides which arrays it accepts.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Fits {
    /// Elements of any size: `bytes` and `str`.
    Any,
    /// Numbers from 0 to 2^64 - 1.
    U64,
    /// Elements of one width.
    Width(usize),
}

impl<'py> Batch<'py> {
    /// Takes a batch of `what`, such as `key`.
    ///
    /// # Errors
    /// Fails for an object that is no batch, and for an array of another type or layout.
    pub fn new(given: &Bound<'py, PyAny>, what: &'static str, fits: Fits) -> PyResult<Self> {
        let is_plain = given.cast::<PyList>().is_ok() || given.cast::<PyTuple>().is_ok();
        if is_plain && fits != Fits::U64 {
            return Self::objects((Form::List, given.clone()), given, what);
        }
        let helpers = helpers(given.py())?;
        let taken = match fits {
            Fits::Any => helpers.call_method1("take", (given, what, None::<usize>)),
            Fits::U64 => helpers.call_method1("take", (given, what, "u64")),
            Fits::Width(bytes) => helpers.call_method1("take", (given, what, bytes)),
        }?;
        if taken.is_none() {
            return Self::objects((Form::List, given.clone()), given, what);
        }
        if let Ok((form, elements)) = taken.extract::<(String, Bound<'py, PyAny>)>() {
            return Self::objects((Form::of(&form), given.clone()), &elements, what);
        }
        Self::array(what, given, &taken)
    }

    fn objects(asked: Asked<'py>, given: &Bound<'py, PyAny>, what: &'static str) -> PyResult<Self> {
        let iterator = given.try_iter().map_err(|_| {
            Raised::InputType.new(format!(
                "a batch of {what}s of the type {}: give a list, an array of numpy or Arrow, or a column of pandas or polars",
                type_name(given)
            ))
        })?;
        let len = given.len().ok();
        Ok(Self { what, asked, len, source: Source::Objects(iterator), done: 0 })
    }

    /// Makes a batch of what `take` of `nandex/_batches.py` returned for an array.
    fn array(
        what: &'static str,
        given: &Bound<'py, PyAny>,
        taken: &Bound<'py, PyAny>,
    ) -> PyResult<Self> {
        let (form, len, data, width, strips, offsets): Taken<'py> = taken.extract()?;
        let asked = (Form::of(&form), given.clone());
        let source = match offsets {
            Some(offsets) => Source::Spans { data, offsets },
            None => Source::Packed(Packed { data, width, strips }),
        };
        Ok(Self { what, asked, len: Some(len), source, done: 0 })
    }

    /// The form in which it was given, and the object.
    pub fn asked(&self) -> Asked<'py> {
        self.asked.clone()
    }

    /// The number of elements, if it is known.
    pub fn len(&self) -> Option<usize> {
        self.len
    }

    /// Returns the next elements; none at the end.
    ///
    /// # Errors
    /// Fails for an element of another type, and names its position.
    pub fn next_slice(&mut self) -> PyResult<Option<Slice<'_>>> {
        let (start, what) = (self.done, self.what);
        let slice = match &mut self.source {
            Source::Objects(iterator) => {
                let rest = self.len.map_or(SLICE, |len| len.saturating_sub(start));
                Slice::of_objects(iterator, what, (start, rest))?
            }
            Source::Packed(packed) => packed.slice(self.len.unwrap_or(0), start)?,
            Source::Spans { data, offsets } => {
                let offsets = contiguous(offsets)?;
                let end = (start + SLICE).min(offsets.len() - 1);
                let elements =
                    Elements::Spans { data: contiguous(data)?, offsets: &offsets[start..=end] };
                Slice { elements, len: end - start }
            }
        };
        let (is_end, total) = (slice.len == 0, self.len);
        // The values of keys are done with them.
        if what != "value" && progress::is_on() {
            progress::report(
                self.asked.1.py(),
                what,
                start,
                if is_end { Some(start) } else { total },
            )?;
        }
        self.done += slice.len;
        Ok(Some(slice).filter(|_| !is_end))
    }
}

/// Form, length, bytes, width, whether zeros are stripped, and offsets.
type Taken<'py> =
    (String, usize, PyReadonlyArray1<'py, u8>, usize, bool, Option<PyReadonlyArray1<'py, i64>>);

impl Packed<'_> {
    fn slice(&self, len: usize, start: usize) -> PyResult<Slice<'_>> {
        let (end, width) = ((start + SLICE).min(len), self.width);
        let data = contiguous(&self.data)?.get(start * width..end * width).unwrap_or_default();
        let elements = Elements::Packed { data, width, strips: self.strips };
        Ok(Slice { elements, len: end - start })
    }
}

fn contiguous<'a, T: numpy::Element>(array: &'a PyReadonlyArray1<'_, T>) -> PyResult<&'a [T]> {
    array.as_slice().map_err(|error| Raised::Input.new(error.to_string()))
}

impl Slice<'_> {
    fn of_objects(
        iterator: &Bound<'_, PyIterator>,
        what: &str,
        (start, rest): (usize, usize),
    ) -> PyResult<Self> {
        let mut kept = Vec::with_capacity(SLICE.min(rest));
        for (index, given) in iterator.clone().take(SLICE).enumerate() {
            let element = Kept::new(given?, what);
            kept.push(element.map_err(|error| at(iterator.py(), &error, start + index))?);
        }
        let len = kept.len();
        Ok(Slice { elements: Elements::Kept(kept), len })
    }

    /// The number of elements.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Returns all elements, in order.
    pub fn all(&self) -> Vec<&[u8]> {
        match &self.elements {
            Elements::Kept(kept) => kept.iter().map(Kept::bytes).collect(),
            Elements::Packed { width: 0, .. } => vec![&[]; self.len],
            Elements::Packed { data, width, strips: false } => data.chunks_exact(*width).collect(),
            Elements::Packed { data, width, strips: true } => {
                data.chunks_exact(*width).map(stripped).collect()
            }
            Elements::Spans { data, offsets } => {
                let span = |pair: &[i64]| data.get(place(pair[0])..place(pair[1]));
                offsets.windows(2).map(|pair| span(pair).unwrap_or_default()).collect()
            }
        }
    }
}

/// Converts an offset; one below 0 becomes too large, so the bounds check refuses it.
fn place(offset: i64) -> usize {
    usize::try_from(offset).unwrap_or(usize::MAX)
}

/// Returns the element without trailing zeros.
fn stripped(element: &[u8]) -> &[u8] {
    let len = element.iter().rposition(|byte| *byte != 0).map_or(0, |last| last + 1);
    &element[..len]
}

/// Returns the same exception with the element's position.
fn at(py: Python<'_>, error: &PyErr, index: usize) -> PyErr {
    let message =
        format!("element {index} of the batch: {}; those before it may be in", error.value(py));
    error.get_type(py).call1((message,)).map_or_else(|error| error, PyErr::from_value)
}

/// The package's Python file that knows the layouts of arrays.
pub fn helpers(py: Python<'_>) -> PyResult<&Bound<'_, PyModule>> {
    static MODULE: PyOnceLock<Py<PyModule>> = PyOnceLock::new();
    let import = || py.import("nandex._batches").map(Bound::unbind);
    Ok(MODULE.get_or_try_init(py, import)?.bind(py))
}

/// Two batches in step, such as keys and their values.
pub struct Pairs<'py> {
    keys: Batch<'py>,
    values: Batch<'py>,
}

impl<'py> Pairs<'py> {
    /// Pairs keys with values.
    ///
    /// # Errors
    /// Fails if the lengths differ.
    pub fn new(keys: Batch<'py>, values: Batch<'py>) -> PyResult<Self> {
        match (keys.len(), values.len()) {
            (Some(left), Some(right)) if left != right => Err(unequal(left, right)),
            _ => Ok(Self { keys, values }),
        }
    }

    /// Returns the next pairs; none at the end.
    ///
    /// # Errors
    /// Fails as [`Batch::next_slice`] does, and if there are more keys than values or the reverse.
    pub fn next_slices(&mut self) -> PyResult<Option<(Slice<'_>, Slice<'_>)>> {
        let (keys, values) = (self.keys.next_slice()?, self.values.next_slice()?);
        let len = |slice: &Option<Slice<'_>>| slice.as_ref().map_or(0, Slice::len);
        if len(&keys) != len(&values) {
            return Err(unequal(len(&keys), len(&values)));
        }
        Ok(keys.zip(values))
    }
}

fn unequal(keys: usize, values: usize) -> PyErr {
    Raised::Input.new(format!("{keys} keys and {values} values: give one value for each key"))
}
