//! The figures: counted where they arise, added up when somebody asks.

use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;

use nandex_device::PAGE_BYTES;
use nandex_store::run::Run;

use super::Inner;
use crate::api::{FilterStats, LevelStats};
use crate::intake::stats::LookupCounters;

/// What is counted since the filter was opened.
#[derive(Debug, Default)]
pub(super) struct Counters {
    pub inserts: AtomicU64,
    pub deletes: AtomicU64,
    pub lookups: LookupCounters,
    pub merges: AtomicU64,
    merge_bytes_read: AtomicU64,
    data_bytes_written: AtomicU64,
}

impl Counters {
    /// Counts the pages of a merge.
    pub(super) fn merged(&self, pages_read: u64, pages_written: u64) {
        let page_bytes = PAGE_BYTES as u64;
        self.merge_bytes_read.fetch_add(pages_read * page_bytes, Relaxed);
        self.data_bytes_written.fetch_add(pages_written * page_bytes, Relaxed);
    }
}

impl Inner {
    pub(super) fn stats(&self) -> FilterStats {
        let counters = &self.counters;
        let read = |counter: &AtomicU64| counter.load(Relaxed);
        let state = self.read_state();
        let frozen = state.frozen.as_ref().map(|frozen| &*frozen.buffer);
        let buffers = [Some(&state.active), frozen, state.spare.as_ref()];
        let buffer_bytes: u64 = buffers.iter().flatten().map(|buffer| buffer.ram_bytes()).sum();
        let entries = state.entries();
        let lookups = counters.lookups.read();
        FilterStats {
            entries,
            buffered: state.active.entries() + frozen.map_or(0, |buffer| buffer.entries()),
            tombstones: state.levels.readable().map(|run| run.tombstones()).sum(),
            rate: self.universe.rate(entries),
            rate_made_for: self.config.rate,
            keys_made_for: self.config.keys,
            ram_bytes: buffer_bytes + self.ram_beside_buffers(),
            flash_bytes: state.levels.extents().iter().map(|it| it.pages * PAGE_BYTES as u64).sum(),
            levels: {
                let runs: Vec<_> = state.levels.readable().map(|run| level(run)).collect();
                runs.into_iter().rev().collect()
            },
            inserts: read(&counters.inserts),
            deletes: read(&counters.deletes),
            positives: lookups.hits,
            negatives: lookups.misses,
            reads_histogram: lookups.reads_histogram,
            lookup_reads: lookups.reads(),
            merges: read(&counters.merges),
            merge_bytes_read: read(&counters.merge_bytes_read),
            data_bytes_written: read(&counters.data_bytes_written),
            log_bytes_written: self.volume.log().bytes_written(),
            unmatched_deletes: state.head.unmatched,
        }
    }

    /// The strokes of a merge of as many levels as there are, lanes, and the log's buffers.
    fn ram_beside_buffers(&self) -> u64 {
        let runs = self.read_levels().readable().count() as u64;
        let strokes = self.strokes();
        let stroke_bytes = (strokes.stroke_pages * strokes.strokes * PAGE_BYTES) as u64;
        (runs + 1) * stroke_bytes + self.lanes.ram_bytes() as u64 + self.volume.log().ram_bytes()
    }
}

fn level(run: &Run) -> LevelStats {
    LevelStats { entries: run.entries(), tombstones: run.tombstones(), pages: run.used_pages() }
}
