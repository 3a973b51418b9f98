//! The statistics that tables and filters report.

use nandex_device::PageId;

use crate::{Result, damage};

/// Statistics that every filter reports, since it was opened unless said otherwise.
#[derive(Clone, Debug, Default, PartialEq)]
#[non_exhaustive]
pub struct FilterStats {
    /// Fingerprints stored, in RAM and on flash. Each part that has a fingerprint counts it.
    pub entries: u64,
    /// Damaged pages of saved write buffers, in a volume that was opened read-only. No other figure counts their
    /// entries.
    pub lost_pages: Vec<PageId>,
    /// Fingerprints among these that are in RAM.
    pub buffered: u64,
    /// Tombstones among the fingerprints.
    pub tombstones: u64,
    /// An upper bound of the current false-positive rate: entries over the universe's size.
    pub rate: f64,
    /// The false-positive rate it was made for.
    pub rate_made_for: f64,
    /// The keys it was made for: with more the rate is higher.
    pub keys_made_for: u64,
    /// The number of the most recent inserts that are guaranteed to be present; older ones may be present or not.
    /// `None` if all are.
    pub window_keys: Option<u64>,
    /// Bytes of RAM of the structure: buffers, merges, its share of the log's buffers.
    pub ram_bytes: u64,
    /// Bytes of flash the structure occupies.
    pub flash_bytes: u64,
    /// The levels on flash, the smallest first.
    pub levels: Vec<LevelStats>,
    /// Inserts, including additions to counts.
    pub inserts: u64,
    /// Deletes, including subtractions from counts.
    pub deletes: u64,
    /// Lookups answered with "present", or with a count above 0.
    pub positives: u64,
    /// Lookups answered with "absent".
    pub negatives: u64,
    /// Lookups by the number of pages they read: 0, 1, 2, ...; the last bucket is "this number or more".
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
    /// Deletes that met no insert before the last level, and were dropped there.
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
    /// Its pages.
    pub pages: u64,
}

impl FilterStats {
    /// Returns the number of fingerprints stored, as in [`entries`](Self::entries), if none is left out.
    ///
    /// # Errors
    /// The first of the [`lost_pages`](Self::lost_pages).
    pub fn all_entries(&self) -> Result<u64> {
        self.lost_pages.first().map_or(Ok(self.entries), |page| Err(damage::lost_page(*page)))
    }

    /// Returns the RAM per entry, in bytes.
    #[must_use]
    pub fn ram_bytes_per_entry(&self) -> f64 {
        ratio(self.ram_bytes, self.entries)
    }

    /// Returns the bits of flash per fingerprint on flash.
    #[must_use]
    pub fn bits_per_entry_on_flash(&self) -> f64 {
        let pages: u64 = self.levels.iter().map(|level| level.pages).sum();
        let entries: u64 = self.levels.iter().map(|level| level.entries).sum();
        ratio(pages * nandex_device::PAGE_BYTES as u64 * 8, entries)
    }

    /// Returns the pages read per lookup.
    #[must_use]
    pub fn reads_per_lookup(&self) -> f64 {
        ratio(self.lookup_reads, self.positives + self.negatives)
    }
}

/// The number of buckets of the reads-per-operation histogram; the last one collects all higher numbers.
pub const READS_HISTOGRAM_LEN: usize = 9;

/// Statistics that every table reports, since it was opened unless said otherwise.
#[derive(Clone, Debug, Default, PartialEq)]
#[non_exhaustive]
pub struct TableStats {
    /// The number of keys, in buffers and on flash, usually within a hundredth: a BufferHash that rejects inserts or
    /// grows asks its filters, SliceHash and RHIK count what they merge, and estimate what buffers add. A BufferHash
    /// that evicts counts a key once for each version still stored.
    pub entries: u64,
    /// Damaged pages of saved write buffers, in a volume that was opened read-only. No other figure counts their
    /// entries.
    pub lost_pages: Vec<PageId>,
    /// Bytes of RAM of the structure: buffers, filters, maps, its share of the log's buffers.
    pub ram_bytes: u64,
    /// Bytes of flash the structure occupies.
    pub flash_bytes: u64,
    /// Inserts and removals.
    pub inserts: u64,
    /// Lookups that found their key.
    pub hits: u64,
    /// Lookups that did not find their key.
    pub misses: u64,
    /// Pages read by lookups that found their key.
    pub hit_reads: u64,
    /// Pages read by lookups that did not find their key.
    pub miss_reads: u64,
    /// Lookups by the number of pages they read: 0, 1, 2, ...; the last bucket is "this number or more".
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
    /// Entries retained by a partial discard and put back into a buffer.
    pub retained: u64,
    /// Entries that the policy wanted to keep but had to drop because cascaded evictions reached their limit.
    pub forced_evictions: u64,
    /// Entries dropped by the eviction policy over all openings. It is saved with every checkpoint: a crash loses what
    /// was counted since the last one, except evictions that the replay of the log repeats. Openings by versions that
    /// did not save it are not counted.
    pub evicted_life: u64,
    /// As [`evicted_life`](Self::evicted_life), for entries that the policy wanted to keep.
    pub forced_evictions_life: u64,
    /// Bytes of RAM of its cache, part of `ram_bytes`: all that it may take, or for a growing table what it has taken.
    pub cache_bytes: u64,
    /// Bytes of RAM that its cache may take: for a growing table, what the table leaves now.
    pub cache_bytes_max: u64,
    /// The number of entries that its cache has space for.
    pub cache_entries_max: u64,
    /// Lookups that its cache has answered: they read no page.
    pub cache_hits: u64,
}

impl TableStats {
    /// Adds the statistics of another part of the same table. Both include the RAM that a volume's structures share,
    /// which is counted only once.
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

    /// Returns these statistics with the given lookups in place of their own.
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

    /// Returns the RAM per entry, in bytes.
    #[must_use]
    pub fn ram_bytes_per_entry(&self) -> f64 {
        ratio(self.ram_bytes, self.entries)
    }

    /// Returns the pages read per lookup that found its key.
    #[must_use]
    pub fn reads_per_hit(&self) -> f64 {
        ratio(self.hit_reads, self.hits)
    }

    /// Returns the pages read per lookup that did not find its key.
    #[must_use]
    pub fn reads_per_miss(&self) -> f64 {
        ratio(self.miss_reads, self.misses)
    }

    /// Returns the share of the lookups not answered by buffers and filters that the cache answered.
    #[must_use]
    pub fn cache_hit_rate(&self) -> f64 {
        let lookups = self.hits + self.misses;
        ratio(self.cache_hits, self.cache_hits + lookups.saturating_sub(self.reads_histogram[0]))
    }

    /// Returns the pages read per lookup, whether or not it found its key.
    #[must_use]
    pub fn reads_per_lookup(&self) -> f64 {
        ratio(self.hit_reads + self.miss_reads, self.hits + self.misses)
    }
}

pub(crate) fn ratio(part: u64, whole: u64) -> f64 {
    if whole == 0 { 0.0 } else { part as f64 / whole as f64 }
}
