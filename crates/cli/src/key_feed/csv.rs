//! Keys from a column of CSV: fields between commas or another byte, in double quotes if they contain that byte, line
//! feeds or quotes, which are doubled there.

use std::io::{self, BufRead, Read};
use std::str::FromStr;

use anyhow::{Context, Result, bail};

use super::Input;
use crate::records::Bounded;

/// The column.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum CsvColumn {
    /// The column with this name in the first record, a header.
    Name(String),
    /// The column at this position, from 1 on, in files without a header.
    Position(usize),
}

impl FromStr for CsvColumn {
    type Err = &'static str;

    fn from_str(word: &str) -> Result<Self, &'static str> {
        match word.parse() {
            Ok(0) => Err("columns are numbered from 1 on"),
            Ok(position) => Ok(Self::Position(position)),
            Err(_) => Ok(Self::Name(word.to_owned())),
        }
    }
}

/// A byte between fields.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Delimiter(pub u8);

impl Default for Delimiter {
    fn default() -> Self {
        Self(b',')
    }
}

impl FromStr for Delimiter {
    type Err = &'static str;

    fn from_str(word: &str) -> Result<Self, &'static str> {
        match (word, word.as_bytes()) {
            ("\\t", _) => Ok(Self(b'\t')),
            (_, b"\"" | b"\n" | b"\r") => {
                Err("quotes and line ends have a meaning of their own in CSV; take another byte")
            }
            (_, [byte @ 1..=0x7f]) => Ok(Self(*byte)),
            _ => Err("expected one byte, such as ; or |, or \\t for a tab"),
        }
    }
}

/// The column, and the format of the records.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct CsvFormat {
    pub column: CsvColumn,
    pub delimiter: Delimiter,
}

/// Reads an input line by line, so that the reader of records knows the current line.
struct ByLine {
    input: Input,
    /// The line that was begun last, from 1 on.
    line: u64,
    read_bytes: u64,
    at_start: bool,
}

impl Read for ByLine {
    fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
        let ready = self.input.fill_buf()?;
        let to_end = ready.iter().position(|byte| *byte == b'\n').map_or(ready.len(), |at| at + 1);
        let count = to_end.min(buf.len());
        buf[..count].copy_from_slice(&ready[..count]);
        self.line += u64::from(self.at_start && count > 0);
        self.at_start = count > 0 && buf[count - 1] == b'\n' || self.at_start && count == 0;
        self.input.consume(count);
        self.read_bytes += count as u64;
        Ok(count)
    }
}

/// Reads one column of the records of an input.
pub struct CsvReader {
    reader: csv::Reader<Bounded<ByLine>>,
    record: csv::ByteRecord,
    /// The column, from 0 on.
    column: usize,
    line: u64,
}

impl CsvReader {
    /// Reads the header, if the column has a name.
    ///
    /// # Errors
    /// No such column, a header that is not UTF-8, with the line; a failed read.
    pub fn new(input: Input, format: &CsvFormat) -> Result<Self> {
        let Delimiter(delimiter) = format.delimiter;
        let lines = ByLine { input, line: 0, read_bytes: 0, at_start: true };
        let mut builder = csv::ReaderBuilder::new();
        builder.has_headers(false).flexible(true).delimiter(delimiter);
        let reader = builder.from_reader(Bounded::delimited(lines, delimiter));
        let mut this = Self { reader, record: csv::ByteRecord::new(), column: 0, line: 1 };
        this.column = match &format.column {
            CsvColumn::Position(position) => position.saturating_sub(1),
            CsvColumn::Name(name) => this.find(name)?,
        };
        Ok(this)
    }

    fn find(&mut self, name: &str) -> Result<usize> {
        if !self.read_record()? {
            bail!("expected a header with the column `{name}`, found the end of the input");
        }
        let mut names = Vec::new();
        for (field, position) in self.record.iter().zip(1..) {
            let text = std::str::from_utf8(field).ok().with_context(|| {
                let shown = String::from_utf8_lossy(field);
                format!("the name of column {position} is not UTF-8: `{shown}`; choose the column by its number")
            })?;
            names.push(text);
        }
        let found: Vec<usize> = (0..names.len()).filter(|at| names[*at] == name).collect();
        match found[..] {
            [column] => Ok(column),
            [] => bail!(
                "no column is named `{name}`; the header has `{}`; pass --delimiter if its separator is not a comma",
                names.join("`, `")
            ),
            [one, other, ..] => bail!("`{name}` names the columns {} and {}", one + 1, other + 1),
        }
    }

    fn read_record(&mut self) -> Result<bool> {
        // The line where it begins, if it does not end.
        self.line = self.lines().line + 1;
        let is_there = self.reader.read_byte_record(&mut self.record)?;
        let within = self.record.as_slice().iter().filter(|byte| **byte == b'\n').count() as u64;
        self.line = self.lines().line.saturating_sub(within).max(1);
        Ok(is_there)
    }

    fn lines(&self) -> &ByLine {
        self.reader.get_ref().get_ref()
    }

    /// Appends the column of the next record; returns false at the end.
    ///
    /// # Errors
    /// A record that is too short or does not end, a failed read.
    pub fn read_key(&mut self, key: &mut Vec<u8>) -> Result<bool> {
        if !self.read_record()? {
            return Ok(false);
        }
        match self.record.get(self.column) {
            Some(field) => key.extend_from_slice(field),
            None => bail!(
                "a record of {} columns, expected at least {}",
                self.record.len(),
                self.column + 1
            ),
        }
        Ok(true)
    }

