//! The figures: counted where they arise, added up when somebody asks.

use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;

use nandex_device::PAGE_BYTES;

use super::{Intake, Room};
use crate::api::{READS_HISTOGRAM_LEN, TableStats};

/// Lookups since a structure was opened.
#[derive(Debug, Default)]
pub(crate) struct LookupCounters {
    hits: AtomicU64,
    misses: AtomicU64,
    hit_reads: AtomicU64,
    miss_reads: AtomicU64,
    reads_histogram: [AtomicU64; READS_HISTOGRAM_LEN],
}

/// What is counted since the table was opened.
#[derive(Debug, Default)]
pub(crate) struct Counters {
    pub(crate) lookups: LookupCounters,
    pub(crate) flushes: AtomicU64,
    pub(crate) flush_entries: AtomicU64,
    pub(crate) flush_slots: AtomicU64,
    /// Entries in incarnations now.
    pub(crate) flushed_entries: AtomicU64,
    pub(crate) data_bytes_written: AtomicU64,
    pub(crate) evicted: AtomicU64,
    pub(crate) retained: AtomicU64,
    pub(crate) forced_evictions: AtomicU64,
    pub(crate) scratch_bytes: AtomicU64,
}

/// The lookups of a batch, counted before they are added up.
#[derive(Debug, Default)]
pub(crate) struct Lookups {
    pub(crate) hits: u64,
    pub(crate) misses: u64,
    pub(crate) hit_reads: u64,
    pub(crate) miss_reads: u64,
    pub(crate) reads_histogram: [u64; READS_HISTOGRAM_LEN],
}

impl Lookups {
    pub(crate) fn count(&mut self, found: bool, reads: usize) {
        if found {
            self.hits += 1;
            self.hit_reads += reads as u64;
        } else {
            self.misses += 1;
            self.miss_reads += reads as u64;
        }
        self.reads_histogram[reads.min(READS_HISTOGRAM_LEN - 1)] += 1;
    }

    /// Pages read by all.
    pub(crate) fn reads(&self) -> u64 {
        self.hit_reads + self.miss_reads
    }
}

impl LookupCounters {
    #[inline]
    pub(crate) fn count(&self, found: bool, reads: usize) {
        if found { &self.hits } else { &self.misses }.fetch_add(1, Relaxed);
        if reads > 0 {
            if found { &self.hit_reads } else { &self.miss_reads }.fetch_add(reads as u64, Relaxed);
        }
        self.reads_histogram[reads.min(READS_HISTOGRAM_LEN - 1)].fetch_add(1, Relaxed);
    }

    pub(crate) fn add(&self, lookups: &Lookups) {
        self.hits.fetch_add(lookups.hits, Relaxed);
        self.misses.fetch_add(lookups.misses, Relaxed);
        self.hit_reads.fetch_add(lookups.hit_reads, Relaxed);
        self.miss_reads.fetch_add(lookups.miss_reads, Relaxed);
        for (total, count) in self.reads_histogram.iter().zip(lookups.reads_histogram) {
            total.fetch_add(count, Relaxed);
        }
    }

    pub(crate) fn read(&self) -> Lookups {
        let read = |counter: &AtomicU64| counter.load(Relaxed);
        let mut reads_histogram = [0; READS_HISTOGRAM_LEN];
        for (count, total) in reads_histogram.iter_mut().zip(&self.reads_histogram) {
            *count = read(total);
        }
        Lookups {
            hits: read(&self.hits),
            misses: read(&self.misses),
            hit_reads: read(&self.hit_reads),
            miss_reads: read(&self.miss_reads),
            reads_histogram,
        }
    }
}

impl<R: Room> Intake<R> {
    /// Counts a buffer that was put on flash, so many of its entries in so many slots.
    pub(crate) fn count_flush(&self, entries: u64, slots: usize) {
        self.counters.flushes.fetch_add(1, Relaxed);
        self.counters.flush_entries.fetch_add(entries, Relaxed);
        self.counters.flush_slots.fetch_add(slots as u64, Relaxed);
    }

    /// Counts bytes written to the structure's own pages.
    pub(crate) fn count_written(&self, bytes: u64) {
        self.counters.data_bytes_written.fetch_add(bytes, Relaxed);
    }

    /// Counts RAM that flushes need again and again.
    pub(crate) fn count_scratch(&self, bytes: u64) {
        self.counters.scratch_bytes.fetch_add(bytes, Relaxed);
    }

    /// RAM that the table holds: buffers and spare buffers, the room's own, lanes, what its background
    /// threads use, and the log's buffers.
    fn ram_bytes(&self) -> u64 {
        let buffers = u64::from(self.shape.partitions + self.shape.spare_buffers);
        let buffer_bytes = u64::from(self.shape.buffer_pages) * PAGE_BYTES as u64;
        let maps = self.partitions.len() * (size_of::<super::Partition<R>>() + 64 * 16);
        buffers * buffer_bytes
            + R::ram_bytes(self)
            + (maps + self.lanes.ram_bytes()) as u64
            + self.counters.scratch_bytes.load(Relaxed)
            + self.volume.log().stats().ram_bytes
    }

    pub(crate) fn stats(&self) -> TableStats {
        let counters = &self.counters;
        let read = |counter: &AtomicU64| counter.load(Relaxed);
        let (mut entries, mut inserts) = (0, 0);
        for partition in &self.partitions {
            let state = partition.lock();
            entries += state.entries_buffered() + R::entries_below(&state);
            inserts += state.inserts;
        }
        let lookups = counters.lookups.read();
        let slots = read(&counters.flush_slots);
        TableStats {
            entries,
            ram_bytes: self.ram_bytes(),
            flash_bytes: R::flash_bytes(self),
            inserts,
            hits: lookups.hits,
            misses: lookups.misses,
            hit_reads: lookups.hit_reads,
            miss_reads: lookups.miss_reads,
            reads_histogram: lookups.reads_histogram,
            flushes: read(&counters.flushes),
            flush_fill: crate::api::ratio(read(&counters.flush_entries), slots),
            data_bytes_written: read(&counters.data_bytes_written),
            log_bytes_written: self.volume.log().stats().bytes_written,
            evicted: read(&counters.evicted),
            retained: read(&counters.retained),
            forced_evictions: read(&counters.forced_evictions),
        }
    }
}
