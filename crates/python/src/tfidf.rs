//! The base of `nandex.sklearn`: an index of terms and its model behind one Python object. Documents are read
//! from Python's iterators in small batches, so that neither the documents nor the vocabulary are in RAM.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use nandex_tfidf::{
    Analysis, Corpus, CorpusConfig, Document, DocumentLimit, DocumentResult, Error, Model, Norm,
    Repeats, Selection, StopWords, Weighting,
};
use numpy::{IntoPyArray, PyArray1};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyIterator, PyList, PyString};

use crate::error::{Raised, raise};
use crate::handle::{Closing, Handle, note_open};
use crate::number::{Reals, index, integer, optional, real, size};

/// Documents, and bytes of text, that are taken from Python at a time.
const TAKEN: usize = 256;
const TAKEN_BYTES: usize = 1 << 20;

/// Registers the index.
pub fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<Tfidf>()
}

/// An index, and its columns if they are chosen.
struct Fitted {
    corpus: Arc<Corpus>,
    model: Option<Model<'static>>,
}

impl Fitted {
    /// Adds documents; the columns must be chosen again afterwards.
    fn update(&mut self, documents: &mut Texts) -> Result<u64, Error> {
        self.model = None;
        let Some(corpus) = Arc::get_mut(&mut self.corpus) else {
            let reason = "it is in use while documents are added".to_owned();
            return Err(Error::Contradiction { reason });
        };
        documents.next = corpus.documents();
        corpus.update(documents, Repeats::Refuse).map(|updated| updated.documents)
    }

    fn fit(&mut self, selection: &Selection, weighting: Weighting) -> Result<u64, Error> {
        self.model = None;
        let model = Model::fit_shared(&self.corpus, selection, weighting, None)?;
        Ok(self.model.insert(model).columns())
    }

    /// Returns the columns, which must be chosen.
    fn model(&self) -> Result<&Model<'static>, Error> {
        self.model.as_ref().ok_or_else(|| Error::NoTerms { reason: "no columns are chosen".into() })
    }

    fn rows(&self, documents: &mut Texts) -> Result<Rows, Error> {
        let mut rows = Rows { starts: vec![0], columns: Vec::new(), values: Vec::new() };
        self.model()?.rows(documents, |row| {
            for entry in row.entries {
                let column = i32::try_from(entry.column).map_err(|_| Error::Matrix {
                    reason: format!("column {}; scipy takes 2^31; set max_features", entry.column),
                })?;
                rows.columns.push(column);
                rows.values.push(entry.value);
            }
            rows.starts.push(rows.columns.len() as i64);
            Ok(())
        })?;
        Ok(rows)
    }
}

/// A matrix by rows.
struct Rows {
    starts: Vec<i64>,
    columns: Vec<i32>,
    values: Vec<f64>,
}

impl Closing for Handle<Mutex<Fitted>> {
    fn close_open(&self, py: Python<'_>) -> PyResult<()> {
        if self.is_inherited() { Ok(()) } else { close(self, py) }
    }
}

fn close(handle: &Handle<Mutex<Fitted>>, py: Python<'_>) -> PyResult<()> {
    let mut failure = None;
    handle.close(py, |fitted| {
        let Fitted { corpus, model } = fitted.into_inner().unwrap_or_else(PoisonError::into_inner);
        drop(model);
        failure = Arc::into_inner(corpus).and_then(|corpus| corpus.close().err());
        Ok(())
    })?;
    failure.map_or(Ok(()), |error| Err(explain(error)))
}

/// An index of the terms of documents. `nandex.sklearn` is the way to use it.
#[pyclass(module = "nandex._nandex", name = "_Tfidf", frozen, weakref)]
pub struct Tfidf {
    handle: Arc<Handle<Mutex<Fitted>>>,
}

/// The start of each row, the columns, the values.
type Matrix<'py> =
    (Bound<'py, PyArray1<i64>>, Bound<'py, PyArray1<i32>>, Bound<'py, PyArray1<f64>>);

/// Terms, their inverse document frequencies, and the numbers of documents that have them.
type Vocabulary<'py> = (Bound<'py, PyList>, Bound<'py, PyArray1<f64>>, Bound<'py, PyArray1<u64>>);