    /// Returns the line in which the last record began.
    pub fn line(&self) -> u64 {
        self.line
    }

    /// Returns the number of bytes that were read of the input.
    pub fn read_bytes(&self) -> u64 {
        self.lines().read_bytes
    }

    /// Returns whether the next byte is not available yet.
    pub fn must_wait(&self) -> bool {
        self.lines().input.buffer().is_empty()
    }
}

#[cfg(test)]
mod tests {
    use std::io::{BufReader, Cursor};

    use super::*;

    fn read(text: &[u8], column: &str) -> Result<Vec<(u64, String)>> {
        read_delimited(text, column, ",")
    }

    fn read_delimited(text: &[u8], column: &str, delimiter: &str) -> Result<Vec<(u64, String)>> {
        let input: Input = BufReader::with_capacity(7, Box::new(Cursor::new(text.to_vec())));
        let (column, delimiter) = (column.parse().unwrap(), delimiter.parse().unwrap());
        let mut reader = CsvReader::new(input, &CsvFormat { column, delimiter })?;
        let (mut found, mut key) = (Vec::new(), Vec::new());
        let at = |reader: &CsvReader| format!("line {}", reader.line());
        while reader.read_key(&mut key).with_context(|| at(&reader))? {
            found.push((reader.line(), String::from_utf8(std::mem::take(&mut key)).unwrap()));
        }
        assert_eq!(reader.read_bytes(), text.len() as u64);
        Ok(found)
    }

    #[test]
    fn a_column_is_read_with_its_lines_and_quotes_as_other_programs_write_them() {
        let expected = [(2, "x, y"), (4, "two\nlines"), (6, "5\" \"pipe\""), (7, ""), (8, "last")];
        let text =
            "\u{feff}id,the key\n1,\"x, y\"\n\n2,\"two\nlines\",more\n3,5\" \"pipe\"\n4,\n5,last";
        for text in [text.to_owned(), text.replace('\n', "\r\n")] {
            let found = read(text.as_bytes(), "the key").unwrap();
            let found: Vec<_> =
                found.iter().map(|(line, key)| (*line, key.replace('\r', ""))).collect();
            assert_eq!(found, expected.map(|(line, key)| (line, key.to_owned())));
            let by_number = read(text.as_bytes(), "2").unwrap();
            assert_eq!(by_number[0], (1, "the key".to_owned()), "numbers are for files without");
            assert_eq!(by_number.len(), 6);
        }
        let doubled = read(b"\"say \"\"hi\"\"\",2\n", "1").unwrap();
        assert_eq!(doubled, [(1, "say \"hi\"".to_owned())]);
        assert_eq!(read(b"", "1").unwrap(), []);
    }

    #[test]
    fn what_is_no_such_column_is_told() {
        let error = |text: &[u8], column| format!("{:#}", read(text, column).unwrap_err());
        assert!(error(b"a,b\n", "c").contains("no column is named `c`; the header has `a`, `b`"));
        assert!(error(b"a,b,a\n", "a").contains("names the columns 1 and 3"));
        assert!(error(b"a,\xff\n", "a").contains("column 2 is not UTF-8"));
        assert!(error(b"", "a").contains("found the end"));
        assert!("0".parse::<CsvColumn>().unwrap_err().contains("from 1 on"));
        let short = error(b"a,b\n1,2\n\n\"x\ny\"\n", "b");
        assert_eq!(short, "line 4: a record of 1 columns, expected at least 2");
        assert!(error(b"a\n\"x\n", "a").contains("inside of quotes"));
    }
    #[test]
    fn another_byte_between_fields_ends_them_and_opens_quotes_after_it() {
        let text = b"id;name\n1;\"a;b\nc\";x\n2;d,e;y\n3;5\" f\n4;\"\"\"q\"\"\"\n";
        let expected = [(2, "a;b\nc"), (4, "d,e"), (5, "5\" f"), (6, "\"q\"")];
        let expected = expected.map(|(line, key)| (line, key.to_owned()));
        assert_eq!(read_delimited(text, "name", ";").unwrap(), expected);
        let tabs: Vec<u8> =
            text.iter().map(|byte| if *byte == b';' { b'\t' } else { *byte }).collect();
        let tabbed = expected.map(|(line, key)| (line, key.replace(';', "\t")));
        for written in ["\\t", "\t"] {
            assert_eq!(read_delimited(&tabs, "name", written).unwrap(), tabbed);
        }
        // A quote that opens nothing with commas opens a field after a semicolon.
        let open = format!("{:#}", read_delimited(b"a;\"b\n", "2", ";").unwrap_err());
        assert!(open.contains("inside of quotes"), "{open}");
        assert_eq!(read(b"a;\"b\n", "1").unwrap(), [(1, "a;\"b".to_owned())]);
    }

    #[test]
    fn what_cannot_be_between_fields_is_refused() {
        for word in ["", ";;", "\\n", "\u{a7}", "\0"] {
            assert!(word.parse::<Delimiter>().unwrap_err().contains("one byte"), "{word:?}");
        }
        for word in ["\"", "\n", "\r"] {
            assert!(word.parse::<Delimiter>().unwrap_err().contains("meaning"), "{word:?}");
        }
    }
}
