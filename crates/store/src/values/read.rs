//! Reading records: from the batches in RAM, else one operation each, many at a time.

use std::sync::Mutex;
use std::sync::atomic::Ordering::Relaxed;

use nandex_device::{Completion, Op, OpKind, PageBuf, Queue};

use crate::Result;
use crate::page::RawPage;

use super::format::{
    Begins, LiveSegment, PAYLOAD_BYTES, RECORD_HEADER_BYTES, ValueRef, damaged, decode_page,
    record_bytes,
};
use super::{Inner, ValueLog};

/// Operations in flight at a time.
const DEPTH: usize = 32;

/// The longest single read, in pages.
const PART_PAGES: u32 = 256;

/// Lanes to the device that nobody uses just now.
#[derive(Default)]
pub(super) struct Lanes(Mutex<Vec<Box<dyn Queue>>>);

impl std::fmt::Debug for Lanes {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Lanes")
    }
}

impl Lanes {
    fn list(&self) -> std::sync::MutexGuard<'_, Vec<Box<dyn Queue>>> {
        self.0.lock().expect("no holder of the lanes panics")
    }
}

/// A record, or its beginning, that is being read.
#[derive(Debug)]
struct Reading {
    reference: ValueRef,
    segment: LiveSegment,
    /// Bytes wanted from the record's header on.
    wanted: usize,
    /// What has come of them, in place.
    bytes: Vec<u8>,
}

/// Some pages of a record.
#[derive(Clone, Copy, Debug)]
struct Part {
    reading: usize,
    first: u32,
    pages: u32,
}

impl ValueLog {
    /// A record; nothing when its segment was overwritten or given back.
    ///
    /// Costs one operation that reads the pages it touches, and none while it is in RAM.
    ///
    /// # Errors
    /// Damage, or a failed read.
    pub fn read(&self, reference: ValueRef) -> Result<Option<Vec<u8>>> {
        self.read_start(reference, usize::MAX)
    }

    /// The first bytes of a record, at most `limit`; else as [`read`](Self::read).
    ///
    /// # Errors
    /// As [`read`](Self::read).
    pub fn read_start(&self, reference: ValueRef, limit: usize) -> Result<Option<Vec<u8>>> {
        let mut found = self.inner.read_starts(&[reference], limit)?;
        Ok(found.pop().flatten())
    }

    /// Records, in the order of their references; the reads overlap.
    ///
    /// # Errors
    /// As [`read`](Self::read).
    pub fn read_many(&self, references: &[ValueRef]) -> Result<Vec<Option<Vec<u8>>>> {
        self.inner.read_starts(references, usize::MAX)
    }
}

impl Inner {
    fn read_starts(&self, references: &[ValueRef], limit: usize) -> Result<Vec<Option<Vec<u8>>>> {
        let mut found = vec![None; references.len()];
        let (mut readings, mut places) = (Vec::new(), Vec::new());
        for (place, reference) in references.iter().enumerate() {
            let state = self.state();
            let Some(segment) = state.segments.holding(*reference) else { continue };
            let batches = state.open.iter().chain(state.closing.as_deref());
            let mut batches = batches.filter_map(|batch| batch.record(*reference, limit));
            if let Some(bytes) = batches.next() {
                found[place] = Some(bytes.to_vec());
                continue;
            }
            self.check_reference(*reference, segment)?;
            let wanted = RECORD_HEADER_BYTES + (reference.bytes as usize).min(limit);
            let (reference, bytes) = (*reference, vec![0; wanted]);
            readings.push(Reading { reference, segment, wanted, bytes });
            places.push(place);
        }
        let failed = self.read_all(&mut readings)?;
        for ((reading, failed), place) in readings.into_iter().zip(failed).zip(places) {
            found[place] = self.settle(reading, failed)?;
        }
        Ok(found)
    }

    /// Refuses a reference that leads past what was written of its segment.
    fn check_reference(&self, reference: ValueRef, segment: LiveSegment) -> Result<()> {
        let end = u64::from(segment.pages) * PAYLOAD_BYTES as u64;
        if reference.end() <= end {
            return Ok(());
        }
        let page = self.page(reference.slot, 0);
        Err(damaged(page, &format!("a record before byte {end}"), &format!("{reference:?}")))
    }

