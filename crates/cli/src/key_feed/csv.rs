//! Keys that are a column of CSV: fields between commas, in double quotes where they hold commas, line feeds or
//! quotes, which are doubled there.

use std::io::{self, BufRead, Read};
use std::str::FromStr;

use anyhow::{Context, Result, bail};

use super::Input;
use crate::records::Bounded;

/// Which column.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum CsvColumn {
    /// The one that the first record, a header, has this name for.
    Name(String),
    /// By its position, from 1 on, in files without a header.
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

/// Gives an input line by line, so that whoever reads records knows which line he is at.
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
    /// From 0 on.
    column: usize,
    line: u64,
}

impl CsvReader {
    /// Reads the header, if the column has a name.
    ///
    /// # Errors
    /// No such column, a header that is no UTF-8, with the line; a failed read.
    pub fn new(input: Input, column: &CsvColumn) -> Result<Self> {
        let lines = ByLine { input, line: 0, read_bytes: 0, at_start: true };
        let mut builder = csv::ReaderBuilder::new();
        let reader =
            builder.has_headers(false).flexible(true).from_reader(Bounded::new(lines, true));
        let mut this = Self { reader, record: csv::ByteRecord::new(), column: 0, line: 1 };
        this.column = match column {
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
                format!("the name of column {position} is no UTF-8: `{shown}`; choose the column by its number")
            })?;
            names.push(text);
        }
        let found: Vec<usize> = (0..names.len()).filter(|at| names[*at] == name).collect();
        match found[..] {
            [column] => Ok(column),
            [] => bail!("no column is named `{name}`; the header has `{}`", names.join("`, `")),
            [one, other, ..] => bail!("`{name}` names the columns {} and {}", one + 1, other + 1),
        }
    }

    fn read_record(&mut self) -> Result<bool> {
        // Where it begins, if it does not end.
        self.line = self.lines().line + 1;
        let is_there = self.reader.read_byte_record(&mut self.record)?;
        let within = self.record.as_slice().iter().filter(|byte| **byte == b'\n').count() as u64;
        self.line = self.lines().line.saturating_sub(within).max(1);
        Ok(is_there)
    }

    fn lines(&self) -> &ByLine {
        self.reader.get_ref().get_ref()
    }

    /// Appends the column of the next record; false at the end.
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

    /// The line in which the last record began.
    pub fn line(&self) -> u64 {
        self.line
    }

    /// Bytes that were read of the input.
    pub fn read_bytes(&self) -> u64 {
        self.lines().read_bytes
    }

    /// Must the next byte be waited for?
    pub fn must_wait(&self) -> bool {
        self.lines().input.buffer().is_empty()
    }
}

#[cfg(test)]
mod tests {
    use std::io::{BufReader, Cursor};

    use super::*;

    fn read(text: &[u8], column: &str) -> Result<Vec<(u64, String)>> {
        let input: Input = BufReader::with_capacity(7, Box::new(Cursor::new(text.to_vec())));
        let mut reader = CsvReader::new(input, &column.parse().unwrap())?;
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
        assert!(error(b"a,\xff\n", "a").contains("column 2 is no UTF-8"));
        assert!(error(b"", "a").contains("found the end"));
        assert!("0".parse::<CsvColumn>().unwrap_err().contains("from 1 on"));
        let short = error(b"a,b\n1,2\n\n\"x\ny\"\n", "b");
        assert_eq!(short, "line 4: a record of 1 columns, expected at least 2");
        assert!(error(b"a\n\"x\n", "a").contains("inside of quotes"));
    }
}
