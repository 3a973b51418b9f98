//! Statistics, counted where events happen and added up on request.

use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;

use nandex_device::PageId;

use super::format::LifeCounts;
use super::new_keys::{NewKeys, NewKeysNow};
use super::{Core, Layout, Partition, TableLayout};
use crate::Error;
use crate::api::TableStats;

/// The counts since the structure was opened, and those of its life before.
#[derive(Debug, Default)]
pub(crate) struct WriteCounters {
    pub(crate) flushes: AtomicU64,
    pub(crate) flush_entries: AtomicU64,
    pub(crate) flush_slots: AtomicU64,
    /// The current entries in incarnations.
    pub(crate) flushed_entries: AtomicU64,
    pub(crate) data_bytes_written: AtomicU64,
    pub(crate) evicted: AtomicU64,
    pub(crate) retained: AtomicU64,
    pub(crate) forced_evictions: AtomicU64,
    /// The share of new keys among the entries that wait for a merge.
    pub(crate) new_keys: NewKeysNow,
    /// The entries evicted before this opening, including by parts that no longer exist.
    evicted_before: AtomicU64,
    /// The part of `forced_evictions` from before this opening.
    forced_before: AtomicU64,
}

impl WriteCounters {
    /// Creates the counters of a structure whose checkpoint has these counts and this share of new keys.
    pub(super) fn restore(life: LifeCounts, new_keys: NewKeys) -> Self {
        let counters = Self::default();
        counters.new_keys.set(new_keys);
        counters.take_over(life);
        counters
    }

    /// Returns what was dropped in all openings until now.
    pub(crate) fn life(&self) -> LifeCounts {
        let sum = |before: &AtomicU64, since: &AtomicU64| {
            before.load(Relaxed).saturating_add(since.load(Relaxed))
        };
        LifeCounts {
            evicted: sum(&self.evicted_before, &self.evicted),
            forced_evictions: sum(&self.forced_before, &self.forced_evictions),
        }
    }

    /// Adds the counts of a part that is removed.
    pub(crate) fn take_over(&self, life: LifeCounts) {
        self.evicted_before.fetch_add(life.evicted, Relaxed);
        self.forced_before.fetch_add(life.forced_evictions, Relaxed);
    }
}

impl<L: Layout> Core<L> {
    /// Returns the damaged pages of snapshots whose entries the buffers lack.
    pub(crate) fn lost_pages(&self) -> Vec<PageId> {
        let of = |partition: &Partition<L>| partition.read().lost_pages().collect::<Vec<_>>();
        self.partitions.iter().flat_map(of).collect()
    }

    /// Counts a flushed buffer: its entries and its slots.
    pub(crate) fn count_flush(&self, entries: u64, slots: usize) {
        self.counters.flushes.fetch_add(1, Relaxed);
        self.counters.flush_entries.fetch_add(entries, Relaxed);
        self.counters.flush_slots.fetch_add(slots as u64, Relaxed);
    }

    /// Counts bytes written to the structure's own pages.
    pub(crate) fn count_written(&self, bytes: u64) {
        self.counters.data_bytes_written.fetch_add(bytes, Relaxed);
    }

    /// Returns the RAM of the structure: buffers and spare buffers, the layout's own, lookups, scratch memory of
    /// flushes, and the log's buffers.
    pub(crate) fn ram_bytes(&self) -> u64 {
        let buffers = self.partitions.iter().map(|it| it.read().buffer_bytes()).sum::<u64>();
        let maps = self.partitions.len() * (size_of::<Partition<L>>() + 64 * 16);
        buffers
            + self.pool.ram_bytes()
            + L::usage(self).ram_bytes
            + maps as u64
            + self.lookups.ram_bytes()
            + self.scratches.ram_bytes()
            + self.volume.log().stats().ram_bytes
    }
}

impl<L: TableLayout> Core<L> {
    /// Returns the error of a full table with the number of entries from `stats`: the thread that finds the table full
    /// holds the lock of one partition and cannot count the others' buffers.
    #[cold]
    pub(crate) fn counted(&self, error: Error) -> Error {
        match error {
            Error::Full { flash_bytes, .. } => L::refusal(self, self.stats().entries, flash_bytes),
            error => error,
        }
    }

    pub(crate) fn stats(&self) -> TableStats {
        let counters = &self.counters;
        let read = |counter: &AtomicU64| counter.load(Relaxed);
        let (mut entries, mut inserts) = (0, 0);
        for partition in &self.partitions {
            let state = partition.read();
            entries += L::keys(self, &state);
            inserts += state.updates_taken;
        }
        let slots = read(&counters.flush_slots);
        // The life counts are read last, so that they are never less than the counts of this opening.
        let (evicted, forced_evictions) =
            (read(&counters.evicted), read(&counters.forced_evictions));
        let life = counters.life();
        TableStats {
            entries,
            lost_pages: self.lost_pages(),
            ram_bytes: self.ram_bytes(),
            flash_bytes: L::usage(self).flash_bytes,
            inserts,
            flushes: read(&counters.flushes),
            flush_fill: crate::api::ratio(read(&counters.flush_entries), slots),
            data_bytes_written: read(&counters.data_bytes_written),
            log_bytes_written: self.volume.log().stats().bytes_written,
            evicted,
            retained: read(&counters.retained),
            forced_evictions,
            evicted_life: life.evicted,
            forced_evictions_life: life.forced_evictions,
            ..self.lookups.stats()
        }
    }
}