    /// Reads all parts of all readings; gives the failure of each.
    fn read_all(&self, readings: &mut [Reading]) -> Result<Vec<Option<crate::Error>>> {
        let mut failed: Vec<_> = readings.iter().map(|_| None).collect();
        let parts: Vec<_> = readings.iter().enumerate().flat_map(parts_of).collect();
        if parts.is_empty() {
            return Ok(failed);
        }
        let lane = self.lanes.list().pop();
        let mut lane = lane.map_or_else(|| self.volume.device().queue(DEPTH), Ok)?;
        let (mut next, mut done) = (0, Vec::new());
        // A lane that fails is dropped, which waits for what is in flight.
        while next < parts.len() || lane.in_flight() > 0 {
            while next < parts.len() && lane.in_flight() < lane.depth() {
                self.push_part(&mut *lane, readings, (next, parts[next]))?;
                next += 1;
            }
            lane.wait(1, &mut done)?;
            for completion in done.drain(..) {
                let part = parts[usize::try_from(completion.token).expect("tokens are indices")];
                let reading = &mut readings[part.reading];
                let taken = self.take_part(reading, part, completion);
                failed[part.reading] = failed[part.reading].take().or(taken.err());
            }
        }
        self.lanes.list().push(lane);
        Ok(failed)
    }

    fn push_part(
        &self,
        lane: &mut dyn Queue,
        readings: &[Reading],
        (token, part): (usize, Part),
    ) -> Result<()> {
        let page = self.page(readings[part.reading].reference.slot, part.first);
        let buf = PageBuf::zeroed(part.pages as usize);
        self.counters.reads.fetch_add(1, Relaxed);
        self.counters.pages_read.fetch_add(u64::from(part.pages), Relaxed);
        Ok(lane.push(Op { token: token as u64, kind: OpKind::Read, page, buf })?)
    }

    /// Proves the pages of a part and copies what belongs to the record.
    fn take_part(&self, reading: &mut Reading, part: Part, completion: Completion) -> Result<()> {
        completion.result?;
        let Reading { reference, segment, wanted, bytes } = reading;
        let (from, to) = (reference.offset as usize, reference.offset as usize + *wanted);
        for index in 0..part.pages {
            let number = part.first + index;
            let label = self.label(segment.slot, segment.sequence, number);
            let page = RawPage::new(completion.buf.page(index as usize)).check(label)?;
            let (begins, payload) = decode_page(page.body(), label.page)?;
            let start = number as usize * PAYLOAD_BYTES;
            let end = (start + PAYLOAD_BYTES).min(to);
            let begin = start.max(from);
            let interrupted = match begins {
                Begins::Void => true,
                Begins::At(at) => start > from && start + at < end,
                Begins::Nothing => start <= from,
            };
            if interrupted {
                return Err(damaged(label.page, "the whole record", &format!("{begins:?}")));
            }
            bytes[begin - from..end - from].copy_from_slice(&payload[begin - start..end - start]);
        }
        Ok(())
    }

    /// The record that was read. What failed because the segment was overwritten meanwhile is gone.
    fn settle(&self, reading: Reading, failed: Option<crate::Error>) -> Result<Option<Vec<u8>>> {
        let Reading { reference, mut bytes, .. } = reading;
        if self.state().segments.holding(reference).is_none() {
            return Ok(None);
        }
        if let Some(error) = failed {
            return Err(error);
        }
        if record_bytes(&bytes) != Some(reference.bytes) {
            let page = self.page(reference.slot, reference.offset / PAYLOAD_BYTES as u32);
            let expected = format!("the header of {} bytes", reference.bytes);
            let found = format!("{:02x?}", &bytes[..RECORD_HEADER_BYTES]);
            return Err(damaged(page, &expected, &found));
        }
        bytes.drain(..RECORD_HEADER_BYTES);
        Ok(Some(bytes))
    }
}

/// The pages of a record, in parts of at most [`PART_PAGES`].
fn parts_of((index, reading): (usize, &Reading)) -> Vec<Part> {
    let from = reading.reference.offset as usize;
    let first = (from / PAYLOAD_BYTES) as u32;
    let end = (from + reading.wanted).div_ceil(PAYLOAD_BYTES) as u32;
    let starts = (first..end).step_by(PART_PAGES as usize);
    let part = |first: u32| Part { reading: index, first, pages: PART_PAGES.min(end - first) };
    starts.map(part).collect()
}
