//! The errors of a run, each with the place and the remedy.

use std::io;

/// The result of a run or one of its parts.
pub type Result<T> = std::result::Result<T, Error>;

/// An error of a run.
#[derive(thiserror::Error, Debug)]
#[non_exhaustive]
pub enum Error {
    /// A structure of the index failed.
    #[error("the index: {0}")]
    Index(#[from] nandex::Error),
    /// The volume of the index failed, or has unexpected content.
    #[error("the index's file: {0}")]
    Volume(#[from] nandex::raw::store::Error),
    /// The file of the index cannot be used.
    #[error("the index's file: {0}")]
    Device(#[from] nandex::raw::device::Error),
    /// No space is left. The index stays in its state before the batch of documents.
    #[error(
        "no space for more documents: {0}; an index does not grow: make an index for more documents"
    )]
    NoSpace(#[source] nandex::Error),
    /// A document that cannot be read, or a file that cannot be read or written.
    #[error(transparent)]
    Input(#[from] nandex_corpus::Error),
    /// An output that failed.
    #[error("cannot write: {0}")]
    Output(#[source] io::Error),
    /// An invalid option.
    #[error("{field}: {reason}")]
    Options {
        /// The name of the option.
        field: &'static str,
        /// The fault of the value, and a value that would work.
        reason: String,
    },
    /// A document whose id is already in the index.
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
    /// An index of other hashes or other shingles.
    #[error(
        "the index has other signatures: it has {found}, and {expected} was asked for; give the options that it was made \
         with, or make another one"
    )]
    OtherOptions {
        /// The requested signatures.
        expected: String,
        /// The signatures of the index.
        found: String,
    },
    /// A file that is not an index of this kind, or of a version that this program does not know.
    #[error("this is not a readable index of near-duplicates: {reason}")]
    NoIndex {
        /// The expected and the found value, and the remedy.
        reason: String,
    },
    /// A change whose commit failed, so that only reopening the index shows whether it counts.
    #[error(
        "an earlier change of this index failed while it was made durable; open the index again to see whether it counts"
    )]
    Unsure,
    /// Bytes that no run can have written.
    #[error("the index contradicts itself: {reason}; build it again, or restore a copy")]
    Contradiction {
        /// The expected and the found value.
        reason: String,
    },
}

impl Error {
    /// The error of an invalid option.
    pub(crate) fn option(field: &'static str, reason: impl Into<String>) -> Self {
        Self::Options { field, reason: reason.into() }
    }
}
