//! The figures of a volume.

use nandex_device::EngineReport;

use super::{UNFINISHED_KIND, Volume};
use crate::space::Extent;

/// A structure in a listing.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct StructureInfo {
    /// Its name.
    pub name: String,
    /// The kind of structure.
    pub kind: String,
    /// The number of pages that it occupies.
    pub pages: u64,
    /// The pages, as in the newest checkpoint.
    pub extents: Vec<Extent>,
}

/// The figures of a volume.
#[derive(Clone, PartialEq, Debug)]
#[non_exhaustive]
pub struct VolumeStats {
    /// The engine of the I/O operations, and the reason for the choice.
    pub engine: EngineReport,
    /// The volume's length in pages.
    pub pages: u64,
    /// Pages without a structure.
    pub free_pages: u64,
    /// Checkpoints taken since it was opened.
    pub checkpoints: u64,
    /// Bytes of the log's region.
    pub log_capacity_bytes: u64,
    /// Bytes of the log that recovery would read.
    pub log_used_bytes: u64,
    /// Bytes written to the log since it was opened, including padding and headers.
    pub log_bytes_written: u64,
    /// RAM of the log's buffers, in bytes.
    pub log_ram_bytes: u64,
    /// Current background threads. All structures share them.
    pub background_threads: usize,
    /// Whether a write or sync has failed.
    pub poisoned: bool,
}

impl Volume {
    /// The volume's figures.
    #[must_use]
    pub fn stats(&self) -> VolumeStats {
        let log = self.log();
        let root = self.inner.root();
        VolumeStats {
            engine: self.device().engine(),
            pages: root.space.page_count(),
            free_pages: root.space.free_pages(),
            checkpoints: root.checkpoints,
            log_capacity_bytes: log.capacity_bytes(),
            log_used_bytes: log.used_bytes(),
            log_bytes_written: log.stats().bytes_written,
            log_ram_bytes: log.stats().ram_bytes,
            background_threads: self.inner.workers.threads(),
            poisoned: self.poison().is_set(),
        }
    }

    /// Returns the structures of the volume, oldest first.
    #[must_use]
    pub fn structures(&self) -> Vec<StructureInfo> {
        let root = self.inner.root();
        let info = |entry: &crate::checkpoint::CatalogEntry| StructureInfo {
            name: entry.name.clone(),
            kind: entry.kind.clone(),
            pages: entry.extents.iter().map(|extent| extent.pages).sum(),
            extents: entry.extents.clone(),
        };
        let entries = root.catalog.entries.iter();
        entries.filter(|entry| entry.kind != UNFINISHED_KIND).map(info).collect()
    }
}
