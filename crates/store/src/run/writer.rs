//! Writing a run, front to back, in large chunks: while one is written, the next one is encoded.

use std::sync::Arc;

use nandex_device::Device;

use super::encode::{Candidates, fill};
use super::page::PAGE_ENTRIES_MAX;
use super::{Entry, Run, RunPlace, RunShape};
use crate::fingerprint::Split;
use crate::pages::PageWriter;
use crate::{Error, IoChunks, Poison, Result};

/// Writes one run. Memory: its chunks, and at most two pages' worth of entries.
pub struct RunWriter {
    run: Run,
    shape: RunShape,
    split: Split,
    pages: PageWriter,
    /// The page that is filled next.
    page: u64,
    /// The first fingerprint that could be on that page.
    base: u64,
    /// The first fingerprint of the next page.
    next: u64,
    /// Entries for that page: carried over from the page before, or of a page's share that is not complete yet.
    pending: Vec<Entry>,
    /// The properties of a page's entries.
    seen: Candidates,
}

impl RunWriter {
    /// Starts a run at this place, which no other writer may use. Writes nothing yet.
    ///
    /// # Errors
    /// [`Error::Config`] if the extent is shorter than the shape, or the chunks are invalid; as
    /// [`Device::queue`].
    pub fn new(
        device: &dyn Device,
        poison: Arc<Poison>,
        place: RunPlace,
        shape: RunShape,
        chunks: IoChunks,
    ) -> Result<Self> {
        shape.validate()?;
        if place.extent.pages < shape.pages() {
            let (found, needed) = (place.extent.pages, shape.pages());
            let reason = format!("{found} pages, and the run's shape has {needed}");
            return Err(Error::config("extent", reason));
        }
        let split = shape.split();
        Ok(Self {
            run: Run::empty(place, shape),
            shape,
            split,
            pages: PageWriter::new(device, poison, place.pages(), chunks)?,
            page: 0,
            base: 0,
            next: split.first(1),
            pending: Vec::new(),
            seen: Candidates::default(),
        })
    }

    /// Adds the next entries. Writes a chunk when it is full.
    ///
    /// # Errors
    /// [`Error::RunFull`] when they do not fit the pages of the run: start again with a wider
    /// [`shape`](RunShape::widened). A write's failure, which poisons the volume.
    ///
    /// # Panics
    /// When entries do not ascend, are outside of the universe, or one counts 0. The panic may come only with a later
    /// call.
    pub fn push(&mut self, mut entries: &[Entry]) -> Result<()> {
        loop {
            // More entries than any page holds need not wait for the end of the page's share.
            let space = (PAGE_ENTRIES_MAX + 1).saturating_sub(self.pending.len());
            let cut = entries.partition_point(|entry| entry.fingerprint < self.next).min(space);
            let (head, rest) = entries.split_at(cut);
            if rest.is_empty() && cut < space {
                self.pending.extend_from_slice(head);
                return Ok(());
            }
            self.write_page(head)?;
            entries = rest;
        }
    }

    /// Writes what remains, including pages without entries, and waits for all writes. The run is durable once the
    /// device is synced, which the checkpoint that names it does.
    ///
    /// # Errors
    /// As [`push`](Self::push).
    pub fn finish(mut self) -> Result<Run> {
        while self.page < self.shape.slot_pages || !self.pending.is_empty() {
            self.write_page(&[])?;
        }
        self.pages.finish()?;
        self.run.used_pages = self.page;
        Ok(self.run)
    }

    /// The number of bytes passed to the device.
    #[must_use]
    pub fn bytes_written(&self) -> u64 {
        self.pages.bytes_written()
    }

    /// The RAM that the writer uses, in bytes.
    #[must_use]
    pub fn ram_bytes(&self) -> usize {
        self.pages.ram_bytes() + self.pending.capacity() * size_of::<Entry>()
    }

    /// Fills a page with the pending entries, followed by these.
    fn write_page(&mut self, entries: &[Entry]) -> Result<()> {
        if self.page >= self.shape.pages() {
            return Err(Error::RunFull { pages: self.shape.pages() });
        }
        if self.pending.is_empty() {
            let taken = self.fill(entries)?;
            self.pending.extend_from_slice(&entries[taken..]);
            return Ok(());
        }
        let mut pending = std::mem::take(&mut self.pending);
        pending.extend_from_slice(entries);
        let taken = self.fill(&pending);
        pending.drain(..*taken.as_ref().unwrap_or(&0));
        self.pending = pending;
        taken.map(drop)
    }

    /// Fills the next page with as many of these entries as fit, and returns their number.
    fn fill(&mut self, entries: &[Entry]) -> Result<usize> {
        let (base, limit) = (self.base, self.next);
        self.seen.see(base, entries);
        let is_inside = self.seen.next <= self.shape.universe.size();
        assert!(self.seen.are_fine && is_inside, "entries of a run ascend and count");
        let mut filled = None;
        self.pages.push(|body| filled = Some(fill(body, base, limit, entries, &self.seen)))?;
        let filled = filled.expect("the page was filled");
        self.run.add(filled, self.seen.exceptions(filled.entries));
        self.base = entries.get(filled.entries).map_or(limit, |entry| entry.fingerprint);
        self.page += 1;
        self.next = self.split.first(self.page + 1);
        Ok(filled.entries)
    }
}

impl std::fmt::Debug for RunWriter {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("RunWriter").field("run", &self.run).finish_non_exhaustive()
    }
}
