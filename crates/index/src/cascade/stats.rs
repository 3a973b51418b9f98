//! The figures: counted where they arise, added up when somebody asks.

use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;

use nandex_device::PAGE_BYTES;

use super::buffer::Buffer;
use super::levels::Levels;
use super::{Inner, WhenFull};
use crate::api::{FilterStats, LevelStats};

/// What is counted since the filter was opened, and how much it holds.
#[derive(Debug, Default)]
pub(super) struct Counters {
    /// Fingerprints held, counting one once for each buffer and run that has it; of a filter that refuses
    /// more than it was made for, and 0 of others.
    entries: AtomicU64,
    pub merges: AtomicU64,
    merge_bytes_read: AtomicU64,
    data_bytes_written: AtomicU64,
}

impl Counters {
    pub(super) fn entries(&self) -> u64 {
        self.entries.load(Relaxed)
    }

    /// Counts the pages of a merge.
    pub(super) fn merged(&self, pages_read: u64, pages_written: u64) {
        let page_bytes = PAGE_BYTES as u64;
        self.merge_bytes_read.fetch_add(pages_read * page_bytes, Relaxed);
        self.data_bytes_written.fetch_add(pages_written * page_bytes, Relaxed);
    }
}

/// What parts hold, added up.
#[derive(Default)]
struct Held {
    inserts: u64,
    deletes: u64,
    buffered: u64,
    ram_bytes: u64,
    flash_bytes: u64,
    /// Images that are read first, then the levels.
    images: LevelStats,
    levels: Vec<LevelStats>,
}

impl Held {
    fn add_buffers<'b>(&mut self, buffers: impl Iterator<Item = &'b Buffer>) {
        for buffer in buffers {
            self.buffered += buffer.entries();
            self.ram_bytes += buffer.ram_bytes();
        }
    }

    fn add_levels(&mut self, levels: &Levels) {
        let add = |stats: &mut LevelStats, run: &nandex_store::run::Run| {
            stats.entries += run.entries();
            stats.tombstones += run.tombstones();
            stats.pages += run.used_pages();
        };
        levels.unread_image().into_iter().for_each(|run| add(&mut self.images, run));
        self.levels.resize(self.levels.len().max(levels.runs.len()), LevelStats::default());
        for (stats, run) in self.levels.iter_mut().zip(&levels.runs) {
            run.iter().for_each(|run| add(stats, run));
        }
        let pages: u64 = levels.extents().iter().map(|extent| extent.pages).sum();
        self.flash_bytes += pages * PAGE_BYTES as u64;
    }
}

impl Inner {
    /// Notes what a part holds from now on, and what it held before.
    pub(super) fn note_entries(&self, before: u64, now: u64) {
        if self.config.when_full == WhenFull::Refuse {
            // What is taken away was added before, so that the sum is right after each.
            self.counters.entries.fetch_add(now.wrapping_sub(before), Relaxed);
        }
    }

    pub(super) fn stats(&self) -> FilterStats {
        let counters = &self.counters;
        let read = |counter: &AtomicU64| counter.load(Relaxed);
        let mut held = Held::default();
        for part in &self.parts {
            let state = part.read();
            held.inserts += state.inserts;
            held.deletes += state.deletes;
            held.add_buffers(state.buffers());
            held.add_levels(&state.levels);
        }
        held.add_buffers(self.spares().iter());
        let levels = std::iter::once(held.images).chain(held.levels);
        let levels: Vec<_> = levels.filter(|level| level.pages > 0).collect();
        let entries = held.buffered + levels.iter().map(|level| level.entries).sum::<u64>();
        let lookups = self.lookups.counters.read();
        FilterStats {
            entries,
            buffered: held.buffered,
            tombstones: levels.iter().map(|level| level.tombstones).sum(),
            rate: self.universe.rate(entries),
            rate_made_for: self.config.rate,
            keys_made_for: self.config.keys,
            ram_bytes: held.ram_bytes + self.ram_beside_buffers(),
            flash_bytes: held.flash_bytes,
            inserts: held.inserts,
            deletes: held.deletes,
            positives: lookups.hits,
            negatives: lookups.misses,
            reads_histogram: lookups.reads_histogram,
            lookup_reads: lookups.reads(),
            merges: read(&counters.merges),
            merge_bytes_read: read(&counters.merge_bytes_read),
            data_bytes_written: read(&counters.data_bytes_written),
            log_bytes_written: self.volume.log().stats().bytes_written,
            unmatched_deletes: self.unmatched.load(Relaxed),
            levels,
        }
    }

    /// The I/O chunks of a merge of as many levels as a part has, page buffers of lookups, and the log's buffers.
    fn ram_beside_buffers(&self) -> u64 {
        let runs = self.parts.iter().map(|part| part.levels().readable().count()).max();
        (runs.unwrap_or(0) as u64 + 1) * self.io_chunks().ram_bytes() as u64
            + self.lookups.reads.ram_bytes() as u64
            + self.volume.log().stats().ram_bytes
    }
}
