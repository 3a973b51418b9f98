//! The sizes of a cache, and of its structures.
//!
//! | structure | key | value | entries |
//! |---|---|---|---|
//! | `wan-content` | | containers, of up to 64 KiB | |
//! | `wan-names` | a chunk's key, or a container's name | its [place](super::Place) | 5/4 of the chunks that fit |
//! | `wan-anchors` | an anchor | the place of its container | one for each that fits, on average |

use nandex::store::values::{REF_BYTES, ValuesConfig, WhenFull};
use nandex::{AnyConfig, AnyTable, Requirements, Table, bufferhash};

use super::place::VALUE_BYTES;
use crate::anchors::DISTANCE_BYTES;
use crate::container::KEY_BYTES;
use crate::segment::{CHUNK_BYTES_DEFAULT, CHUNK_BYTES_MAX, CHUNK_BYTES_MIN};
use crate::{Error, Result};

/// The structures' names.
pub(super) const CONTENT: &str = "wan-content";
pub(super) const NAMES: &str = "wan-names";
pub(super) const ANCHORS: &str = "wan-anchors";

/// Bytes of content of the smallest cache.
pub const CACHE_BYTES_MIN: u64 = 4 << 20;

/// Bytes of content of the largest cache.
const CACHE_BYTES_MAX: u64 = 64 << 40;

/// Entries of the smallest tables.
const ENTRIES_MIN: u64 = 10_000;

/// Bytes of an anchor in its table.
const ANCHOR_BYTES: usize = 8;

/// The least log, and the most.
const LOG_BYTES_MIN: u64 = 8 << 20;
const LOG_BYTES_MAX: u64 = 256 << 20;

/// What a cache is created with.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct CacheConfig {
    /// Bytes of content that it holds, 4 MiB or more; the oldest is overwritten. Default 1 GiB. Tables take about a
    /// tenth more.
    pub content_bytes: u64,
    /// The average chunk that its index is made for, in bytes. Default 4 KiB. Streams may be cut otherwise; with
    /// smaller chunks the index forgets before the content is gone.
    pub chunk_bytes: usize,
    /// RAM for the tables, in bytes; without it, what they need.
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
    /// The length of the log of its volume, in bytes.
    ///
    /// # Errors
    /// Sizes that cannot work.
    pub fn log_bytes(&self) -> Result<u64> {
        Ok(self.tables()?.log_bytes)
    }

    pub(super) fn tables(&self) -> Result<Tables> {
        self.validate()?;
        let chunks = self.content_bytes / self.chunk_bytes as u64;
        let names = self.table(chunks + chunks / 4, (KEY_BYTES, VALUE_BYTES))?;
        let anchors = self.content_bytes / DISTANCE_BYTES as u64;
        let anchors = self.table(anchors, (ANCHOR_BYTES, REF_BYTES))?;
        let wanted = names.log_bytes_best() + anchors.log_bytes_best();
        let log_bytes = wanted.next_multiple_of(1 << 20).clamp(LOG_BYTES_MIN, LOG_BYTES_MAX);
        let content = ValuesConfig::holding(self.content_bytes, WhenFull::Overwrite);
        Ok(Tables { content, names: names.into(), anchors: anchors.into(), log_bytes })
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

    /// A BufferHash that forgets its oldest entries, as the paper's. Half of the RAM is for each.
    fn table(&self, entries: u64, (key, value): (usize, usize)) -> Result<bufferhash::Config> {
        let entries = entries.max(ENTRIES_MIN);
        let asked = Requirements {
            ram_bytes: self.ram_bytes.map(|bytes| bytes / 2),
            ..Requirements::new(entries, key as u32, value as u32)
        };
        Ok(bufferhash::Config::advised(&asked)?)
    }
}

/// Refuses tables of other widths, which another program has made.
pub(super) fn check_widths(names: &AnyTable, anchors: &AnyTable) -> Result<()> {
    let found =
        (names.key_bytes(), names.value_bytes(), anchors.key_bytes(), anchors.value_bytes());
    let expected = (KEY_BYTES, VALUE_BYTES, ANCHOR_BYTES, REF_BYTES);
    if found == expected {
        return Ok(());
    }
    let reason = format!(
        "expected tables of widths {expected:?}, found {found:?}; it was made by another version, make a new one"
    );
    Err(Error::Options { field: "cache", reason })
}