#[pymethods]
impl Tfidf {
    /// Opens the index at a path, or makes it if there is none.
    #[new]
    #[pyo3(signature = (path, *, ram, lowercase, ngrams, stop_words))]
    fn new(
        py: Python<'_>,
        path: PathBuf,
        ram: &Bound<'_, PyAny>,
        lowercase: bool,
        ngrams: (Bound<'_, PyAny>, Bound<'_, PyAny>),
        stop_words: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<Self> {
        let config = CorpusConfig { ram_bytes: size(ram, "ram")? };
        let analysis = analysis(lowercase, &ngrams, stop_words)?;
        let corpus = py.detach(|| create_or_open(&path, &analysis, config)).map_err(explain)?;
        let fitted = Mutex::new(Fitted { corpus: Arc::new(corpus), model: None });
        let handle = Arc::new(Handle::new(format!("the index {}", path.display()), fitted));
        let weak: Weak<dyn Closing> = Arc::downgrade(&handle) as Weak<dyn Closing>;
        note_open(weak);
        Ok(Self { handle })
    }

    /// Refuses a path without an index, and one that is in use.
    #[staticmethod]
    #[pyo3(signature = (path, *, ram))]
    fn check(py: Python<'_>, path: PathBuf, ram: &Bound<'_, PyAny>) -> PyResult<()> {
        let config = CorpusConfig { ram_bytes: size(ram, "ram")? };
        py.detach(|| Corpus::open(&path, config)?.close()).map_err(explain)
    }

    /// Adds documents, and returns their number. `prepare` is applied to documents that are not str, or to
    /// all if it must see all.
    fn update(
        &self,
        py: Python<'_>,
        documents: &Bound<'_, PyAny>,
        prepare: &Bound<'_, PyAny>,
        prepares_all: bool,
    ) -> PyResult<u64> {
        self.run(py, (documents, prepare, prepares_all), |fitted, texts| lock(fitted).update(texts))
    }

    /// Chooses the terms that become columns, and returns their number.
    #[pyo3(signature = (*, min_df, max_df, max_features, weighting))]
    fn fit(
        &self,
        py: Python<'_>,
        min_df: &Bound<'_, PyAny>,
        max_df: &Bound<'_, PyAny>,
        max_features: Option<&Bound<'_, PyAny>>,
        weighting: &Bound<'_, PyDict>,
    ) -> PyResult<u64> {
        let (min_df, max_df) = (limit(min_df, "min_df")?, limit(max_df, "max_df")?);
        let within = |given: &Bound<'_, PyAny>, name: &str| integer(given, name, 1..=u64::MAX);
        let max_features = optional(max_features, "max_features", within)?;
        let selection = Selection { min_df, max_df, max_features };
        let weighting = weighting.extract::<Weights>()?.weighting()?;
        self.call(py, |fitted| lock(fitted).fit(&selection, weighting))
    }

    /// Returns the rows of documents.
    fn transform<'py>(
        &self,
        py: Python<'py>,
        documents: &Bound<'py, PyAny>,
        prepare: &Bound<'py, PyAny>,
        prepares_all: bool,
    ) -> PyResult<Matrix<'py>> {
        let documents = (documents, prepare, prepares_all);
        let rows = self.run(py, documents, |fitted, texts| lock(fitted).rows(texts))?;
        let Rows { starts, columns, values } = rows;
        Ok((starts.into_pyarray(py), columns.into_pyarray(py), values.into_pyarray(py)))
    }

    /// Returns the terms of all columns, in order.
    fn vocabulary<'py>(&self, py: Python<'py>) -> PyResult<Vocabulary<'py>> {
        let terms =
            self.call(py, |fitted| lock(fitted).model()?.terms().collect::<Result<Vec<_>, _>>())?;
        let idf: Vec<f64> = terms.iter().map(|term| term.idf).collect();
        let documents: Vec<u64> = terms.iter().map(|term| term.documents).collect();
        let texts = PyList::new(py, terms.iter().map(|term| term.text.as_str()))?;
        Ok((texts, idf.into_pyarray(py), documents.into_pyarray(py)))
    }

    /// Returns the number of columns; none if they are not chosen.
    fn columns(&self, py: Python<'_>) -> PyResult<Option<u64>> {
        self.call(py, |fitted| Ok(lock(fitted).model.as_ref().map(Model::columns)))
    }

    /// Returns the figures of the index.
    fn stats<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let (documents, occurrences, ram_bytes) = self.call(py, |fitted| {
            let corpus = &lock(fitted).corpus;
            Ok((corpus.documents(), corpus.occurrences(), corpus.stats().ram_bytes))
        })?;
        let dict = PyDict::new(py);
        dict.set_item("documents", documents)?;
        dict.set_item("occurrences", occurrences)?;
        dict.set_item("ram_bytes", ram_bytes)?;
        Ok(dict)
    }

    /// Makes everything durable and closes the file.
    fn close(&self, py: Python<'_>) -> PyResult<()> {
        close(&self.handle, py)
    }

    #[getter]
    fn closed(&self) -> bool {
        self.handle.is_closed()
    }
}

