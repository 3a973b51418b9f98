//! Documents in the rows of a Parquet file.

use std::collections::VecDeque;
use std::fs::File;
use std::path::Path;

use parquet::basic::Type as Physical;
use parquet::column::reader::{ColumnReader, ColumnReaderImpl};
use parquet::data_type::DataType;
use parquet::errors::ParquetError;
use parquet::file::reader::{FileReader, SerializedFileReader};
use parquet::schema::types::SchemaDescriptor;

use super::{Content, Document, Fields, Reading};
use crate::{Error, Result};

/// The number of rows that are read at a time.
const ROWS: usize = 256;

/// The rows of a Parquet file, one column of which is the text or the vector; another one may be the id.
///
/// A column may be compressed with Snappy, gzip or LZ4. The reader holds a page of each of the two columns, whose size
/// the writer of the file has chosen, often 1 MiB; the limit of a document's length is checked after that.
pub struct ParquetRows {
    reader: SerializedFileReader<File>,
    /// The name of the file in errors.
    name: String,
    reading: Reading,
    columns: (Leaf, Option<Leaf>),
    /// The current row group, and the number of the next.
    group: Option<(ColumnReader, Option<ColumnReader>)>,
    next_group: usize,
    waiting: VecDeque<Document>,
    row: u64,
    failure: Option<Error>,
    failed: bool,
}

/// A column of values.
#[derive(Clone, Debug)]
struct Leaf {
    name: String,
    index: usize,
    /// The level of a value that is present; lower ones are null.
    level: i16,
    /// Whether a cell is a list of values.
    is_list: bool,
}

/// A value of a supported column.
enum Cell {
    Bytes(Vec<u8>),
    Number(i64),
    Vector(Vec<f32>),
}

impl ParquetRows {
    /// Opens a file and its columns of these names. Without a column for ids, a row's number, from 1, is its id.
    ///
    /// # Errors
    /// A file that cannot be opened or is not Parquet, or has no such columns.
    pub fn open(path: &Path, fields: &Fields, reading: Reading) -> Result<Self> {
        let name = path.display().to_string();
        let file = File::open(path).map_err(Error::file("open", path))?;
        let reader = SerializedFileReader::new(file).map_err(|error| malformed(&name, &error))?;
        let schema = reader.metadata().file_metadata().schema_descr();
        let text = match reading.content {
            Content::Text => leaf(schema, &fields.text, &[Physical::BYTE_ARRAY]),
            Content::Vector { .. } => list_leaf(schema, &fields.text),
        };
        let kinds = [Physical::BYTE_ARRAY, Physical::INT32, Physical::INT64];
        let id = fields.id.as_ref().map(|id| leaf(schema, id, &kinds)).transpose();
        let refuse = |reason| Error::Malformed { document: name.clone(), reason };
        let columns = (text.map_err(refuse)?, id.map_err(refuse)?);
        Ok(Self {
            columns,
            reader,
            name,
            reading,
            group: None,
            next_group: 0,
            waiting: VecDeque::new(),
            row: 0,
            failure: None,
            failed: false,
        })
    }

    /// Reads some rows. None are waiting afterwards at the end of the file.
    fn fill(&mut self) -> Result<()> {
        while self.waiting.is_empty() {
            if self.group.is_none() && !self.begin_group()? {
                return Ok(());
            }
            let Some((text, id)) = &mut self.group else { return Ok(()) };
            let (text_leaf, id_leaf) = &self.columns;
            let texts = cells(text, text_leaf).map_err(|error| malformed(&self.name, &error))?;
            let ids = match (id, id_leaf) {
                (Some(id), Some(leaf)) => {
                    Some(cells(id, leaf).map_err(|error| malformed(&self.name, &error))?)
                }
                _ => None,
            };
            if texts.is_empty() {
                self.group = None;
            }
            let mut ids = ids.map(Vec::into_iter);
            for text in texts {
                let id = ids.as_mut().map(|ids| ids.next().flatten());
                let document = self.document(text, id)?;
                self.waiting.push_back(document);
            }
        }
        Ok(())
    }

