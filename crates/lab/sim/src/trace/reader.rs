//! The reader: turns lines into records, until the end or the first line that does not parse.

use std::io::BufRead;

use super::error::{Misfit, TraceError, shortened};
use super::format::TraceFormat;
use super::lines::Lines;
use super::record::{Line, Raw, Record};

/// The event of a request's life that is read from blkparse's lines.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub enum BlkparseEvent {
    /// `Q`: it was queued, before the scheduler merged and ordered requests.
    #[default]
    Queue,
    /// `D`: it was issued to the drive. These are the requests that the drive saw.
    Issue,
}

impl BlkparseEvent {
    pub(super) const fn letter(self) -> &'static str {
        match self {
            Self::Queue => "Q",
            Self::Issue => "D",
        }
    }
}

/// The records of a trace to read.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct Options {
    /// The event to read from blkparse's lines.
    pub event: BlkparseEvent,
    /// The one device whose requests are read, named as in the trace: `0` in DiskSim's and MSR's, `8,0` in
    /// blkparse's. `None` takes the requests of all, as if they were one device.
    pub device: Option<String>,
}

/// An iterator over the records of a trace.
///
/// It ends after an error. A record that is earlier than the previous one gets the time of that one and is
/// counted: traces of several CPUs are not quite in order.
#[derive(Debug)]
pub struct TraceReader<R> {
    lines: Lines<R>,
    format: TraceFormat,
    options: Options,
    start_ns: Option<u128>,
    last_ns: u64,
    records: u64,
    reordered: u64,
    /// The first valid line that was not requested.
    passed: Option<String>,
    ended: bool,
}

impl<R: BufRead> TraceReader<R> {
    /// Creates a reader of a trace in this format.
    pub const fn new(format: TraceFormat, input: R, options: Options) -> Self {
        Self {
            lines: Lines::new(input),
            format,
            options,
            start_ns: None,
            last_ns: 0,
            records: 0,
            reordered: 0,
            passed: None,
            ended: false,
        }
    }

    /// Creates a reader of a trace whose format is detected in the input's buffer, which must have at least a
    /// line.
    ///
    /// # Errors
    /// Fails with [`TraceError::Unknown`] if no format fits, and with [`TraceError::Input`].
    pub fn detecting(mut input: R, options: Options) -> Result<Self, TraceError> {
        let sample = input.fill_buf().map_err(|source| TraceError::Input { line: 0, source })?;
        let format = TraceFormat::detect(sample)?;
        Ok(Self::new(format, input, options))
    }

    /// Returns the trace's format.
    pub const fn format(&self) -> TraceFormat {
        self.format
    }

    /// Returns the number of records read so far.
    pub const fn records(&self) -> u64 {
        self.records
    }

    /// Returns the number of records that were earlier than the previous one.
    pub const fn reordered(&self) -> u64 {
        self.reordered
    }

    fn advance(&mut self) -> Result<Option<Record>, TraceError> {
        while self.lines.advance()? {
            let text = self.lines.text();
            if text.trim().is_empty() {
                continue;
            }
            let raw = match self.format.parse(&text, self.options.event) {
                Ok(Line::End) => break,
                Ok(Line::Other(what)) => {
                    self.passed.get_or_insert_with(|| format!("`{what}`"));
                    continue;
                }
                Ok(Line::Record { device, .. }) if self.is_foreign(device) => {
                    self.passed.get_or_insert_with(|| format!("device `{}`", shortened(device)));
                    continue;
                }
                Ok(Line::Record { raw, .. }) => raw,
                Err(misfit) => return Err(self.misfit(misfit, &text)),
            };
            let Some(record) = self.timed(raw) else {
                let text = self.lines.text();
                let late = Misfit::missing("a time within 2^64 ns (584 years) of the first");
                return Err(self.misfit(late, &text));
            };
            return Ok(Some(record));
        }
        if self.records == 0 { Err(self.nothing()) } else { Ok(None) }
    }

    fn is_foreign(&self, device: &str) -> bool {
        self.options.device.as_deref().is_some_and(|wanted| wanted != device)
    }

    fn timed(&mut self, raw: Raw) -> Option<Record> {
        let start_ns = *self.start_ns.get_or_insert(raw.clock_ns);
        let since_ns = u64::try_from(raw.clock_ns.saturating_sub(start_ns)).ok()?;
        let back = self.records > 0 && (raw.clock_ns < start_ns || since_ns < self.last_ns);
        self.reordered += u64::from(back);
        self.last_ns = self.last_ns.max(since_ns);
        self.records += 1;
        let Raw { kind, offset_bytes, bytes, .. } = raw;
        Some(Record { at_ns: self.last_ns, kind, offset_bytes, bytes })
    }

    fn misfit(&self, misfit: Misfit, text: &str) -> TraceError {
        TraceError::Line {
            line: self.lines.number(),
            format: self.format,
            expected: misfit.expected,
            found: misfit.found,
            text: shortened(text),
        }
    }

    fn nothing(&self) -> TraceError {
        let event = match self.format {
            TraceFormat::Blkparse => format!("a `{}` event", self.options.event.letter()),
            _ => "a request".into(),
        };
        let device = self.options.device.as_deref();
        let of =
            device.map_or_else(String::new, |device| format!(" of device `{}`", shortened(device)));
        let passed = self.passed.as_deref();
        TraceError::Nothing {
            lines: self.lines.number(),
            format: self.format,
            wanted: event + &of,
            found: passed.map_or_else(
                || "they are blank, or the input is empty".into(),
                |first| format!("the first of the others has {first}"),
            ),
        }
    }
}

impl<R: BufRead> Iterator for TraceReader<R> {
    type Item = Result<Record, TraceError>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.ended {
            return None;
        }
        let next = self.advance().transpose();
        self.ended = !matches!(next, Some(Ok(_)));
        next
    }
}
