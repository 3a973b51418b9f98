//! Statistics, counted where events happen and added up on request.

use std::sync::atomic::Ordering::Relaxed;

use super::Inner;
use crate::api::{FilterStats, LevelStats};
use crate::write::Layout;

/// Sums over the partitions.
#[derive(Default)]
struct Totals {
    inserts: u64,
    buffered: u64,
    on_flash: u64,
    slicetables: u64,
    /// The sum of each partition's rate of false positives.
    rates: f64,
}

impl Inner {
    fn totals(&self) -> Totals {
        let (config, mut totals) = (&self.layout.config, Totals::default());
        for (index, partition) in (0..).zip(&self.partitions) {
            let state = partition.read();
            let block = self.layout.shadow.block(index);
            totals.inserts += state.updates_taken;
            totals.buffered += state.entries_buffered();
            totals.on_flash += block.map_or(0, |block| u64::from(block.entries));
            totals.slicetables += u64::from(block.is_some());
            let incarnations = state.level.incarnations.min(config.incarnations.into());
            let buffers = state.frozen.len() as u64;
            let active = state.buffers_past_damage().0.next().map_or(0, |it| it.content().keys);
            let of_active = config.rate_of_one(active);
            totals.rates += config.rate_of(incarnations + buffers, of_active);
        }
        totals
    }

    pub(super) fn stats(&self) -> FilterStats {
        let config = &self.layout.config;
        let Totals { inserts, buffered, on_flash, slicetables, rates } = self.totals();
        let lookups = self.lookups.counters.read();
        let pages = slicetables * u64::from(config.block_pages());
        let level = LevelStats { entries: on_flash, tombstones: 0, pages };
        FilterStats {
            entries: buffered + on_flash,
            lost_pages: self.lost_pages(),
            buffered,
            rate: rates / f64::from(config.partitions),
            rate_made_for: config.rate(),
            keys_made_for: config.window_keys(),
            window_keys: Some(config.window_keys()),
            ram_bytes: self.ram_bytes(),
            flash_bytes: super::BloomSlicetables::usage(self).flash_bytes,
            levels: Vec::from_iter((pages > 0).then_some(level)),
            inserts,
            positives: lookups.hits,
            negatives: lookups.misses,
            reads_histogram: lookups.reads_histogram,
            lookup_reads: lookups.reads(),
            merges: self.counters.flushes.load(Relaxed),
            merge_bytes_read: self.layout.bytes_read.load(Relaxed),
            data_bytes_written: self.counters.data_bytes_written.load(Relaxed),
            log_bytes_written: self.volume.log().stats().bytes_written,
            ..FilterStats::default()
        }
    }
}
