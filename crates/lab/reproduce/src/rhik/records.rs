//! RHIK on a taped device, with a cache of record pages.

use std::collections::HashMap;

use nandex::large::{TABLE_KEY_BYTES, TABLE_VALUE_BYTES};
use nandex::raw::rhik::RhikStats;
use nandex::rhik::Config;
use nandex::{OpenOptions, Rhik};
use nandex_baseline::clock::Clock;
use nandex_sim::RequestKind;

use super::lab::{Access, CACHED_PAGE_BYTES, IndexSize, KvIndex, PAGE_BYTES, Requests};
use super::taped_table::TapedTable;
use crate::tape::Step;
use crate::{Result, fits, vary};

/// The approximate bytes of record tables for each key.
const TABLE_BYTES: u64 = 54;
/// The approximate pages of a buffer.
const BUFFER_PAGES: u64 = 8;
/// Tables of a group, and those of a small index.
const GROUP_PAGES: (u32, u32) = (64, 16);
/// The pages of all buffers from which on an index counts as large.
const LARGE_PAGES: u64 = 64;
/// RAM of the directory for each key, in bytes, for which DRAM is set aside.
const DIRECTORY_BYTES: f64 = 0.16;
/// The parts of the DRAM that a large index's directory leaves; write buffers take all but one of them.
pub const LEFT_PART: u64 = 8;
/// The maximum pages of a drive: numbers above tell the versions of a page apart.
const PAGES_MAX: u64 = 1 << 40;

/// The index, and its reads.
pub struct RhikIndex {
    index: TapedTable<Rhik>,
    cache: CachedPages,
    /// The maximum pages that an access has read, cached ones included.
    reads_max: usize,
}

impl RhikIndex {
    /// Creates an empty one of a size.
    ///
    /// If the record tables fit into DRAM, write buffers have a quarter of it. If not, pages of them in DRAM
    /// would save few reads, and buffers have the rest that the directory leaves except an eighth, as RHIK's
    /// own advice has it.
    ///
    /// The DRAM does not count the log's blocks and the groups of a rewrite, which do not shrink with the
    /// scale.
    ///
    /// # Errors
    /// Fails as [`Rhik::create`] does.
    pub fn new(size: IndexSize) -> Result<Self> {
        let dram = size.dram_bytes / PAGE_BYTES;
        let directory_bytes = (size.keys as f64 * DIRECTORY_BYTES) as u64;
        let fits = size.keys * TABLE_BYTES <= size.dram_bytes;
        let left = vary::value(&fits::RHIK_LEFT, LEFT_PART);
        let large = dram.saturating_sub(directory_bytes / PAGE_BYTES) / left * (left - 1);
        let config = config(if fits { dram / 4 } else { large });
        let options = OpenOptions::default().inline();
        let buffers = u64::from((config.partitions + config.spare_buffers) * config.buffer_pages);
        let left = size.dram_bytes.saturating_sub(buffers * PAGE_BYTES + directory_bytes);
        let index = TapedTable::new(size.seed, config.log_bytes_best(), |volume| {
            Rhik::create_with(volume, "index", config, options)
        })?;
        Ok(Self { index, cache: CachedPages::new(left / CACHED_PAGE_BYTES), reads_max: 0 })
    }

    /// Returns its directory and tables.
    pub fn stats(&self) -> RhikStats {
        self.index.table.rhik_stats()
    }

    /// Returns the maximum pages that an access has read so far, found or not, without the cache.
    pub fn reads_max(&self) -> usize {
        self.reads_max
    }
}

/// Returns a table whose buffers, a spare one included, have about `buffers` pages.
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

impl KvIndex for RhikIndex {
    fn access(&mut self, key: u64, access: Access) -> Result<Requests> {
        let (is_there, mut reads) = self.index.look_up(key)?;
        self.reads_max = self.reads_max.max(reads.len());
        reads.retain(|step| !self.cache.has(step.page));
        let update = self.index.update(key, access, is_there)?;
        self.cache.note_writes(&update);
        Ok(Requests { reads, update })
    }
}

/// The record pages in DRAM. A page that was written again is another one.
struct CachedPages {
    clock: Clock<u64, ()>,
    /// The number of times that a page was written.
    rewrites: HashMap<u64, u64>,
}

impl CachedPages {
    fn new(pages: u64) -> Self {
        let clock = Clock::new(usize::try_from(pages).unwrap_or(usize::MAX));
        Self { clock, rewrites: HashMap::new() }
    }

    /// Returns whether the page is cached. If not, it is loaded.
    fn has(&mut self, page: u64) -> bool {
        let name = page + PAGES_MAX * self.rewrites.get(&page).copied().unwrap_or(0);
        let is_hit = self.clock.get(name, |()| true).is_some();
        if !is_hit {
            self.clock.put(name);
        }
        is_hit
    }

    fn note_writes(&mut self, steps: &[Step]) {
        for step in steps.iter().filter(|step| step.kind == RequestKind::Write) {
            for page in step.page..step.page + u64::from(step.pages) {
                *self.rewrites.entry(page).or_insert(0) += 1;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_that_was_written_again_is_read_again() {
        let mut cache = CachedPages::new(4);
        assert_eq!((cache.has(7), cache.has(7), cache.has(9)), (false, true, false));
        cache.note_writes(&[Step { kind: RequestKind::Write, page: 6, pages: 2, wave: 0 }]);
        cache.note_writes(&[Step { kind: RequestKind::Read, page: 9, pages: 1, wave: 0 }]);
        assert_eq!((cache.has(7), cache.has(7), cache.has(9)), (false, true, true));
    }
}
