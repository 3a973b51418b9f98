//! A batch: records that wait in RAM for the next chunk, or are being written.

use nandex_device::{PAGE_BYTES, PageBuf};

use crate::page::{PAGE_HEADER_BYTES, PageLabel, seal};

use super::format::{PAYLOAD_BYTES, RecordStart, ValueRef, record_header};

/// The place where a batch begins.
#[derive(Clone, Copy, Debug)]
pub(super) struct Start {
    pub(super) slot: u32,
    pub(super) sequence: u64,
    pub(super) page: u32,
}

/// Records one after another, from the start of a page on.
#[derive(Debug)]
pub(super) struct Batch {
    pub(super) start: Start,
    bytes: Vec<u8>,
    /// The places in `bytes` where records begin.
    begins: Vec<usize>,
}

impl Batch {
    pub(super) fn new(start: Start) -> Self {
        Self { start, bytes: Vec::new(), begins: Vec::new() }
    }

    /// Adds a record, given in parts. The caller has checked that it fits the segment.
    pub(super) fn push(&mut self, parts: &[&[u8]]) -> ValueRef {
        let len: usize = parts.iter().map(|part| part.len()).sum();
        let bytes = u32::try_from(len).expect("a record fits a segment, which is below 4 GiB");
        let offset = self.start.page as usize * PAYLOAD_BYTES + self.bytes.len();
        let offset = u32::try_from(offset).expect("a segment is below 4 GiB");
        self.begins.push(self.bytes.len());
        self.bytes.extend_from_slice(&record_header(bytes));
        parts.iter().for_each(|part| self.bytes.extend_from_slice(part));
        let sequence = (self.start.sequence & u64::from(u32::MAX)) as u32;
        ValueRef { slot: self.start.slot, sequence, offset, bytes }
    }

    /// The number of bytes of records.
    pub(super) fn len(&self) -> usize {
        self.bytes.len()
    }

    /// The number of bytes of RAM.
    pub(super) fn ram_bytes(&self) -> usize {
        self.bytes.capacity() + self.begins.capacity() * size_of::<usize>()
    }

    /// The number of pages that the batch takes; the rest of the last one stays empty.
    pub(super) fn pages(&self) -> u32 {
        u32::try_from(self.bytes.len().div_ceil(PAYLOAD_BYTES)).expect("a batch fits a segment")
    }

    /// The page of the segment after its last.
    pub(super) fn end_page(&self) -> u32 {
        self.start.page + self.pages()
    }

    /// Returns the first bytes of a record in this batch, at most `limit`.
    pub(super) fn record(&self, reference: ValueRef, limit: usize) -> Option<&[u8]> {
        let begin = self.start.page as usize * PAYLOAD_BYTES;
        let at = (reference.offset as usize).checked_sub(begin)?;
        if reference.slot != self.start.slot || self.begins.binary_search(&at).is_err() {
            return None;
        }
        let record = self.bytes.get(at..at + reference.whole_bytes() as usize)?;
        let record = &record[super::format::RECORD_HEADER_BYTES..];
        Some(&record[..limit.min(record.len())])
    }

    /// Seals pages, from the batch's page `first` on, to fill `buf`.
    pub(super) fn seal(&self, first: u32, buf: &mut PageBuf, label: impl Fn(u32) -> PageLabel) {
        for index in 0..buf.pages() {
            let number = first as usize + index;
            let (from, to) = (number * PAYLOAD_BYTES, (number + 1) * PAYLOAD_BYTES);
            let next = self.begins.partition_point(|begin| *begin < from);
            let begins = match self.begins.get(next) {
                Some(begin) if *begin < to => RecordStart::At(begin - from),
                _ => RecordStart::Nothing,
            };
            let page = buf.page_mut(index);
            let body = &mut page[PAGE_HEADER_BYTES..PAGE_BYTES];
            begins.encode(body);
            let bytes = &self.bytes[from..to.min(self.bytes.len())];
            body[2..2 + bytes.len()].copy_from_slice(bytes);
            body[2 + bytes.len()..].fill(0);
            seal(page, label(self.start.page + number as u32));
        }
    }
}
