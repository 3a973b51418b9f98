//! TF-IDF of collections whose vocabulary is bigger than RAM, with scikit-learn's numbers.
//!
//! "Hash in a Flash" counts terms for TF-IDF in its hash tables, one update for each. This index sorts counts in runs
//! and fills its tables in bulk, without a change segment; the counts of each term are on flash, whatever the
//! vocabulary, in a fixed amount of RAM. The results are those of scikit-learn's `TfidfVectorizer`,
//! which holds everything in RAM: the same terms, the same columns, and values that differ by less than a millionth.
//!
//! 1. [`documents`] reads texts from folders, lines, JSON lines and Parquet, one at a time.
//! 2. A [`Corpus`] is the index. [`Corpus::update`] adds documents, [`Corpus::remove`] removes some, and
//!    [`Corpus::merge`] merges another index into it.
//! 3. A [`Model`] is the index with its columns. A second pass over documents gives their rows, for
//!    [scipy](Model::write_npz), [Parquet](Model::write_parquet) or [a function](Model::rows), their
//!    [keywords](Model::keywords), or those that are [most like a query](Model::rank).
//! 4. [`Corpus::summary`] computes an index's figures, and [`html`] renders them as a page.
//!
//! The differences from scikit-learn: characters that are newer than Python's version of Unicode (see [`tokenise`]);
//! which of equally frequent terms [`Selection::max_features`] keeps; terms longer than [`TERM_BYTES_MAX`] are an
//! error; and accents are not stripped, n-grams are of words and not of characters, and the token pattern is the
//! default one.
//!
//! ```
//! use nandex_tfidf::{Analysis, Corpus, CorpusConfig, Document, Model, Repeats, Selection, Weighting};
//!
//! # let folder = tempfile::tempdir()?;
//! # let path = folder.path().join("words.nandex");
//! let mut corpus = Corpus::create(&path, &Analysis::default(), CorpusConfig::default())?;
//! let documents = [Document::new("1", "red fish, red cat"), Document::new("2", "blue fish")];
//! corpus.update(documents.clone().map(Ok), Repeats::Refuse)?;
//! let model = Model::fit(&corpus, &Selection::default(), Weighting::default(), None)?;
//! let terms: Vec<String> = model.terms().map(|term| Ok(term?.text)).collect::<nandex_tfidf::Result<_>>()?;
//! assert_eq!(terms, ["blue", "cat", "fish", "red"]);
//! assert_eq!(model.rank("red", documents.map(Ok), 10)?[0].id, "1");
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
#![forbid(unsafe_code)]

mod corpus;
mod error;
mod export;
mod model;
mod options;
mod ranked;
mod summary;
pub mod tokenise;
mod varint;

pub use corpus::{
    Corpus, CorpusConfig, CorpusStats, RAM_BYTES_MIN, Repeats, TERM_BYTES_MAX, TermFrequency,
    Updated,
};
pub use error::{Error, Result};
pub use export::{MatrixFiles, MatrixShape, ParquetFiles};
pub use model::{Entry, Keyword, Model, Ranked, Row, Term, Terms};
pub use nandex_corpus::{Document, DocumentResult, documents};
pub use options::{Analysis, DocumentLimit, NGRAM_MAX, Norm, Selection, StopWords, Weighting};
pub use ranked::{Indexed, Indexing, NoRankIndex, RankAnswer, RankIndex};
pub use summary::{CorpusSummary, TOP_TERMS_MAX, TopTerm, html};
