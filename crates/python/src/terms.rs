//! The terms of a batch of documents with their counts, for `nandex.ray.tfidf`.

use std::collections::HashMap;

use nandex_tfidf::tokenise::{Analyser, Tokens};
use numpy::{IntoPyArray, PyArray1};
use pyo3::prelude::*;

use crate::batch::{Batch, Fits};
use crate::tfidf::{analysis, explain};

/// Registers the function.
pub fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_function(wrap_pyfunction!(terms, module)?)
}

/// The start of each row; the terms of all rows as numbers, and their counts in the row; the bytes of all
/// terms, and the start of each.
type Terms<'py> = (
    Bound<'py, PyArray1<i64>>,
    Bound<'py, PyArray1<i64>>,
    Bound<'py, PyArray1<i64>>,
    Bound<'py, PyArray1<u8>>,
    Bound<'py, PyArray1<i64>>,
);

/// Returns the terms of a batch of documents, as scikit-learn's `CountVectorizer` finds them. Terms are
/// numbered in the order of their bytes, and the terms of a row are in that order. A term of several
/// documents is in RAM once.
#[pyfunction]
#[pyo3(name = "_terms", signature = (documents, *, lowercase, ngrams, stop_words))]
fn terms<'py>(
    py: Python<'py>,
    documents: &Bound<'py, PyAny>,
    lowercase: bool,
    ngrams: (Bound<'py, PyAny>, Bound<'py, PyAny>),
    stop_words: Option<&Bound<'py, PyAny>>,
) -> PyResult<Terms<'py>> {
    let analysis = analysis(lowercase, &ngrams, stop_words)?;
    let analyser = Analyser::new(&analysis).map_err(explain)?;
    let mut documents = Batch::new(documents, "document", Fits::Any)?;
    let (mut counted, mut tokens) = (Counted::default(), Tokens::default());
    counted.starts.push(0);
    while let Some(documents) = documents.next_slice()? {
        py.detach(|| {
            for document in documents.all() {
                analyser.analyse(&String::from_utf8_lossy(document), &mut tokens);
                counted.take(analyser.terms(&tokens));
            }
        });
        py.check_signals()?;
    }
    let (data, offsets) = py.detach(|| counted.sort());
    let Counted { starts, numbers, counts, .. } = counted;
    Ok((
        starts.into_pyarray(py),
        numbers.into_pyarray(py),
        counts.into_pyarray(py),
        data.into_pyarray(py),
        offsets.into_pyarray(py),
    ))
}

/// Rows of terms.
#[derive(Default)]
struct Counted {
    known: HashMap<Box<[u8]>, i64>,
    /// The terms of the current document, repeated as often as they occur.
    row: Vec<i64>,
    starts: Vec<i64>,
    numbers: Vec<i64>,
    counts: Vec<i64>,
}

impl Counted {
    fn take<'t>(&mut self, terms: impl Iterator<Item = &'t [u8]>) {
        self.row.clear();
        for term in terms {
            let next = self.known.len() as i64;
            let number = self.known.get(term).copied().unwrap_or_else(|| {
                self.known.insert(term.into(), next);
                next
            });
            self.row.push(number);
        }
        self.row.sort_unstable();
        for same in self.row.chunk_by(|left, right| left == right) {
            self.numbers.push(same[0]);
            self.counts.push(same.len() as i64);
        }
        self.starts.push(self.numbers.len() as i64);
    }

    /// Numbers the terms in the order of their bytes. Returns these bytes, and the start of each term.
    fn sort(&mut self) -> (Vec<u8>, Vec<i64>) {
        let mut terms: Vec<_> = std::mem::take(&mut self.known).into_iter().collect();
        terms.sort_unstable();
        let mut places = vec![0; terms.len()];
        let (mut data, mut offsets) = (Vec::new(), vec![0]);
        for (place, (term, number)) in (0_i64..).zip(terms) {
            places[number as usize] = place;
            data.extend_from_slice(&term);
            offsets.push(data.len() as i64);
        }
        self.numbers.iter_mut().for_each(|number| *number = places[*number as usize]);
        let mut row = Vec::new();
        for span in self.starts.windows(2) {
            let (start, end) = (span[0] as usize, span[1] as usize);
            let (numbers, counts) = (&mut self.numbers[start..end], &mut self.counts[start..end]);
            row.clear();
            row.extend(numbers.iter().copied().zip(counts.iter().copied()));
            row.sort_unstable();
            for ((number, count), (new, its)) in numbers.iter_mut().zip(counts).zip(&row) {
                (*number, *count) = (*new, *its);
            }
        }
        (data, offsets)
    }
}
