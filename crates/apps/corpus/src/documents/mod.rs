//! The sources of texts: folders, lines, JSON lines, Parquet. One document is in memory at a time.
//!
//! | source | a document is | its id |
//! |---|---|---|
//! | [`Folder`] | a file, in the order of paths | its path below the folder |
//! | [`Lines`] | a line | its number, from 1 |
//! | [`JsonLines`] | a field of an object | a field, or the line's number |
//! | [`ParquetRows`] | a column of a row | a column, or the row's number |
//!
//! All sources are iterators, so a caller may add others. An empty document is a document: its row has no entries.
//!
//! A document may be a [vector](Content::Vector) in place of a text: a list of numbers in a field or a column, or in
//! brackets in a file or line. Its text is these numbers in brackets.

mod decode;
mod folder;
mod json_lines;
mod lines;
mod parquet;
#[cfg(test)]
mod tests;
mod vector;

use std::fs::File;
use std::io::BufReader;
use std::path::PathBuf;

pub use self::parquet::ParquetRows;
pub use decode::Decoding;
pub use folder::Folder;
pub use json_lines::JsonLines;
pub use lines::Lines;
pub use vector::{Content, vector_of};

use crate::{Error, Result};

/// The number of bytes of a buffer for reading.
const READ_BYTES: usize = 256 << 10;

/// A text, and its id.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Document {
    /// The id, which no other document of the index has.
    pub id: String,
    /// Its text.
    pub text: String,
}

impl Document {
    /// Creates a document of this id and text.
    pub fn new(id: impl Into<String>, text: impl Into<String>) -> Self {
        Self { id: id.into(), text: text.into() }
    }
}

/// A document, or the reason why it cannot be read.
pub type DocumentResult = Result<Document>;

/// The options of reading documents.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Reading {
    /// The handling of bytes that are not UTF-8.
    pub decoding: Decoding,
    /// The longest document in bytes, as it is stored; 64 MiB by default. A longer one is an error before more of it is
    /// read, so that a file without line ends cannot fill the memory.
    pub document_bytes_max: usize,
    /// The kind of a document; a text by default.
    pub content: Content,
}

impl Default for Reading {
    fn default() -> Self {
        Self {
            decoding: Decoding::Strict,
            document_bytes_max: 64 << 20,
            content: Content::default(),
        }
    }
}

/// The fields of an object, or columns of a row, that are read.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Fields {
    /// The field with the text, a string, or with the vector, a list of numbers; `text` by default.
    pub text: String,
    /// The field with the id, a string or a whole number. If `None`, the default, the id is the number of the line or
    /// row.
    pub id: Option<String>,
}

impl Default for Fields {
    fn default() -> Self {
        Self { text: "text".into(), id: None }
    }
}

/// A place that documents can be read from more than once.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Source {
    /// All files of a folder and the folders in it.
    Folder(PathBuf),
    /// The lines of a text file.
    Lines(PathBuf),
    /// A file with an object in each line.
    JsonLines {
        /// The file.
        path: PathBuf,
        /// The fields of each object that are read.
        fields: Fields,
    },
    /// A Parquet file.
    Parquet {
        /// The file.
        path: PathBuf,
        /// The columns that are read.
        fields: Fields,
    },
}

/// Documents one after another.
pub type Documents<'a> = Box<dyn Iterator<Item = DocumentResult> + 'a>;

impl Source {
    /// Returns all documents, from the first.
    ///
    /// # Errors
    /// A file or folder that cannot be opened. Items: [`Error::File`], and the errors of documents.
    pub fn documents(&self, reading: Reading) -> Result<Documents<'static>> {
        Ok(match self {
            Self::Folder(path) => Box::new(Folder::new(path, reading)?),
            Self::Lines(path) => {
                Box::new(Lines::new(open(path)?, path.display().to_string(), reading))
            }
            Self::JsonLines { path, fields } => {
                let name = path.display().to_string();
                Box::new(JsonLines::new(open(path)?, name, fields.clone(), reading))
            }
            Self::Parquet { path, fields } => Box::new(ParquetRows::open(path, fields, reading)?),
        })
    }
}

fn open(path: &PathBuf) -> Result<BufReader<File>> {
    let file = File::open(path).map_err(Error::file("open", path))?;
    Ok(BufReader::with_capacity(READ_BYTES, file))
}
