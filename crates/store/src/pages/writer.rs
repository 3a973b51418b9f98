//! Writing pages front to back, in large chunks: while one is written, the next one is filled.

use std::sync::Arc;

use nandex_device::{Device, Op, OpKind, PAGE_BYTES, PageBuf, Queue};

use super::PagePlace;
use crate::mutants::{Barrier, is_on};
use crate::page::{PAGE_HEADER_BYTES, seal};
use crate::{IoChunks, Poison, Result};

/// Seals pages one after another and writes them in chunks.
pub struct PageWriter {
    queue: Box<dyn Queue>,
    poison: Arc<Poison>,
    place: PagePlace,
    chunks: IoChunks,
    /// The chunk that is filled, and its number of filled pages.
    chunk: Option<PageBuf>,
    filled: usize,
    /// Idle chunks, and the number of all chunks.
    idle: Vec<PageBuf>,
    buffers: usize,
    /// The chunk's place, counted from the run's first page.
    start: u64,
    bytes_written: u64,
}

impl PageWriter {
    /// Starts at the place's first page. Writes nothing yet.
    ///
    /// # Errors
    /// [`Error::Config`](crate::Error::Config) for invalid chunks; as [`Device::queue`].
    pub fn new(
        device: &dyn Device,
        poison: Arc<Poison>,
        place: PagePlace,
        chunks: IoChunks,
    ) -> Result<Self> {
        chunks.validate()?;
        let queue = device.queue(chunks.chunks)?;
        Ok(Self {
            queue,
            poison,
            place,
            chunks,
            chunk: None,
            filled: 0,
            idle: Vec::new(),
            buffers: 0,
            start: 0,
            bytes_written: 0,
        })
    }

    /// Fills the body of the next page and seals it. Writes a chunk when it is full.
    ///
    /// # Errors
    /// A write's failure, which poisons the volume.
    pub fn push(&mut self, fill: impl FnOnce(&mut [u8])) -> Result<()> {
        self.poison.check()?;
        let mut chunk = match self.chunk.take() {
            Some(chunk) => chunk,
            None => self.buffer()?,
        };
        let page = chunk.page_mut(self.filled);
        fill(&mut page[PAGE_HEADER_BYTES..]);
        seal(page, self.place.label(self.start + self.filled as u64));
        self.filled += 1;
        if self.filled == chunk.pages() {
            return self.write(chunk);
        }
        self.chunk = Some(chunk);
        Ok(())
    }

    /// Returns a chunk that is not in use, after a wait if all are.
    fn buffer(&mut self) -> Result<PageBuf> {
        self.take_back(0)?;
        if self.idle.is_empty() && self.buffers == self.chunks.chunks {
            self.take_back(1)?;
        }
        Ok(self.idle.pop().unwrap_or_else(|| {
            self.buffers += 1;
            PageBuf::zeroed(self.chunks.chunk_pages)
        }))
    }

    fn write(&mut self, buf: PageBuf) -> Result<()> {
        let page = self.place.extent.start.plus(self.start);
        self.start += buf.pages() as u64;
        self.filled = 0;
        self.bytes_written += buf.len() as u64;
        let op = Op { token: 0, kind: OpKind::Write, page, buf };
        self.poison.guard(self.queue.push(op))
    }

    fn take_back(&mut self, count_min: usize) -> Result<()> {
        let mut done = Vec::new();
        self.poison.guard(self.queue.wait(count_min, &mut done))?;
        let mut result = Ok(());
        for completion in done {
            self.idle.push(completion.buf);
            result = result.and(self.poison.guard(completion.result));
        }
        result
    }

    /// Writes the last chunk, which may be short, and waits for all.
    ///
    /// # Errors
    /// As [`push`](Self::push).
    pub fn finish(&mut self) -> Result<()> {
        if let Some(chunk) = self.chunk.take() {
            let mut last = PageBuf::zeroed(self.filled);
            let bytes = last.len();
            last.copy_from_slice(&chunk[..bytes]);
            drop(chunk);
            self.write(last)?;
        }
        if is_on(Barrier::RunHearsItsWrites) {
            while self.queue.in_flight() > 0 {
                self.take_back(self.queue.in_flight())?;
            }
        }
        Ok(())
    }

    /// Bytes that were passed to the device.
    #[must_use]
    pub fn bytes_written(&self) -> u64 {
        self.bytes_written
    }

    /// The RAM that the writer uses, in bytes.
    #[must_use]
    pub fn ram_bytes(&self) -> usize {
        self.buffers * self.chunks.chunk_pages * PAGE_BYTES
    }
}

impl std::fmt::Debug for PageWriter {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("PageWriter").field("place", &self.place).finish_non_exhaustive()
    }
}
