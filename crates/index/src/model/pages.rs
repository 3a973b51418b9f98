//! What all cost models know of pages, buffers and the log.

use nandex_store::log::LogRegion;
use nandex_store::log::format::written_bytes;

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

/// Slots for entries of `entry_bytes` in one page of a buffer: buckets of four with a byte of tags each.
#[must_use]
pub fn page_slots(entry_bytes: u64) -> u64 {
    (PAGE_BYTES - PAGE_HEADER_BYTES) / (BUCKET_SLOTS * entry_bytes + 1) * BUCKET_SLOTS
}

/// Bytes that the log writes for an update of an entry of `entry_bytes`, on average, with full blocks.
#[must_use]
pub fn log_bytes(entry_bytes: u64) -> f64 {
    let entry_bytes = usize::try_from(entry_bytes).unwrap_or(usize::MAX / 2);
    written_bytes(LOG_ENTRY_EXTRA_BYTES + entry_bytes, LogRegion::BLOCK_BYTES_DEFAULT)
}
