//! The multi-level hash index on a taped device: the table itself, with its own cache of pages.

use nandex::OpenOptions;
use nandex::large::{TABLE_KEY_BYTES, TABLE_VALUE_BYTES};
use nandex::raw::Configuration as _;
use nandex_baseline::Multilevel;
use nandex_baseline::multilevel::{Config, MultilevelStats};

use super::lab::{Access, CACHED_PAGE_BYTES, IndexSize, KvIndex, PAGE_BYTES, Requests};
use super::taped_table::TapedTable;
use crate::{Result, fits, vary};

/// The pages of the first level of all partitions, at the paper's size. A choice of nandex: it is not
/// published.
pub const FIRST_PAGES: u64 = 64;
/// The part of the DRAM for write buffers, as the table's own advice has it.
pub const BUFFERS_PART: u64 = 8;
/// The approximate pages of a buffer.
const BUFFER_PAGES: u64 = 8;
/// Pages of a group, and those of a small index.
const GROUP_PAGES: (u32, u32) = (64, 16);
/// The pages of all buffers from which on an index counts as large.
const LARGE_PAGES: u64 = 64;
/// RAM of the map of pages for each key, in bytes, for which DRAM is set aside.
const MAP_BYTES: f64 = 0.1;

/// The index.
pub struct MultilevelIndex(TapedTable<Multilevel>);

/// The parameters that determine the pages that a lookup reads.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct LevelShape {
    /// Pages of the first level, over all partitions.
    pub first_pages: f64,
    /// Entries of a page.
    pub page_entries: f64,
    /// The pages that DRAM caches.
    pub cached_pages: f64,
}

impl MultilevelIndex {
    /// Creates an empty one of a size: an eighth of the DRAM is for write buffers, and pages have the rest.
    ///
    /// The DRAM does not count the log's blocks and the groups of a flush, which do not shrink with the
    /// scale.
    ///
    /// # Errors
    /// Fails as [`Multilevel::create`] does.
    pub fn new(size: IndexSize) -> Result<Self> {
        let config = config(size);
        let options = OpenOptions::default().inline();
        let index = TapedTable::new(size.seed, config.log_bytes_best(), |volume| {
            Multilevel::create_with(volume, "index", config, options)
        })?;
        Ok(Self(index))
    }

    /// Returns its levels and pages.
    pub fn stats(&self) -> MultilevelStats {
        self.0.table.group_stats()
    }
}

impl LevelShape {
    /// Returns the shape of an index of a size.
    pub fn of(size: IndexSize) -> Self {
        let config = config(size);
        Self {
            first_pages: f64::from(config.partitions) * f64::from(config.first_pages),
            page_entries: config.record_layout().slots() as f64,
            cached_pages: (config.page_cache_bytes / CACHED_PAGE_BYTES) as f64,
        }
    }
}

impl KvIndex for MultilevelIndex {
    fn access(&mut self, key: u64, access: Access) -> Result<Requests> {
        let (is_there, reads) = self.0.look_up(key)?;
        Ok(Requests { reads, update: self.0.update(key, access, is_there)? })
    }
}

/// Returns the pages of the first level, with their variation.
fn first_pages() -> u64 {
    vary::value(&fits::LEVELS, FIRST_PAGES)
}

/// Returns [`BUFFERS_PART`] with its variation.
fn buffers_part() -> u64 {
    vary::value(&fits::MULTILEVEL_BUFFERS, BUFFERS_PART)
}

fn config(size: IndexSize) -> Config {
    let buffers = (size.dram_bytes / PAGE_BYTES / buffers_part()).max(2);
    let partitions = (1_u64 << (buffers / BUFFER_PAGES).max(1).ilog2()).min(1 << 16);
    let buffer_pages = (buffers / (partitions + 1)).max(1);
    let taken =
        (partitions + 1) * buffer_pages * PAGE_BYTES + (size.keys as f64 * MAP_BYTES) as u64;
    let count = |count: u64| u32::try_from(count).unwrap_or(u32::MAX);
    Config {
        key_bytes: TABLE_KEY_BYTES,
        value_bytes: TABLE_VALUE_BYTES,
        partitions: count(partitions),
        buffer_pages: count(buffer_pages),
        spare_buffers: 1,
        first_pages: count((first_pages() / size.times / partitions).max(1)),
        group_pages: if buffers < LARGE_PAGES { GROUP_PAGES.1 } else { GROUP_PAGES.0 },
        stagger: partitions > 1,
        page_cache_bytes: size.dram_bytes.saturating_sub(taken),
        ..Config::tiny()
    }
}
