//! TF-IDF of collections whose vocabulary is bigger than RAM, with scikit-learn's numbers.
#![forbid(unsafe_code)]

mod corpus;
pub mod documents;
mod error;
mod export;
mod model;
mod options;
pub mod tokenise;

pub use corpus::{
    Corpus, CorpusConfig, CorpusStats, Counts, MapCounts, RAM_BYTES_MIN, Repeats, TERM_BYTES_MAX,
    TableCounts, TermCounts, TermFrequency, Updated,
};
pub use documents::Document;
pub use error::{Error, Result};
pub use export::{MatrixFiles, MatrixShape, ParquetFiles};
pub use model::{Entry, Keyword, Model, Ranked, Row, Term, Terms};
pub use options::{Analysis, DocumentLimit, NGRAM_MAX, Norm, Selection, StopWords, Weighting};
