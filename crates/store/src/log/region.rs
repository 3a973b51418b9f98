//! The log's pages, and the arithmetic that maps an endless stream to a ring of pages.

use std::sync::Arc;

use nandex_device::{Device, PAGE_BYTES, PageId};

use super::{LogParts, Lsn};
use crate::{Error, Result};

/// Bytes in a page, as a place in the log counts them.
pub(super) const PAGE: u64 = PAGE_BYTES as u64;

/// The fewest blocks a region holds, so that no two writes in flight overlap.
const BLOCKS_MIN: u64 = 4;

/// The largest block: its size has 32 bits, and memory holds several.
const BLOCK_BYTES_MAX: usize = 1 << 30;

/// The pages that hold a log, and the size of the log's blocks.
#[derive(Clone, Debug)]
pub struct LogRegion {
    /// The device that holds it.
    pub device: Arc<dyn Device>,
    /// The pages of the log; each part has at least four blocks.
    pub parts: LogParts,
    /// The largest block in bytes, a whole number of pages. It decides where blocks start, so it
    /// never changes while the region holds a log.
    pub block_bytes: usize,
}

impl LogRegion {
    /// A block size that uses a device's bandwidth well.
    pub const BLOCK_BYTES_DEFAULT: usize = 256 * 1024;

    /// Rejects impossible sizes.
    ///
    /// # Errors
    /// [`Error::Config`].
    pub fn check(&self) -> Result<()> {
        let block_bytes = self.block_bytes;
        if block_bytes == 0 || !block_bytes.is_multiple_of(PAGE_BYTES) {
            let reason = format!("{block_bytes} is not a positive multiple of {PAGE_BYTES}");
            return Err(Error::config("log_block_bytes", reason));
        }
        if block_bytes > BLOCK_BYTES_MAX {
            let reason = format!("{block_bytes} is more than {BLOCK_BYTES_MAX}");
            return Err(Error::config("log_block_bytes", reason));
        }
        let bytes_min = self.block() * BLOCKS_MIN;
        for pages in self.parts.iter().map(|part| part.pages.pages) {
            if pages.checked_mul(PAGE).is_none_or(|bytes| bytes < bytes_min) {
                let reason = format!(
                    "{pages} pages of {PAGE_BYTES} bytes; a log of blocks of {block_bytes} bytes needs \
                     {bytes_min} bytes or more"
                );
                return Err(Error::config("log_bytes", reason));
            }
        }
        Ok(())
    }

    /// Rejects a place where no block can start.
    pub(super) fn check_place(&self, field: &'static str, lsn: Lsn) -> Result<()> {
        if !lsn.0.is_multiple_of(PAGE) || lsn.0 > u64::MAX / 2 {
            return Err(Error::config(field, format!("no block of a log starts at {lsn}")));
        }
        Ok(())
    }

    /// The length in bytes of the part that blocks are written to.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        self.parts.newest.bytes()
    }

    /// The largest block, in the unit of places in the log.
    pub(super) fn block(&self) -> u64 {
        self.block_bytes as u64
    }

    /// Returns the place where the next block starts if `lsn` is free: `lsn` itself, or the next lap's start when a
    /// largest block does not fit before this lap's end.
    pub(super) fn start_from(&self, lsn: u64) -> u64 {
        let left = self.parts.left_in_lap(lsn);
        if left < self.block() { lsn + left } else { lsn }
    }

    /// Returns the number of bytes from `lsn` to the end of the contiguous pages.
    pub(super) fn left_in_part(&self, lsn: u64) -> u64 {
        self.parts.left_in_part(lsn)
    }

    /// The page that holds the byte `lsn`.
    pub(super) fn page(&self, lsn: u64) -> PageId {
        self.parts.page(lsn)
    }
}
