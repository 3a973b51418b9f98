//! What a value log is created with; kept with it on flash.

use nandex_device::PageId;

use crate::bytes::Reader;
use crate::{Error, Result, Volume, WhenFull};

use super::KIND;
use super::format::PAYLOAD_BYTES;

/// The version of the configuration's bytes.
const VERSION: u8 = 1;

/// Segments that only cleaning may use, so that a full log can still be cleaned.
pub(super) const RESERVE_SEGMENTS: usize = 2;

/// Segments of a value log, at most.
pub(super) const SEGMENTS_MAX: u32 = 1 << 20;

/// Pages of the segments of a small log, and of those that one that grows begins with.
const SMALL_SEGMENT_PAGES: u32 = 64;
const FIRST_SEGMENT_PAGES: u32 = 16;

/// Pages of the I/O chunk of a small log that grows: as long as it pays to write once its segments are longer.
const GROWING_CHUNK_PAGES: u32 = 128;

/// Sizes of a value log, and what it does when it is full.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ValuesConfig {
    /// Pages of 4 KiB in a segment, which is overwritten or cleaned as a whole; up to 2^20. No record crosses
    /// from one segment into another, so this also limits a record. A log that grows makes longer ones.
    pub segment_pages: u32,
    /// Segments, from 5 to 2^20; of one that grows, those that it begins with.
    pub segments: u32,
    /// Pages of the longest single write, at most a segment; a log that grows makes segments that are longer than those
    /// that it begins with. Records wait in RAM until they fill them, or somebody wants them durable.
    pub io_chunk_pages: u32,
    /// What happens when every segment is in use.
    pub when_full: WhenFull,
}

impl ValuesConfig {
    /// Bytes of the encoded configuration.
    pub const BYTES: usize = 14;

    /// The configuration of the value log of that name in a volume.
    ///
    /// # Errors
    /// No value log of that name, damage.
    pub fn of(volume: &Volume, name: &str) -> Result<Self> {
        let bytes = volume.config_of(name, KIND)?;
        Self::decode(&mut Reader::new(&bytes, "configuration of a value log", PageId(0)))
    }

    /// One that holds `bytes` bytes of records, with segments of 32 MiB, or smaller ones if 16 of these would
    /// be too many, and chunks of up to 1 MiB. Counts the space that cleaning and overwriting keep free. One that grows
    /// begins with that, and with at least 320 KiB.
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
        // what is put; one that grows comes to that by itself.
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

    /// Refuses what cannot work.
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

    /// RAM of a log of that length, in bytes: a batch that fills up and one that is written, and an I/O chunk.
    #[must_use]
    pub fn ram_bytes(&self) -> u64 {
        self.ram_bytes_with(self.io_chunk_bytes() as u64)
    }

    /// The same where batches have at most that many bytes.
    #[must_use]
    pub fn ram_bytes_with(&self, batch_bytes: u64) -> u64 {
        // A batch takes up to twice its bytes while it fills.
        5 * batch_bytes.min(self.io_chunk_bytes() as u64)
    }

    /// Pages of all segments that it begins with.
    #[must_use]
    pub fn pages(&self) -> u64 {
        u64::from(self.segments) * u64::from(self.segment_pages)
    }

    /// Bytes of records, their headers included, that the segments that it begins with hold, without those that only
    /// cleaning may use.
    #[must_use]
    pub fn payload_bytes(&self) -> u64 {
        let segments = self.segments.saturating_sub(RESERVE_SEGMENTS as u32);
        u64::from(segments) * u64::from(self.segment_pages) * PAYLOAD_BYTES as u64
    }

    /// Bytes of records, their headers included, that a chunk holds.
    #[must_use]
    pub fn io_chunk_bytes(&self) -> usize {
        self.io_chunk_pages as usize * PAYLOAD_BYTES
    }

    /// The bytes of docs/format.md.
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

    /// Reads a configuration from bytes that may be anything.
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
