//! Writes matrices and vocabularies in Parquet.
//!
//! A matrix has a row for each document: its `id`, the `indices` of its columns, and their `values`. A vocabulary has a
//! row for each column, in order: its `term`, its `documents` and its `idf`.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use nandex_corpus::DocumentResult;
use parquet::basic::Compression;
use parquet::data_type::{ByteArray, ByteArrayType, DataType, DoubleType, Int64Type};
use parquet::errors::ParquetError;
use parquet::file::properties::WriterProperties;
use parquet::file::writer::{SerializedFileWriter, SerializedRowGroupWriter};
use parquet::schema::parser::parse_message_type;

use super::MatrixShape;
use super::target::Target;
use crate::{Entry, Error, Model, Result};

/// The schema of a matrix.
const MATRIX: &str = "message matrix {
    required binary id (STRING);
    required group indices (LIST) { repeated group list { required int64 element; } }
    required group values (LIST) { repeated group list { required double element; } }
}";

/// The schema of a vocabulary.
const VOCABULARY: &str = "message vocabulary {
    required binary term (STRING);
    required int64 documents;
    required double idf;
}";

/// The entries or the rows of a row group; about 20 MB.
const GROUP_ENTRIES: usize = 1 << 20;
const GROUP_ROWS: usize = 1 << 17;

/// The result of writing a column or a row group.
type Written = std::result::Result<(), ParquetError>;

/// The files of a matrix and its vocabulary.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ParquetFiles {
    /// The matrix.
    pub matrix: PathBuf,
    /// The terms of its columns, if wanted.
    pub vocabulary: Option<PathBuf>,
}

impl Model<'_> {
    /// Writes the matrix of `documents` in Parquet, compressed with Snappy, and the vocabulary. pandas, Spark, DuckDB
    /// and the like can read the files.
    ///
    /// Costs as much as [`rows`](Self::rows), and about 60 MB of RAM.
    ///
    /// # Errors
    /// As `rows`, and a failed write.
    pub fn write_parquet(
        &self,
        documents: impl IntoIterator<Item = DocumentResult>,
        files: &ParquetFiles,
    ) -> Result<MatrixShape> {
        let mut file = Writer::new(&files.matrix, MATRIX)?;
        let mut group = MatrixGroup::default();
        let mut shape = MatrixShape { columns: self.columns(), ..MatrixShape::default() };
        self.rows(documents, |row| {
            shape.rows += 1;
            shape.entries += row.entries.len() as u64;
            group.push(row.id, row.entries)?;
            if group.is_full() { file.write(std::mem::take(&mut group)) } else { Ok(()) }
        })?;
        file.write(group)?;
        if let Some(path) = &files.vocabulary {
            self.write_terms(path)?;
        }
        file.finish()?;
        Ok(shape)
    }

    fn write_terms(&self, path: &Path) -> Result<()> {
        let mut file = Writer::new(path, VOCABULARY)?;
        let mut group = TermGroup::default();
        for term in self.terms() {
            let term = term?;
            group.documents.push(signed(term.documents)?);
            group.idfs.push(term.idf);
            group.terms.push(ByteArray::from(term.text.into_bytes()));
            if group.terms.len() == GROUP_ROWS {
                file.write(std::mem::take(&mut group))?;
            }
        }
        file.write(group)?;
        file.finish()
    }
}

fn signed(number: u64) -> Result<i64> {
    i64::try_from(number).map_err(|_| Error::Matrix {
        reason: format!("{number} is past 2^63 - 1, the most that Parquet has; write npz"),
    })
}

/// The columns of a row group.
trait Group {
    fn is_empty(&self) -> bool;

    fn write(&self, group: &mut SerializedRowGroupWriter<'_, Target>) -> Written;
}

/// A file of row groups.
struct Writer {
    path: PathBuf,
    file: SerializedFileWriter<Target>,
}

impl Writer {
    fn new(path: &Path, schema: &str) -> Result<Self> {
        let failed = failed(path);
        let schema = Arc::new(parse_message_type(schema).map_err(&failed)?);
        let properties = WriterProperties::builder().set_compression(Compression::SNAPPY).build();
        let file = SerializedFileWriter::new(Target::new(path)?, schema, Arc::new(properties));
        Ok(Self { path: path.to_path_buf(), file: file.map_err(failed)? })
    }

    fn write(&mut self, group: impl Group) -> Result<()> {
        if group.is_empty() {
            return Ok(());
        }
        let mut write = || -> Written {
            let mut writer = self.file.next_row_group()?;
            group.write(&mut writer)?;
            writer.close().map(drop)
        };
        write().map_err(failed(&self.path))
    }

    fn finish(self) -> Result<()> {
        self.file.into_inner().map_err(failed(&self.path))?.finish()
    }
}

fn failed(path: &Path) -> impl Fn(ParquetError) -> Error + use<> {
    let path = path.to_path_buf();
    move |error| Error::file("write", &path)(std::io::Error::other(error))
}

/// The rows of a matrix. Each entry has two levels in the file: whether it exists, and whether it continues a row.
#[derive(Default)]
struct MatrixGroup {
    ids: Vec<ByteArray>,
    indices: Vec<i64>,
    values: Vec<f64>,
    are_there: Vec<i16>,
    go_on: Vec<i16>,
}

impl MatrixGroup {
    fn push(&mut self, id: &str, row: &[Entry]) -> Result<()> {
        self.ids.push(ByteArray::from(id));
        for entry in row {
            self.indices.push(signed(entry.column)?);
            self.values.push(entry.value);
        }
        // A row without entries has one level that marks it.
        self.are_there.extend((0..row.len().max(1)).map(|_| i16::from(!row.is_empty())));
        self.go_on.extend((0..row.len().max(1)).map(|at| i16::from(at > 0)));
        Ok(())
    }

    fn is_full(&self) -> bool {
        self.ids.len() >= GROUP_ROWS || self.are_there.len() >= GROUP_ENTRIES
    }
}

impl Group for MatrixGroup {
    fn is_empty(&self) -> bool {
        self.ids.is_empty()
    }

    fn write(&self, group: &mut SerializedRowGroupWriter<'_, Target>) -> Written {
        let levels = Some((&self.are_there[..], &self.go_on[..]));
        column::<ByteArrayType>(group, &self.ids, None)?;
        column::<Int64Type>(group, &self.indices, levels)?;
        column::<DoubleType>(group, &self.values, levels)
    }
}

/// The rows of a vocabulary.
#[derive(Default)]
struct TermGroup {
    terms: Vec<ByteArray>,
    documents: Vec<i64>,
    idfs: Vec<f64>,
}

impl Group for TermGroup {
    fn is_empty(&self) -> bool {
        self.terms.is_empty()
    }

    fn write(&self, group: &mut SerializedRowGroupWriter<'_, Target>) -> Written {
        column::<ByteArrayType>(group, &self.terms, None)?;
        column::<Int64Type>(group, &self.documents, None)?;
        column::<DoubleType>(group, &self.idfs, None)
    }
}

/// Writes the next column of a row group.
fn column<T: DataType>(
    group: &mut SerializedRowGroupWriter<'_, Target>,
    values: &[T::T],
    levels: Option<(&[i16], &[i16])>,
) -> Written {
    let missing = || ParquetError::General("the schema has fewer columns than rows".into());
    let mut column = group.next_column()?.ok_or_else(missing)?;
    let (are_there, go_on) = levels.unzip();
    column.typed::<T>().write_batch(values, are_there, go_on)?;
    column.close()
}