impl Tfidf {
    fn call<R: Send>(
        &self,
        py: Python<'_>,
        call: impl FnOnce(&Mutex<Fitted>) -> Result<R, Error> + Send,
    ) -> PyResult<R> {
        self.handle.call(py, |fitted| Ok(call(fitted)))?.map_err(explain)
    }

    /// Runs a call over documents. An exception that their iterator raises becomes the failure of the call.
    fn run<R: Send>(
        &self,
        py: Python<'_>,
        (documents, prepare, prepares_all): (&Bound<'_, PyAny>, &Bound<'_, PyAny>, bool),
        call: impl FnOnce(&Mutex<Fitted>, &mut Texts) -> Result<R, Error> + Send,
    ) -> PyResult<R> {
        let mut texts = Texts {
            documents: documents.try_iter()?.unbind(),
            prepare: prepare.clone().unbind(),
            prepares_all,
            taken: Vec::new().into_iter(),
            next: 0,
            failure: None,
        };
        let done = self.handle.call(py, |fitted| Ok(call(fitted, &mut texts)))?;
        match texts.failure {
            Some(failure) => Err(failure),
            None => done.map_err(explain),
        }
    }
}

fn lock(fitted: &Mutex<Fitted>) -> MutexGuard<'_, Fitted> {
    fitted.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Opens the index of a file, or makes it if there is no file.
fn create_or_open(path: &Path, analysis: &Analysis, config: CorpusConfig) -> Result<Corpus, Error> {
    if !path.exists() {
        return Corpus::create(path, analysis, config);
    }
    let corpus = Corpus::open(path, config)?;
    if corpus.analysis() == analysis {
        return Ok(corpus);
    }
    Err(Error::OtherAnalysis {
        expected: format!("{analysis:?}"),
        found: format!("{:?}", corpus.analysis()),
    })
}

/// Documents of a Python iterator; their ids are numbers.
struct Texts {
    documents: Py<PyIterator>,
    prepare: Py<PyAny>,
    prepares_all: bool,
    taken: std::vec::IntoIter<String>,
    next: u64,
    failure: Option<PyErr>,
}

impl Texts {
    /// Reads some more documents; none at the end.
    fn take_more(&self, py: Python<'_>) -> PyResult<Vec<String>> {
        py.check_signals()?;
        let (mut texts, mut bytes) = (Vec::new(), 0);
        let mut documents = self.documents.bind(py).clone();
        while texts.len() < TAKEN && bytes < TAKEN_BYTES {
            let Some(document) = documents.next() else { break };
            let text = self.text(document?)?;
            bytes += text.len();
            texts.push(text);
        }
        Ok(texts)
    }

    fn text(&self, document: Bound<'_, PyAny>) -> PyResult<String> {
        let document = if self.prepares_all || document.cast::<PyString>().is_err() {
            self.prepare.bind(document.py()).call1((document,))?
        } else {
            document
        };
        let text = document.cast::<PyString>().map_err(|_| {
            Raised::InputType
                .new("a document that is no str: give texts, or bytes with their encoding")
        })?;
        let text = text.to_str().map_err(|error| {
            Raised::Input.new(format!("a document without UTF-8: {}", error.value(text.py())))
        })?;
        Ok(text.to_owned())
    }
}

impl Iterator for Texts {
    type Item = DocumentResult;

