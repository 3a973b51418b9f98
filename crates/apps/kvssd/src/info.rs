//! The information about a drive and about a key space.

use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;

use nandex::READS_HISTOGRAM_LEN;
use nandex::large::LargeStats;
use serde::Serialize;

use crate::catalog::Usage;
use crate::drive::Drive;
use crate::update::Updated;
use crate::{Config, Result};

/// The device information of the specification, and additions of this drive.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[non_exhaustive]
pub struct DriveInfo {
    /// The bytes that pairs may take, with their headers.
    pub capacity_bytes: u64,
    /// The bytes of these that are in no key space's limit.
    pub unallocated_bytes: u64,
    /// The number of pairs that the index is sized for.
    pub pairs_max: u64,
    /// The shortest key.
    pub key_bytes_min: u16,
    /// The longest key.
    pub key_bytes_max: u16,
    /// The longest value.
    pub value_bytes_max: u32,
    /// The length of values that drives of this kind report as optimal.
    pub value_bytes_optimal: u32,
    /// The unit of offsets into values, which are multiples of it.
    pub offset_unit: u32,
    /// The number of key spaces.
    pub key_spaces: usize,
    /// The kind of its index.
    pub index: String,
}

/// The use of a drive.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
#[non_exhaustive]
pub struct DriveStats {
    /// The number of pairs.
    pub pairs: u64,
    /// The bytes of their keys and values.
    pub logical_bytes: u64,
    /// The same with the pairs' headers.
    pub stored_bytes: u64,
    /// The bytes of flash of records without references, with padding.
    pub garbage_bytes: u64,
    /// The stored bytes as a share of the capacity, in ten-thousandths.
    pub utilisation: u32,
    /// The mean number of bytes of a value.
    pub value_bytes_mean: f64,
    /// The bytes of flash that value log and index occupy.
    pub flash_bytes: u64,
    /// RAM of the index.
    pub index_ram_bytes: u64,
    /// The RAM of everything.
    pub ram_bytes: u64,
    /// Since the opening: stores that created a pair.
    pub inserts: u64,
    /// Stores that found a pair.
    pub updates: u64,
    /// Retrievals that found their key.
    pub retrieves: u64,
    /// Retrievals that did not find their key.
    pub misses: u64,
    /// Pairs deleted.
    pub deletes: u64,
    /// Keys that were tested for existence.
    pub exists: u64,
    /// Bytes of keys and values stored.
    pub host_bytes_written: u64,
    /// Bytes that the device was told to program: values, index and log.
    pub device_bytes_written: u64,
    /// Write amplification: device bytes per byte of the host; 0 before anything was stored.
    pub write_amplification: f64,
    /// Index accesses by the number of flash pages that they read: 0, 1, 2, ...; the last counts all higher numbers.
    pub index_reads: [u64; READS_HISTOGRAM_LEN],
    /// The mean number of flash pages that an index access reads.
    pub index_reads_mean: f64,
    /// Pages of records read.
    pub value_pages_read: u64,
    /// Segments of records cleaned.
    pub cleaned_segments: u64,
    /// The time of all commands, by the drive's timing.
    pub command_ns: u64,
}

/// The information about a key space.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct SpaceInfo {
    /// Its name.
    pub name: String,
    /// The most bytes of keys and values; 0 for no limit.
    pub limit_bytes: u64,
    /// The bytes of keys and values that still fit. Without a limit, those of the drive.
    pub free_bytes: u64,
    /// Pairs in it.
    pub pairs: u64,
    /// Bytes of their keys.
    pub key_bytes: u64,
    /// Bytes of their values.
    pub value_bytes: u64,
    /// Whether it is open.
    pub is_open: bool,
}

/// The numbers of operations since the drive was opened.
#[derive(Debug, Default)]
pub(crate) struct Counters {
    inserts: AtomicU64,
    updates: AtomicU64,
    pub(crate) retrieves: AtomicU64,
    pub(crate) misses: AtomicU64,
    deletes: AtomicU64,
    pub(crate) exists: AtomicU64,
    host_bytes_written: AtomicU64,
    pub(crate) command_ns: AtomicU64,
}

