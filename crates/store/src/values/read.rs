//! Reading records: from the batches in RAM, or else by a lookup of their pages.

use std::ops::Range;
use std::sync::atomic::Ordering::Relaxed;

use nandex_device::{PageBuf, PageId};

use crate::page::RawPage;
use crate::reads::{LookupStep, NextStep, PageReads, ReadPlace, UserStep};
use crate::schedule::SequentialWrite;
use crate::{Error, Result};

use super::format::{
    LiveSegment, PAYLOAD_BYTES, RECORD_HEADER_BYTES, RecordStart, ValueRef, damaged, decode_page,
    record_bytes,
};
use super::{Inner, ValueLog};

/// The most reads in flight at a time.
pub(super) const READ_DEPTH: usize = 32;

/// The longest single read, in pages.
const PART_PAGES: u32 = 256;

/// A record, or its beginning, that is being read.
#[derive(Debug)]
pub(super) struct Reading {
    reference: ValueRef,
    segment: LiveSegment,
    /// The segment's first page.
    first: PageId,
    /// The record, including its header, as far as its pages were read.
    bytes: Vec<u8>,
    /// The reason why a page is invalid. That is not a failure if the segment was overwritten.
    failed: Option<Error>,
}

impl Reading {
    /// The pages of the segment that the record touches.
    fn pages(&self) -> Range<u32> {
        let from = self.reference.offset as usize;
        let end = (from + self.bytes.len()).div_ceil(PAYLOAD_BYTES) as u32;
        (from / PAYLOAD_BYTES) as u32..end
    }

    /// The pages of one part.
    fn part(&self, part: u32) -> Range<u32> {
        let Range { start, end } = self.pages();
        let first = start + part * PART_PAGES;
        first..end.min(first + PART_PAGES)
    }
}

impl ValueLog {
    /// Returns a record; `None` when its segment was overwritten or freed.
    ///
    /// Costs one operation that reads the pages it touches, and none while it is in RAM.
    ///
    /// # Errors
    /// Damage, or a failed read.
    pub fn read(&self, reference: ValueRef) -> Result<Option<Vec<u8>>> {
        self.read_start(reference, usize::MAX)
    }

    /// Returns the first bytes of a record, at most `limit`; otherwise like [`read`](Self::read).
    ///
    /// # Errors
    /// As [`read`](Self::read).
    pub fn read_start(&self, reference: ValueRef, limit: usize) -> Result<Option<Vec<u8>>> {
        let inner = &*self.inner;
        match inner.first_step(reference, limit)? {
            LookupStep::Answer(record) => Ok(record),
            LookupStep::Read(reading) => Ok(inner.reads.look_up(inner, reading)?.0),
        }
    }

    /// Returns records, in the order of their references; the reads overlap.
    ///
    /// # Errors
    /// As [`read`](Self::read).
    pub fn read_many(&self, references: &[ValueRef]) -> Result<Vec<Option<Vec<u8>>>> {
        self.read_starts(&references.iter().map(|it| (*it, usize::MAX)).collect::<Vec<_>>())
    }

    /// Returns the first bytes of records, at most the given number of each; otherwise like
    /// [`read_many`](Self::read_many).
    ///
    /// # Errors
    /// As [`read`](Self::read).
    pub fn read_starts(&self, starts: &[(ValueRef, usize)]) -> Result<Vec<Option<Vec<u8>>>> {
        let inner = &*self.inner;
        let mut found = vec![None; starts.len()];
        inner.reads.pipeline(inner).batch(
            starts,
            READ_DEPTH,
            |_| (),
            |(reference, limit), ()| inner.first_step(*reference, *limit),
            |index, record, _| found[index] = record,
        )?;
        Ok(found)
    }
}

impl Inner {
    /// Returns the answer of RAM for a record.
    fn first_step(&self, reference: ValueRef, limit: usize) -> UserStep<Self> {
        let state = self.state();
        let Some(segment) = state.segments.holding(reference) else {
            return Ok(LookupStep::Answer(None));
        };
        let mut batches = state.open.iter().chain(state.closing.as_deref());
        if let Some(bytes) = batches.find_map(|batch| batch.record(reference, limit)) {
            return Ok(LookupStep::Answer(Some(bytes.to_vec())));
        }
        let first = state.segments.extents().first_page(reference.slot);
        drop(state);
        check_reference(reference, segment, first)?;
        let wanted = RECORD_HEADER_BYTES + (reference.bytes as usize).min(limit);
        let bytes = vec![0; wanted];
        Ok(LookupStep::Read(Reading { reference, segment, first, bytes, failed: None }))
    }

