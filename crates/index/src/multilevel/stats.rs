//! The figures of levels: counted where they arise.

use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;

use super::Inner;
use super::levels::LevelMap;

/// What the levels count in addition to the write path.
#[derive(Debug, Default)]
pub(crate) struct LevelCounters {
    /// Pages of all levels now.
    pub pages: AtomicU64,
    /// Pages that were replaced since the last capture.
    pub replaced_pages: AtomicU64,
    levels_added: AtomicU64,
}

/// The levels of a [`Multilevel`](super::Multilevel) now, and what was done since it was opened.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
#[non_exhaustive]
pub struct MultilevelStats {
    /// Levels of the partition that has most.
    pub levels: u64,
    /// Pages of all levels on flash.
    pub pages: u64,
    /// Groups of pages, each written at once.
    pub groups: u64,
    /// Slots of these pages.
    pub slots: u64,
    /// Entries in levels, without those in buffers.
    pub entries: u64,
    /// RAM of the maps that say where pages are, in bytes.
    pub map_bytes: u64,
    /// How often a partition has got another level.
    pub levels_added: u64,
    /// Pages that the cache of pages keeps at most.
    pub page_cache_pages: u64,
    /// Pages that lookups have found in it.
    pub page_cache_hits: u64,
}

impl MultilevelStats {
    /// The share of slots in use; 0 without pages.
    #[must_use]
    pub fn occupancy(&self) -> f64 {
        crate::api::ratio(self.entries, self.slots)
    }
}

impl LevelCounters {
    /// Notes that a partition has another map now.
    pub fn note(&self, before: &LevelMap, after: &LevelMap, levels_added: u64) {
        self.pages.fetch_add(after.pages().wrapping_sub(before.pages()), Relaxed);
        self.levels_added.fetch_add(levels_added, Relaxed);
    }
}

impl Inner {
    pub(super) fn multilevel_stats(&self) -> MultilevelStats {
        let layout = &self.layout;
        let mut stats = MultilevelStats {
            levels_added: layout.counters.levels_added.load(Relaxed),
            page_cache_pages: layout.cache.pages_max(),
            page_cache_hits: layout.cache.hits(),
            ..MultilevelStats::default()
        };
        for partition in &self.partitions {
            let map = std::sync::Arc::clone(&partition.read().level);
            stats.levels = stats.levels.max(map.len() as u64);
            stats.pages += map.pages();
            stats.groups += map.groups().count() as u64;
            stats.entries += map.entries;
            stats.map_bytes += map.ram_bytes();
        }
        stats.slots = stats.pages * layout.records.slots() as u64;
        stats
    }
}
