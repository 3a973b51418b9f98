//! Statistics, counted where events happen and added up on request.

use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;

use nandex_device::PAGE_BYTES;

use super::segment::Segment;
use super::segments::PartitionSegments;
use super::{Inner, State};
use crate::api::{FilterStats, LevelStats};
use crate::write::Usage;

/// The table's counters in addition to the write path's.
#[derive(Debug, Default)]
pub(super) struct CountingCounters {
    /// The used pages of the change segment, and the pages of all data segments.
    pub staged_pages: AtomicU64,
    pub data_pages: AtomicU64,
    pub merge_bytes_read: AtomicU64,
    /// The buffers that were staged, and the merges: the paper's operations.
    pub stages: AtomicU64,
    pub merges: AtomicU64,
}

impl CountingCounters {
    /// Notes that the segments of a partition were replaced.
    pub(super) fn replaced(&self, before: &PartitionSegments, after: &PartitionSegments) {
        let note = |counter: &AtomicU64, before: u64, after: u64| {
            counter.fetch_add(after.wrapping_sub(before), Relaxed);
        };
        note(&self.staged_pages, before.staged_pages(), after.staged_pages());
        note(&self.data_pages, before.data_pages(), after.data_pages());
    }
}

/// The stages and merges of a counting table since it was opened, in the paper's terms.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
#[non_exhaustive]
pub struct CountingStats {
    /// Buffers written to the change segment.
    pub stages: u64,
    /// Merges of a partition with its data segment.
    pub merges: u64,
    /// Pages of the change segment in use now.
    pub staged_pages: u64,
    /// Pages of all data segments now.
    pub data_pages: u64,
}

/// Sums over the partitions.
#[derive(Default)]
struct Totals {
    updates: u64,
    deletes: u64,
    buffered: u64,
    pages: u64,
    ram_bytes: u64,
    staged_max: u64,
    data: LevelStats,
    staged: LevelStats,
}

impl Totals {
    fn add(&mut self, state: &State) {
        self.updates += state.updates_taken;
        self.deletes += state.level.deletes;
        let (buffers, _) = state.buffers_past_damage();
        self.deletes += buffers.map(|buffer| buffer.deletes).sum::<u64>();
        self.buffered += state.entries_buffered();
        let segments = &state.level;
        self.staged_max = self.staged_max.max(segments.staged.len() as u64);
        segments.data.iter().for_each(|segment| add_segment(&mut self.data, segment));
        segments.staged.iter().for_each(|segment| add_segment(&mut self.staged, segment));
        self.ram_bytes += segments.newest_first().map(|segment| segment.ram_bytes()).sum::<u64>();
        self.pages += state.extents().map(|extent| extent.pages).sum::<u64>();
    }
}

fn add_segment(level: &mut LevelStats, segment: &Segment) {
    level.entries += segment.content.entries;
    level.tombstones += segment.content.negatives;
    level.pages += segment.pages();
}

impl Inner {
    fn totals(&self) -> Totals {
        let mut totals = Totals::default();
        self.partitions.iter().for_each(|partition| totals.add(&partition.read()));
        totals
    }

    /// Returns the RAM and flash of the table without buffers: the filters of staged segments, and for each thread the
    /// I/O chunks of a merge and the sorted contents of a buffer.
    pub(super) fn own_usage(&self) -> Usage {
        let totals = self.totals();
        let merges = self.options.flush_threads.max(1) as u64;
        let read = usize::try_from(totals.staged_max).expect("few segments are staged") + 1;
        let chunk_bytes = self.layout.segments.merge_ram_bytes(read);
        let sorted_bytes = 2 * self.layout.config.partition_entries() * self.sorted_bytes();
        Usage {
            ram_bytes: totals.ram_bytes + merges * (chunk_bytes + sorted_bytes),
            flash_bytes: totals.pages * PAGE_BYTES as u64,
        }
    }

    /// Bytes of an entry of a sorted list.
    fn sorted_bytes(&self) -> u64 {
        (8 + 16 + self.placing().width()) as u64
    }

    pub(super) fn counting_stats(&self) -> CountingStats {
        let counters = &self.layout.counters;
        let read = |counter: &AtomicU64| counter.load(Relaxed);
        CountingStats {
            stages: read(&counters.stages),
            merges: read(&counters.merges),
            staged_pages: read(&counters.staged_pages),
            data_pages: read(&counters.data_pages),
        }
    }

    pub(super) fn stats(&self) -> FilterStats {
        let (totals, usage, config) = (self.totals(), self.own_usage(), &self.layout.config);
        let levels = [totals.staged, totals.data].into_iter().filter(|level| level.pages > 0);
        let levels: Vec<_> = levels.collect();
        let entries = totals.buffered + totals.staged.entries + totals.data.entries;
        let lookups = self.lookups.counters.read();
        let read = |counter: &AtomicU64| counter.load(Relaxed);
        FilterStats {
            entries,
            lost_pages: self.lost_pages(),
            buffered: totals.buffered,
            tombstones: totals.staged.tombstones + totals.data.tombstones,
            rate: config.keys.rate(entries),
            rate_made_for: config.keys.rate(config.q),
            keys_made_for: config.q,
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
            merge_bytes_read: read(&self.layout.counters.merge_bytes_read),
            data_bytes_written: read(&self.counters.data_bytes_written),
            log_bytes_written: self.volume.log().stats().bytes_written,
            unmatched_deletes: 0,
            levels,
        }
    }
}
