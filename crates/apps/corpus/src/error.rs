//! The errors of reading documents, each with the place and the remedy.

use std::io;
use std::path::{Path, PathBuf};

/// The result of reading documents, and of temporary files.
pub type Result<T> = std::result::Result<T, Error>;

/// An error of reading documents.
#[derive(thiserror::Error, Debug)]
#[non_exhaustive]
pub enum Error {
    /// A file or a folder that cannot be read or written.
    #[error("cannot {action} {}: {source}", path.display())]
    File {
        /// The failed action, such as `read`.
        action: &'static str,
        /// The file or folder.
        path: PathBuf,
        /// The error of the system.
        source: io::Error,
    },
    /// A temporary file, or an output that has no path, cannot be read or written.
    #[error("cannot {action}: {source}; look at the free space of the folder for temporary files")]
    Scratch {
        /// The failed action.
        action: &'static str,
        /// The error of the system.
        source: io::Error,
    },
    /// A document that is not UTF-8.
    #[error(
        "document {document}: expected UTF-8, found byte {byte:#04x} at byte {offset}; convert it, or read with \
         decoding errors replaced"
    )]
    Utf8 {
        /// The document.
        document: String,
        /// The offset of the first wrong byte, from 0.
        offset: usize,
        /// That byte.
        byte: u8,
    },
    /// A document that is too long for RAM.
    #[error(
        "document {document}: more than {bytes_max} bytes; split it, or raise document_bytes_max"
    )]
    DocumentTooLong {
        /// The document.
        document: String,
        /// The most bytes that are read.
        bytes_max: usize,
    },
    /// A document in a form that the source does not support.
    #[error("document {document}: {reason}")]
    Malformed {
        /// The document.
        document: String,
        /// The expected and the found form, and the remedy.
        reason: String,
    },
}

impl Error {
    /// Creates the error of a file; for `map_err`.
    pub fn file(action: &'static str, path: &Path) -> impl FnOnce(io::Error) -> Self {
        let path = path.to_path_buf();
        move |source| Self::File { action, path, source }
    }

    /// Creates the error of a temporary file; for `map_err`.
    pub fn scratch(action: &'static str) -> impl FnOnce(io::Error) -> Self {
        move |source| Self::Scratch { action, source }
    }
}
