//! The common part of all modules: configurations, keys and values made from numbers, and the oracle.

use nandex::bufferhash::{Config, Policy};
use nandex::large::{TABLE_KEY_BYTES, TABLE_VALUE_BYTES, ValuesConfig};
use nandex::raw::bufferhash::filter::FilterShape;
use nandex::raw::bufferhash::growing;
use nandex::raw::store::entries::EntryLayout;
use nandex::raw::store::hash::HashKind;
use nandex::{AnyConfig, AnyTable, Durability, LargeTable, OpenOptions, Result, Threads, WhenFull};
use nandex_sim::workload::SplitMix64;
use nandex_trial::table::stretch;

pub use crate::devices::DURABILITIES;

/// One configuration of everything.
#[derive(Clone, Copy, Debug)]
pub struct Setup {
    pub durability: Durability,
    pub threads: Threads,
    pub hash: HashKind,
    pub values: ValuesConfig,
    /// The segments of the table of references.
    pub table_segments: u64,
    /// RAM of a cache of records.
    pub cache_bytes: u64,
}

impl Setup {
    /// Creates a setup of small segments, everything on the calling thread.
    pub fn new(durability: Durability, when_full: WhenFull) -> Self {
        let values = ValuesConfig { when_full, segments: 8, ..ValuesConfig::tiny() };
        Self {
            durability,
            threads: Threads::Inline,
            hash: HashKind::Xxh3,
            values,
            table_segments: 4 * 56,
            cache_bytes: 0,
        }
    }

    /// Returns the setup with space for everything.
    pub fn roomy(self) -> Self {
        let values =
            ValuesConfig { segment_pages: 64, segments: 64, io_chunk_pages: 8, ..self.values };
        Self { values, ..self }
    }

    /// Returns the setup with a cache of records.
    pub fn cached(self, cache_bytes: u64) -> Self {
        Self { cache_bytes, ..self }
    }

    /// Gives a table its cache.
    pub fn with_cache(&self, table: LargeTable<AnyTable>) -> Result<LargeTable<AnyTable>> {
        match self.cache_bytes {
            0 => Ok(table),
            cache_bytes => table.with_cache(cache_bytes),
        }
    }

    fn flush_threads(&self) -> usize {
        usize::from(self.threads == Threads::Background)
    }

    pub fn table(&self) -> Config {
        let layout = EntryLayout::new(TABLE_KEY_BYTES, TABLE_VALUE_BYTES).unwrap();
        let entries = u32::try_from(2 * layout.slots() * 95 / 100).unwrap();
        Config {
            key_bytes: TABLE_KEY_BYTES,
            value_bytes: TABLE_VALUE_BYTES,
            super_tables: 2,
            filter: FilterShape::fuse(entries, 12, 1).unwrap(),
            segments: self.table_segments,
            incarnations_max: 56,
            policy: Policy::Reject,
            ..Config::tiny()
        }
    }

    /// Returns the table of references, which grows if the value log does.
    pub fn index(&self) -> AnyConfig {
        let tiny = growing::Config::tiny();
        let Config { key_bytes, value_bytes, filter, .. } = self.table();
        let first = Config { key_bytes, value_bytes, filter, ..tiny.first };
        match self.values.when_full {
            WhenFull::Grow => growing::Config { first, ..tiny }.into(),
            WhenFull::EvictOldest | WhenFull::Refuse => self.table().into(),
        }
    }

    pub fn options(&self) -> OpenOptions {
        OpenOptions { flush_threads: Some(self.flush_threads()), ..OpenOptions::default() }
    }

    /// Returns the setup with background threads.
    pub fn threaded(self) -> Self {
        Self { threads: Threads::Background, ..self }
    }
}

/// Returns the key of a number: of 0 to some hundred bytes.
pub fn key(number: u64) -> Vec<u8> {
    let bytes = if number == 0 { 0 } else { 8 + (number * 37 % 300) as usize };
    stretch(number, bytes)
}

/// Returns a value of `bytes` bytes, different for each number.
pub fn value(number: u64, bytes: usize) -> Vec<u8> {
    stretch(number ^ 0xfeed_0000_0000, bytes)
}

/// Returns a length: mostly some hundred bytes, now and then some pages.
pub fn value_bytes(rng: &mut SplitMix64) -> usize {
    let limit = [1, 300, 1000, 9000][rng.below(4) as usize];
    rng.below(limit) as usize
}
