//! A document in each line.

use std::io::{BufRead, Read};

use super::{Document, Reading};
use crate::{Error, Result};

/// The lines of a reader, none of which is read beyond the limit.
///
/// A line ends with `
/// `, or with `\r
/// `. The last line may lack its end.
#[derive(Debug)]
pub struct Lines<R> {
    reader: R,
    /// The name of the reader in errors.
    name: String,
    reading: Reading,
    /// The number of the line read last.
    number: u64,
    failed: bool,
}

impl<R: BufRead> Lines<R> {
    /// Creates a source of the lines of `reader`, which errors call `name`.
    pub fn new(reader: R, name: impl Into<String>, reading: Reading) -> Self {
        Self { reader, name: name.into(), reading, number: 0, failed: false }
    }

    /// Returns the next line's number and bytes; `None` at the end, and after an error that has no next line.
    pub(super) fn next_line(&mut self) -> Option<Result<(u64, Vec<u8>)>> {
        if self.failed {
            return None;
        }
        let line = self.read_line();
        self.failed = line.is_err();
        line.transpose()
    }

    fn read_line(&mut self) -> Result<Option<(u64, Vec<u8>)>> {
        let mut line = Vec::new();
        // The line's end may take two bytes more.
        let bytes_max = self.reading.document_bytes_max;
        let limit = (bytes_max as u64).saturating_add(2);
        let read = self.reader.by_ref().take(limit).read_until(b'\n', &mut line);
        let read = read.map_err(|source| Error::File {
            action: "read",
            path: self.name.clone().into(),
            source,
        })?;
        if read == 0 {
            return Ok(None);
        }
        self.number += 1;
        if line.last() == Some(&b'\n') {
            line.pop();
            if line.last() == Some(&b'\r') {
                line.pop();
            }
        }
        if line.len() > bytes_max {
            return Err(Error::DocumentTooLong { document: self.place(self.number), bytes_max });
        }
        Ok(Some((self.number, line)))
    }

    /// Returns the name of this line's document in errors.
    pub(super) fn place(&self, number: u64) -> String {
        format!("{}:{number}", self.name)
    }

    pub(super) fn reading(&self) -> Reading {
        self.reading
    }
}

impl<R: BufRead> Iterator for Lines<R> {
    type Item = Result<Document>;

    fn next(&mut self) -> Option<Self::Item> {
        let line = self.next_line()?;
        Some(line.and_then(|(number, bytes)| {
            let text = self.reading.text(bytes, || self.place(number))?;
            Ok(Document { id: number.to_string(), text })
        }))
    }
}
