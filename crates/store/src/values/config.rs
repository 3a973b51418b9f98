//! The configuration of a value log, which is stored with it on flash.

use nandex_device::PageId;

use crate::bytes::Reader;
use crate::{Error, Result, Volume, WhenFull};

use super::KIND;
use super::format::PAYLOAD_BYTES;

/// The version of the configuration's bytes.
const VERSION: u8 = 1;

/// The number of segments that only cleaning may use, so that a full log can still be cleaned.
pub(super) const RESERVE_SEGMENTS: usize = 2;

/// The most segments of a value log.
pub(super) const SEGMENTS_MAX: u32 = 1 << 20;

/// The number of pages of the segments of a small log, and of the first segments of a log that grows.
const SMALL_SEGMENT_PAGES: u32 = 64;
const FIRST_SEGMENT_PAGES: u32 = 16;

/// The number of pages of the I/O chunk of a small log that grows: as long as writes profit from once its segments are
/// longer.
const GROWING_CHUNK_PAGES: u32 = 128;

/// The sizes of a value log, and its behaviour when it is full.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ValuesConfig {
    /// The number of pages of 4 KiB in a segment, which is overwritten or cleaned as a whole; up to 2^20. No record
    /// crosses from one segment into another, so this also limits a record. A log that grows makes longer ones.
    pub segment_pages: u32,
    /// The number of segments, from 5 to 2^20; of a log that grows, the number that it begins with.
    pub segments: u32,
    /// The number of pages of the longest single write, at most a segment. A log that grows makes segments that are
    /// longer than those that it begins with. Records wait in RAM until they fill these pages, or a caller needs them
    /// to be durable.
    pub io_chunk_pages: u32,
    /// The behaviour when every segment is in use.
    pub when_full: WhenFull,
}

impl ValuesConfig {
    /// Bytes of the encoded configuration.
    pub const BYTES: usize = 14;

    /// Returns the configuration of the value log of this name in a volume.
    ///
    /// # Errors
    /// No value log of this name, damage.
    pub fn of(volume: &Volume, name: &str) -> Result<Self> {
        let bytes = volume.config_of(name, KIND)?;
        Self::decode(&mut Reader::new(&bytes, "configuration of a value log", PageId(0)))
    }

    /// Returns a configuration that holds `bytes` bytes of records, with segments of 32 MiB, or smaller ones if 16 of
    /// these would be too many, and chunks of up to 1 MiB. Counts the space that cleaning and overwriting keep free. A
    /// log that grows begins with that, and with at least 320 KiB.
    #[must_use]
    pub fn holding(bytes: u64, when_full: WhenFull) -> Self {
        let least = match when_full {
            WhenFull::Grow => FIRST_SEGMENT_PAGES,
            WhenFull::EvictOldest | WhenFull::Refuse => SMALL_SEGMENT_PAGES,
        };
        let mut segment_pages = 8192u32;
        while segment_pages > least && bytes < 16 * u64::from(segment_pages) * PAYLOAD_BYTES as u64
        {
            segment_pages /= 2;
        }
        let used = bytes.div_ceil(u64::from(segment_pages) * PAYLOAD_BYTES as u64);
        // More for garbage that is not yet worth cleaning: a third, so that puts and copies together write about twice
        // the bytes that are put. A log that grows reaches that without it.
        let more = if when_full == WhenFull::Refuse { used / 3 } else { used / 8 };
        let segments = u32::try_from(used + more + 4).unwrap_or(u32::MAX).max(5);
        let io_chunk_pages = match when_full {
            // Half a segment, so that small logs that grow take little RAM.
            WhenFull::Grow => (segment_pages / 2).clamp(GROWING_CHUNK_PAGES, 256),
            WhenFull::EvictOldest | WhenFull::Refuse => segment_pages.min(256),
        };
        Self { segment_pages, segments, io_chunk_pages, when_full }
    }

    /// The smallest limits that work, so that tests reach every one of them.
    #[must_use]
    pub fn tiny() -> Self {
        Self { segment_pages: 6, segments: 6, io_chunk_pages: 2, when_full: WhenFull::EvictOldest }
    }

    /// Rejects impossible sizes.
    ///
    /// # Errors
    /// [`Error::Config`].
    pub fn validate(&self) -> Result<()> {
        let in_range = |field, found: u32, (least, most): (u32, u32)| {
            if (least..=most).contains(&found) {
                return Ok(());
            }
            Err(Error::config(field, format!("{found} is not between {least} and {most}")))
        };
        in_range("segment_pages", self.segment_pages, (1, 1 << 20))?;
        in_range("segments", self.segments, (5, SEGMENTS_MAX))?;
        let chunk_max = match self.when_full {
            WhenFull::Grow => 4096,
            WhenFull::EvictOldest | WhenFull::Refuse => self.segment_pages.min(4096),
        };
        in_range("io_chunk_pages", self.io_chunk_pages, (1, chunk_max))
    }

    /// The RAM of a log of this length, in bytes: a batch that is filled and one that is written, and an I/O chunk.
    #[must_use]
    pub fn ram_bytes(&self) -> u64 {
        self.ram_bytes_with(self.io_chunk_bytes() as u64)
    }

    /// The same RAM where batches have at most `batch_bytes` bytes.
    #[must_use]
    pub fn ram_bytes_with(&self, batch_bytes: u64) -> u64 {
        // A batch takes up to twice its bytes while it fills.
        5 * batch_bytes.min(self.io_chunk_bytes() as u64)
    }

    /// The number of pages of all segments that the log begins with.
    #[must_use]
    pub fn pages(&self) -> u64 {
        u64::from(self.segments) * u64::from(self.segment_pages)
    }

    /// The number of bytes of records, including their headers, that the segments that it begins with hold, without
    /// those that only cleaning may use.
    #[must_use]
    pub fn payload_bytes(&self) -> u64 {
        let segments = self.segments.saturating_sub(RESERVE_SEGMENTS as u32);
        u64::from(segments) * u64::from(self.segment_pages) * PAYLOAD_BYTES as u64
    }

    /// The number of bytes of records, including their headers, that a chunk holds.
    #[must_use]
    pub fn io_chunk_bytes(&self) -> usize {
        self.io_chunk_pages as usize * PAYLOAD_BYTES
    }

    /// Encodes the configuration as in docs/reference/format.md.
    #[must_use]
    pub fn encode(&self) -> Vec<u8> {
        let when_full = match self.when_full {
            WhenFull::EvictOldest => 0,
            WhenFull::Refuse => 1,
            WhenFull::Grow => 2,
        };
        let mut out = vec![VERSION, when_full];
        for number in [self.segment_pages, self.segments, self.io_chunk_pages] {
            out.extend_from_slice(&number.to_le_bytes());
        }
        out
    }

    /// Decodes a configuration from bytes that may be anything.
    ///
    /// # Errors
    /// [`Error::Corrupt`], or [`Error::Config`] for impossible sizes.
    pub fn decode(reader: &mut Reader<'_>) -> Result<Self> {
        let version = reader.u8()?;
        if version != VERSION {
            return Err(reader.refuse(format!("version {VERSION}"), format!("version {version}")));
        }
        let when_full = match reader.u8()? {
            0 => WhenFull::EvictOldest,
            1 => WhenFull::Refuse,
            2 => WhenFull::Grow,
            other => return Err(reader.refuse("0 to 2 for what happens when it is full", other)),
        };
        let (segment_pages, segments) = (reader.u32()?, reader.u32()?);
        let config = Self { segment_pages, segments, io_chunk_pages: reader.u32()?, when_full };
        config.validate()?;
        Ok(config)
    }
}
