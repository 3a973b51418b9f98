//! What can stop a run, with the place and the remedy.

use std::io;
use std::path::Path;

/// The result of a run or one of its parts.
pub type Result<T> = std::result::Result<T, Error>;

/// What can stop a run.
#[derive(thiserror::Error, Debug)]
#[non_exhaustive]
pub enum Error {
    /// A table of the index failed.
    #[error("the index: {0}")]
    Index(#[from] nandex::Error),
    /// The volume of the index failed, or holds what it should not.
    #[error("the index's file: {0}")]
    Volume(#[from] nandex::raw::store::Error),
    /// The file of the index cannot be used.
    #[error("the index's file: {0}")]
    Device(#[from] nandex::raw::device::Error),
    /// No space is left for the blocks of terms, or for new counting tables. The index has the batches of documents
    /// before the one that found none, and goes on with those.
    #[error("no space for more terms: {0}")]
    NoSpace(#[source] nandex::Error),
    /// An option that cannot work.
    #[error("{field}: {reason}")]
    Options {
        /// Which option.
        field: &'static str,
        /// What is wrong with it, and what would do.
        reason: String,
    },
    /// A document that cannot be read, or a file that cannot be read or written.
    #[error(transparent)]
    Input(#[from] nandex_corpus::Error),
    /// A term that is too long to be kept.
    #[error(
        "document {document}: a term of {found} bytes, and at most {bytes_max} are kept; look whether the document is \
         text, or take shorter n-grams"
    )]
    TermTooLong {
        /// The document.
        document: String,
        /// Bytes of the term.
        found: usize,
        /// The most bytes of a term.
        bytes_max: usize,
    },
    /// A document that is in the index already, or twice in one run.
    #[error(
        "document {document} is in the index already, {difference}; remove the old one first, give each document an id \
         of its own, or skip repeated documents"
    )]
    Repeated {
        /// The document.
        document: String,
        /// Whether the text is the same.
        difference: &'static str,
    },
    /// A document to be removed that is not in the index.
    #[error(
        "document {document} cannot be removed: {reason}; its text is needed as it was when it was added"
    )]
    NotAdded {
        /// The document.
        document: String,
        /// Whether the id is unknown or the text differs.
        reason: &'static str,
    },
    /// An index of another analysis of text.
    #[error(
        "the indexes count different terms: expected the analysis {expected}, found {found}; build one of them again \
         with the other's options"
    )]
    OtherAnalysis {
        /// The analysis of this index.
        expected: String,
        /// The analysis of the other.
        found: String,
    },
    /// A file that is no index of this kind, or of a version that this program does not know.
    #[error("this is no TF-IDF index that can be read: {reason}")]
    NoIndex {
        /// What was expected, what was found, and what to do.
        reason: String,
    },
    /// A change whose commit failed, so that only opening the index again tells whether it counts.
    #[error(
        "an earlier change of this index failed while it was made durable; open the index again, which tells whether it \
         counts"
    )]
    Unsure,
    /// Counts that no run can have left.
    #[error("the index contradicts itself: {reason}; build it again, or restore a copy")]
    Contradiction {
        /// What was expected, and what was found.
        reason: String,
    },
    /// No term is left for the matrix.
    #[error("no terms: {reason}")]
    NoTerms {
        /// Why there are none, and what to do.
        reason: String,
    },
    /// A vector whose numbers the output cannot hold.
    #[error("cannot write the matrix: {reason}")]
    Matrix {
        /// What was expected, what was found, and what to do.
        reason: String,
    },
}

impl Error {
    /// A failure of a file; for `map_err`.
    pub(crate) fn file(action: &'static str, path: &Path) -> impl FnOnce(io::Error) -> Self {
        let named = nandex_corpus::Error::file(action, path);
        move |source| Self::Input(named(source))
    }

    /// A failure of a temporary file; for `map_err`.
    pub(crate) fn scratch(action: &'static str) -> impl FnOnce(io::Error) -> Self {
        move |source| Self::Input(nandex_corpus::Error::Scratch { action, source })
    }

    /// The refusal of an option.
    pub(crate) fn option(field: &'static str, reason: impl Into<String>) -> Self {
        Self::Options { field, reason: reason.into() }
    }
}
