//! Errors of reading a trace, with the line and the remedy.

use super::format::TraceFormat;

/// A trace that cannot be read further.
#[derive(thiserror::Error, Debug)]
#[non_exhaustive]
pub enum TraceError {
    /// A line that is not in the trace's format.
    #[error(
        "line {line} of the {format} trace does not parse: expected {expected}, found {found}, in \
         `{text}`; mend or take out the line, or name the right format"
    )]
    Line {
        /// The line, counted from 1.
        line: u64,
        /// The expected format.
        format: TraceFormat,
        /// The expected text.
        expected: String,
        /// The found text.
        found: String,
        /// The line, shortened.
        text: String,
    },
    /// A line that is longer than any of a trace.
    #[error(
        "line {line} is longer than the {bytes_max} bytes that a line of a trace may have; this may be \
         a binary file: give blkparse's text, not blktrace's own files, and unpack packed ones"
    )]
    LongLine {
        /// The line, counted from 1.
        line: u64,
        /// The limit.
        bytes_max: usize,
    },
    /// A trace that ended without a requested record.
    #[error(
        "none of the {lines} lines of the {format} trace held {wanted}; {found}: choose what the trace \
         has, or give another trace"
    )]
    Nothing {
        /// The number of lines read.
        lines: u64,
        /// The format.
        format: TraceFormat,
        /// The requested records.
        wanted: String,
        /// The lines found instead.
        found: String,
    },
    /// A beginning that fits no known format.
    #[error(
        "no format of traces fits the beginning of the input: expected DiskSim ASCII (5 fields), \
         blkparse's default output (from 7 fields on) or MSR Cambridge CSV (7 columns), found \
         `{text}`; convert the trace to one of these"
    )]
    Unknown {
        /// The first line that is not blank, shortened.
        text: String,
    },
    /// A record that is too long for one request of a model.
    #[error(
        "a record of {bytes} bytes at offset {offset_bytes} spans more pages than the {pages_max} of a \
         request; split it in the trace"
    )]
    Size {
        /// Its first byte.
        offset_bytes: u64,
        /// Its length.
        bytes: u64,
        /// The limit.
        pages_max: u32,
    },
    /// A failure of the input.
    #[error(
        "reading the trace failed after line {line}: {source}; try again, or copy the file first"
    )]
    Input {
        /// The last line that was read.
        line: u64,
        /// The input's error.
        source: std::io::Error,
    },
}

/// The reason why a line does not parse, to which the reader adds the position.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Misfit {
    pub expected: String,
    pub found: String,
}

impl Misfit {
    pub(super) fn new(expected: impl Into<String>, found: &str) -> Self {
        Self { expected: expected.into(), found: format!("`{}`", shortened(found)) }
    }

    pub(super) fn missing(expected: impl Into<String>) -> Self {
        Self { expected: expected.into(), found: "the end of the line".into() }
    }
}

/// Returns the text without terminal control characters, shortened to fit on a line.
pub(super) fn shortened(text: &str) -> String {
    const CHARS_MAX: usize = 80;
    let mut short: String = text.chars().take(CHARS_MAX).flat_map(visible).collect();
    if text.chars().nth(CHARS_MAX).is_some() {
        short.push_str("...");
    }
    short
}

fn visible(c: char) -> Vec<char> {
    if c.is_control() { c.escape_default().collect() } else { vec![c] }
}
