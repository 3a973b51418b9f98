//! The figures of a value log.

/// The figures of a value log, since it was opened unless said otherwise.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
#[non_exhaustive]
pub struct ValuesStats {
    /// Bytes of records referred to now, with their headers. After a crash it counts as live what became
    /// garbage since the last checkpoint, until that segment is cleaned.
    pub live_bytes: u64,
    /// Records referred to now; as `live_bytes` after a crash.
    pub live_records: u64,
    /// Bytes of flash now taken by records without references, by padding and by unused ends of segments.
    pub garbage_bytes: u64,
    /// Segments that can be written now, or after the next checkpoint.
    pub free_segments: u64,
    /// Bytes of flash it occupies.
    pub flash_bytes: u64,
    /// How often it has grown over its life.
    pub growths: u64,
    /// Bytes of records appended, with their headers, copies among them.
    pub appended_bytes: u64,
    /// Bytes of records copied by cleaning.
    pub copied_bytes: u64,
    /// Bytes written to flash, in whole pages.
    pub written_bytes: u64,
    /// Syncs of the device.
    pub syncs: u64,
    /// Read operations for records. One that several records of a large batch share counts for each, as its pages do.
    pub reads: u64,
    /// Pages they read.
    pub pages_read: u64,
    /// Segments overwritten although their records may have been live.
    pub overwritten_segments: u64,
    /// Records in them that were referred to. An index that evicts does not say which records it drops, so these are
    /// among them; after a crash some may count that were replaced.
    pub overwritten_records: u64,
    /// As `overwritten_segments`, over the log's life; a crash forgets those since the last checkpoint.
    pub overwritten_segments_life: u64,
    /// As `overwritten_records`, over the log's life.
    pub overwritten_records_life: u64,
    /// Segments freed by cleaning.
    pub cleaned_segments: u64,
    /// RAM it holds, in bytes, without idle queues and page buffers that the structures of the volume share.
    pub ram_bytes: u64,
}
