//! The common part of the applications for texts: sources of documents, characters of words, temporary files, and the
//! tables of an index of documents.
//!
//! 1. [`documents`] reads texts from folders, lines, JSON lines and Parquet, one at a time.
//! 2. [`characters`] knows the characters of words, as Python does; [`ascii_words`] finds the words of ASCII texts
//!    fast.
//! 3. [`scratch`] has files without names, and [`sort`] sorts in them data that does not fit into RAM.
//! 4. [`tables`] creates and opens the volume of an index, and the tables in it that grow.
#![forbid(unsafe_code)]

pub mod ascii_words;
pub mod characters;
pub mod cut;
pub mod documents;
mod error;
pub mod parts;
pub mod scratch;
pub mod sort;
pub mod tables;

pub use documents::{Document, DocumentResult};
pub use error::{Error, Result};
