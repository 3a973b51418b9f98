//! Reading pages front to back, in large chunks: while one is used, the next ones are read.

use std::collections::BTreeMap;
use std::ops::Range;

use nandex_device::{Completion, Device, Op, OpKind, PAGE_BYTES, PageBuf, Queue};

use super::PagePlace;
use crate::{IoChunks, Result};

/// Reads pages of an extent. Verifies nothing: it returns bytes.
///
/// After a failed read it can be called again, and continues there. Memory: its chunks.
pub struct PageReader {
    place: PagePlace,
    queue: Box<dyn Queue>,
    chunks: IoChunks,
    /// The page that is used next.
    page: u64,
    /// The page that is read next, and the one up to which reading continues.
    next_read: u64,
    until: u64,
    /// The chunk that is used, by its first page.
    chunk: Option<(u64, PageBuf)>,
    /// Chunks that were read and are not used yet, by their first pages.
    ready: BTreeMap<u64, PageBuf>,
    idle: Vec<PageBuf>,
    done: Vec<Completion>,
}

impl PageReader {
    /// Reads these pages, counted from the place's first. Reads nothing yet.
    ///
    /// # Errors
    /// [`Error::Config`](crate::Error::Config) for invalid chunks; as [`Device::queue`].
    pub fn new(
        device: &dyn Device,
        place: PagePlace,
        pages: Range<u64>,
        chunks: IoChunks,
    ) -> Result<Self> {
        chunks.validate()?;
        Ok(Self {
            place,
            queue: device.queue(chunks.chunks)?,
            chunks,
            page: pages.start,
            next_read: pages.start,
            until: pages.end,
            chunk: None,
            ready: BTreeMap::new(),
            idle: Vec::new(),
            done: Vec::new(),
        })
    }

    /// The number of the page that is used next.
    #[must_use]
    pub fn page(&self) -> u64 {
        self.page
    }

    /// Returns whether all pages have been used.
    #[must_use]
    pub fn is_at_end(&self) -> bool {
        self.page == self.until
    }

    /// Continues to read up to this page.
    pub fn extend(&mut self, until: u64) {
        self.until = self.until.max(until);
    }

    /// Returns the bytes of the next page, after a wait if it is still being read; `None` at the end. The page stays
    /// the next one until [`advance`](Self::advance).
    ///
    /// # Errors
    /// A failed read.
    pub fn next_page(&mut self) -> Result<Option<&[u8]>> {
        if self.is_at_end() {
            return Ok(None);
        }
        let chunk_ends = |(first, buf): &(u64, PageBuf)| self.page >= first + buf.pages() as u64;
        if self.chunk.as_ref().is_some_and(chunk_ends) {
            self.idle.extend(self.chunk.take().map(|(_, buf)| buf));
        }
        while self.chunk.is_none() {
            self.read_ahead()?;
            self.chunk = self.ready.remove(&self.page).map(|buf| (self.page, buf));
            if self.chunk.is_none() {
                self.take_back()?;
            }
        }
        self.read_ahead()?;
        let page = self.page;
        Ok(self.chunk.as_ref().map(|(first, chunk)| chunk.page((page - first) as usize)))
    }

    /// Advances to the next page.
    pub fn advance(&mut self) {
        self.page += 1;
    }

    /// The RAM that the reader uses, in bytes.
    #[must_use]
    pub fn ram_bytes(&self) -> usize {
        let buffers = self.idle.len()
            + self.ready.len()
            + self.queue.in_flight()
            + usize::from(self.chunk.is_some());
        buffers * self.chunks.chunk_pages * PAGE_BYTES
    }

    /// Starts reads as long as chunks are free.
    fn read_ahead(&mut self) -> Result<()> {
        let depth = self.chunks.chunks;
        while self.next_read < self.until && self.queue.in_flight() + self.ready.len() < depth {
            let left = usize::try_from(self.until - self.next_read).unwrap_or(usize::MAX);
            let buf = self.buffer(left.min(self.chunks.chunk_pages));
            let (token, page) = (self.next_read, self.place.extent.start.plus(self.next_read));
            let pages = buf.pages() as u64;
            self.queue.push(Op { token, kind: OpKind::Read, page, buf })?;
            self.next_read += pages;
        }
        Ok(())
    }

    fn buffer(&mut self, pages: usize) -> PageBuf {
        let fitting = self.idle.iter().position(|buf| buf.pages() == pages);
        match fitting {
            Some(index) => self.idle.swap_remove(index),
            None => PageBuf::zeroed(pages),
        }
    }

    fn take_back(&mut self) -> Result<()> {
        self.queue.wait(1, &mut self.done)?;
        let mut result = Ok(());
        for Completion { token, buf, result: ended, .. } in self.done.drain(..) {
            match ended {
                Ok(()) => drop(self.ready.insert(token, buf)),
                Err(error) => {
                    self.idle.push(buf);
                    result = Err(error.into());
                }
            }
        }
        if result.is_err() {
            self.start_over();
        }
        result
    }

    /// Drops what was read ahead, so that the next call reads from its page on.
    fn start_over(&mut self) {
        while self.queue.in_flight() > 0 && self.queue.wait(usize::MAX, &mut self.done).is_ok() {}
        self.idle.extend(self.done.drain(..).map(|completion| completion.buf));
        self.idle.extend(std::mem::take(&mut self.ready).into_values());
        self.next_read = self.page;
    }
}

impl std::fmt::Debug for PageReader {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("PageReader").field("page", &self.page).finish_non_exhaustive()
    }
}
