//! Documents for the verbs that read texts: their inputs, and a thread that reads them.

use std::env;
use std::path::PathBuf;

pub mod broken;
pub mod input;
pub mod stream;

pub use broken::{Broken, BrokenArgs, LeftOut};
pub use input::{InputArgs, Inputs, OptionalInputArgs};
pub use stream::{OnInterrupt, Stream};

/// Returns the folder of files without names: `$TMPDIR` if that is set, else the current folder, since the system's
/// default is often in memory.
pub fn scratch() -> PathBuf {
    env::var_os("TMPDIR").map_or_else(|| PathBuf::from("."), PathBuf::from)
}

/// Returns the option that solves an error of a document or of a file of texts, if there is one.
pub fn hint(error: &nandex_corpus::Error) -> Option<&'static str> {
    use nandex_corpus::Error;
    Some(match error {
        Error::Utf8 { .. } => "--decoding replace or --decoding ignore reads it",
        Error::DocumentTooLong { .. } => {
            "--document-bytes, and --ram of eight times the document or more"
        }
        Error::Scratch { .. } => "TMPDIR names that folder",
        _ => return None,
    })
}
