//! The state that the append lock guards: the open block, the closed ones, and their buffers.

use std::collections::VecDeque;

use nandex_device::{PAGE_BYTES, PageBuf};

use super::LogParts;
use super::block::OpenBlock;
use super::format::BLOCK_HEADER_BYTES;
use super::region::LogRegion;

/// The number of block buffers in all: one is filled, four are written, the rest absorb a slow sync.
const BUFFERS_MAX: usize = 8;

/// The number of idle block buffers that are kept. Those of a burst are freed, so that RAM use falls back to what it
/// was.
const SPARE_MAX: usize = 4;

/// A block that accepts no more entries and waits to be written.
pub(super) struct ClosedBlock {
    /// Its place.
    pub lsn: u64,
    /// The place of the block after it.
    pub next: u64,
    /// Bytes of groups.
    pub payload_bytes: u32,
    /// The block's bytes, exactly; padded, not sealed.
    pub buf: PageBuf,
}

/// Blocks that are not with the device.
pub(super) struct Staging {
    /// The start of the open block, or of the next one.
    pub start: u64,
    /// The oldest place that must not be overwritten.
    pub tail: u64,
    /// The block that accepts entries; it holds at least one.
    pub open: Option<OpenBlock>,
    /// The space reserved by callers for entries that they will append.
    pub reserved: u64,
    /// Bytes of entries appended.
    pub payload_bytes: u64,
    /// Whether the threads must end.
    pub stop: bool,
    closed: VecDeque<ClosedBlock>,
    spare: Vec<PageBuf>,
    buffers: usize,
    /// The region, which decides where blocks start.
    region: LogRegion,
}

impl Staging {
    /// Creates a staging area with nothing appended; the first block will start at `start`.
    pub fn new(start: u64, tail: u64, region: LogRegion) -> Self {
        Self {
            start,
            tail,
            open: None,
            reserved: 0,
            payload_bytes: 0,
            stop: false,
            closed: VecDeque::new(),
            spare: Vec::new(),
            buffers: 0,
            region,
        }
    }

    /// Returns the place up to which the log must be durable for everything appended to be durable.
    pub fn wanted(&self) -> u64 {
        self.start + u64::from(self.open.is_some())
    }

    /// Bytes from the tail to the end of the open block.
    pub fn used_bytes(&self) -> u64 {
        let open = self.open.as_ref().map_or(0, OpenBlock::bytes);
        self.start - self.tail + open.next_multiple_of(PAGE_BYTES) as u64
    }

    /// The memory of block buffers and of short blocks that wait, in bytes.
    pub fn ram_bytes(&self) -> u64 {
        let short = self.closed.iter().map(|block| block.buf.len());
        let short: usize = short.filter(|&bytes| bytes < self.region.block_bytes).sum();
        (self.buffers * self.region.block_bytes + short) as u64
    }

    /// Returns a buffer for a new block, unless all are in use.
    pub fn take_buffer(&mut self) -> Option<PageBuf> {
        if let Some(buf) = self.spare.pop() {
            return Some(buf);
        }
        if self.buffers == BUFFERS_MAX {
            return None;
        }
        self.buffers += 1;
        Some(PageBuf::zeroed(self.region.block_bytes / PAGE_BYTES))
    }

    /// Takes a written block's buffer back, or frees it if enough are spare.
    pub fn give_buffer(&mut self, buf: PageBuf) {
        if buf.len() != self.region.block_bytes {
            return;
        }
        if self.spare.len() < SPARE_MAX {
            self.spare.push(buf);
        } else {
            self.buffers -= 1;
        }
    }

    /// Closes the open block, if there is one, and returns the place where the next will start.
    pub fn close(&mut self) -> u64 {
        let Some(open) = self.open.take() else { return self.start };
        let (buf, bytes) = open.finish();
        let buf = self.pad(buf, bytes);
        let lsn = self.start;
        self.start = self.region.start_from(lsn + buf.len() as u64);
        let payload_bytes = u32::try_from(bytes - BLOCK_HEADER_BYTES).expect("less than a block");
        self.closed.push_back(ClosedBlock { lsn, next: self.start, payload_bytes, buf });
        self.start
    }

    /// Returns whether another block fits behind those that are kept.
    pub fn fits_block(&self) -> bool {
        self.start + self.region.block() <= self.tail + self.region.bytes()
    }

    /// Makes blocks that are begun from now on use the newest of these parts. No block may be open.
    pub fn go_on_in(&mut self, parts: LogParts) {
        debug_assert!(self.open.is_none(), "an open block would be in two parts");
        self.region.parts = parts;
    }

    /// Removes and returns the oldest closed block, if it starts before `until`.
    pub fn take_closed(&mut self, until: u64) -> Option<ClosedBlock> {
        if self.closed.front()?.lsn >= until {
            return None;
        }
        self.closed.pop_front()
    }

    /// Returns whether there are closed blocks.
    pub fn has_closed(&self) -> bool {
        !self.closed.is_empty()
    }

    /// Returns the block's first `bytes` bytes and zeros up to a whole page, in a buffer of exactly that size, because
    /// the device writes whole buffers.
    fn pad(&mut self, mut buf: PageBuf, bytes: usize) -> PageBuf {
        let pages = bytes.div_ceil(PAGE_BYTES);
        if pages == buf.pages() {
            buf[bytes..].fill(0);
            return buf;
        }
        let mut short = PageBuf::zeroed(pages);
        short[..bytes].copy_from_slice(&buf[..bytes]);
        self.give_buffer(buf);
        short
    }
}
