//! Visits of all records of a segment in order, for cleaning and for checks.

use nandex_device::PageBuf;

use crate::page::{PageLabel, RawPage};
use crate::{Error, Result};

use super::ValueLog;
use super::format::{
    LiveSegment, PAYLOAD_BYTES, RECORD_HEADER_BYTES, RecordStart, ValueRef, damaged, decode_page,
    is_padding, record_bytes,
};

/// A callback for each record of a segment, with its reference.
pub type Visit<'a> = dyn FnMut(ValueRef, &[u8]) -> Result<()> + 'a;

impl ValueLog {
    /// Visits the whole records of a segment, in order, with or without references. Reads its written part,
    /// chunk by chunk.
    ///
    /// # Errors
    /// A page that fails verification, a failed read, or what `visit` returns.
    pub fn visit(&self, segment: LiveSegment, visit: &mut Visit<'_>) -> Result<()> {
        let inner = &*self.inner;
        let mut records = Records::new(segment);
        let first = inner.page(segment.slot, 0);
        let mut at = 0;
        while at < segment.pages {
            let count = inner.config.io_chunk_pages.min(segment.pages - at);
            let buf = PageBuf::zeroed(count as usize);
            let buf = inner.volume.device().read(first.plus(at.into()), buf)?;
            for index in 0..count {
                let label = inner.label(segment.sequence, first.plus((at + index).into()));
                records.page(at + index, buf.page(index as usize), label, visit)?;
            }
            at += count;
        }
        Ok(())
    }
}

/// Assembles records from the pages of a segment. A record without an end was never committed, and is
/// skipped.
pub(super) struct Records {
    segment: LiveSegment,
    /// The record that continues in the next page: its start, and its bytes with the header.
    begun: Option<(u32, Vec<u8>)>,
}

impl Records {
    pub(super) fn new(segment: LiveSegment) -> Self {
        Self { segment, begun: None }
    }

    /// Skips a page that holds nothing of the log.
    pub(super) fn skip(&mut self) {
        self.begun = None;
    }

    /// Processes the next page, unverified.
    pub(super) fn page(
        &mut self,
        number: u32,
        bytes: &[u8],
        label: PageLabel,
        visit: &mut Visit<'_>,
    ) -> Result<()> {
        let page = RawPage::new(bytes).check(label)?;
        let (begins, payload) = decode_page(page.body(), label.page)?;
        let (mut at, own) = match begins {
            RecordStart::Void => {
                self.begun = None;
                return Ok(());
            }
            RecordStart::At(at) => (at, at),
            RecordStart::Nothing => (PAYLOAD_BYTES, PAYLOAD_BYTES),
        };
        self.go_on(&payload[..own], visit)?;
        let base = number * PAYLOAD_BYTES as u32;
        while !is_padding(&payload[at..]) {
            self.begun = Some((base + at as u32, Vec::new()));
            let taken = self.go_on(&payload[at..], visit)?;
            if taken == 0 {
                let found = format!("{:02x?}", &payload[at..PAYLOAD_BYTES.min(at + 8)]);
                return Err(self.refuse(label, &found));
            }
            at += taken;
        }
        Ok(())
    }

    /// Adds bytes to the begun record; returns the number of bytes it took. If another record begins before this one is
    /// whole, `bytes` end, and the next call finds it freed.
    fn go_on(&mut self, bytes: &[u8], visit: &mut Visit<'_>) -> Result<usize> {
        let Some((offset, mut record)) = self.begun.take() else { return Ok(0) };
        let mut taken = 0;
        let add = |record: &mut Vec<u8>, taken: &mut usize, len: usize| {
            let missing = len.saturating_sub(record.len()).min(bytes.len() - *taken);
            record.extend_from_slice(&bytes[*taken..*taken + missing]);
            *taken += missing;
            record.len() == len
        };
        if record.len() < RECORD_HEADER_BYTES && !add(&mut record, &mut taken, RECORD_HEADER_BYTES)
        {
            self.begun = Some((offset, record));
            return Ok(taken);
        }
        let Some(bytes_len) = record_bytes(&record) else { return Ok(0) };
        let sequence = (self.segment.sequence & u64::from(u32::MAX)) as u32;
        let slot = self.segment.slot;
        let reference = ValueRef { slot, sequence, offset, bytes: bytes_len };
        if add(&mut record, &mut taken, RECORD_HEADER_BYTES + bytes_len as usize) {
            visit(reference, &record[RECORD_HEADER_BYTES..])?;
        } else {
            self.begun = Some((offset, record));
        }
        Ok(taken)
    }

    fn refuse(&self, label: PageLabel, found: &str) -> Error {
        damaged(label.page, "the header of a record", found)
    }
}
