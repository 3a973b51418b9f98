//! The figures of levels: counted where they arise.

use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;

use nandex::raw::GroupMap;

use super::Levels;
use super::levels::LevelMap;

/// The counters of levels in addition to those of the write path.
#[derive(Debug, Default)]
pub(crate) struct LevelCounters {
    levels_added: AtomicU64,
}

/// The present levels of a [`Multilevel`](super::Multilevel), and the work done since it was opened.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
#[non_exhaustive]
pub struct MultilevelStats {
    /// Levels of the partition with the most levels.
    pub levels: u64,
    /// Pages of all levels on flash.
    pub pages: u64,
    /// Groups of pages, each written at once.
    pub groups: u64,
    /// Slots of these pages.
    pub slots: u64,
    /// Entries in levels, without those in buffers.
    pub entries: u64,
    /// RAM of the maps from levels to pages, in bytes.
    pub map_bytes: u64,
    /// The number of times that a partition got another level.
    pub levels_added: u64,
    /// The maximum pages of the page cache.
    pub page_cache_pages: u64,
    /// Page cache hits of lookups.
    pub page_cache_hits: u64,
}

impl MultilevelStats {
    /// Returns the share of slots in use; 0 without pages.
    #[must_use]
    pub fn occupancy(&self) -> f64 {
        if self.slots == 0 { 0.0 } else { self.entries as f64 / self.slots as f64 }
    }
}

impl LevelCounters {
    /// Counts the levels that a partition has gained.
    pub fn note_levels(&self, before: usize, after: usize) {
        self.levels_added.fetch_add(after.saturating_sub(before) as u64, Relaxed);
    }
}

impl Levels {
    pub(super) fn stats_of(&self, maps: &[Arc<LevelMap>]) -> MultilevelStats {
        let mut stats = MultilevelStats {
            levels_added: self.counters.levels_added.load(Relaxed),
            page_cache_pages: self.cache.pages_max(),
            page_cache_hits: self.cache.hits(),
            ..MultilevelStats::default()
        };
        for map in maps {
            stats.levels = stats.levels.max(map.len() as u64);
            stats.pages += map.pages();
            stats.groups += map.groups().count() as u64;
            stats.entries += map.entries();
            stats.map_bytes += map.ram_bytes();
        }
        stats.slots = stats.pages * self.records.slots() as u64;
        stats
    }
}
