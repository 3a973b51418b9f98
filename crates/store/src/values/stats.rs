//! The figures of a value log.

/// The figures of a value log, since it was opened unless said otherwise.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
#[non_exhaustive]
pub struct ValuesStats {
    /// Bytes of records referred to now, with their headers. After a crash, records that became garbage since the last
    /// checkpoint count as live until their segment is cleaned.
    pub live_bytes: u64,
    /// Records referred to now; after a crash with the same error as `live_bytes`.
    pub live_records: u64,
    /// Bytes of flash now taken by records without references, by padding and by unused ends of segments.
    pub garbage_bytes: u64,
    /// Segments that can be written now, or after the next checkpoint.
    pub free_segments: u64,
    /// Bytes of flash that the log occupies.
    pub flash_bytes: u64,
    /// The number of times it has grown over its life.
    pub growths: u64,
    /// Bytes of records appended, with their headers, including copies.
    pub appended_bytes: u64,
    /// Bytes of records copied by cleaning.
    pub copied_bytes: u64,
    /// Bytes written to flash, in whole pages.
    pub written_bytes: u64,
    /// Syncs of the device.
    pub syncs: u64,
    /// Read operations for records. A read that several records of a large batch share counts for each, as its pages
    /// do.
    pub reads: u64,
    /// Pages read by them.
    pub pages_read: u64,
    /// Segments overwritten although their records may have been live.
    pub overwritten_segments: u64,
    /// Records in them that were referred to. An index that evicts does not report which records it drops, so these are
    /// included; after a crash some records that were replaced may be, too.
    pub overwritten_records: u64,
    /// Like `overwritten_segments`, over the log's life; a crash forgets those since the last checkpoint.
    pub overwritten_segments_life: u64,
    /// Like `overwritten_records`, over the log's life.
    pub overwritten_records_life: u64,
    /// Segments freed by cleaning.
    pub cleaned_segments: u64,
    /// RAM that it uses, in bytes, without idle queues and page buffers that the structures of the volume share.
    pub ram_bytes: u64,
}
