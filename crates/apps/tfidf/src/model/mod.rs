//! An index with its columns: the equivalent of scikit-learn's `TfidfVectorizer` after `fit`.
//!
//! ```text
//!   tables and runs --limits--> kept terms --sorted by text--> vocabulary, in a file
//!                                          \-- term -> column, in RAM or in a file
//!   documents --analyse--> terms --columns, weights--> rows | keywords | ranks
//! ```
//!
//! Each pass over documents looks up the different terms of some thousand documents together. That reads nothing while
//! all columns fit into RAM: a quarter of the index's RAM has space for about a million columns in 256 MiB. Beyond that
//! they are in a file of 32 bytes each, which is read in order, once for these documents.

mod columns;
mod keywords;
mod rank;
mod rows;
mod select;
mod sort;
#[cfg(test)]
mod tests;
mod vocabulary;
mod weigh;

use std::ops::Deref;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use nandex_corpus::DocumentResult;

pub use keywords::Keyword;
pub use rank::Ranked;
pub(crate) use rows::CountedTerm;
pub(crate) use vocabulary::Vocabulary;
pub use vocabulary::{Term, Terms};
pub(crate) use weigh::{Weigher, euclidean};

use crate::{Corpus, Result, Selection, Weighting};
use columns::{Column, Columns, ColumnsBuilder};
use rows::Rows;
use vocabulary::VocabularyWriter;

/// A nonzero entry of a row.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Entry {
    /// The column, from 0.
    pub column: u64,
    /// Its value.
    pub value: f64,
}

/// A document's row: its entries in the order of columns. A row without entries is a row of zeros.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Row<'a> {
    /// The document's id.
    pub id: &'a str,
    /// The nonzero entries.
    pub entries: &'a [Entry],
}

/// An index with its columns. It holds the current content of the index, which cannot change meanwhile.
///
/// ```
/// use nandex_tfidf::{Analysis, Corpus, CorpusConfig, Document, Model, Repeats, Selection, Weighting};
///
/// # let folder = tempfile::tempdir()?;
/// # let path = folder.path().join("words.nandex");
/// # let config = CorpusConfig { ram_bytes: 64 << 20 };
/// let mut corpus = Corpus::create(&path, &Analysis::default(), config)?;
/// let documents = [Document::new("1", "red fish, red cat"), Document::new("2", "blue fish")];
/// corpus.update(documents.clone().map(Ok), Repeats::Refuse)?;
///
/// let model = Model::fit(&corpus, &Selection::default(), Weighting::default(), None)?;
/// let mut rows = Vec::new();
/// model.rows(documents.map(Ok), |row| { rows.push(row.entries.to_vec()); Ok(()) })?;
/// // The columns are blue, cat, fish, red.
/// assert_eq!((model.columns(), rows[1][0].column, rows[1][1].column), (4, 0, 2));
/// assert!(rows[1][0].value > rows[1][1].value);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct Model<'c> {
    corpus: Held<'c>,
    weigher: Weigher,
    columns: Columns,
    vocabulary: Vocabulary,
}

/// The index of a model.
#[derive(Clone, Debug)]
enum Held<'c> {
    Borrowed(&'c Corpus),
    Shared(Arc<Corpus>),
}

impl Deref for Held<'_> {
    type Target = Corpus;

    fn deref(&self) -> &Corpus {
        match self {
            Self::Borrowed(corpus) => corpus,
            Self::Shared(corpus) => corpus,
        }
    }
}

impl Model<'static> {
    /// Chooses and sorts the columns as [`fit`](Model::fit) does, and the model shares the index: for an owner of both.
    /// The index can change again once the model is dropped.
    ///
    /// # Errors
    /// As `fit`.
    pub fn fit_shared(
        corpus: &Arc<Corpus>,
        selection: &Selection,
        weighting: Weighting,
        scratch: Option<&Path>,
    ) -> Result<Self> {
        Self::fit_held(Held::Shared(Arc::clone(corpus)), selection, weighting, scratch)
    }
}

impl<'c> Model<'c> {
    /// Chooses the terms of the index that become columns, and sorts them by code points.
    ///
    /// Costs a listing of the index. Sorted runs, the vocabulary, and columns that do not fit into a quarter of the
    /// index's RAM are in files of `scratch` that vanish with the model; `None` for the system's folder for temporary
    /// files.
    ///
    /// # Errors
    /// Invalid options, [`crate::Error::NoTerms`], a failed read or write.
    pub fn fit(
        corpus: &'c Corpus,
        selection: &Selection,
        weighting: Weighting,
        scratch: Option<&Path>,
    ) -> Result<Self> {
        Self::fit_held(Held::Borrowed(corpus), selection, weighting, scratch)
    }

    fn fit_held(
        corpus: Held<'c>,
        selection: &Selection,
        weighting: Weighting,
        scratch: Option<&Path>,
    ) -> Result<Self> {
        let folder = scratch.map_or_else(std::env::temp_dir, PathBuf::from);
        let kept = select::select(&corpus, selection, weighting.binary, &folder)?;
        let weigher = Weigher { weighting, documents: corpus.documents() };
        let ram_bytes = corpus.config().batch_bytes() as u64;
        let mut columns = ColumnsBuilder::new(&folder, kept.count, ram_bytes);
        let mut vocabulary = VocabularyWriter::new(&folder)?;
        for (index, term) in (0..).zip(kept.terms) {
            let term = term?;
            let (text, payload) = term.parts();
            let (key, documents) = select::unpack(payload);
            columns.insert(key, Column { index, documents })?;
            vocabulary.push(text, documents)?;
        }
        let (columns, vocabulary) = (columns.finish()?, vocabulary.finish()?);
        Ok(Self { corpus, weigher, columns, vocabulary })
    }

    /// Returns the number of columns.
    #[must_use]
    pub fn columns(&self) -> u64 {
        self.vocabulary.len()
    }

    /// Returns the terms of all columns, in order. An item is an error if the file of the vocabulary cannot be read.
    #[must_use]
    pub fn terms(&self) -> Terms<'_> {
        self.vocabulary.terms(self.weigher)
    }

    /// Calls `take` with the row of each document, in their order. Documents need not be in the index; terms without a
    /// column do not count.
    ///
    /// Costs a lookup of each different term of some thousand documents. RAM is a quarter of the index's, and one
    /// document's terms.
    ///
    /// # Errors
    /// The errors of `documents` and of `take`; a failed read.
    pub fn rows(
        &self,
        documents: impl IntoIterator<Item = DocumentResult>,
        mut take: impl FnMut(Row<'_>) -> Result<()>,
    ) -> Result<()> {
        Rows::new(self).run(documents.into_iter(), |rows| {
            rows.iter().try_for_each(|(id, entries)| take(Row { id, entries }))
        })
    }

    /// Calls `take` with the terms of each document that have columns, in the order of columns, and the document's id.
    pub(crate) fn counted(
        &self,
        documents: impl IntoIterator<Item = DocumentResult>,
        take: impl FnMut(String, &[CountedTerm]) -> Result<()>,
    ) -> Result<()> {
        Rows::new(self).run_counted(documents.into_iter(), take)
    }

    pub(crate) fn weigher(&self) -> Weigher {
        self.weigher
    }

    /// Returns its weighting of terms, and the terms, without the index.
    pub(crate) fn into_parts(self) -> (Weigher, Vocabulary) {
        (self.weigher, self.vocabulary)
    }
}