impl Counters {
    /// Counts an update.
    pub(crate) fn note(&self, updated: &Updated) {
        let counter = match (updated.old_bytes, updated.new_bytes) {
            (None, Some(_)) => &self.inserts,
            (Some(_), Some(_)) => &self.updates,
            (Some(_), None) => &self.deletes,
            (None, None) => return,
        };
        counter.fetch_add(1, Relaxed);
        self.host_bytes_written.fetch_add(updated.given_bytes, Relaxed);
    }
}

/// The length of values that is reported as optimal.
const OPTIMAL_BYTES: u32 = 4096;

impl Drive {
    /// Returns the device information of the specification.
    ///
    /// # Errors
    /// A drive that was closed.
    pub fn info(&self) -> Result<DriveInfo> {
        let pairs = self.inner.pairs()?;
        let Config { capacity_bytes, pairs_max, key_bytes_min, .. } = *self.config();
        let Config { key_bytes_max, value_bytes_max, offset_unit, .. } = *self.config();
        let catalog = self.inner.catalog();
        Ok(DriveInfo {
            capacity_bytes,
            unallocated_bytes: capacity_bytes.saturating_sub(catalog.limits_bytes()),
            pairs_max,
            key_bytes_min,
            key_bytes_max,
            value_bytes_max,
            value_bytes_optimal: OPTIMAL_BYTES.min(value_bytes_max),
            offset_unit,
            key_spaces: catalog.visible().count(),
            index: pairs.table().kind().to_owned(),
        })
    }

    /// Returns the drive's use and its operations.
    ///
    /// # Errors
    /// A drive that was closed.
    pub fn stats(&self) -> Result<DriveStats> {
        let large = self.inner.pairs()?.stats();
        let usage = self.inner.catalog().usage();
        let counters = &self.inner.counters;
        let host_bytes_written = counters.host_bytes_written.load(Relaxed);
        let device_bytes_written = device_bytes_written(&large);
        Ok(DriveStats {
            pairs: usage.pairs,
            logical_bytes: usage.logical_bytes(),
            stored_bytes: usage.stored_bytes(),
            garbage_bytes: large.values.garbage_bytes,
            utilisation: self.utilisation(usage),
            value_bytes_mean: ratio(usage.value_bytes, usage.pairs),
            flash_bytes: large.values.flash_bytes + large.table.flash_bytes,
            index_ram_bytes: large.table.ram_bytes,
            ram_bytes: large.ram_bytes,
            inserts: counters.inserts.load(Relaxed),
            updates: counters.updates.load(Relaxed),
            retrieves: counters.retrieves.load(Relaxed),
            misses: counters.misses.load(Relaxed),
            deletes: counters.deletes.load(Relaxed),
            exists: counters.exists.load(Relaxed),
            host_bytes_written,
            device_bytes_written,
            write_amplification: ratio(device_bytes_written, host_bytes_written),
            index_reads: large.table.reads_histogram,
            index_reads_mean: large.table.reads_per_lookup(),
            value_pages_read: large.values.pages_read,
            cleaned_segments: large.values.cleaned_segments,
            command_ns: counters.command_ns.load(Relaxed),
        })
    }

    /// Returns the ten-thousandths of the capacity that pairs take, as the specification counts them.
    fn utilisation(&self, usage: Usage) -> u32 {
        let parts = u128::from(usage.stored_bytes()) * 10_000;
        let parts = parts.div_ceil(u128::from(self.config().capacity_bytes));
        u32::try_from(parts).unwrap_or(u32::MAX).min(10_000)
    }
}

fn device_bytes_written(large: &LargeStats) -> u64 {
    large.values.written_bytes + large.table.data_bytes_written + large.table.log_bytes_written
}

fn ratio(part: u64, whole: u64) -> f64 {
    if whole == 0 { 0.0 } else { part as f64 / whole as f64 }
}
