//! The formats of traces, and their detection.

use std::fmt;

use super::error::{Misfit, TraceError, shortened};
use super::reader::BlkparseEvent;
use super::record::Line;
use super::{blkparse, disksim, msr};

/// A format of traces.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[non_exhaustive]
pub enum TraceFormat {
    /// DiskSim's ASCII input.
    DiskSim,
    /// The default output of blkparse.
    Blkparse,
    /// The CSV of the MSR Cambridge traces (SNIA IOTTA).
    Msr,
}

/// The number of lines that decide.
const LINES_SEEN: usize = 16;

impl TraceFormat {
    /// All formats.
    pub const ALL: [Self; 3] = [Self::DiskSim, Self::Blkparse, Self::Msr];

    /// Detects the format of a trace that begins with these bytes: the one in which its first lines, up to
    /// 16, all parse. A line that the sample cuts off does not count, unless it is the only one.
    ///
    /// # Errors
    /// Fails with [`TraceError::Unknown`] if there is none.
    pub fn detect(sample: &[u8]) -> Result<Self, TraceError> {
        let text = String::from_utf8_lossy(sample);
        let whole = text.rfind('\n').map_or(text.as_ref(), |end| &text[..end]);
        let lines = whole.lines().filter(|line| !line.trim().is_empty()).take(LINES_SEEN);
        let found = Self::ALL.into_iter().find(|format| format.fits(lines.clone()));
        found.ok_or_else(|| TraceError::Unknown {
            text: lines.clone().next().map_or_else(|| "nothing".into(), shortened),
        })
    }

    /// Returns whether all lines parse, and at least one comes before a summary.
    fn fits<'a>(self, lines: impl Iterator<Item = &'a str>) -> bool {
        let mut seen = false;
        for line in lines {
            match self.parse(line, BlkparseEvent::Queue) {
                Ok(Line::End) => break,
                Ok(_) => seen = true,
                Err(_) => return false,
            }
        }
        seen
    }

    pub(super) fn parse(self, line: &str, event: BlkparseEvent) -> Result<Line<'_>, Misfit> {
        match self {
            Self::DiskSim => disksim::parse(line),
            Self::Blkparse => blkparse::parse(line, event),
            Self::Msr => msr::parse(line),
        }
    }
}

impl fmt::Display for TraceFormat {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::DiskSim => "DiskSim",
            Self::Blkparse => "blkparse",
            Self::Msr => "MSR",
        })
    }
}
