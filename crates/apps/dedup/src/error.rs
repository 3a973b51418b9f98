//! The errors of a run, each with the place and the remedy.
//!
//! A file that cannot be read never stops a run: it is skipped and listed in the summary.

use std::io;
use std::path::PathBuf;

/// The result of a run or one of its parts.
pub type Result<T> = std::result::Result<T, Error>;

/// An error of a run.
#[derive(thiserror::Error, Debug)]
#[non_exhaustive]
pub enum Error {
    /// The fingerprint table failed.
    #[error("the fingerprint table: {0}")]
    Index(#[from] nandex::Error),
    /// A path given by the caller cannot be examined.
    #[error(
        "cannot look at {}: {source}; give paths that exist and that this user may read",
        path.display()
    )]
    Path {
        /// The path as it was given.
        path: PathBuf,
        /// The error of the system.
        source: io::Error,
    },
    /// An invalid chunker, average or hash.
    #[error(transparent)]
    Chunk(#[from] nandex_chunk::Error),
    /// More trees to compare than a value has space for, or fewer than two.
    #[error(
        "{found} trees to compare: a run compares 2 to {max} trees; leave some out, or compare directories above them",
        max = crate::TREES_MAX
    )]
    Trees {
        /// The number of paths that were given.
        found: usize,
    },
    /// A table whose keys or values have another width than the run needs.
    #[error(
        "the table holds {what}s of {found} bytes, but {expected} are needed: create it with keys of {key_bytes} bytes and values of {value_bytes} bytes, or choose the hash it was created for"
    )]
    Width {
        /// `key` or `value`.
        what: &'static str,
        /// The bytes that the run needs.
        expected: usize,
        /// The bytes that the table has.
        found: usize,
        /// The bytes of a key under the chosen hash.
        key_bytes: usize,
        /// The bytes of a value of this run.
        value_bytes: usize,
    },
    /// An entry that no run with this table can have written.
    #[error(
        "under fingerprint {fingerprint} the table says a chunk of {found} bytes, but the chunk just read has {expected}: this table was filled by something else or is damaged; use a table made for chunk fingerprints"
    )]
    Foreign {
        /// The fingerprint, in hexadecimal.
        fingerprint: String,
        /// The bytes of the current chunk.
        expected: u32,
        /// The bytes in the table.
        found: u32,
    },
}