    fn begin_group(&mut self) -> Result<bool> {
        if self.next_group >= self.reader.num_row_groups() {
            return Ok(false);
        }
        let open = || -> parquet::errors::Result<_> {
            let group = self.reader.get_row_group(self.next_group)?;
            let text = group.get_column_reader(self.columns.0.index)?;
            let id = self.columns.1.as_ref().map(|leaf| group.get_column_reader(leaf.index));
            Ok((text, id.transpose()?))
        };
        self.group = Some(open().map_err(|error| malformed(&self.name, &error))?);
        self.next_group += 1;
        Ok(true)
    }

    /// Returns the document of the next row, from its text and the cell of its id if there is such a column.
    fn document(&mut self, text: Option<Cell>, id: Option<Option<Cell>>) -> Result<Document> {
        self.row += 1;
        let place = || format!("{}:{}", self.name, self.row);
        let null = |leaf: &Leaf| Error::Malformed {
            document: place(),
            reason: format!(
                "expected a value in the column {:?}, found null; fill it, or leave the row out",
                leaf.name
            ),
        };
        let decode = |bytes: Vec<u8>| {
            let bytes_max = self.reading.document_bytes_max;
            if bytes.len() > bytes_max {
                return Err(Error::DocumentTooLong { document: place(), bytes_max });
            }
            self.reading.decoding.decode(bytes, place)
        };
        let id = match (id, &self.columns.1) {
            (Some(Some(Cell::Bytes(bytes))), _) => decode(bytes)?,
            (Some(Some(Cell::Number(number))), _) => number.to_string(),
            (Some(None), Some(leaf)) => return Err(null(leaf)),
            _ => self.row.to_string(),
        };
        match text {
            Some(Cell::Bytes(bytes)) => Ok(Document { id, text: decode(bytes)? }),
            Some(Cell::Vector(numbers)) => {
                let text = self.reading.content.text_of(&numbers);
                let malformed = |reason| Error::Malformed { document: place(), reason };
                Ok(Document { id, text: text.map_err(malformed)? })
            }
            _ => Err(null(&self.columns.0)),
        }
    }
}

impl std::fmt::Debug for ParquetRows {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { name, columns, row, .. } = self;
        let mut shown = f.debug_struct("ParquetRows");
        shown.field("name", name).field("columns", columns).field("row", row);
        shown.finish_non_exhaustive()
    }
}

impl Iterator for ParquetRows {
    type Item = Result<Document>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.waiting.is_empty() && !self.failed {
            // Documents that were read before a failure precede it.
            self.failure = self.fill().err();
            self.failed = self.failure.is_some();
        }
        let document = self.waiting.pop_front().map(Ok);
        document.or_else(|| self.failure.take().map(Err))
    }
}

fn malformed(name: &str, error: &ParquetError) -> Error {
    let reason =
        format!("expected a Parquet file, compressed with snappy, gzip or lz4 if at all: {error}");
    Error::Malformed { document: name.to_owned(), reason }
}

/// Returns the column of a name, if it has one value in each row, of one of these kinds.
fn leaf(
    schema: &SchemaDescriptor,
    name: &str,
    kinds: &[Physical],
) -> std::result::Result<Leaf, String> {
    let columns = schema.columns();
    let Some(index) = columns.iter().position(|column| column.path().string() == name) else {
        let names: Vec<String> = columns.iter().map(|column| column.path().string()).collect();
        return Err(format!("expected a column {name:?}, found {names:?}; name one of these"));
    };
    let column = &columns[index];
    let kind = column.physical_type();
    if column.max_rep_level() > 0 || !kinds.contains(&kind) {
        let list = if column.max_rep_level() > 0 { "lists of " } else { "" };
        return Err(format!(
            "expected one of {kinds:?} in the column {name:?}, found {list}{kind}; name a column of texts"
        ));
    }
    let level = column.max_def_level();
    Ok(Leaf { name: name.to_owned(), index, level, is_list: false })
}

