//! Counters of lookups: what they found, and how many reads they took.

use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;

use crate::api::READS_HISTOGRAM_LEN;

/// The lookups since a structure was opened.
#[derive(Debug, Default)]
pub(crate) struct LookupCounters {
    hits: AtomicU64,
    misses: AtomicU64,
    hit_reads: AtomicU64,
    miss_reads: AtomicU64,
    reads_histogram: [AtomicU64; READS_HISTOGRAM_LEN],
}

/// The lookups of a batch, counted before they are added up.
#[derive(Debug, Default)]
pub(crate) struct LookupCounts {
    pub(crate) hits: u64,
    pub(crate) misses: u64,
    pub(crate) hit_reads: u64,
    pub(crate) miss_reads: u64,
    pub(crate) reads_histogram: [u64; READS_HISTOGRAM_LEN],
}

impl LookupCounts {
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

    /// The pages read by all lookups.
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

    pub(crate) fn add(&self, lookups: &LookupCounts) {
        self.hits.fetch_add(lookups.hits, Relaxed);
        self.misses.fetch_add(lookups.misses, Relaxed);
        self.hit_reads.fetch_add(lookups.hit_reads, Relaxed);
        self.miss_reads.fetch_add(lookups.miss_reads, Relaxed);
        for (total, count) in self.reads_histogram.iter().zip(lookups.reads_histogram) {
            total.fetch_add(count, Relaxed);
        }
    }

    pub(crate) fn read(&self) -> LookupCounts {
        let read = |counter: &AtomicU64| counter.load(Relaxed);
        let mut reads_histogram = [0; READS_HISTOGRAM_LEN];
        for (count, total) in reads_histogram.iter_mut().zip(&self.reads_histogram) {
            *count = read(total);
        }
        LookupCounts {
            hits: read(&self.hits),
            misses: read(&self.misses),
            hit_reads: read(&self.hit_reads),
            miss_reads: read(&self.miss_reads),
            reads_histogram,
        }
    }
}
