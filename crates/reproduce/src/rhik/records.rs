//! RHIK on a taped device, with a cache of record pages.

use std::sync::Arc;

use nandex::large::{TABLE_KEY_BYTES, TABLE_VALUE_BYTES};
use nandex::rhik::{Config, RhikStats, RuntimeOptions};
use nandex::{Rhik, Table};
use nandex_kvssd::{Access, PageCache};

use super::lab::{KvIndex, PAGE_BYTES, Requests};
use crate::Result;
use crate::tape::{Act, Step, Tape, TapedDevice};
use crate::volume::{LOG_BYTES_MIN, volume};

/// Bytes of record tables for each key, about.
const TABLE_BYTES: u64 = 54;
/// Pages of a buffer, about.
const BUFFER_PAGES: u64 = 8;
/// Tables of a group, and those of a small index.
const GROUP_PAGES: (u32, u32) = (64, 16);
/// Pages of all buffers from which on an index is large.
const LARGE_PAGES: u64 = 64;
/// RAM of the directory for each key, in bytes, for which DRAM is set aside.
const DIRECTORY_BYTES: f64 = 0.16;

/// The index, and what it reads.
pub struct RhikIndex {
    table: Rhik,
    device: TapedDevice,
    cache: PageCache,
    /// The most pages that an access has read, of those that the cache has as well.
    reads_max: usize,
}

impl RhikIndex {
    /// An empty one with that much DRAM, for that many keys.
    ///
    /// Where the record tables fit into DRAM, write buffers have a quarter of it. Where they do not, pages of them
    /// there would save few reads, and buffers have what the directory leaves but an eighth, as RHIK's own advice has
    /// it.
    ///
    /// The DRAM does not count the log's blocks and the groups that a rewrite holds, which do not shrink with the
    /// scale.
    pub fn new(dram_bytes: u64, keys: u64, seed: u64) -> Result<Self> {
        let dram = dram_bytes / PAGE_BYTES;
        let directory = (keys as f64 * DIRECTORY_BYTES) as u64 / PAGE_BYTES;
        let fits = keys * TABLE_BYTES <= dram_bytes;
        let config = config(if fits { dram / 4 } else { dram.saturating_sub(directory) / 8 * 7 });
        let device = TapedDevice::new();
        let log_bytes = config.log_bytes_best().max(LOG_BYTES_MIN);
        let volume = volume(Arc::new(device.clone()), seed, log_bytes)?;
        let options = RuntimeOptions { flush_threads: 0, ..RuntimeOptions::default() };
        let buffers = u64::from((config.partitions + config.spare_buffers) * config.buffer_pages);
        let table = Rhik::create_with(&volume, "index", config, options)?;
        let cached = dram.saturating_sub(buffers + directory);
        let cache = PageCache::new(usize::try_from(cached).unwrap_or(usize::MAX));
        device.forget();
        Ok(Self { table, device, cache, reads_max: 0 })
    }

    /// Its directory and tables.
    pub fn stats(&self) -> RhikStats {
        self.table.rhik_stats()
    }

    /// The most pages that an access has read so far, found or not, the cache left aside.
    pub fn reads_max(&self) -> usize {
        self.reads_max
    }

    /// The requests since the last call.
    fn steps(&self) -> Vec<Step> {
        let mut tape = Tape::default();
        self.device.take(Act::Lookup, &mut tape);
        tape.operation(0).1.to_vec()
    }
}

/// A table whose buffers, a spare one included, have about that many pages.
fn config(buffers: u64) -> Config {
    let buffers = buffers.max(2);
    let partitions = 1 << (buffers / BUFFER_PAGES).max(1).ilog2();
    Config {
        key_bytes: TABLE_KEY_BYTES,
        value_bytes: TABLE_VALUE_BYTES,
        partitions: u32::try_from(partitions).unwrap_or(1 << 16).min(1 << 16),
        buffer_pages: u32::try_from(buffers / (partitions + 1)).unwrap_or(u32::MAX).max(1),
        spare_buffers: 1,
        group_pages: if buffers < LARGE_PAGES { GROUP_PAGES.1 } else { GROUP_PAGES.0 },
        stagger: partitions > 1,
        ..Config::tiny()
    }
}

fn key_bytes(key: u64) -> [u8; TABLE_KEY_BYTES] {
    let mut bytes = [0; TABLE_KEY_BYTES];
    bytes[..8].copy_from_slice(&key.to_le_bytes());
    bytes
}

impl KvIndex for RhikIndex {
    fn access(&mut self, key: u64, access: Access) -> Result<Requests> {
        let key = key_bytes(key);
        let is_there = self.table.get(&key)?.is_some();
        let mut reads = self.steps();
        self.reads_max = self.reads_max.max(reads.len());
        reads.retain(|step| {
            let is_hit = self.cache.hit(step.page);
            if !is_hit {
                let _ = self.cache.add(step.page);
            }
            !is_hit
        });
        match access {
            Access::Lookup => return Ok(Requests { reads, update: Vec::new() }),
            Access::Insert => self.table.insert(&key, &[7; TABLE_VALUE_BYTES])?,
            Access::Remove if is_there => self.table.remove(&key)?,
            Access::Remove => {}
        }
        Ok(Requests { reads, update: self.steps() })
    }
}
