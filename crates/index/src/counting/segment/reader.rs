//! Reads a segment from front to back, and verifies every page and the order of its entries.

use std::sync::Arc;

use nandex_device::Device;
use nandex_store::IoChunks;
use nandex_store::pages::PageReader;

use super::super::entries::{Entries, Source};
use super::super::keys::KeyPlacing;
use super::Segment;
use crate::Result;

/// Streams the entries of a segment in ascending order. Holds the overflow region in RAM: a few pages.
pub(crate) struct SegmentReader {
    segment: Arc<Segment>,
    placing: KeyPlacing,
    pages: PageReader,
    /// The pages of the overflow region, read before the first block.
    region: PageReader,
    overflow: Vec<Vec<u8>>,
    /// The next overflow page, counted from 1; 0 while a block's own pages are read.
    chained: u32,
}

impl SegmentReader {
    /// Creates a reader without reading anything yet.
    ///
    /// # Errors
    /// As [`PageReader::new`].
    pub(in crate::counting) fn new(
        device: &dyn Device,
        segment: &Arc<Segment>,
        placing: KeyPlacing,
        chunks: IoChunks,
    ) -> Result<Self> {
        let (slots, pages) = (segment.shape.slot_pages(), segment.pages());
        let one_by_one = IoChunks { chunk_pages: 1, chunks: 1 };
        Ok(Self {
            placing,
            pages: PageReader::new(device, segment.place, 0..slots, chunks)?,
            region: PageReader::new(device, segment.place, slots..pages, one_by_one)?,
            overflow: Vec::new(),
            chained: 0,
            segment: Arc::clone(segment),
        })
    }

    fn read_region(&mut self) -> Result<()> {
        while let Some(page) = self.region.next_page()? {
            self.overflow.push(page.to_vec());
            self.region.advance();
        }
        Ok(())
    }

    /// Appends the entries of the next page; returns false at the end.
    fn read_page(&mut self, out: &mut Entries) -> Result<bool> {
        let slots = self.segment.shape.slot_pages();
        let from = out.len();
        let index = match self.chained {
            0 => self.pages.page(),
            chained => slots + u64::from(chained) - 1,
        };
        let bytes = if index >= slots && self.chained > 0 {
            Some(&self.overflow[(index - slots) as usize][..])
        } else {
            self.pages.next_page()?
        };
        let Some(bytes) = bytes else { return Ok(false) };
        let page = self.segment.prove(index, bytes, self.placing.width())?;
        let is_read = page.read(&self.placing, out).is_some() && out.ascend(from);
        let (goes_on, next) = (page.goes_on, page.next);
        let belongs = |place: &u64| self.segment.shape.page_of(*place) <= index;
        if !is_read || !out.places[from..].iter().all(belongs) {
            return Err(self.segment.refuse(index, "ascending keys of the page", "others"));
        }
        if index < slots {
            self.pages.advance();
        }
        if goes_on {
            self.segment.after(index, next)?;
        }
        self.chained = if goes_on { next } else { 0 };
        Ok(true)
    }
}

impl Source for SegmentReader {
    fn next_batch(&mut self, out: &mut Entries) -> Result<bool> {
        let from = out.len();
        self.read_region()?;
        while out.len() == from {
            if !self.read_page(out)? {
                return Ok(false);
            }
        }
        Ok(true)
    }
}

impl std::fmt::Debug for SegmentReader {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("SegmentReader").field("pages", &self.pages).finish_non_exhaustive()
    }
}
