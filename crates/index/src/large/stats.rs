//! The statistics of a table of large values.

use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;

use nandex_store::values::ValuesStats;

use super::cache::RecordCache;
use super::{Inner, lock};
use crate::api::{Table, TableStats, ratio};

/// Statistics of a table of large values, since it was opened unless said otherwise.
#[derive(Clone, Debug, Default, PartialEq)]
#[non_exhaustive]
pub struct LargeStats {
    /// The table of references.
    pub table: TableStats,
    /// The value log.
    pub values: ValuesStats,
    /// Lookups that found their key.
    pub hits: u64,
    /// Lookups that did not find their key.
    pub misses: u64,
    /// Lookups among these whose record was overwritten by newer ones.
    pub overwritten: u64,
    /// Lookups and updates that the [cache of records](crate::LargeTable::with_cache) has answered.
    pub cache_hits: u64,
    /// The number of keys that the cache knows.
    pub cache_records: u64,
    /// Bytes of RAM that the cache takes.
    pub cache_bytes: u64,
    /// Bytes of RAM that the cache may take: if the table grows, what the table leaves.
    pub cache_bytes_max: u64,
    /// Bytes of RAM in all, including unpublished updates.
    pub ram_bytes: u64,
}

impl LargeStats {
    /// Returns the bytes written to the value log's pages per byte of records put; records copied by cleaning do not
    /// count as put.
    /// count as put.
    #[must_use]
    pub fn written_per_byte(&self) -> f64 {
        let put = self.values.appended_bytes - self.values.copied_bytes;
        ratio(self.values.written_bytes, put)
    }
}

#[derive(Debug, Default)]
pub(super) struct LargeCounters {
    pub(super) hits: AtomicU64,
    pub(super) misses: AtomicU64,
    pub(super) overwritten: AtomicU64,
}

impl<T: Table> Inner<T> {
    /// Returns the statistics of the value log, with as many live records as there are keys.
    pub(super) fn values_stats(&self) -> ValuesStats {
        self.tell_live_now();
        self.values.stats()
    }

    pub(super) fn stats(&self) -> LargeStats {
        let (table, values) = (self.table.stats(), self.values_stats());
        let waiting = lock(&self.updates).ram_bytes() as u64 + self.cleaning.ram_bytes();
        let cache = self.cache.get();
        let of_cache = |of: fn(&RecordCache) -> u64| cache.map_or(0, |cache| of(cache));
        let cache_bytes = of_cache(RecordCache::ram_bytes);
        LargeStats {
            cache_hits: of_cache(RecordCache::hits),
            cache_records: of_cache(RecordCache::len),
            cache_bytes,
            cache_bytes_max: of_cache(RecordCache::bytes_max),
            ram_bytes: table.ram_bytes + values.ram_bytes + waiting + cache_bytes,
            table,
            values,
            hits: self.counters.hits.load(Relaxed),
            misses: self.counters.misses.load(Relaxed),
            overwritten: self.counters.overwritten.load(Relaxed),
        }
    }
}
