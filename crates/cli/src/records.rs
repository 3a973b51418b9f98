//! Records in files: CSV, NDJSON and plain binary, read and written one at a time.
//!
//! CSV has two columns and, if the first line is `key,value`, a header. NDJSON has one object `{"key": .., "value":
//! ..}` per line; numbers may be without quotes. Binary is key after value after key, without separators, for fixed
//! widths.

use std::io::{self, BufRead, BufReader, Read, Write};

use anyhow::{Context, Result, anyhow, bail};
use clap::ValueEnum;
use serde_json::{Value, json};

use crate::field::{Column, FieldFormat};
use crate::size;

/// The format of records in a file.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
pub enum RecordFormat {
    /// Two columns, quoted where needed
    Csv,
    /// One JSON object for each line
    Ndjson,
    /// Keys and values of fixed width with nothing between
    Binary,
}

/// The two columns of a table.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Columns {
    /// The column of keys.
    pub key: Column,
    /// The column of values.
    pub value: Column,
}

/// One record, as the table stores it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Record {
    /// As wide as the table's keys, if those have one width.
    pub key: Vec<u8>,
    /// As wide as the table's values, if those have one width.
    pub value: Vec<u8>,
}

impl Columns {
    fn record(&self, key: &str, value: &str) -> Result<Record> {
        let key = self.key.parse(key).map_err(|why| anyhow!(why))?;
        let value = self.value.parse(value).map_err(|why| anyhow!(why))?;
        Ok(Record { key, value })
    }
}

/// Returns the records of `input` one after another; an error names the line or the record.
pub fn read<'a>(
    input: Box<dyn BufRead + 'a>,
    format: RecordFormat,
    columns: Columns,
) -> Box<dyn Iterator<Item = Result<Record>> + 'a> {
    match format {
        RecordFormat::Csv => Box::new(read_csv(input, columns)),
        RecordFormat::Ndjson => Box::new(read_ndjson(input, columns)),
        RecordFormat::Binary => Box::new(BinaryReader { input, columns, index: 0 }),
    }
}

/// The longest record in a format with lines, in bytes.
const RECORD_BYTES_MAX: usize = 64 << 20;

/// Rejects records that never end, so that a file without newlines does not fill memory.
pub struct Bounded<R> {
    input: R,
    /// Whether newlines between quotes belong to a record.
    has_quotes: bool,
    /// The byte between fields.
    delimiter: u8,
    place: QuotePlace,
    record_bytes: usize,
}

/// The place of a byte of CSV. A quote opens a field only at its start, and after a quote that closes one: then both
/// are a quote of the field.
#[derive(Clone, Copy, PartialEq, Eq)]
enum QuotePlace {
    FieldStart,
    Plain,
    Quoted,
    Closed,
}

impl QuotePlace {
    fn after(self, byte: u8, delimiter: u8) -> Self {
        match (self, byte) {
            (Self::Quoted, b'"') => Self::Closed,
            (Self::Quoted, _) | (Self::FieldStart | Self::Closed, b'"') => Self::Quoted,
            (_, b'\n' | b'\r') => Self::FieldStart,
            _ if byte == delimiter => Self::FieldStart,
            _ => Self::Plain,
        }
    }
}

impl<R: Read> Bounded<R> {
    /// Creates a reader of an input, with or without quotes.
    pub fn new(input: R, has_quotes: bool) -> Self {
        let (delimiter, place) = (b',', QuotePlace::FieldStart);
        Self { input, has_quotes, delimiter, place, record_bytes: 0 }
    }

    /// Creates a reader of records in quotes where needed, with this byte between fields.
    pub fn delimited(input: R, delimiter: u8) -> Self {
        Self { delimiter, ..Self::new(input, true) }
    }

    /// Returns the input.
    pub fn get_ref(&self) -> &R {
        &self.input
    }
}

impl<R: Read> Read for Bounded<R> {
    fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
        let count = self.input.read(buf)?;
        if count == 0 && self.place == QuotePlace::Quoted && !buf.is_empty() {
            return Err(io::Error::other("the input ends inside of quotes; close them"));
        }
        for byte in &buf[..count] {
            if self.has_quotes {
                self.place = self.place.after(*byte, self.delimiter);
            }
            let ends = *byte == b'\n' && self.place != QuotePlace::Quoted;
            self.record_bytes = if ends { 0 } else { self.record_bytes + 1 };
            if self.record_bytes > RECORD_BYTES_MAX {
                let reason = "a record of more than 64 MiB; check quotes and line ends";
                return Err(io::Error::other(reason));
            }
        }
        Ok(count)
    }
}

