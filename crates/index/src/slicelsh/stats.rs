//! Statistics, counted where events happen and added up on request.

use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;

use super::Inner;
use super::buffer::BucketBuffer;
use crate::api::{NeighborsStats, ratio};

/// The index's counters in addition to the write path's.
#[derive(Debug, Default)]
pub(super) struct DocumentCounters {
    pub inserts: AtomicU64,
    pub removes: AtomicU64,
    pub candidates: AtomicU64,
}

/// Counts one more.
pub(super) fn count(counter: &AtomicU64) {
    counter.fetch_add(1, Relaxed);
}

impl Inner {
    /// Counts a row's lookup.
    pub(super) fn count_lookup(&self, candidates: &[u64], reads: usize) {
        self.lookups.counters.count(!candidates.is_empty(), reads);
        self.layout.counters.candidates.fetch_add(candidates.len() as u64, Relaxed);
    }

    /// Counts entries that full buckets have dropped. The life counts record them as entries that a policy wanted to
    /// keep.
    pub(super) fn count_dropped(&self, dropped: u64) {
        self.counters.forced_evictions.fetch_add(dropped, Relaxed);
    }

    pub(super) fn stats(&self) -> NeighborsStats {
        let (counters, own) = (&self.counters, &self.layout.counters);
        let read = |counter: &AtomicU64| counter.load(Relaxed);
        let (mut buffered, mut flushed) = (0, 0);
        for partition in &self.partitions {
            let state = partition.read();
            buffered += state.all_buffers().map(BucketBuffer::pairs_put).sum::<u64>();
            flushed += state.level.entries;
        }
        let slots = read(&counters.flush_slots);
        let lookups = self.lookups.counters.read();
        // The life counts are read last, so that they are never less than the counts of this opening.
        let (evicted, dropped) = (read(&counters.evicted), read(&counters.forced_evictions));
        let life = counters.life();
        NeighborsStats {
            tables: self.layout.config.tables,
            entries: buffered + flushed,
            lost_pages: self.lost_pages(),
            buffered,
            ram_bytes: self.ram_bytes(),
            flash_bytes: self.flash_bytes(),
            channels: self.layout.config.channels,
            inserts: read(&own.inserts),
            removes: read(&own.removes),
            hits: lookups.hits,
            misses: lookups.misses,
            candidates: read(&own.candidates),
            reads_histogram: lookups.reads_histogram,
            lookup_reads: lookups.reads(),
            flushes: read(&counters.flushes),
            flush_fill: ratio(read(&counters.flush_entries), slots),
            data_bytes_written: read(&counters.data_bytes_written),
            log_bytes_written: self.volume.log().stats().bytes_written,
            dropped,
            evicted,
            dropped_life: life.forced_evictions,
            evicted_life: life.evicted,
        }
    }
}
