//! Reads a run from front to back: every page is verified and decoded.

use std::ops::Range;

use nandex_device::Device;

use super::{Entry, Run, RunPage, Source};
use crate::pages::PageReader;
use crate::{IoChunks, Result};

/// Streams the entries of a run, or of a range of its slots. Proves every page, its order, and that nothing
/// is missing between it and the page before.
///
/// After a failed read it can be called again, and continues there. Memory: its chunks.
pub struct RunReader {
    run: Run,
    pages: PageReader,
    chunk_pages: u64,
    /// The range of wanted fingerprints.
    wanted: Range<u64>,
    /// The expected base of the page that is decoded next; the first one of a range may begin earlier.
    base: Option<u64>,
}

impl RunReader {
    /// Streams the whole run.
    ///
    /// # Errors
    /// [`Error::Config`](crate::Error::Config) for invalid chunks; as [`Device::queue`].
    pub fn new(device: &dyn Device, run: &Run, chunks: IoChunks) -> Result<Self> {
        Self::of_slots(device, run, 0..run.slot_pages(), chunks)
    }

    /// Streams the fingerprints of these slots. Reads their pages, and the following pages to which some of the
    /// fingerprints were carried.
    ///
    /// # Errors
    /// As [`new`](Self::new).
    ///
    /// # Panics
    /// If the run has no such slots.
    pub fn of_slots(
        device: &dyn Device,
        run: &Run,
        slots: Range<u64>,
        chunks: IoChunks,
    ) -> Result<Self> {
        assert!(slots.start <= slots.end && slots.end <= run.slot_pages(), "the run has the slots");
        let split = run.split();
        let wanted = split.first(slots.start)..split.first(slots.end);
        let is_last = slots.end == run.slot_pages();
        let until = if is_last { run.used_pages() } else { slots.end };
        let pages = PageReader::new(device, run.place().pages(), slots.start..until, chunks)?;
        Ok(Self {
            run: run.clone(),
            pages,
            chunk_pages: chunks.chunk_pages as u64,
            base: (slots.start == 0).then_some(0),
            wanted,
        })
    }

    /// The RAM that the reader uses, in bytes.
    #[must_use]
    pub fn ram_bytes(&self) -> usize {
        self.pages.ram_bytes()
    }

    /// Returns whether there is another page with wanted entries. Reads further if some of them were carried over.
    fn has_page(&mut self) -> Result<bool> {
        if self.wanted.is_empty() || self.base.is_some_and(|base| base >= self.wanted.end) {
            return Ok(false);
        }
        if self.pages.is_at_end() {
            let page = self.pages.page();
            self.pages.extend((page + self.chunk_pages).min(self.run.used_pages()));
            if self.pages.is_at_end() {
                return Err(self.run.refuse(page - 1, "an end", "more behind it"));
            }
        }
        Ok(true)
    }

    /// Appends the wanted entries of the next page.
    fn decode(&mut self, out: &mut Vec<Entry>) -> Result<()> {
        let index = self.pages.page();
        let Some(page) = self.pages.next_page()? else { return Ok(()) };
        let body = self.run.prove(index, page)?;
        if body.base() != self.base.unwrap_or(body.base().min(self.wanted.start)) {
            let expected = self.base.unwrap_or(self.wanted.start);
            return Err(self.run.refuse(index, format!("base {expected}"), body.base()));
        }
        let limit = limit(&self.run, index, &body)?;
        let start = out.len();
        if body.read(out).is_none() {
            out.truncate(start);
            return Err(self.run.refuse(index, "ascending entries", "others"));
        }
        self.trim(out, start);
        self.pages.advance();
        self.base = Some(limit);
        Ok(())
    }

    /// Drops all but the wanted entries from `start` on.
    fn trim(&self, out: &mut Vec<Entry>, start: usize) {
        let entries = &out[start..];
        if entries.last().is_some_and(|last| last.fingerprint >= self.wanted.end) {
            let end = entries.partition_point(|entry| entry.fingerprint < self.wanted.end);
            out.truncate(start + end);
        }
        let entries = &out[start..];
        if entries.first().is_some_and(|first| first.fingerprint < self.wanted.start) {
            let early = entries.partition_point(|entry| entry.fingerprint < self.wanted.start);
            out.drain(start..start + early);
        }
    }
}

/// Returns the end of a page: its share's end or earlier, and for the last one the universe's end.
fn limit(run: &Run, index: u64, body: &RunPage<'_>) -> Result<u64> {
    let end = run.split().first(index + 1);
    let is_last = index + 1 == run.used_pages();
    if body.limit() > end || is_last && body.limit() != end {
        return Err(run.refuse(index, format!("an end at {end}"), body.limit()));
    }
    Ok(body.limit())
}

impl Source for RunReader {
    fn next_batch(&mut self, out: &mut Vec<Entry>) -> Result<bool> {
        let start = out.len();
        while out.len() == start {
            if !self.has_page()? {
                return Ok(false);
            }
            self.decode(out)?;
        }
        Ok(true)
    }
}

impl std::fmt::Debug for RunReader {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("RunReader").field("pages", &self.pages).finish_non_exhaustive()
    }
}
