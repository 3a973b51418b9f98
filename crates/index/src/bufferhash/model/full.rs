//! The costs of a configuration once its table is full; configurations need not come from advice.

use super::advise::advise;
use super::fill::BufferFill;
use super::sizing::{FIXED_RAM_BYTES, SEGMENT_RAM_BYTES, rewrite_bytes, scratch_bytes};
use super::updates::CleanedRing;
use crate::Result;
use crate::bufferhash::filter::{FilterKind, Slices, fuse_bumped_share};
use crate::bufferhash::{Config, Policy};
use crate::model::{OperationCosts, PAGE_BYTES, Requirements, log_bytes};

impl Config {
    /// Returns the configuration that the cost model recommends for the requirements; [`advise`] predicts its costs.
    ///
    /// # Errors
    /// As [`advise`].
    pub fn advised(requirements: &Requirements) -> Result<Self> {
        advise(requirements)?.config.of().cloned()
    }

    /// Returns the device operations of its operations when the ring is full and evictions retain nothing.
    ///
    /// # Errors
    /// [`Error::Config`](crate::Error::Config) for widths out of range.
    pub fn operation_costs(&self) -> Result<OperationCosts> {
        let entries = self.entries_per_flush()?;
        let rate = self.filter.rate(entries as u64);
        let incarnations = self.incarnations() as f64;
        let entry_bytes = (self.key_bytes + self.value_bytes) as u64;
        let segment = (u64::from(self.segment_pages()) * PAGE_BYTES) as f64;
        Ok(OperationCosts {
            reads_per_hit: 1.0 + (incarnations - 1.0) / 2.0 * rate,
            reads_per_miss: incarnations * rate,
            insert_read_bytes: 0.0,
            insert_write_bytes: segment / entries + log_bytes(entry_bytes),
            updates: self.ring_when_full().map(|ring| ring.update_costs(entry_bytes)),
        })
    }

    /// Returns the ring of a table that is cleaned, with all keys that the table is made for.
    pub(super) fn ring_when_full(&self) -> Option<CleanedRing> {
        self.cleans().then(|| self.ring_with(self.entries_max))
    }

    /// Returns the ring of a table that is cleaned, with `keys` keys.
    pub(in crate::bufferhash) fn ring_with(&self, keys: u64) -> CleanedRing {
        let aside = self.reserve_segments + u64::from(self.spare_buffers);
        CleanedRing {
            keys,
            super_tables: self.super_tables,
            // The buffer for which segments are short has one.
            segments: self.segments.saturating_sub(aside) + 1,
            incarnations_max: self.incarnations_max.saturating_sub(1),
            entries_per_flush: self.entries_per_flush().unwrap_or(1.0),
            entries_per_segment: self.filter.entries_max(),
            buffer_pages: self.buffer_pages,
            segment_pages: self.segment_pages(),
        }
    }

    /// Returns the paper's k of a full ring: the average incarnations of a super table.
    #[must_use]
    pub fn incarnations(&self) -> u64 {
        let aside = self.reserve_segments + u64::from(self.spare_buffers);
        let live = self.segments.saturating_sub(aside) / u64::from(self.super_tables);
        // A table that rejects inserts keeps one for its recovery.
        let kept = u64::from(self.policy == Policy::Reject);
        live.clamp(1, u64::from(self.incarnations_max) - kept)
    }

    /// Returns the keys that it has space for, or the entries of all incarnations of a full ring; 0 for widths out of
    /// range.
    pub(crate) fn entries_capacity(&self) -> u64 {
        if self.cleans() {
            return self.entries_max;
        }
        let live = u64::from(self.super_tables) * self.incarnations();
        live * self.entries_per_flush().unwrap_or(0.0) as u64
    }

    /// Returns the RAM of its buffers, filters and map when it is full, in bytes; without the fixed part.
    pub(crate) fn ram_bytes(&self) -> u64 {
        let buffers = u64::from(self.super_tables) + u64::from(self.spare_buffers);
        self.ram_bytes_with(buffers * u64::from(self.buffer_pages))
    }

    /// Returns all of its RAM when it is full, in bytes, including that of a flush.
    pub(in crate::bufferhash) fn ram_bytes_in_all(&self) -> u64 {
        let entries = self.entries_per_flush().unwrap_or(0.0) as u64;
        let scratch =
            scratch_bytes(self.buffer_pages, &self.filter, entries) + self.rewrite_bytes();
        FIXED_RAM_BYTES + self.ram_bytes() + scratch
    }

    /// Returns the RAM of rewriting a super table, if it is cleaned.
    pub(in crate::bufferhash) fn rewrite_bytes(&self) -> u64 {
        let entry_bytes = (self.key_bytes + self.value_bytes) as u64;
        let incarnations = self.incarnations() as u32;
        if self.cleans() {
            let sizes = (incarnations, self.live_incarnations());
            rewrite_bytes(sizes, self.segment_pages(), entry_bytes)
        } else {
            0
        }
    }

    /// Returns the average number of incarnations that the keys of a super table fill, if it is cleaned.
    pub(in crate::bufferhash) fn live_incarnations(&self) -> f64 {
        let filled = self.entries_max as f64 / self.entries_per_flush().unwrap_or(1.0);
        filled / f64::from(self.super_tables)
    }

    /// Returns the RAM of its buffers, filters and map once no more inserts follow, and a few pages for each super
    /// table are left of its buffers.
    pub(crate) fn retired_ram_bytes(&self) -> u64 {
        let small = self.shape().map_or(self.buffer_pages as usize, |shape| {
            shape.small_buffer_pages(self.carry_over_usual())
        });
        self.ram_bytes_with(u64::from(self.super_tables) * small as u64)
    }

    fn ram_bytes_with(&self, buffer_pages: u64) -> u64 {
        buffer_pages * PAGE_BYTES + self.filter_bytes() + self.segments * SEGMENT_RAM_BYTES
    }

    /// Returns the RAM of the filters when each super table has the most incarnations, in bytes.
    pub(in crate::bufferhash) fn filter_bytes(&self) -> u64 {
        // One column is written while all others are live.
        let columns = Slices::width_of(self.incarnations_max as usize + 1);
        let of_one = self.filter.ram_bytes() * columns / Slices::width_of(self.filter.columns());
        u64::from(self.super_tables) * of_one as u64
    }

    /// Returns the average number of new entries that one flush adds on flash.
    pub(in crate::bufferhash) fn entries_per_flush(&self) -> Result<f64> {
        let page_slots = self.layout()?.slots() as u64;
        let slots = page_slots * u64::from(self.buffer_pages);
        let fill = BufferFill::new(self.buffer_pages, page_slots);
        let bumped = match self.filter.kind() {
            FilterKind::Bloom => 0.0,
            FilterKind::Fuse => fuse_bumped_share(self.filter.entries_max(), fill.kept / fill.keys),
        };
        Ok((fill.kept_of(slots) * (1.0 - bumped)).max(1.0))
    }
}
