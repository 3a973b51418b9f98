//! The sizes of a cache, and of its structures.
//!
//! | structure | key | value | entries |
//! |---|---|---|---|
//! | `wan-content` | | containers, of up to 64 KiB | |
//! | `wan-names` | a chunk's key, or a container's name | its [place](super::Place) | 5/4 of the chunks that fit |
//! | `wan-anchors` | an anchor | the place of its container | one for each that fits, on average |

use nandex::raw::Stated;
use nandex::raw::store::bisect::least_up_to;
use nandex::raw::store::values::{REF_BYTES, ValuesConfig};
use nandex::{AnyConfig, AnyTable, Requirements, Table, WhenFull, bufferhash};

use super::limits::{self, Limits};
use super::place::VALUE_BYTES;
use crate::anchors::DISTANCE_BYTES;
use crate::container::KEY_BYTES;
use crate::segment::{CHUNK_BYTES_DEFAULT, CHUNK_BYTES_MAX, CHUNK_BYTES_MIN};
use crate::{Error, Result};

/// The structures' names.
pub(super) const CONTENT: &str = "wan-content";
pub(super) const NAMES: &str = "wan-names";
pub(super) const ANCHORS: &str = "wan-anchors";

/// The content bytes of the smallest cache.
pub const CACHE_BYTES_MIN: u64 = 4 << 20;

/// The content bytes of the largest cache.
const CACHE_BYTES_MAX: u64 = 64 << 40;

/// The entries of the smallest tables.
const ENTRIES_MIN: u64 = 10_000;

/// RAM of the table of names for each of its entries, in bytes: with smaller filters a new chunk costs a tenth of a
/// page read. A small table has the RAM that a hundredth needs.
const NAME_RAM_BYTES: u64 = 2;
const NAMES_RAM_BYTES_MIN: u64 = 16 << 20;

/// The bytes of an anchor in its table.
const ANCHOR_BYTES: usize = 8;

/// The part of the RAM that a write of content is, and the least pages of one: a container's.
const CHUNKS_EACH: u64 = 64;
const CHUNK_PAGES_MIN: u32 = 16;
const PAGE_BYTES: u64 = nandex::raw::device::PAGE_BYTES as u64;

/// The most RAM that is tried, in MiB.
const RAM_MIB_MAX: u64 = 1 << 23;

/// The shortest and the longest log.
const LOG_BYTES_MIN: u64 = 8 << 20;
const LOG_BYTES_MAX: u64 = 256 << 20;

/// The options of a new cache.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct CacheConfig {
    /// The bytes of content that it holds, 4 MiB or more; the oldest is overwritten. Default 1 GiB. Tables and the log
    /// take about two fifths more.
    pub content_bytes: u64,
    /// The average chunk size of its index, in bytes. Default 4 KiB. Streams may use other sizes; with smaller chunks
    /// the index forgets them before their content is overwritten.
    pub chunk_bytes: usize,
    /// RAM of the cache and of one stream that is encoded against it, in bytes: a quarter for each table at most. By
    /// default the RAM that they need, but for a large cache 2 bytes for each chunk in the index of chunks.
    pub ram_bytes: Option<u64>,
}

impl Default for CacheConfig {
    fn default() -> Self {
        Self { content_bytes: 1 << 30, chunk_bytes: CHUNK_BYTES_DEFAULT, ram_bytes: None }
    }
}

/// The configurations of the structures.
#[derive(Debug)]
pub(super) struct Tables {
    pub(super) content: ValuesConfig,
    pub(super) names: AnyConfig,
    pub(super) anchors: AnyConfig,
    log_bytes: u64,
}

impl CacheConfig {
    /// Returns the length that the log of its volume may grow to, in bytes.
    ///
    /// # Errors
    /// Invalid sizes.
    pub fn log_bytes(&self) -> Result<u64> {
        self.log_bytes_stated(&Stated::default())
    }

