//! Traces of key-value requests, as their publishers write them: one request per line.

mod parse;

use std::io::BufRead;

use crate::{Error, Result};

pub use parse::parse_line;

/// The longest line of a trace, in bytes.
const LINE_BYTES_MAX: u64 = 64 << 10;

/// The format of a trace.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum TraceFormat {
    /// IBM Cloud Object Store, from SNIA's IOTTA: `milliseconds REST.GET.OBJECT object [size [first last]]`.
    Ibm,
    /// Twitter's cache clusters: `seconds,key,key bytes,value bytes,client,operation,ttl`.
    Twitter,
    /// Meta's CacheLib: a line that names the columns, including `key`, `op` and `size`, then values.
    Meta,
    /// The storage cache traces of the ARC paper: `first block,blocks,ignored,number` with spaces.
    Arc,
}

/// The operation of a request.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum TraceOperation {
    /// Retrieve the value, or a part of it.
    Get,
    /// Store a value.
    Put,
    /// Store a value unless there is one.
    Add,
    /// Store a value in place of an existing one.
    Replace,
    /// Append to a value.
    Append,
    /// Test whether the key exists.
    Exist,
    /// Delete the pair.
    Delete,
}

/// A request of a trace.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct TraceRequest {
    /// The operation.
    pub operation: TraceOperation,
    /// The key, as the trace has it.
    pub key: Vec<u8>,
    /// The bytes of the value, if the trace contains them.
    pub value_bytes: Option<u64>,
    /// The number of times that it occurs at once.
    pub count: u64,
}

/// The columns of a trace that names them in its first line.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Columns(pub(crate) Vec<String>);

/// Reads the requests of a trace.
#[derive(Debug)]
pub struct TraceReader<R> {
    input: R,
    place: String,
    format: TraceFormat,
    columns: Columns,
    line: u64,
    bytes: u64,
}

impl<R: BufRead> TraceReader<R> {
    /// Creates a reader of a trace from `place`, which errors name.
    pub fn new(input: R, place: &str, format: TraceFormat) -> Self {
        let (columns, place) = (Columns::default(), place.to_owned());
        Self { input, place, format, columns, line: 0, bytes: 0 }
    }

    /// The number of bytes read so far.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Returns the requests of the next line that has any; `None` at the end.
    ///
    /// # Errors
    /// A line that does not parse, with its place; a failed read.
    pub fn next_requests(&mut self) -> Result<Option<Vec<TraceRequest>>> {
        let mut line = Vec::new();
        loop {
            line.clear();
            let limited = std::io::Read::take(&mut self.input, LINE_BYTES_MAX);
            let read = { limited }.read_until(b'\n', &mut line);
            let read = read.map_err(|error| self.refuse(format!("cannot be read: {error}")))?;
            if read == 0 {
                return Ok(None);
            }
            self.line += 1;
            self.bytes += read as u64;
            let text = str::from_utf8(&line).map_err(|_| self.refuse("no text in UTF-8".into()))?;
            let text = text.trim_end();
            if text.is_empty() {
                continue;
            }
            let parsed = parse_line(self.format, &mut self.columns, text);
            let requests = parsed.map_err(|reason| self.refuse(reason))?;
            if !requests.is_empty() {
                return Ok(Some(requests));
            }
        }
    }

    fn refuse(&self, reason: String) -> Error {
        Error::Trace { place: self.place.clone(), line: self.line.max(1), reason }
    }
}
