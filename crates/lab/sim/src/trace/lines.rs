//! Lines out of an input, each of a limited length.

use std::io::{BufRead, Read};

use super::error::TraceError;

/// The maximum bytes of a line. The longest lines of the formats have under 200.
pub(super) const LINE_BYTES_MAX: usize = 4096;

/// An input that is read line by line.
#[derive(Debug)]
pub(super) struct Lines<R> {
    input: R,
    number: u64,
    bytes: Vec<u8>,
}

impl<R: BufRead> Lines<R> {
    pub(super) const fn new(input: R) -> Self {
        Self { input, number: 0, bytes: Vec::new() }
    }

    /// Returns the number of lines read.
    pub(super) const fn number(&self) -> u64 {
        self.number
    }

    /// Reads the next line; returns `false` at the end.
    pub(super) fn advance(&mut self) -> Result<bool, TraceError> {
        self.bytes.clear();
        let mut limited = self.input.by_ref().take(LINE_BYTES_MAX as u64 + 1);
        let read = limited.read_until(b'\n', &mut self.bytes);
        let line = self.number;
        if read.map_err(|source| TraceError::Input { line, source })? == 0 {
            return Ok(false);
        }
        self.number += 1;
        if self.bytes.len() > LINE_BYTES_MAX && self.bytes.last() != Some(&b'\n') {
            return Err(TraceError::LongLine { line: self.number, bytes_max: LINE_BYTES_MAX });
        }
        Ok(true)
    }

    /// Returns the line without its end. Invalid text is replaced, and fits no format.
    pub(super) fn text(&self) -> std::borrow::Cow<'_, str> {
        String::from_utf8_lossy(self.bytes.trim_ascii_end())
    }
}