    /// Returns the same for stated parameters of its index of chunks.
    ///
    /// # Errors
    /// As [`Cache::create_stated`](super::Cache::create_stated).
    pub fn log_bytes_stated(&self, stated: &Stated) -> Result<u64> {
        Ok(self.tables(stated)?.log_bytes)
    }

    /// Configures the structures.
    ///
    /// # Errors
    /// Invalid sizes or parameters; too little RAM, with the least whole MiB.
    pub(super) fn tables(&self, stated: &Stated) -> Result<Tables> {
        self.validate()?;
        let found = self.tables_within(stated);
        match (&found, self.ram_bytes) {
            (Err(error), Some(ram_bytes)) if is_too_little(error) => {
                let reason = match self.least_mib(stated) {
                    Some(least) => {
                        format!("{ram_bytes} bytes; this cache needs {least} MiB or more")
                    }
                    None => format!("{ram_bytes} bytes are too few, and no number suffices"),
                };
                Err(Error::Options { field: limits::RAM, reason })
            }
            _ => found,
        }
    }

    /// Returns the least RAM, in MiB.
    fn least_mib(&self, stated: &Stated) -> Option<u64> {
        let works = |mib: u64| {
            let with = Self { ram_bytes: Some(mib << 20), ..*self };
            with.tables_within(stated).is_ok()
        };
        least_up_to(0, 1, RAM_MIB_MAX, works)
    }

    fn tables_within(&self, stated: &Stated) -> Result<Tables> {
        let chunks = self.content_bytes / self.chunk_bytes as u64;
        let names = chunks + chunks / 4;
        let share = self.ram_bytes.map(|bytes| bytes / 4);
        let of_names = share.unwrap_or_else(|| (NAME_RAM_BYTES * names).max(NAMES_RAM_BYTES_MIN));
        let names = stated_on(table(names, (KEY_BYTES, VALUE_BYTES), Some(of_names))?, stated)?;
        let anchors = self.content_bytes / DISTANCE_BYTES as u64;
        let anchors = table(anchors, (ANCHOR_BYTES, REF_BYTES), share)?;
        let wanted = names.log_bytes_best() + anchors.log_bytes_best();
        let log_bytes = wanted.next_multiple_of(1 << 20).clamp(LOG_BYTES_MIN, LOG_BYTES_MAX);
        let content = self.content();
        let (names, anchors) = (names.into(), anchors.into());
        if let Some(ram_bytes) = self.ram_bytes {
            Limits::within(ram_bytes, (&content, [&names, &anchors]))?;
        }
        Ok(Tables { content, names, anchors, log_bytes })
    }

    /// Configures the ring of content. Its writes are shorter if there is little RAM.
    fn content(&self) -> ValuesConfig {
        let usual = ValuesConfig::holding(self.content_bytes, WhenFull::EvictOldest);
        let share = self.ram_bytes.map_or(u64::MAX, |bytes| bytes / CHUNKS_EACH / PAGE_BYTES);
        let pages = u32::try_from(share).unwrap_or(u32::MAX).max(CHUNK_PAGES_MIN);
        ValuesConfig { io_chunk_pages: usual.io_chunk_pages.min(pages), ..usual }
    }

    fn validate(&self) -> Result<()> {
        let refuse = |field, reason: String| Err(Error::Options { field, reason });
        let range = CACHE_BYTES_MIN..=CACHE_BYTES_MAX;
        if !range.contains(&self.content_bytes) {
            let (least, most) = (range.start(), range.end());
            let reason = format!("{} bytes; expected {least} to {most}", self.content_bytes);
            return refuse("content_bytes", reason);
        }
        if !(CHUNK_BYTES_MIN..=CHUNK_BYTES_MAX).contains(&self.chunk_bytes) {
            let found = self.chunk_bytes;
            let reason = format!("{found} bytes; expected {CHUNK_BYTES_MIN} to {CHUNK_BYTES_MAX}");
            return refuse("chunk_bytes", reason);
        }
        Ok(())
    }
}

