//! The figures that tables and filters show.

use nandex_device::PageId;

use crate::{Result, damage};

/// The figures every filter shows, since it was opened unless said otherwise.
#[derive(Clone, Debug, Default, PartialEq)]
#[non_exhaustive]
pub struct FilterStats {
    /// Fingerprints stored, in RAM and on flash. Each part that has a fingerprint counts it.
    pub entries: u64,
    /// Damaged pages of saved write buffers, in a volume that was opened read-only. No other figure counts the entries
    /// that they held.
    pub lost_pages: Vec<PageId>,
    /// Of these, in RAM.
    pub buffered: u64,
    /// Tombstones among them.
    pub tombstones: u64,
    /// An upper bound of the rate of false positives now: entries over the universe's size.
    pub rate: f64,
    /// The rate it was made for.
    pub rate_made_for: f64,
    /// Keys it was made for: with more the rate is higher.
    pub keys_made_for: u64,
    /// How many of the most recent inserts are surely there; of older ones some are and some are not. `None` where all
    /// are.
    pub window_keys: Option<u64>,
    /// Bytes of RAM the structure holds: buffers, merges, its share of the log's buffers.
    pub ram_bytes: u64,
    /// Bytes of flash the structure occupies.
    pub flash_bytes: u64,
    /// The levels on flash, the smallest first.
    pub levels: Vec<LevelStats>,
    /// Inserts taken, a count's additions among them.
    pub inserts: u64,
    /// Deletes taken, a count's subtractions among them.
    pub deletes: u64,
    /// Lookups answered with yes, or with a count above 0.
    pub positives: u64,
    /// Lookups answered with no.
    pub negatives: u64,
    /// Lookups by the number of pages they read: 0, 1, 2, ...; the last bucket is "this many or more".
    pub reads_histogram: [u64; READS_HISTOGRAM_LEN],
    /// Pages read by lookups.
    pub lookup_reads: u64,
    /// Merges of the buffer into a level.
    pub merges: u64,
    /// Bytes read by merges.
    pub merge_bytes_read: u64,
    /// Bytes written by merges and by snapshots of the buffer.
    pub data_bytes_written: u64,
    /// Bytes written to the write-ahead log on its behalf.
    pub log_bytes_written: u64,
    /// Deletes that met no insert when they reached the last level, and were dropped.
    pub unmatched_deletes: u64,
}

/// A level of a filter on flash.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct LevelStats {
    /// Fingerprints in it.
    pub entries: u64,
    /// Tombstones among them.
    pub tombstones: u64,
    /// Pages of it.
    pub pages: u64,
}

impl FilterStats {
    /// The number of fingerprints stored, as [`entries`](Self::entries) has it, if none is left out.
    ///
    /// # Errors
    /// The first of the [`lost_pages`](Self::lost_pages).
    pub fn all_entries(&self) -> Result<u64> {
        self.lost_pages.first().map_or(Ok(self.entries), |page| Err(damage::lost_page(*page)))
    }

    /// RAM per entry held, in bytes.
    #[must_use]
    pub fn ram_bytes_per_entry(&self) -> f64 {
        ratio(self.ram_bytes, self.entries)
    }

    /// Bits of flash per fingerprint on flash.
    #[must_use]
    pub fn bits_per_entry_on_flash(&self) -> f64 {
        let pages: u64 = self.levels.iter().map(|level| level.pages).sum();
        let entries: u64 = self.levels.iter().map(|level| level.entries).sum();
        ratio(pages * nandex_device::PAGE_BYTES as u64 * 8, entries)
    }

    /// Pages read per lookup.
    #[must_use]
    pub fn reads_per_lookup(&self) -> f64 {
        ratio(self.lookup_reads, self.positives + self.negatives)
    }
}

/// How many buckets the reads-per-operation histogram has; the last one collects all above.
pub const READS_HISTOGRAM_LEN: usize = 9;

