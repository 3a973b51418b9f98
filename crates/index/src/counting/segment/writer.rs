//! Writing segments: a sorted source becomes a segment on its own extent.

use std::sync::Arc;

use nandex_store::page::{PAGE_BODY_BYTES, PageKind};
use nandex_store::pages::{PagePlace, PageWriter};
use nandex_store::space::Extent;
use nandex_store::{IoChunks, StructureId, Volume, generation};

use super::super::change::Change;
use super::super::entries::{Entries, Source};
use super::super::page::PageBuilder;
use super::{Segment, SegmentContent, SegmentFilter, SegmentReader, SegmentShape, SegmentSize};
use crate::Result;
use crate::counting::keys::KeyPlacing;

/// The number of segments that are read at once in I/O chunks of full size: the data segment and two staged ones.
pub(in crate::counting) const READ_SEGMENTS: usize = 3;

/// Writes and reads segments of a table.
#[derive(Clone)]
pub(crate) struct Segments {
    pub volume: Volume,
    pub structure: StructureId,
    pub placing: KeyPlacing,
    pub chunks: IoChunks,
    /// The maximum number of pages of a block.
    pub block_pages: u32,
}

/// The result of a pass over a source.
enum Pass {
    Written(Segment),
    /// The source had no entries left.
    Empty,
    /// The segment had too few pages.
    Full,
}

impl Segments {
    /// Writes the source that `begin` returns as a segment; writes nothing if it is empty. Begins again with more pages
    /// if keys are not spread like hashes. `filtered` segments have a filter in RAM.
    ///
    /// # Errors
    /// A failed read or write, damage, no space.
    pub(in crate::counting) fn write<S: Source>(
        &self,
        next_number: &dyn Fn() -> u64,
        size: SegmentSize,
        filtered: bool,
        mut begin: impl FnMut() -> Result<S>,
        mut progress: impl FnMut(u64),
    ) -> Result<Option<Segment>> {
        for widened in 0.. {
            let shape = SegmentShape::new(size, self.placing.width(), self.block_pages, widened);
            let extent = self.volume.allocate(shape.pages())?;
            let filter = filtered.then(|| SegmentFilter::new(size.entries));
            let pass =
                self.pass(next_number(), shape, extent, filter, &mut begin()?, &mut progress);
            match pass {
                Ok(Pass::Written(segment)) => return Ok(Some(self.trimmed(segment))),
                other => {
                    self.volume.give_back(extent);
                    if !matches!(other?, Pass::Full) {
                        break;
                    }
                }
            }
        }
        Ok(None)
    }

    /// Frees the overflow pages that were not needed.
    fn trimmed(&self, mut segment: Segment) -> Segment {
        let (extent, pages) = (segment.place.extent, segment.shape.pages());
        segment.place.extent.pages = pages;
        if pages < extent.pages {
            let rest = Extent { start: extent.start.plus(pages), pages: extent.pages - pages };
            self.volume.give_back(rest);
        }
        segment
    }

    fn pass(
        &self,
        number: u64,
        shape: SegmentShape,
        extent: Extent,
        filter: Option<SegmentFilter>,
        source: &mut dyn Source,
        progress: &mut dyn FnMut(u64),
    ) -> Result<Pass> {
        let generation = generation::generation(number, generation::low(self.volume.epoch()));
        let structure = self.structure;
        let place = PagePlace { kind: PageKind::Counts, structure, extent, generation };
        let poison = Arc::clone(self.volume.poison());
        let pages = PageWriter::new(&**self.volume.device(), poison, place, self.chunks)?;
        let mut writer = SegmentWriter::new(shape, pages, self.placing.width(), filter);
        let mut batch = Entries::new(self.placing.width());
        while source.next_batch(&mut batch)? {
            for at in 0..batch.len() {
                if !writer.push(batch.places[at], batch.key(at), batch.changes[at])? {
                    return Ok(Pass::Full);
                }
            }
            progress(writer.content.entries);
            batch.clear();
        }
        if writer.content.entries == 0 {
            return Ok(Pass::Empty);
        }
        let (shape, content, filter) = writer.finish()?;
        Ok(Pass::Written(Segment { place, shape, content, filter }))
    }

    /// Reads a segment from front to back.
    ///
    /// # Errors
    /// As [`SegmentReader::new`].
    pub(in crate::counting) fn reader(&self, segment: &Arc<Segment>) -> Result<SegmentReader> {
        self.reader_among(1, segment)
    }

    /// Reads a segment from front to back, one of `count` that are read at once.
    ///
    /// # Errors
    /// As [`SegmentReader::new`].
    pub(in crate::counting) fn reader_among(
        &self,
        count: usize,
        segment: &Arc<Segment>,
    ) -> Result<SegmentReader> {
        let chunks = self.chunks_among(count);
        SegmentReader::new(&**self.volume.device(), segment, self.placing, chunks)
    }