/// Returns whether an error is about too little RAM.
fn is_too_little(error: &Error) -> bool {
    matches!(error, Error::Index(nandex::Error::TooLittleRam { .. }))
        || matches!(error, Error::Options { field: limits::RAM, .. })
}

/// Configures a BufferHash that forgets its oldest entries, as in the paper. It takes no more RAM than stated.
fn table(
    entries: u64,
    (key, value): (usize, usize),
    ram_bytes: Option<u64>,
) -> Result<bufferhash::Config> {
    let asked = Requirements {
        ram_bytes,
        ..Requirements::new(entries.max(ENTRIES_MIN), key as u32, value as u32)
    };
    Ok(bufferhash::Config::advised(&asked)?)
}

/// Configures the index of chunks with the stated parameters.
///
/// # Errors
/// Parameters that the user cannot set; invalid parameters.
fn stated_on(made: bufferhash::Config, stated: &Stated) -> Result<bufferhash::Config> {
    let with = stated.on_one(made.clone())?;
    let fixed = |it: &bufferhash::Config| (it.policy, it.key_bytes, it.value_bytes);
    if fixed(&with) == fixed(&made) {
        return Ok(with);
    }
    let reason = "policy and the widths of keys and values follow from what a cache is".to_owned();
    Err(Error::Options { field: "parameter", reason })
}

/// Fails if the tables have other widths, created by another program.
pub(super) fn check_widths(names: &AnyTable, anchors: &AnyTable) -> Result<()> {
    let found =
        (names.key_bytes(), names.value_bytes(), anchors.key_bytes(), anchors.value_bytes());
    let expected = (KEY_BYTES, VALUE_BYTES, ANCHOR_BYTES, REF_BYTES);
    if found == expected {
        return Ok(());
    }
    let reason = format!(
        "expected tables of widths {expected:?}, found {found:?}; it was created by another version, create a new one"
    );
    Err(Error::Options { field: "cache", reason })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_least_ram_that_an_error_names_is_the_least_that_works() {
        for content_bytes in [4 << 20, 256 << 20, 1 << 30, 20 << 30] {
            let with = |ram_bytes| {
                let config = CacheConfig {
                    content_bytes,
                    ram_bytes: Some(ram_bytes),
                    ..CacheConfig::default()
                };
                config.tables(&Stated::default()).map(drop)
            };
            let error = with(1000).unwrap_err().to_string();
            let least = error.split("needs ").nth(1).unwrap().split(' ').next().unwrap();
            let least: u64 = least.parse().unwrap();
            with(least << 20).unwrap();
            assert_eq!(
                with((least - 1) << 20)
                    .unwrap_err()
                    .to_string()
                    .replace(&((least - 1) << 20).to_string(), "1000"),
                error
            );
        }
    }

    #[test]
    fn the_chunks_of_a_large_cache_take_two_bytes_of_ram_each_in_the_index() {
        for gibibytes in [32, 128, 1024] {
            let config = CacheConfig { content_bytes: gibibytes << 30, ..CacheConfig::default() };
            let entries = 5 * config.content_bytes / config.chunk_bytes as u64 / 4;
            let names = config.tables(&Stated::default()).unwrap().names;
            assert!(names.describe().entries_capacity >= entries, "{names:?}");
            let names = names.of::<bufferhash::Config>().unwrap();
            let buffer_bytes =
                u64::from(names.buffer_pages) * nandex::raw::device::PAGE_BYTES as u64;
            let of_super_table = names.filter.ram_bytes() as u64 + buffer_bytes;
            let ram_bytes = u64::from(names.super_tables) * of_super_table;
            assert!(ram_bytes <= NAME_RAM_BYTES * entries, "{gibibytes} GiB: {names:?}");
        }
    }
}
