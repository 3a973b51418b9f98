//! Lines out of an input, each of a limited length.

use std::io::{BufRead, Read};

use super::error::TraceError;

/// Bytes of a line, at most. The longest of the formats have under 200.
pub(super) const LINE_BYTES_MAX: usize = 4096;

/// An input, line by line.
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

    /// How many lines were read.
    pub(super) const fn number(&self) -> u64 {
        self.number
    }

    /// Brings the next line; `false` at the end.
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

    /// The line without its end. Invalid text is replaced, and fits no format.
    pub(super) fn text(&self) -> std::borrow::Cow<'_, str> {
        String::from_utf8_lossy(self.bytes.trim_ascii_end())
    }
}
