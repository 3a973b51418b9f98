//! The limit of a table that grows and has no size of its own.

use crate::size::{show_bytes, show_count};

/// The limit of a table's growth when its RAM has no limit.
#[derive(Clone, Copy, Debug)]
pub struct Growth {
    /// The bytes that are free in the volume and that its device can grow by; `None` if that is unknown.
    pub free_bytes: Option<u64>,
    /// The bytes of flash for each entry.
    pub bytes_per_entry: f64,
}

impl Growth {
    /// Formats the limit for people.
    pub fn shown(self) -> String {
        let Some(free_bytes) = self.free_bytes else { return "it grows with its devices".into() };
        let more = show_count((free_bytes as f64 / self.bytes_per_entry) as u64);
        format!(
            "it grows with the device, whose {} free take about {more} more entries",
            show_bytes(free_bytes)
        )
    }
}