/// The figures every table shows, since it was opened unless said otherwise.
#[derive(Clone, Debug, Default, PartialEq)]
#[non_exhaustive]
pub struct TableStats {
    /// Keys held, in the buffers and on flash, as far as the table knows, mostly within a hundredth: BufferHash that
    /// refuses or grows asks its filters, SliceHash and RHIK count what they merge, and estimate what buffers add. A
    /// BufferHash that evicts counts a key once for each version still stored.
    pub entries: u64,
    /// Damaged pages of saved write buffers, in a volume that was opened read-only. No other figure counts the entries
    /// that they held.
    pub lost_pages: Vec<PageId>,
    /// Bytes of RAM the structure holds: buffers, filters, maps, its share of the log's buffers.
    pub ram_bytes: u64,
    /// Bytes of flash the structure occupies.
    pub flash_bytes: u64,
    /// Inserts and removes taken.
    pub inserts: u64,
    /// Lookups that found their key.
    pub hits: u64,
    /// Lookups that did not.
    pub misses: u64,
    /// Pages read by lookups that found their key.
    pub hit_reads: u64,
    /// Pages read by lookups that did not.
    pub miss_reads: u64,
    /// Lookups by the number of pages they read: 0, 1, 2, ...; the last bucket is "this many or more".
    pub reads_histogram: [u64; READS_HISTOGRAM_LEN],
    /// Buffers written to flash.
    pub flushes: u64,
    /// Entries in those buffers divided by their slots: the mean fill at flush.
    pub flush_fill: f64,
    /// Bytes written to the structure's own pages (incarnations, filters, snapshots).
    pub data_bytes_written: u64,
    /// Bytes written to the write-ahead log on its behalf.
    pub log_bytes_written: u64,
    /// Entries dropped by the eviction policy.
    pub evicted: u64,
    /// Entries kept by a partial discard and put back into a buffer.
    pub retained: u64,
    /// Entries that the policy wanted to keep but had to drop because cascaded evictions reached their limit.
    pub forced_evictions: u64,
    /// Entries dropped by the eviction policy in all openings. It is kept with every checkpoint: a crash loses what was
    /// counted since the last one, but for evictions that the replay of the log repeats. Openings by versions
    /// that did not keep it are not counted.
    pub evicted_life: u64,
    /// As [`evicted_life`](Self::evicted_life), of those that the policy wanted to keep.
    pub forced_evictions_life: u64,
    /// Bytes of RAM of its cache, part of `ram_bytes`: all that it may take, and of a table that grows what it has
    /// taken.
    pub cache_bytes: u64,
    /// RAM that its cache may take, in bytes: of a table that grows, what that leaves now.
    pub cache_bytes_max: u64,
    /// Entries that it has place for.
    pub cache_entries_max: u64,
    /// Lookups that it has answered: they read no page.
    pub cache_hits: u64,
}

impl TableStats {
    /// Adds what another part of the same table holds and has done. Both count what a volume's structures share, which
    /// stays counted once.
    pub(crate) fn add_part(&mut self, part: &Self, shared_ram_bytes: u64) {
        let slots = |stats: &Self| stats.flush_fill * stats.flushes as f64;
        let (slots, flushes) = (slots(self) + slots(part), self.flushes + part.flushes);
        self.flush_fill = if flushes > 0 { slots / flushes as f64 } else { 0.0 };
        self.flushes = flushes;
        self.entries += part.entries;
        self.lost_pages.extend(&part.lost_pages);
        self.ram_bytes += part.ram_bytes.saturating_sub(shared_ram_bytes);
        self.flash_bytes += part.flash_bytes;
        self.inserts += part.inserts;
        self.data_bytes_written += part.data_bytes_written;
        self.log_bytes_written = part.log_bytes_written;
        self.evicted += part.evicted;
        self.retained += part.retained;
        self.forced_evictions += part.forced_evictions;
        self.evicted_life += part.evicted_life;
        self.forced_evictions_life += part.forced_evictions_life;
    }

    /// The same with these lookups in place of its own.
    pub(crate) fn with_lookups(self, lookups: &crate::lookup::Lookups) -> Self {
        let counted = lookups.stats();
        Self {
            ram_bytes: self.ram_bytes + counted.cache_bytes,
            hits: counted.hits,
            misses: counted.misses,
            hit_reads: counted.hit_reads,
            miss_reads: counted.miss_reads,
            reads_histogram: counted.reads_histogram,
            cache_bytes: counted.cache_bytes,
            cache_bytes_max: counted.cache_bytes_max,
            cache_entries_max: counted.cache_entries_max,
            cache_hits: counted.cache_hits,
            ..self
        }
    }

    /// RAM per entry held, in bytes.
    #[must_use]
    pub fn ram_bytes_per_entry(&self) -> f64 {
        ratio(self.ram_bytes, self.entries)
    }

    /// Pages read per lookup that found its key.
    #[must_use]
    pub fn reads_per_hit(&self) -> f64 {
        ratio(self.hit_reads, self.hits)
    }

    /// Pages read per lookup that did not.
    #[must_use]
    pub fn reads_per_miss(&self) -> f64 {
        ratio(self.miss_reads, self.misses)
    }

    /// Of the lookups that buffers and filters could not answer, the share that the cache did.
    #[must_use]
    pub fn cache_hit_rate(&self) -> f64 {
        let lookups = self.hits + self.misses;
        ratio(self.cache_hits, self.cache_hits + lookups.saturating_sub(self.reads_histogram[0]))
    }

    /// Pages read per lookup, found or not.
    #[must_use]
    pub fn reads_per_lookup(&self) -> f64 {
        ratio(self.hit_reads + self.miss_reads, self.hits + self.misses)
    }
}

pub(crate) fn ratio(part: u64, whole: u64) -> f64 {
    if whole == 0 { 0.0 } else { part as f64 / whole as f64 }
}
