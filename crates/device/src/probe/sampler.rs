//! Timing on a device: fills the area, and reads pages in pairs, each page only once.

use std::ops::Range;

use super::rng::Rng;
use crate::{Completion, Device, Op, OpKind, PageBuf, PageId, Queue, Result};

/// The number of pages of one write while the region is filled: long enough for every chunk and flash page.
const FILL_PAGES: u64 = 256;
/// The number of pages read, one after another, until the device has finished writes that it acknowledged early.
const QUIET_PAGES: u64 = 4096;
/// The number of tries to find a pair of unread pages, before all pages are searched.
const TRIES: u32 = 16;

/// Reads and writes a region of a device, and notes which pages of the area were read.
///
/// ```text
///   region:  | head |            area             | tail |
/// ```
/// Only the area is timed. The head is read to wait for the device; the tail is written last, so that a
/// device's RAM buffer of recent writes holds nothing of the area.
pub(super) struct Sampler<'a> {
    device: &'a dyn Device,
    queue: Box<dyn Queue>,
    region: Range<u64>,
    area: Range<u64>,
    was_read: Vec<bool>,
    done: Vec<Completion>,
    spare: Vec<PageBuf>,
    pub rng: Rng,
    pub reads: u64,
    pub writes: u64,
}

impl<'a> Sampler<'a> {
    pub fn new(device: &'a dyn Device, region: Range<u64>, seed: u64) -> Result<Self> {
        let margin = (region.end - region.start) / 8;
        let area = region.start + margin..region.end - margin;
        Ok(Self {
            device,
            queue: device.queue(2)?,
            was_read: vec![false; (area.end - area.start) as usize],
            region,
            area,
            done: Vec::with_capacity(2),
            spare: vec![PageBuf::zeroed(1), PageBuf::zeroed(1)],
            rng: Rng::new(seed),
            reads: 0,
            writes: 0,
        })
    }

    /// The start of the region on the device.
    pub fn region_start(&self) -> PageId {
        PageId(self.region.start)
    }

    /// The number of pages of the area.
    pub fn area_pages(&self) -> u64 {
        self.area.end - self.area.start
    }

    /// The number of pages of the region before the area.
    pub fn head_pages(&self) -> u64 {
        self.area.start - self.region.start
    }

    /// Returns the time from pushing the first of two reads to the end of the last. Pages are counted from the start of
    /// the area.
    pub fn pair_ns(&mut self, pages: [u64; 2]) -> Result<u64> {
        let start_ns = self.device.now();
        for page in pages {
            self.push_read(self.area.start + page)?;
            self.was_read[page as usize] = true;
        }
        self.finish(2)?;
        Ok(self.device.now() - start_ns)
    }

    /// Returns the time of one read.
    pub fn single_ns(&mut self, page: u64) -> Result<u64> {
        self.was_read[page as usize] = true;
        self.timed_read(self.area.start + page)
    }

    fn timed_read(&mut self, page: u64) -> Result<u64> {
        let start_ns = self.device.now();
        self.push_read(page)?;
        self.finish(1)?;
        Ok(self.device.now() - start_ns)
    }

    fn push_read(&mut self, page: u64) -> Result<()> {
        self.reads += 1;
        let buf = self.spare.pop().unwrap_or_else(|| PageBuf::zeroed(1));
        self.queue.push(Op { token: page, kind: OpKind::Read, page: PageId(page), buf })
    }

    fn finish(&mut self, count: usize) -> Result<()> {
        self.queue.wait(count, &mut self.done)?;
        let mut result = Ok(());
        for completion in self.done.drain(..) {
            if let Err(error) = completion.result {
                result = Err(error);
            }
            self.spare.push(completion.buf);
        }
        result
    }

    /// Returns two unread pages of the area with this distance; `None` if none remain.
    pub fn fresh_pair(&mut self, distance: u64) -> Option<[u64; 2]> {
        let space = self.area_pages().checked_sub(distance).filter(|space| *space > 0)?;
        let mut first = 0;
        for _ in 0..TRIES {
            first = self.rng.below(space);
            if self.is_fresh(first, distance) {
                return Some([first, first + distance]);
            }
        }
        let found = (first..space).chain(0..first).find(|page| self.is_fresh(*page, distance))?;
        Some([found, found + distance])
    }

    fn is_fresh(&self, page: u64, distance: u64) -> bool {
        !self.was_read[page as usize] && !self.was_read[(page + distance) as usize]
    }

    /// Returns whether this page was read since it was written.
    pub fn is_read(&self, page: u64) -> bool {
        self.was_read[page as usize]
    }

    /// Writes the whole region from the first page to the last, and waits until the device is quiet.
    pub fn fill(&mut self) -> Result<()> {
        self.write_run(self.region.clone())?;
        self.settle()
    }

    /// Writes chunks of the area in the order given, each in one write, then the tail.
    pub fn rewrite(&mut self, starts: &[u64], chunk_pages: u64) -> Result<()> {
        for start in starts {
            let first = self.area.start + start;
            self.write_run(first..first + chunk_pages)?;
        }
        self.write_run(self.area.end..self.region.end)?;
        self.was_read.fill(false);
        self.settle()
    }

    /// Writes a run with one write after another, so that the device receives them in this order.
    fn write_run(&mut self, run: Range<u64>) -> Result<()> {
        let mut page = run.start;
        while page < run.end {
            let pages = FILL_PAGES.min(run.end - page);
            let mut buf = PageBuf::zeroed(pages as usize);
            // The pages differ, for devices that compress or deduplicate equal ones.
            for word in buf.chunks_exact_mut(64) {
                word[..8].copy_from_slice(&self.rng.next_u64().to_le_bytes());
            }
            self.device.write(PageId(page), buf)?;
            self.writes += pages;
            page += pages;
        }
        Ok(())
    }

    fn settle(&mut self) -> Result<()> {
        self.device.sync()?;
        let head = self.region.start..self.area.start;
        for page in head.take(QUIET_PAGES as usize) {
            self.timed_read(page)?;
        }
        Ok(())
    }
}
