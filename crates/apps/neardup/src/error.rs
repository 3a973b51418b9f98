//! What can stop a run, with the place and the remedy.

use std::io;

/// The result of a run or one of its parts.
pub type Result<T> = std::result::Result<T, Error>;

/// What can stop a run.
#[derive(thiserror::Error, Debug)]
#[non_exhaustive]
pub enum Error {
    /// A structure of the index failed.
    #[error("the index: {0}")]
    Index(#[from] nandex::Error),
    /// The volume of the index failed, or holds what it should not.
    #[error("the index's file: {0}")]
    Volume(#[from] nandex::raw::store::Error),
    /// The file of the index cannot be used.
    #[error("the index's file: {0}")]
    Device(#[from] nandex::raw::device::Error),
    /// No space is left. The index stays as it was before the batch of documents.
    #[error(
        "no space for more documents: {0}; an index does not grow: make an index for more documents"
    )]
    NoSpace(#[source] nandex::Error),
    /// A document that cannot be read, or a file that cannot be read or written.
    #[error(transparent)]
    Input(#[from] nandex_corpus::Error),
    /// An output that refused.
    #[error("cannot write: {0}")]
    Output(#[source] io::Error),
    /// An option that cannot work.
    #[error("{field}: {reason}")]
    Options {
        /// Which option.
        field: &'static str,
        /// What is wrong with it, and what would do.
        reason: String,
    },
    /// A document whose id the index has already.
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
    /// An index of other hashes or other shingles.
    #[error(
        "the index has other signatures: it has {found}, and {expected} was asked for; give the options that it was made \
         with, or make another one"
    )]
    OtherOptions {
        /// What was asked for.
        expected: String,
        /// What the index has.
        found: String,
    },
    /// A file that is no index of this kind, or of a version that this program does not know.
    #[error("this is no index of near-duplicates that can be read: {reason}")]
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
    /// Bytes that no run can have left.
    #[error("the index contradicts itself: {reason}; build it again, or restore a copy")]
    Contradiction {
        /// What was expected, and what was found.
        reason: String,
    },
}

impl Error {
    /// The refusal of an option.
    pub(crate) fn option(field: &'static str, reason: impl Into<String>) -> Self {
        Self::Options { field, reason: reason.into() }
    }
}
