//! Writes matrices and vocabularies to files that other programs read.
//!
//! | file | what reads it | content |
//! |---|---|---|
//! | matrix, `.npz` | `scipy.sparse.load_npz` | CSR: a row for each document, float64 |
//! | vocabulary, JSON lines | anything | `column`, `term`, `documents`, `idf` of each column, in order |
//! | documents, JSON lines | anything | `row` and `id` of each row, in order |
//! | matrix, Parquet | pandas, Spark, DuckDB | `id`, `indices`, `values` of each document |
//! | vocabulary, Parquet | the same | `term`, `documents`, `idf` of each column, in order |
//!
//! A file appears under its name when it is whole: an error leaves none, and a previous file stays.

mod lines;
mod npy;
mod npz;
mod parquet;
mod target;
#[cfg(test)]
mod tests;

use std::path::PathBuf;

use nandex_corpus::DocumentResult;

pub use self::parquet::ParquetFiles;

use crate::{Model, Result};
use lines::LinesWriter;
use npz::NpzWriter;

/// The files of a matrix and its parts.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct MatrixFiles {
    /// The matrix.
    pub matrix: PathBuf,
    /// The terms of its columns, if wanted.
    pub vocabulary: Option<PathBuf>,
    /// The ids of its rows, if wanted.
    pub documents: Option<PathBuf>,
}

/// The size of a matrix.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct MatrixShape {
    /// The number of documents.
    pub rows: u64,
    /// The number of terms.
    pub columns: u64,
    /// The number of nonzero entries.
    pub entries: u64,
}

impl Model<'_> {
    /// Writes the matrix of `documents` in scipy's format, with its vocabulary and documents.
    ///
    /// Costs as much as [`rows`](Self::rows), and the matrix is written twice: its parts are in temporary files of its
    /// folder first, since a part begins with its length.
    ///
    /// # Errors
    /// As `rows`, and a failed write.
    pub fn write_npz(
        &self,
        documents: impl IntoIterator<Item = DocumentResult>,
        files: &MatrixFiles,
    ) -> Result<MatrixShape> {
        let mut matrix = NpzWriter::new(&files.matrix, self.columns())?;
        let mut ids = files.documents.as_deref().map(LinesWriter::new).transpose()?;
        self.rows(documents, |row| {
            if let Some(ids) = &mut ids {
                ids.push(&lines::RowLine { row: matrix.rows(), id: row.id })?;
            }
            matrix.push(row.entries)
        })?;
        self.write_vocabulary(files)?;
        ids.map_or(Ok(()), LinesWriter::finish)?;
        matrix.finish()
    }

    fn write_vocabulary(&self, files: &MatrixFiles) -> Result<()> {
        let Some(path) = &files.vocabulary else { return Ok(()) };
        let mut lines = LinesWriter::new(path)?;
        for (column, term) in (0..).zip(self.terms()) {
            let term = term?;
            let (documents, idf) = (term.documents, term.idf);
            lines.push(&lines::TermLine { column, term: &term.text, documents, idf })?;
        }
        lines.finish()
    }
}