    fn next(&mut self) -> Option<DocumentResult> {
        if self.taken.len() == 0 && self.failure.is_none() {
            match Python::attach(|py| self.take_more(py)) {
                Ok(texts) => self.taken = texts.into_iter(),
                Err(failure) => self.failure = Some(failure),
            }
        }
        let id = self.next.to_string();
        if self.failure.is_some() {
            let reason = "the iterator of documents has failed".to_owned();
            return Some(Err(nandex_corpus::Error::Malformed { document: id, reason }));
        }
        let text = self.taken.next()?;
        self.next += 1;
        Some(Ok(Document { id, text }))
    }
}

/// Returns the analysis that finds terms of the lengths of `ngrams`.
///
/// # Errors
/// Fails for lengths that are no whole numbers, and for stop words that are no texts.
pub fn analysis(
    lowercase: bool,
    (ngram_min, ngram_max): &(Bound<'_, PyAny>, Bound<'_, PyAny>),
    stop_words: Option<&Bound<'_, PyAny>>,
) -> PyResult<Analysis> {
    let length = |given| integer(given, "ngram_range", 1..=usize::MAX);
    let (ngram_min, ngram_max) = (length(ngram_min)?, length(ngram_max)?);
    Ok(Analysis { lowercase, ngram_min, ngram_max, stop_words: self::stop_words(stop_words)? })
}

/// Reads a number of documents, or a share of them as a real number.
fn limit(given: &Bound<'_, PyAny>, name: &str) -> PyResult<DocumentLimit> {
    if index(given).is_some() {
        return integer(given, name, 0..=u64::MAX).map(DocumentLimit::Count);
    }
    real(given, name, Reals::Within(0.0..=1.0)).map(DocumentLimit::Share)
}

/// The weighting of terms, by scikit-learn's names.
#[derive(FromPyObject)]
#[pyo3(from_item_all)]
struct Weights {
    use_idf: bool,
    smooth_idf: bool,
    sublinear_tf: bool,
    binary: bool,
    norm: Option<String>,
}

impl Weights {
    fn weighting(self) -> PyResult<Weighting> {
        let Self { use_idf, smooth_idf, sublinear_tf, binary, norm } = self;
        let norm = self::norm(norm.as_deref())?;
        Ok(Weighting { use_idf, smooth_idf, sublinear_tf, binary, norm })
    }
}

fn norm(given: Option<&str>) -> PyResult<Norm> {
    match given {
        None => Ok(Norm::None),
        Some("l1") => Ok(Norm::L1),
        Some("l2") => Ok(Norm::L2),
        Some(other) => Err(Raised::Config.new(format!("norm: {other:?}; give 'l1', 'l2' or None"))),
    }
}

/// Reads scikit-learn's `stop_words`.
///
/// # Errors
/// Fails for a text other than "english", and for elements that are no texts.
fn stop_words(given: Option<&Bound<'_, PyAny>>) -> PyResult<StopWords> {
    let Some(given) = given else { return Ok(StopWords::None) };
    if given.cast::<PyString>().is_ok() {
        return match given.extract::<&str>()? {
            "english" => Ok(StopWords::English),
            other => Err(Raised::Config
                .new(format!("stop_words: {other:?}; give 'english', a list, or None"))),
        };
    }
    let words = given.try_iter()?.map(|word| word?.extract::<String>());
    words.collect::<PyResult<_>>().map(StopWords::List)
}

/// Converts a failure to its exception.
pub fn explain(error: Error) -> PyErr {
    let message = error.to_string();
    match error {
        Error::Index(error) | Error::NoSpace(error) => raise(error),
        Error::Volume(error) => raise(error.into()),
        Error::Device(error) => raise(error.into()),
        Error::NoTerms { reason } => Raised::Input.new(format!("empty vocabulary: {reason}")),
        Error::Options { .. } | Error::OtherAnalysis { .. } => Raised::Config.new(message),
        Error::NoIndex { .. } => Raised::Format.new(message),
        Error::Contradiction { .. } | Error::Unsure => Raised::Internal.new(message),
        Error::Matrix { .. } => Raised::Unsupported.new(message),
        _ => Raised::Input.new(message),
    }
}