    /// Verifies the pages of a part and copies the record's bytes.
    fn take_part(&self, reading: &mut Reading, part: u32, pages: &PageBuf) -> Result<()> {
        let numbers = reading.part(part);
        let Reading { reference, segment, first, bytes, .. } = reading;
        let (from, to) = (reference.offset as usize, reference.offset as usize + bytes.len());
        for (index, number) in numbers.enumerate() {
            let label = self.label(segment.sequence, first.plus(number.into()));
            let page = RawPage::new(pages.page(index)).check(label)?;
            let (begins, payload) = decode_page(page.body(), label.page)?;
            let start = number as usize * PAYLOAD_BYTES;
            let end = (start + PAYLOAD_BYTES).min(to);
            let begin = start.max(from);
            let interrupted = match begins {
                RecordStart::Void => true,
                RecordStart::At(at) => start > from && start + at < end,
                RecordStart::Nothing => start <= from,
            };
            if interrupted {
                return Err(damaged(label.page, "the whole record", &format!("{begins:?}")));
            }
            bytes[begin - from..end - from].copy_from_slice(&payload[begin - start..end - start]);
        }
        Ok(())
    }

    /// Returns the record that was read. If its segment was overwritten meanwhile, the record is gone.
    fn settle(&self, reading: &mut Reading) -> Result<Option<Vec<u8>>> {
        let (reference, mut bytes) = (reading.reference, std::mem::take(&mut reading.bytes));
        if self.state().segments.holding(reference).is_none() {
            return Ok(None);
        }
        if let Some(error) = reading.failed.take() {
            return Err(error);
        }
        if record_bytes(&bytes) != Some(reference.bytes) {
            let page = reading.first.plus(u64::from(reference.offset) / PAYLOAD_BYTES as u64);
            let expected = format!("the header of {} bytes", reference.bytes);
            let found = format!("{:02x?}", &bytes[..RECORD_HEADER_BYTES]);
            return Err(damaged(page, &expected, &found));
        }
        bytes.drain(..RECORD_HEADER_BYTES);
        Ok(Some(bytes))
    }
}

/// Rejects a reference past the written part of its segment.
fn check_reference(reference: ValueRef, segment: LiveSegment, first: PageId) -> Result<()> {
    let end = u64::from(segment.pages) * PAYLOAD_BYTES as u64;
    if reference.end() <= end {
        return Ok(());
    }
    let begin = u64::from(reference.offset) / PAYLOAD_BYTES as u64;
    let page = first.plus(begin.max(segment.pages.into()));
    Err(damaged(page, &format!("a record before byte {end}"), &format!("{reference:?}")))
}

impl PageReads for Inner {
    type Probe = Reading;
    type Answer = Option<Vec<u8>>;
    type Error = Error;

    /// Records that were appended together are next to each other.
    const SORTS_BATCHES: bool = true;

    fn parts(&self, reading: &Reading) -> u32 {
        (reading.pages().len() as u32).div_ceil(PART_PAGES)
    }

    fn place(&self, reading: &Reading, part: u32) -> ReadPlace {
        let Range { start, end } = reading.part(part);
        let write = SequentialWrite::at(reading.first);
        ReadPlace { page: reading.first.plus(start.into()), pages: end - start, write }
    }

    fn look(&self, reading: &mut Reading, part: u32, pages: &PageBuf) -> Result<()> {
        self.counters.reads.fetch_add(1, Relaxed);
        self.counters.pages_read.fetch_add(pages.pages() as u64, Relaxed);
        let taken = self.take_part(reading, part, pages);
        reading.failed = reading.failed.take().or(taken.err());
        Ok(())
    }

    fn next(&self, reading: &mut Reading) -> NextStep<Self> {
        self.settle(reading).map(LookupStep::Answer)
    }
}
