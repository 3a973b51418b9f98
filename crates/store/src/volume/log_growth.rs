//! Growth of the log to the length that the buffers of the structures need, and no further.

use std::sync::atomic::Ordering::Relaxed;

use nandex_device::PAGE_BYTES;

use super::opening::write_superblock;
use super::{Inner, Volume};
use crate::Result;
use crate::log::{EARLIER_MAX, LogPart, LogParts};
use crate::mutants::{Barrier, is_on};
use crate::superblock::Superblock;

/// The factor by which a log that fills grows. Pages of earlier parts are a third of the newest one's at most, and each
/// growth costs a sync.
const GROWTH_FACTOR: u64 = 4;

impl Volume {
    /// The most bytes that the log may grow to. If it does not grow, its current length.
    #[must_use]
    pub fn log_bytes_max(&self) -> u64 {
        self.inner.log_bytes_max()
    }

    /// Lets the log grow to the length with which a structure works best, or to its limit, as updates fill it. Until it
    /// has that length, checkpoints and early flushes follow the length that it may have, not the one that it has.
    ///
    /// Costs nothing in a file. On a device that is longer than the volume, such as a block device, the log takes its
    /// length at once, while the pages are still free: that costs the sync of a superblock.
    ///
    /// # Errors
    /// A failed write or sync, which poisons the volume.
    pub fn let_log_grow(&self, bytes: u64) -> Result<()> {
        let inner = &self.inner;
        let Some(bytes) = inner.work.log_bytes_max.map(|most| bytes.min(most)) else {
            return Ok(());
        };
        inner.log_bytes_expected.fetch_max(bytes, Relaxed);
        let missing = bytes.saturating_sub(inner.log.capacity_bytes());
        let spare = inner.device.page_count().saturating_sub(inner.root().space.page_count());
        if missing > 0 && spare >= bytes.div_ceil(PAGE_BYTES as u64) {
            inner.grow_log(bytes)?;
        }
        Ok(())
    }

    /// Grows the log at once to the length with which a structure works best, or to its limit. Returns whether it has
    /// that length.
    ///
    /// Costs nothing if it is long enough; otherwise the sync of a superblock.
    ///
    /// # Errors
    /// A failed write or sync, which poisons the volume.
    pub fn want_log(&self, bytes: u64) -> Result<bool> {
        let inner = &self.inner;
        Ok(inner.log.capacity_bytes() >= bytes || inner.grow_log(bytes)?)
    }
}

impl Inner {
    fn log_bytes_max(&self) -> u64 {
        let capacity = self.log.capacity_bytes();
        self.work.log_bytes_max.map_or(capacity, |most| most.max(capacity))
    }

    /// The length that the log has or will grow to as it fills, in bytes.
    pub(super) fn log_bytes_expected(&self) -> u64 {
        self.log.capacity_bytes().max(self.log_bytes_expected.load(Relaxed))
    }

    /// Grows the log if `bytes` bytes of entries would not fit it when it is empty, or if they would have to wait
    /// although it does not have its expected length yet.
    #[inline]
    pub(super) fn grow_log_for(&self, bytes: u64) -> Result<()> {
        let (needed, capacity) = (self.log.needed_bytes(bytes), self.log.capacity_bytes());
        if needed > capacity {
            self.grow_log(needed.saturating_mul(2))?;
        } else if capacity < self.log_bytes_expected.load(Relaxed) && self.log.is_short_for(bytes) {
            self.grow_as_expected(capacity)?;
        }
        Ok(())
    }

    /// Grows the log by a factor, or to its expected length if one more growth would be needed soon. If it cannot grow,
    /// the length that it has is expected from now on.
    fn grow_as_expected(&self, capacity: u64) -> Result<()> {
        let most = self.log_bytes_expected.load(Relaxed);
        let next = capacity.saturating_mul(GROWTH_FACTOR);
        let bytes = if most < next.saturating_mul(2) { most } else { next };
        if !self.grow_log(bytes)? && self.log.capacity_bytes() <= capacity {
            self.log_bytes_expected.store(0, Relaxed);
        }
        Ok(())
    }

    /// Continues the log in this many bytes, or in twice its length if that is more, but at most in its limit. Returns
    /// whether it is longer now. Its content stays where it is until the tail has passed it.
    ///
    /// # Errors
    /// A failed write or sync, which poisons the volume. A device without space is not an error: the log keeps its
    /// length.
    pub(super) fn grow_log(&self, bytes: u64) -> Result<bool> {
        if self.is_read_only() || self.work.log_bytes_max.is_none() {
            return Ok(false);
        }
        let _maintenance = self.lock_maintenance();
        self.poison.check()?;
        let capacity = self.log.capacity_bytes();
        let bytes = bytes.max(2 * capacity).min(self.log_bytes_max());
        let pages = bytes.div_ceil(PAGE_BYTES as u64);
        let mut root = self.root();
        let parts = root.superblock.log.clone();
        if bytes <= capacity || parts.earlier.len() >= EARLIER_MAX {
            return Ok(false);
        }
        let Ok(extent) = root.allocate(&*self.device, pages) else { return Ok(false) };
        drop(root);
        self.poison.guard(self.log.grow(&parts, extent, &mut |grown| self.note_log(grown)))?;
        Ok(true)
    }

    /// Marks the parts of the log that a durable superblock has forgotten.
    pub(super) fn mark_gone(&self, gone: &[LogPart]) -> Result<()> {
        gone.iter().try_for_each(|part| self.log.mark_gone(part))
    }

    /// Records the place of the log durably. Returns the generation of the superblock that contains it.
    fn note_log(&self, log: &LogParts) -> Result<u64> {
        let mut root = self.root();
        let mut superblock = Superblock {
            generation: root.superblock.generation + 1,
            page_count: root.space.page_count(),
            log: log.clone(),
            ..root.superblock.clone()
        };
        // A part in which no block was begun.
        let freed = root.superblock.log.freed(log);
        root.removed.extend(freed);
        let mut durable = root.superblock.generation;
        if is_on(Barrier::GrownLogNoted) {
            durable = write_superblock(&*self.device, &mut superblock)?;
        }
        root.superblock = superblock;
        Ok(durable)
    }
}
