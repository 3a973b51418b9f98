//! Reading a run from front to back, in large chunks: while one is decoded, the next ones are read.

use crate::IoChunks;
use std::collections::BTreeMap;
use std::ops::Range;

use nandex_device::{Completion, Device, Op, OpKind, PAGE_BYTES, PageBuf, Queue};

use super::{Entry, Run, RunPage, Source};
use crate::Result;

/// Streams the entries of a run, or of a range of its slots. Proves every page, its order, and that nothing
/// is missing between it and the page before.
///
/// After a failed read it can be called again, and continues there. Memory: its chunks.
pub struct RunReader {
    run: Run,
    queue: Box<dyn Queue>,
    chunks: IoChunks,
    /// Wanted fingerprints.
    wanted: Range<u64>,
    /// The page that is decoded next, and its expected base; the first one of a range may begin earlier.
    page: u64,
    base: Option<u64>,
    /// The page that is read next, and the one up to which reading continues.
    next_read: u64,
    until: u64,
    /// The chunk that is decoded, by its first page.
    chunk: Option<(u64, PageBuf)>,
    /// Chunks that were read and are not decoded yet, by their first pages.
    ready: BTreeMap<u64, PageBuf>,
    idle: Vec<PageBuf>,
    done: Vec<Completion>,
}

impl RunReader {
    /// Streams the whole run.
    ///
    /// # Errors
    /// [`Error::Config`](crate::Error::Config) for invalid chunks; as [`Device::queue`].
    pub fn new(device: &dyn Device, run: &Run, chunks: IoChunks) -> Result<Self> {
        Self::of_slots(device, run, 0..run.slot_pages(), chunks)
    }

    /// Streams the fingerprints of these slots. Reads their pages, and the next ones to which some of the
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
        chunks.validate()?;
        let split = run.split();
        let wanted = split.first(slots.start)..split.first(slots.end);
        let is_last = slots.end == run.slot_pages();
        Ok(Self {
            run: run.clone(),
            queue: device.queue(chunks.chunks)?,
            chunks,
            base: (slots.start == 0).then_some(0),
            page: slots.start,
            next_read: slots.start,
            until: if is_last { run.used_pages() } else { slots.end },
            wanted,
            chunk: None,
            ready: BTreeMap::new(),
            idle: Vec::new(),
            done: Vec::new(),
        })
    }

    /// RAM that it holds, in bytes.
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
            let (token, page) = (self.next_read, self.run.page(self.next_read));
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

    /// Makes the next page available; returns false if the wanted ones have ended.
    fn has_page(&mut self) -> Result<bool> {
        if self.wanted.is_empty() || self.base.is_some_and(|base| base >= self.wanted.end) {
            return Ok(false);
        }
        if self.page == self.until {
            // Some of the wanted ones were carried over.
            let more = self.until + self.chunks.chunk_pages as u64;
            self.until = more.min(self.run.used_pages());
            if self.page == self.until {
                return Err(self.run.refuse(self.page - 1, "an end", "more behind it"));
            }
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
        Ok(true)
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

    /// Appends the wanted entries of the next page.
    fn decode(&mut self, out: &mut Vec<Entry>) -> Result<()> {
        let Some((first, chunk)) = &self.chunk else { return Ok(()) };
        let index = (self.page - first) as usize;
        let body = self.run.prove(self.page, chunk.page(index))?;
        if body.base() != self.base.unwrap_or(body.base().min(self.wanted.start)) {
            let expected = self.base.unwrap_or(self.wanted.start);
            return Err(self.run.refuse(self.page, format!("base {expected}"), body.base()));
        }
        let limit = self.limit(&body)?;
        let start = out.len();
        if body.read(out).is_none() {
            out.truncate(start);
            return Err(self.run.refuse(self.page, "ascending entries", "others"));
        }
        self.trim(out, start);
        self.page += 1;
        self.base = Some(limit);
        Ok(())
    }

    /// The end of a page: its share's end or earlier, and for the last one the universe's end.
    fn limit(&self, body: &RunPage<'_>) -> Result<u64> {
        let end = self.run.split().first(self.page + 1);
        let is_last = self.page + 1 == self.run.used_pages();
        if body.limit() > end || is_last && body.limit() != end {
            return Err(self.run.refuse(self.page, format!("an end at {end}"), body.limit()));
        }
        Ok(body.limit())
    }

    /// Keeps only the wanted entries from `start` on.
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
        f.debug_struct("RunReader").field("page", &self.page).finish_non_exhaustive()
    }
}
