//! How far a table grows that has no size of its own.

use crate::size::{show_bytes, show_count};

/// How far a table may grow whose RAM has no limit.
#[derive(Clone, Copy, Debug)]
pub struct Growth {
    /// Bytes that the volume has free and its device can grow by; `None` if nobody knows.
    pub free_bytes: Option<u64>,
    /// Bytes of flash for each entry.
    pub bytes_per_entry: f64,
}

impl Growth {
    /// The same in words.
    pub fn shown(self) -> String {
        let Some(free_bytes) = self.free_bytes else { return "it grows with its devices".into() };
        let more = show_count((free_bytes as f64 / self.bytes_per_entry) as u64);
        format!(
            "it grows with the device, whose {} free take about {more} more entries",
            show_bytes(free_bytes)
        )
    }
}
