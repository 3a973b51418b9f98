//! Statistics, counted where events happen and added up on request.

use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;

use nandex_device::PAGE_BYTES;

use super::buffer::FingerprintBuffer;
use super::{CascadeLayout, Inner};
use crate::api::{FilterStats, LevelStats};
use crate::write::{Partition, PartitionState, Usage};

/// The filter's counters in addition to the write path's.
#[derive(Debug, Default)]
pub(super) struct CascadeCounters {
    /// Fingerprints in levels, each once per run that has it.
    pub level_entries: AtomicU64,
    pub merge_bytes_read: AtomicU64,
    /// The number of deletes that met no insert.
    pub unmatched: AtomicU64,
}

/// Sums over the parts.
#[derive(Default)]
struct Totals {
    updates: u64,
    deletes: u64,
    pages: u64,
    levels: Vec<LevelStats>,
    runs_max: usize,
}

impl Totals {
    fn add(&mut self, state: &PartitionState<CascadeLayout>) {
        self.updates += state.updates_taken;
        let (buffers, _) = state.buffers_past_damage();
        let buffered: u64 = buffers.map(|buffer| buffer.deletes).sum();
        self.deletes += state.level.deletes + buffered;
        let runs = &state.level.runs;
        self.runs_max = self.runs_max.max(runs.len());
        self.levels.resize(self.levels.len().max(runs.len()), LevelStats::default());
        for (stats, run) in self.levels.iter_mut().zip(runs) {
            if let Some(run) = run {
                stats.entries += run.entries();
                stats.tombstones += run.tombstones();
                stats.pages += run.used_pages();
            }
        }
        self.pages += state.extents().map(|extent| extent.pages).sum::<u64>();
    }
}

impl Inner {
    fn totals(&self) -> Totals {
        let mut totals = Totals::default();
        self.partitions.iter().for_each(|part| totals.add(&part.read()));
        totals
    }

    pub(super) fn level_pages(&self) -> u64 {
        self.totals().levels.iter().map(|level| level.pages).sum()
    }

    /// Returns the number of different fingerprints in buffers, each once per buffer.
    fn fingerprints_buffered(&self) -> u64 {
        let of = |part: &Partition<CascadeLayout>| -> u64 {
            part.read().buffers_past_damage().0.map(FingerprintBuffer::fingerprints).sum()
        };
        self.partitions.iter().map(of).sum()
    }

    /// Returns the RAM and flash of the filter without buffers: for each thread the I/O chunks of a merge of as many
    /// levels as a part has.
    pub(super) fn own_usage(&self) -> Usage {
        let totals = self.totals();
        let merges = self.options.flush_threads.max(1) as u64;
        let chunk_bytes = self.layout.runs.chunks.ram_bytes() as u64;
        Usage {
            ram_bytes: (totals.runs_max as u64 + 1) * chunk_bytes * merges,
            flash_bytes: totals.pages * PAGE_BYTES as u64,
        }
    }

    pub(super) fn stats(&self) -> FilterStats {
        let read = |counter: &AtomicU64| counter.load(Relaxed);
        let (totals, usage, own) = (self.totals(), self.own_usage(), &self.layout.counters);
        let buffered = self.fingerprints_buffered();
        let levels: Vec<_> = totals.levels.into_iter().filter(|level| level.pages > 0).collect();
        let entries = buffered + levels.iter().map(|level| level.entries).sum::<u64>();
        let lookups = self.lookups.counters.read();
        FilterStats {
            entries,
            lost_pages: self.lost_pages(),
            buffered,
            tombstones: levels.iter().map(|level| level.tombstones).sum(),
            rate: self.layout.universe.rate(entries),
            rate_made_for: self.layout.config.rate,
            keys_made_for: self.layout.config.keys,
            window_keys: None,
            ram_bytes: self.ram_bytes(),
            flash_bytes: usage.flash_bytes,
            inserts: totals.updates.saturating_sub(totals.deletes),
            deletes: totals.deletes,
            positives: lookups.hits,
            negatives: lookups.misses,
            reads_histogram: lookups.reads_histogram,
            lookup_reads: lookups.reads(),
            merges: read(&self.counters.flushes),
            merge_bytes_read: read(&own.merge_bytes_read),
            data_bytes_written: read(&self.counters.data_bytes_written),
            log_bytes_written: self.volume.log().stats().bytes_written,
            unmatched_deletes: read(&own.unmatched),
            levels,
        }
    }
}