/// Returns the column of a name, if it has a list of numbers in each row. Its path in the file has more names after its
/// own.
fn list_leaf(schema: &SchemaDescriptor, name: &str) -> std::result::Result<Leaf, String> {
    const KINDS: [Physical; 2] = [Physical::FLOAT, Physical::DOUBLE];
    let columns = schema.columns();
    let is_it = |path: &[String]| path.first().is_some_and(|first| first == name);
    let Some(index) = columns.iter().position(|column| is_it(column.path().parts())) else {
        let first = |path: &[String]| path.first().cloned().unwrap_or_default();
        let names: Vec<String> = columns.iter().map(|it| first(it.path().parts())).collect();
        return Err(format!("expected a column {name:?}, found {names:?}; name one of these"));
    };
    let (column, kind) = (&columns[index], columns[index].physical_type());
    if column.max_rep_level() != 1 || !KINDS.contains(&kind) {
        let list =
            ["", "lists of ", "lists of lists of "][column.max_rep_level().clamp(0, 2) as usize];
        return Err(format!(
            "expected lists of one of {KINDS:?} in the column {name:?}, found {list}{kind}; name a column of vectors"
        ));
    }
    let level = column.max_def_level();
    Ok(Leaf { name: name.to_owned(), index, level, is_list: true })
}

/// Returns the next cells of a column; none at the end of the row group.
fn cells(reader: &mut ColumnReader, leaf: &Leaf) -> parquet::errors::Result<Vec<Option<Cell>>> {
    match reader {
        ColumnReader::ByteArrayColumnReader(reader) => {
            read(reader, leaf, |bytes| Cell::Bytes(bytes.data().to_vec()))
        }
        ColumnReader::Int32ColumnReader(reader) => {
            read(reader, leaf, |number| Cell::Number(number.into()))
        }
        ColumnReader::Int64ColumnReader(reader) => read(reader, leaf, Cell::Number),
        ColumnReader::FloatColumnReader(reader) if leaf.is_list => {
            read_lists(reader, leaf, |number| number)
        }
        ColumnReader::DoubleColumnReader(reader) if leaf.is_list => {
            read_lists(reader, leaf, |number| number as f32)
        }
        _ => Err(ParquetError::General(format!("the column {:?} has other values", leaf.name))),
    }
}

fn read<T: DataType>(
    reader: &mut ColumnReaderImpl<T>,
    leaf: &Leaf,
    cell: impl Fn(T::T) -> Cell,
) -> parquet::errors::Result<Vec<Option<Cell>>> {
    let (mut levels, mut values) = (Vec::new(), Vec::new());
    let (rows, _, _) = reader.read_records(ROWS, Some(&mut levels), None, &mut values)?;
    let mut values = values.into_iter().map(cell);
    if leaf.level == 0 {
        return Ok(values.map(Some).take(rows).collect());
    }
    let is_there = |level: &i16| *level == leaf.level;
    Ok(levels.iter().map(|level| if is_there(level) { values.next() } else { None }).collect())
}

/// Returns the next cells of a column of lists. A list with a null in it, and a null list, are not cells.
fn read_lists<T: DataType>(
    reader: &mut ColumnReaderImpl<T>,
    leaf: &Leaf,
    number: impl Fn(T::T) -> f32,
) -> parquet::errors::Result<Vec<Option<Cell>>> {
    let (mut levels, mut repeats, mut values) = (Vec::new(), Vec::new(), Vec::new());
    reader.read_records(ROWS, Some(&mut levels), Some(&mut repeats), &mut values)?;
    let mut values = values.into_iter().map(number);
    let mut lists: Vec<Option<Vec<f32>>> = Vec::new();
    for (level, repeat) in levels.iter().zip(&repeats) {
        let value = if *level == leaf.level { values.next() } else { None };
        match (repeat, lists.last_mut(), value) {
            (0, _, value) => lists.push(value.map(|value| vec![value])),
            (_, Some(Some(list)), Some(value)) => list.push(value),
            (_, Some(list), _) => *list = None,
            (_, None, _) => {}
        }
    }
    Ok(lists.into_iter().map(|list| list.map(Cell::Vector)).collect())
}