fn read_csv<'a>(
    input: Box<dyn BufRead + 'a>,
    columns: Columns,
) -> impl Iterator<Item = Result<Record>> + 'a {
    let input = Bounded::new(input, true);
    let reader = csv::ReaderBuilder::new().has_headers(false).flexible(true).from_reader(input);
    let is_header = |row: &csv::StringRecord| row.iter().eq(["key", "value"]);
    let rows = reader.into_records().enumerate();
    rows.filter(move |(index, row)| *index != 0 || !row.as_ref().is_ok_and(is_header)).map(
        move |(index, row)| {
            let row = row.with_context(|| format!("row {}", index + 1))?;
            let line = row.position().map_or(0, csv::Position::line);
            csv_record(&row, columns).with_context(|| format!("line {line}"))
        },
    )
}

fn csv_record(row: &csv::StringRecord, columns: Columns) -> Result<Record> {
    if row.len() != 2 {
        bail!("{}; a record has two, key and value", size::counted(row.len() as u64, "column"));
    }
    columns.record(&row[0], &row[1])
}

fn read_ndjson<'a>(
    input: Box<dyn BufRead + 'a>,
    columns: Columns,
) -> impl Iterator<Item = Result<Record>> + 'a {
    let lines = BufReader::new(Bounded::new(input, false)).lines().enumerate();
    let is_blank = |line: &io::Result<String>| line.as_ref().is_ok_and(|it| it.trim().is_empty());
    lines.filter(move |(_, line)| !is_blank(line)).map(move |(index, line)| {
        let parse = || ndjson_record(&line?, columns);
        parse().with_context(|| format!("line {}", index + 1))
    })
}

fn ndjson_record(line: &str, columns: Columns) -> Result<Record> {
    let object: Value = serde_json::from_str(line)?;
    let field = |name: &str| match object.get(name) {
        Some(Value::String(text)) => Ok(text.clone()),
        Some(Value::Number(number)) => Ok(number.to_string()),
        Some(_) => bail!("`{name}` is neither a string nor a number"),
        None => bail!("no `{name}`; a record is {{\"key\": .., \"value\": ..}}"),
    };
    columns.record(&field("key")?, &field("value")?)
}

/// The remedy when records have no widths to separate them.
const NO_BINARY: &str = "the binary format is for fixed widths, and this table has keys and values of any size; use csv \
     or ndjson, with --key-format hex for bytes that are no text";

struct BinaryReader<'a> {
    input: Box<dyn BufRead + 'a>,
    columns: Columns,
    index: u64,
}

impl BinaryReader<'_> {
    /// Fills `bytes`, or returns the number of bytes before the end.
    fn fill(&mut self, bytes: &mut [u8]) -> io::Result<usize> {
        let mut filled = 0;
        while filled < bytes.len() {
            match self.input.read(&mut bytes[filled..]) {
                Ok(0) => break,
                Ok(read) => filled += read,
                Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
                Err(e) => return Err(e),
            }
        }
        Ok(filled)
    }

    fn record(&mut self) -> Result<Option<Record>> {
        let (Some(key_bytes), Some(value_bytes)) =
            (self.columns.key.bytes, self.columns.value.bytes)
        else {
            bail!("{NO_BINARY}");
        };
        let mut bytes = vec![0; key_bytes + value_bytes];
        let filled = self.fill(&mut bytes)?;
        if filled == 0 {
            return Ok(None);
        }
        if filled < bytes.len() {
            bail!("the input ends after {filled} of its {} bytes", bytes.len());
        }
        let value = bytes.split_off(key_bytes);
        Ok(Some(Record { key: bytes, value }))
    }
}

impl Iterator for BinaryReader<'_> {
    type Item = Result<Record>;

    fn next(&mut self) -> Option<Self::Item> {
        self.index += 1;
        self.record().with_context(|| format!("record {}", self.index)).transpose()
    }
}

/// Writes records one after another.
pub struct Writer<W: Write> {
    output: W,
    format: RecordFormat,
    columns: Columns,
}

impl<W: Write> Writer<W> {
    /// Creates a writer of this format. CSV begins with its header.
    ///
    /// # Errors
    /// A failed write; the binary format for a table without widths.
    pub fn new(mut output: W, format: RecordFormat, columns: Columns) -> Result<Self> {
        if format == RecordFormat::Binary && columns.key.bytes.is_none() {
            bail!("{NO_BINARY}");
        }
        if format == RecordFormat::Csv {
            output.write_all(b"key,value\n")?;
        }
        Ok(Self { output, format, columns })
    }

    /// Writes one record.
    ///
    /// # Errors
    /// A failed write, or bytes that cannot be shown in the column's format.
    pub fn write(&mut self, key: &[u8], value: &[u8]) -> Result<()> {
        let Columns { key: key_column, value: value_column } = self.columns;
        match self.format {
            RecordFormat::Binary => {
                self.output.write_all(key)?;
                self.output.write_all(value)?;
            }
            RecordFormat::Ndjson => {
                let (key, value) =
                    (json_field(&key_column, key)?, json_field(&value_column, value)?);
                writeln!(self.output, "{}", json!({"key": key, "value": value}))?;
            }
            RecordFormat::Csv => {
                let (key, value) = (show(&key_column, key)?, show(&value_column, value)?);
                writeln!(self.output, "{},{}", quoted(key), quoted(value))?;
            }
        }
        Ok(())
    }

