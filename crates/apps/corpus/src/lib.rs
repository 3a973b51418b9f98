//! What the applications for texts share: where documents come from, what is a part of a word, files for what does not
//! fit into RAM, and the tables of an index of documents.
//!
//! 1. [`documents`] reads texts from folders, lines, JSON lines and Parquet, one at a time.
//! 2. [`characters`] says which characters words are made of, as Python does; [`ascii_words`] finds the words of ASCII
//!    texts fast.
//! 3. [`scratch`] has files without names, and [`sort`] sorts in them what does not fit into RAM.
//! 4. [`tables`] makes and opens the volume of an index, and the tables in it that grow.
#![forbid(unsafe_code)]

pub mod ascii_words;
pub mod characters;
pub mod documents;
mod error;
pub mod parts;
pub mod scratch;
pub mod sort;
pub mod tables;

pub use documents::{Document, DocumentResult};
pub use error::{Error, Result};
