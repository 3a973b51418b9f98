//! One record of a trace.

use super::error::TraceError;
use crate::workload::Arrival;
use crate::{Request, RequestKind};

/// The bytes of a page of a model.
const PAGE_BYTES: u64 = 4096;

/// A request in a trace.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Record {
    /// The nanoseconds since the trace's first record. Never less than those of the previous record.
    pub at_ns: u64,
    /// The kind of request.
    pub kind: RequestKind,
    /// The first byte; 0 for a sync.
    pub offset_bytes: u64,
    /// The number of bytes; 0 for a sync only.
    pub bytes: u64,
}

impl Record {
    /// Returns the record as a request with the name `token`. It covers every page of 4 KiB that the bytes
    /// touch.
    ///
    /// # Errors
    /// Fails with [`TraceError::Size`] if these are more than a request can count.
    pub fn arrival(&self, token: u64) -> Result<Arrival, TraceError> {
        let page = self.offset_bytes / PAGE_BYTES;
        let end = u128::from(self.offset_bytes) + u128::from(self.bytes);
        let pages = end.div_ceil(u128::from(PAGE_BYTES)) - u128::from(page);
        let pages = if self.bytes == 0 { Ok(0) } else { u32::try_from(pages) };
        let pages = pages.map_err(|_| TraceError::Size {
            offset_bytes: self.offset_bytes,
            bytes: self.bytes,
            pages_max: u32::MAX,
        })?;
        Ok(Arrival { at_ns: self.at_ns, request: Request { token, kind: self.kind, page, pages } })
    }
}

/// The record of a line, with the time of the trace's own clock.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Raw {
    pub clock_ns: u128,
    pub kind: RequestKind,
    pub offset_bytes: u64,
    pub bytes: u64,
}

/// The result of parsing a line.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Line<'a> {
    /// A request of a device.
    Record { device: &'a str, raw: Raw },
    /// A valid line without a requested record, and its kind.
    Other(&'a str),
    /// The end of the records; a summary follows.
    End,
}
