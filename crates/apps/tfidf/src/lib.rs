//! TF-IDF of collections whose vocabulary is bigger than RAM, with scikit-learn's numbers.
#![forbid(unsafe_code)]

pub mod documents;
mod error;
mod options;
pub mod tokenise;

pub use documents::Document;
pub use error::{Error, Result};
pub use options::{Analysis, DocumentLimit, NGRAM_MAX, Norm, Selection, StopWords, Weighting};
