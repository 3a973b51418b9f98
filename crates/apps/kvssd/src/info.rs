//! What a drive and a key space say of themselves.

use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;

use nandex::READS_HISTOGRAM_LEN;
use nandex::large::LargeStats;
use serde::Serialize;

use crate::catalog::Usage;
use crate::drive::Drive;
use crate::update::Updated;
use crate::{Config, Result};

/// What the device information of the specification has, and what this drive adds to it.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[non_exhaustive]
pub struct DriveInfo {
    /// Bytes that pairs may take, with their headers.
    pub capacity_bytes: u64,
    /// Bytes of these that are in no key space's limit.
    pub unallocated_bytes: u64,
    /// Pairs that the index is made for.
    pub pairs_max: u64,
    /// The shortest key.
    pub key_bytes_min: u16,
    /// The longest key.
    pub key_bytes_max: u16,
    /// The longest value.
    pub value_bytes_max: u32,
    /// The length of values that drives of this kind say suits them best.
    pub value_bytes_optimal: u32,
    /// Offsets into values are multiples of it.
    pub offset_unit: u32,
    /// Key spaces there are.
    pub key_spaces: usize,
    /// The kind of its index.
    pub index: String,
}

/// The use of a drive.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
#[non_exhaustive]
pub struct DriveStats {
    /// Pairs in it.
    pub pairs: u64,
    /// Bytes of their keys and values.
    pub logical_bytes: u64,
    /// The same with the pairs' headers.
    pub stored_bytes: u64,
    /// Bytes of flash that records take that nobody refers to any more, with padding.
    pub garbage_bytes: u64,
    /// Stored bytes of the capacity, in ten-thousandths.
    pub utilisation: u32,
    /// Mean bytes of a value.
    pub value_bytes_mean: f64,
    /// Bytes of flash that value log and index occupy.
    pub flash_bytes: u64,
    /// RAM of the index.
    pub index_ram_bytes: u64,
    /// RAM of all of it.
    pub ram_bytes: u64,
    /// Since it was opened: stores that made a pair.
    pub inserts: u64,
    /// Stores that found one.
    pub updates: u64,
    /// Retrievals that found their key.
    pub retrieves: u64,
    /// Retrievals that did not.
    pub misses: u64,
    /// Pairs deleted.
    pub deletes: u64,
    /// Keys that somebody asked for whether they are there.
    pub exists: u64,
    /// Bytes of keys and values stored.
    pub host_bytes_written: u64,
    /// Bytes that the device was given to program: values, index and log.
    pub device_bytes_written: u64,
    /// Write amplification: device bytes for each of the host's; 0 before anything was stored.
    pub write_amplification: f64,
    /// Index accesses by the flash pages that they read: 0, 1, 2, ...; the last counts those that read as many or more.
    pub index_reads: [u64; READS_HISTOGRAM_LEN],
    /// Mean flash pages that an index access reads.
    pub index_reads_mean: f64,
    /// Pages of records read.
    pub value_pages_read: u64,
    /// Segments of records cleaned.
    pub cleaned_segments: u64,
    /// Time of all commands, as the drive's timing tells it.
    pub command_ns: u64,
}

/// What a key space says of itself.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct SpaceInfo {
    /// Its name.
    pub name: String,
    /// Bytes of keys and values that it may hold; 0 for no limit.
    pub limit_bytes: u64,
    /// Bytes of keys and values that it has space for. Without a limit, what the drive has.
    pub free_bytes: u64,
    /// Pairs in it.
    pub pairs: u64,
    /// Bytes of their keys.
    pub key_bytes: u64,
    /// Bytes of their values.
    pub value_bytes: u64,
    /// Has somebody opened it?
    pub is_open: bool,
}

/// What was done since the drive was opened.
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

/// The length of values that is said to suit a drive best.
const OPTIMAL_BYTES: u32 = 4096;

impl Drive {
    /// The device information of the specification.
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

    /// What it holds and has done.
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

    /// Ten-thousandths of the capacity that pairs take, as the specification counts them.
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
