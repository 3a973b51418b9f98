//! The common part of all cost models: pages, buffers and the log.

use nandex_store::buffer::STASH_LEN_MAX;
use nandex_store::log::LogRegion;
use nandex_store::log::format::written_bytes;

use super::chance::PageFill;
use crate::write::format::LOG_ENTRY_EXTRA_BYTES;

/// Bytes of a flash page.
pub const PAGE_BYTES: u64 = 4096;
/// Bytes of it that are not entries.
pub const PAGE_HEADER_BYTES: u64 = 32;
/// The smallest buffer that is advised, in bytes.
pub const BUFFER_BYTES_MIN: u64 = 32 << 10;
/// The largest buffer that is advised, in bytes.
pub const BUFFER_BYTES_MAX: u64 = 1 << 20;
/// Slots of a bucket.
const BUCKET_SLOTS: u64 = 4;
/// The share of a page's slots in use when a key's two buckets cannot take one more.
const PAGE_FILL_MAX: f64 = 0.98;

/// Returns the slots for entries of `entry_bytes` in one page of a buffer: buckets of four with a byte of tags each.
#[must_use]
pub fn page_slots(entry_bytes: u64) -> u64 {
    (PAGE_BYTES - PAGE_HEADER_BYTES) / (BUCKET_SLOTS * entry_bytes + 1) * BUCKET_SLOTS
}

/// Returns the average number of new entries that a flush of a buffer with this number of pages writes to flash: fewer
/// for each page in larger buffers, because some pages are full while others are not.
///
/// A page of `page_slots` overflows when all but a fiftieth of its slots are in use; the buffer is full when the
/// overflow of all its pages fills the stash. The stash is carried over, so it does not count.
#[must_use]
pub fn buffer_entries(pages: u64, page_slots: u64) -> f64 {
    let page_fill = PageFill::new((page_slots as f64 * PAGE_FILL_MAX).ceil() as u64);
    let mean = page_fill.mean_for_overflow(STASH_LEN_MAX as f64 / pages as f64);
    mean * pages as f64 - STASH_LEN_MAX as f64
}

/// Returns the average bytes that the log writes for an update of an entry of `entry_bytes`, with full blocks.
#[must_use]
pub fn log_bytes(entry_bytes: u64) -> f64 {
    let entry_bytes = usize::try_from(entry_bytes).unwrap_or(usize::MAX / 2);
    written_bytes(LOG_ENTRY_EXTRA_BYTES + entry_bytes, LogRegion::BLOCK_BYTES_DEFAULT)
}