    /// Returns the I/O chunks for each of `count` segments that are read at once: those that all have for few segments,
    /// and smaller ones for many, so that together they take no more RAM unless there are more segments than pages.
    fn chunks_among(&self, count: usize) -> IoChunks {
        let IoChunks { chunk_pages, chunks } = self.chunks;
        let pages = (READ_SEGMENTS * chunk_pages * chunks / count.max(READ_SEGMENTS)).max(1);
        let chunks = chunks.min(pages);
        IoChunks { chunk_pages: pages / chunks, chunks }
    }

    /// The RAM of the I/O chunks of a merge that reads `count` segments and writes one, in bytes.
    pub(in crate::counting) fn merge_ram_bytes(&self, count: usize) -> u64 {
        (self.chunks.ram_bytes() + count * self.chunks_among(count).ram_bytes()) as u64
    }
}

impl std::fmt::Debug for Segments {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Segments").field("structure", &self.structure).finish_non_exhaustive()
    }
}

/// Fills one segment's pages in order.
struct SegmentWriter {
    shape: SegmentShape,
    pages: PageWriter,
    /// The page that is being filled, and the entries on it.
    page: u64,
    builder: PageBuilder,
    /// The entries of the overflow page that the block has begun.
    overflow: PageBuilder,
    /// The pages of the overflow region, as bodies of those that are full.
    region: Vec<Box<[u8]>>,
    /// The first overflow page of the current block, counted from 1; 0 while it needs none.
    chained: u32,
    content: SegmentContent,
    filter: Option<SegmentFilter>,
}

impl SegmentWriter {
    fn new(
        shape: SegmentShape,
        pages: PageWriter,
        width: usize,
        filter: Option<SegmentFilter>,
    ) -> Self {
        let (builder, overflow) = (PageBuilder::new(width), PageBuilder::new(width));
        let content = SegmentContent::default();
        Self {
            shape,
            pages,
            page: 0,
            builder,
            overflow,
            region: Vec::new(),
            chained: 0,
            content,
            filter,
        }
    }

    /// Adds the next entry; returns false if the segment has too few pages.
    #[inline]
    fn push(&mut self, place: u64, key: &[u8], change: Change) -> Result<bool> {
        let home = self.shape.page_of(place);
        while self.page < home {
            self.end_page(false)?;
        }
        let is_overflowing = self.chained > 0;
        if (is_overflowing || !self.builder.try_push(key, change))
            && !self.push_further(key, change)?
        {
            return Ok(false);
        }
        self.content.add(change);
        self.filter.iter_mut().for_each(|filter| filter.insert(place));
        Ok(true)
    }

    /// Adds an entry to a page after the full one; returns false if the overflow region is full.
    #[cold]
    fn push_further(&mut self, key: &[u8], change: Change) -> Result<bool> {
        if self.chained == 0 && !self.shape.ends_block(self.page) {
            self.end_page(true)?;
            return Ok(self.builder.try_push(key, change));
        }
        if self.chained == 0 {
            self.chained = self.region.len() as u32 + 1;
        }
        if !self.overflow.try_push(key, change) {
            let next = self.region.len() as u32 + 2;
            self.end_overflow(next);
            self.overflow.try_push(key, change);
        }
        Ok(self.region.len() < self.shape.overflow_pages as usize)
    }

    /// Ends an overflow page, which `next` follows, counted from 1; 0 for none.
    fn end_overflow(&mut self, next: u32) {
        let mut body = vec![0; PAGE_BODY_BYTES];
        self.overflow.write(&mut body, next > 0, next);
        self.region.push(body.into());
    }

    /// Ends the page that is being filled.
    fn end_page(&mut self, goes_on: bool) -> Result<()> {
        let chained = std::mem::take(&mut self.chained);
        if chained > 0 {
            self.end_overflow(0);
        }
        let builder = &mut self.builder;
        self.pages.push(|body| builder.write(body, goes_on || chained > 0, chained))?;
        self.page += 1;
        Ok(())
    }

    /// Writes what remains, including empty pages, then the overflow region.
    fn finish(mut self) -> Result<(SegmentShape, SegmentContent, Option<SegmentFilter>)> {
        while self.page < self.shape.slot_pages() {
            self.end_page(false)?;
        }
        for full in &self.region {
            self.pages.push(|body| body.copy_from_slice(full))?;
        }
        self.pages.finish()?;
        let shape = SegmentShape { overflow_pages: self.region.len() as u32, ..self.shape };
        Ok((shape, self.content, self.filter))
    }
}
