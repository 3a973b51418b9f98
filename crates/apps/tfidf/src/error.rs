//! The errors of a run, each with the place and the remedy.

use std::io;
use std::path::Path;

/// The result of a run or one of its parts.
pub type Result<T> = std::result::Result<T, Error>;

/// An error of a run.
#[derive(thiserror::Error, Debug)]
#[non_exhaustive]
pub enum Error {
    /// A table of the index failed.
    #[error("the index: {0}")]
    Index(#[from] nandex::Error),
    /// The volume of the index failed, or has unexpected content.
    #[error("the index's file: {0}")]
    Volume(#[from] nandex::raw::store::Error),
    /// The file of the index cannot be used.
    #[error("the index's file: {0}")]
    Device(#[from] nandex::raw::device::Error),
    /// No space is left for the blocks of terms, or for new counting tables. The index has the batches of documents
    /// before the one that did not fit, and continues with those.
    #[error("no space for more terms: {0}")]
    NoSpace(#[source] nandex::Error),
    /// An invalid option.
    #[error("{field}: {reason}")]
    Options {
        /// The name of the option.
        field: &'static str,
        /// The fault of the value, and a value that would work.
        reason: String,
    },
    /// A document that cannot be read, or a file that cannot be read or written.
    #[error(transparent)]
    Input(#[from] nandex_corpus::Error),
    /// A term that is too long to be stored.
    #[error(
        "document {document}: a term of {found} bytes, and at most {bytes_max} are kept; check whether the document is \
         text, or use shorter n-grams"
    )]
    TermTooLong {
        /// The document.
        document: String,
        /// The bytes of the term.
        found: usize,
        /// The most bytes of a term.
        bytes_max: usize,
    },
    /// A document whose terms do not fit the RAM.
    #[error(
        "document {document}: the terms of its {bytes} bytes do not fit the RAM of {ram_bytes} bytes; split it, leave it out, or \
         give RAM of {least_bytes} bytes or more"
    )]
    DocumentOverRam {
        /// The document.
        document: String,
        /// The bytes of its text.
        bytes: u64,
        /// The RAM of the index.
        ram_bytes: u64,
        /// RAM that suffices.
        least_bytes: u64,
    },
    /// A document that is in the index already, or twice in one run.
    #[error(
        "document {document} is in the index already, {difference}; remove the old one first, give each document an id \
         of its own, or skip repeated documents"
    )]
    Repeated {
        /// The document.
        document: String,
        /// States whether the text is the same.
        difference: &'static str,
    },
    /// A document to be removed that is not in the index.
    #[error(
        "document {document} cannot be removed: {reason}; its text is needed as it was when it was added"
    )]
    NotAdded {
        /// The document.
        document: String,
        /// States whether the id is unknown or the text differs.
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
    /// A file that is not an index of this kind, or of a version that this program does not know.
    #[error("this is not a readable TF-IDF index: {reason}")]
    NoIndex {
        /// The expected and the found value, and the remedy.
        reason: String,
    },
    /// A change whose commit failed, so that only reopening the index shows whether it counts.
    #[error(
        "an earlier change of this index failed while it was made durable; open the index again to see whether it counts"
    )]
    Unsure,
    /// Counts that no run can have written.
    #[error("the index contradicts itself: {reason}; build it again, or restore a copy")]
    Contradiction {
        /// The expected and the found value.
        reason: String,
    },
    /// There is no term for the matrix.
    #[error("no terms: {reason}")]
    NoTerms {
        /// The reason, and the remedy.
        reason: String,
    },
    /// A vector whose numbers the output cannot hold.
    #[error("cannot write the matrix: {reason}")]
    Matrix {
        /// The expected and the found value, and the remedy.
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

    /// The error of an invalid option.
    pub(crate) fn option(field: &'static str, reason: impl Into<String>) -> Self {
        Self::Options { field, reason: reason.into() }
    }
}
