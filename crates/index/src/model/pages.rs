//! What all advisors know of pages and buffers, and what they refuse alike.

use crate::api::VALUE_BYTES_MAX;
use crate::{Error, Result};

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

/// Refuses no entries, and widths that no page takes.
pub(crate) fn check_entries(entries: u64, key_bytes: u32, value_bytes: u32) -> Result<()> {
    let refuse = |field, reason| Err(Error::Config { field, reason });
    if entries == 0 {
        return refuse("entries", "0; expected 1 or more".into());
    }
    if key_bytes == 0 || page_slots(u64::from(key_bytes) + u64::from(value_bytes)) == 0 {
        let reason = format!(
            "{key_bytes} bytes, with values of {value_bytes}; expected at least 1, and at most 1015 with the value"
        );
        return refuse("key bytes", reason);
    }
    if u64::from(value_bytes) > VALUE_BYTES_MAX as u64 {
        let reason = format!("{value_bytes}; expected 0 to {VALUE_BYTES_MAX}");
        return refuse("value bytes", reason);
    }
    Ok(())
}

/// Too few bytes of RAM or flash, and the least that would do.
pub(crate) fn too_little(what: &'static str, found: u64, least: u64) -> Error {
    let reason = format!("{found} bytes; this table needs {least} or more");
    Error::Config { field: what, reason }
}
