//! What can go wrong when a trace is read, with the line and the remedy.

use super::format::TraceFormat;

/// A trace that cannot be read further.
#[derive(thiserror::Error, Debug)]
#[non_exhaustive]
pub enum TraceError {
    /// A line is not of the trace's format.
    #[error(
        "line {line} of the {format} trace does not parse: expected {expected}, found {found}, in \
         `{text}`; mend or take out the line, or name the right format"
    )]
    Line {
        /// Which line, counted from 1.
        line: u64,
        /// The format that was expected.
        format: TraceFormat,
        /// What was expected.
        expected: String,
        /// What was found.
        found: String,
        /// The line, shortened.
        text: String,
    },
    /// A line is longer than any of a trace.
    #[error(
        "line {line} is longer than the {bytes_max} bytes that a line of a trace may have; this may be \
         a binary file: give blkparse's text, not blktrace's own files, and unpack packed ones"
    )]
    LongLine {
        /// Which line, counted from 1.
        line: u64,
        /// The limit.
        bytes_max: usize,
    },
    /// The trace ended and had no requested record.
    #[error(
        "none of the {lines} lines of the {format} trace held {wanted}; {found}: choose what the trace \
         has, or give another trace"
    )]
    Nothing {
        /// How many lines were read.
        lines: u64,
        /// The format.
        format: TraceFormat,
        /// What was requested.
        wanted: String,
        /// What was there instead.
        found: String,
    },
    /// The beginning fits no known format.
    #[error(
        "no format of traces fits the beginning of the input: expected DiskSim ASCII (5 fields), \
         blkparse's default output (from 7 fields on) or MSR Cambridge CSV (7 columns), found \
         `{text}`; convert the trace to one of these"
    )]
    Unknown {
        /// The first line that is not blank, shortened.
        text: String,
    },
    /// A record is too long for one request of a model.
    #[error(
        "a record of {bytes} bytes at offset {offset_bytes} spans more pages than the {pages_max} of a \
         request; split it in the trace"
    )]
    Size {
        /// Where it begins.
        offset_bytes: u64,
        /// How long it is.
        bytes: u64,
        /// The limit.
        pages_max: u32,
    },
    /// The input failed.
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

/// Why a line does not parse; the reader adds where.
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

/// The text without what would disturb a terminal, shortened to fit on a line.
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