    /// Flushes everything to the system.
    ///
    /// # Errors
    /// A failed write.
    pub fn finish(mut self) -> io::Result<()> {
        self.output.flush()
    }
}

/// Formats a field as text.
///
/// # Errors
/// Bytes that cannot be shown in the column's format.
pub fn show(column: &Column, bytes: &[u8]) -> Result<String> {
    column.show(bytes).map_err(|why| anyhow!(why))
}

/// Formats a field as JSON: a number in the u64 format, a string otherwise.
///
/// # Errors
/// As `show`.
pub fn json_field(column: &Column, bytes: &[u8]) -> Result<Value> {
    let shown = show(column, bytes)?;
    Ok(match column.format {
        FieldFormat::U64 => shown.parse::<u64>().map_or(Value::String(shown), Value::from),
        FieldFormat::Hex | FieldFormat::Text => Value::String(shown),
    })
}

fn quoted(field: String) -> String {
    if field.contains([',', '"', '\n', '\r']) {
        return format!("\"{}\"", field.replace('"', "\"\""));
    }
    field
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::field::Role;

    fn columns(format: FieldFormat) -> Columns {
        let column = |role| Column::new(role, Some(8), format).unwrap();
        Columns { key: column(Role::Key), value: column(Role::Value) }
    }

    fn read_all(text: &[u8], format: RecordFormat, field: FieldFormat) -> Vec<Result<Record>> {
        read(Box::new(text), format, columns(field)).collect()
    }

    #[test]
    fn what_is_written_is_read_back_in_every_format() {
        let pairs = [(b"a,\"bc\ndx", b"\x00\x01345678"), (b"01234567", b"abcdefgh")];
        for format in [RecordFormat::Csv, RecordFormat::Ndjson, RecordFormat::Binary] {
            for field in [FieldFormat::Text, FieldFormat::Hex, FieldFormat::U64] {
                let mut bytes = Vec::new();
                let mut writer = Writer::new(&mut bytes, format, columns(field)).unwrap();
                pairs.iter().for_each(|(key, value)| writer.write(*key, *value).unwrap());
                writer.finish().unwrap();
                let back: Vec<Record> =
                    read_all(&bytes, format, field).into_iter().map(Result::unwrap).collect();
                let pair = |at: usize| (back[at].key.as_slice(), back[at].value.as_slice());
                assert_eq!(pair(0), (&pairs[0].0[..], &pairs[0].1[..]), "{format:?} {field:?}");
                assert_eq!(pair(1), (&pairs[1].0[..], &pairs[1].1[..]), "{format:?} {field:?}");
            }
        }
    }

    /// A quote within a field is an inch or an apostrophe: it opens nothing.
    #[test]
    fn a_quote_within_a_field_stands_for_itself() {
        let input = Box::new(&b"1,5\"\n2,6\n"[..]);
        let columns = |format| Column::new(Role::Key, None, format).unwrap();
        let columns =
            Columns { key: columns(FieldFormat::Text), value: columns(FieldFormat::Text) };
        let values: Vec<_> =
            read(input, RecordFormat::Csv, columns).map(|it| it.unwrap().value).collect();
        assert_eq!(values, [&b"5\""[..], b"6"]);
    }

    #[test]
    fn a_record_that_does_not_end_is_refused_after_those_before_it() {
        let long = "9".repeat(RECORD_BYTES_MAX + 1);
        for (format, first, last, reason) in [
            (RecordFormat::Csv, "1,2\n", "3,\"4\n5,6\n", "ends inside of quotes"),
            (RecordFormat::Csv, "1,2\n", &long, "more than 64 MiB"),
            (RecordFormat::Ndjson, "{\"key\": 1, \"value\": 2}\n", &long, "more than 64 MiB"),
        ] {
            let text = format!("{first}{last}");
            let mut records =
                read(Box::new(text.as_bytes()), format, columns(FieldFormat::U64)).take(2);
            records.next().unwrap().unwrap();
            let error = format!("{:#}", records.next().unwrap().unwrap_err());
            assert!(error.contains(reason), "{error}");
        }
    }

    #[test]
    fn a_bad_record_is_named_by_its_line() {
        let samples: [(&[u8], RecordFormat, &str); 5] = [
            (b"1,2\n3\n", RecordFormat::Csv, "line 2: 1 column;"),
            (b"1,2\nx,4\n", RecordFormat::Csv, "line 2: `x` is not a key"),
            (b"\n{\"key\": 1}\n", RecordFormat::Ndjson, "line 2: no `value`"),
            (b"{\"key\": [], \"value\": 1}\n", RecordFormat::Ndjson, "neither a string nor"),
            (b"0123456701234567xyz", RecordFormat::Binary, "record 2: the input ends after 3"),
        ];
        for (text, format, reason) in samples {
            let last = read_all(text, format, FieldFormat::U64).pop().unwrap();
            let error = format!("{:#}", last.unwrap_err());
            assert!(error.contains(reason), "{error}");
        }
    }
}
