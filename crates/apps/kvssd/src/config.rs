//! The configuration of a drive, which is stored with it on flash.

use nandex::large::{TABLE_KEY_BYTES, TABLE_VALUE_BYTES, ValuesConfig};
use nandex::raw::registry::{self, Family};
use nandex::raw::store::values::format::PAYLOAD_BYTES;
use nandex::{OpenOptions, Policy, Prediction, Requirements, WhenFull};

use crate::catalog::PAIR_HEADER_BYTES;
use crate::{Error, Result};

/// The longest key of the specification, in bytes.
pub const KEY_BYTES_MAX: u16 = 255;

/// The longest value of the specification, in bytes: 2 MiB.
pub const VALUE_BYTES_MAX: u32 = 2 << 20;

/// The most iterators that may be open at a time, by the specification.
pub const ITERATORS_MAX: u8 = 16;

/// The least number of the longest records that a segment of the value log holds, so that the ends of segments waste
/// little.
const RECORDS_PER_SEGMENT: u64 = 16;

/// The limits of a drive.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Config {
    /// The bytes that pairs may take: keys, values, and 38 bytes for each pair.
    pub capacity_bytes: u64,
    /// The most pairs, for which the index is sized; more are refused.
    pub pairs_max: u64,
    /// The shortest key, in bytes: 4 by the specification, and at least 1.
    pub key_bytes_min: u16,
    /// The longest key, in bytes: at most 255.
    pub key_bytes_max: u16,
    /// The longest value, in bytes: at most 2 MiB.
    pub value_bytes_max: u32,
    /// The unit of offsets into values, which are multiples of it.
    pub offset_unit: u32,
    /// The most key spaces at a time.
    pub spaces_max: u16,
    /// The most open iterators at a time: up to 16.
    pub iterators_max: u8,
}

impl Config {
    /// Returns the limits of a drive by the specification, for `capacity_bytes` of pairs of 4 KiB and a key of 16
    /// bytes, or for shorter ones down to 1 KiB, to which drives of this kind pad.
    #[must_use]
    pub fn of_capacity(capacity_bytes: u64) -> Self {
        Self {
            capacity_bytes,
            pairs_max: (capacity_bytes / 1024).max(1),
            key_bytes_min: 4,
            key_bytes_max: KEY_BYTES_MAX,
            value_bytes_max: VALUE_BYTES_MAX,
            offset_unit: 512,
            spaces_max: 64,
            iterators_max: ITERATORS_MAX,
        }
    }

    /// The smallest limits that work, so that tests reach every one of them.
    #[must_use]
    pub fn tiny() -> Self {
        Self {
            pairs_max: 400,
            key_bytes_min: 1,
            value_bytes_max: 8192,
            offset_unit: 4,
            spaces_max: 4,
            iterators_max: 3,
            ..Self::of_capacity(256 << 10)
        }
    }

    /// Rejects impossible limits.
    ///
    /// # Errors
    /// [`Error::Config`], naming the field.
    pub fn validate(&self) -> Result<()> {
        in_range("capacity_bytes", self.capacity_bytes, 1..=1 << 50)?;
        in_range("pairs_max", self.pairs_max, 1..=1 << 40)?;
        in_range("key_bytes_min", self.key_bytes_min.into(), 1..=u64::from(KEY_BYTES_MAX))?;
        let least = u64::from(self.key_bytes_min);
        in_range("key_bytes_max", self.key_bytes_max.into(), least..=u64::from(KEY_BYTES_MAX))?;
        in_range("value_bytes_max", self.value_bytes_max.into(), 0..=u64::from(VALUE_BYTES_MAX))?;
        in_range("offset_unit", self.offset_unit.into(), 1..=4096)?;
        in_range("spaces_max", self.spaces_max.into(), 1..=1024)?;
        in_range("iterators_max", self.iterators_max.into(), 1..=u64::from(ITERATORS_MAX))
    }

    /// Returns the value log for these limits. The last record's place of each segment may be wasted, and an eighth is
    /// garbage that is not yet worth cleaning.
    pub(crate) fn values(&self) -> ValuesConfig {
        let record = u64::from(self.value_bytes_max) + u64::from(self.key_bytes_max);
        let record = record + PAIR_HEADER_BYTES;
        let payload = PAYLOAD_BYTES as u64;
        let segment_pages = (RECORDS_PER_SEGMENT * record).div_ceil(payload).max(16);
        let usable = segment_pages * payload * 13 / 16;
        let segments = self.capacity_bytes.div_ceil(usable) + 6;
        let segment_pages = u32::try_from(segment_pages).unwrap_or(u32::MAX);
        ValuesConfig {
            segment_pages,
            segments: u32::try_from(segments).unwrap_or(u32::MAX),
            io_chunk_pages: segment_pages.min(256),
            when_full: WhenFull::Refuse,
        }
    }
}

fn in_range(field: &'static str, found: u64, range: std::ops::RangeInclusive<u64>) -> Result<()> {
    if range.contains(&found) {
        return Ok(());
    }
    let reason = format!("{found} is not between {} and {}", range.start(), range.end());
    Err(Error::Config { field, reason })
}

/// The index of a drive: any kind of table that the registry has, and its RAM.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct IndexChoice<'a> {
    /// The kind, as the registry names it.
    pub kind: &'a str,
    /// The most RAM: the DRAM budget; `None` for as much as it needs.
    pub ram_bytes: Option<u64>,
}

impl IndexChoice<'_> {
    /// Returns the table of this kind for `pairs_max` pairs.
    ///
    /// # Errors
    /// A kind that is not a table, or RAM that it cannot work in.
    pub fn predict(&self, pairs_max: u64) -> Result<Prediction> {
        let Some(Family::Table(row)) = registry::find(self.kind).map(|row| &row.family) else {
            let kinds: Vec<_> = registry::tables().map(|(row, _)| row.kind).collect();
            let reason =
                format!("{:?} is not a table; choose one of {}", self.kind, kinds.join(", "));
            return Err(Error::Config { field: "index", reason });
        };
        let policy = if row.grows { Policy::Grow } else { Policy::Reject };
        let widths = [TABLE_KEY_BYTES, TABLE_VALUE_BYTES].map(|it| it as u32);
        // The list of key spaces and the configuration are pairs too.
        let asked = Requirements::new(pairs_max.saturating_add(16), widths[0], widths[1]);
        Ok((row.advise)(&Requirements { policy, ram_bytes: self.ram_bytes, ..asked })?)
    }
}

/// Returns options of an index of any kind that does all work on the calling threads. With a volume of
/// [`Threads::Inline`](nandex::Threads::Inline), the same calls give the same operations of the device.
#[must_use]
pub fn without_threads() -> OpenOptions {
    OpenOptions::default().inline()
}
