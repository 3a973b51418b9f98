//! The RAM of a cache besides its tables: containers in RAM, places that wait to be published, and the stream that is
//! encoded.
//!
//! ```text
//!   stated = tables, and the log's blocks | value log | chunk buffer, zstd | a quarter: containers in RAM
//!                                                                          | a twelfth: names of containers
//!                                                                          | a sixth: recent places
//!                                                                          | half: segments of a stream, prefixes
//! ```

use nandex::AnyConfig;
use nandex::raw::store::values::ValuesConfig;

use crate::dictionary::KEPT_MAX;
use crate::segment::{SEGMENT_BYTES_DEFAULT, SEGMENT_BYTES_MAX};
use crate::{Error, Result};

/// The name of the RAM in errors.
pub(super) const RAM: &str = "RAM";

/// The most bytes of RAM for containers.
const LOADED_BYTES_MAX: usize = 32 << 20;

/// The most and the least bytes of content that wait to be published.
const RECENT_BYTES_MAX: usize = 8 << 20;
const RECENT_BYTES_MIN: usize = 1 << 20;

/// The bytes of content for each byte of RAM of its recent places, with chunks of 4 KiB.
const RECENT_EACH: usize = 4;

/// RAM of a stream that does not depend on its segments: the buffer that chunks are cut in, and zstd's tables.
const FIXED_BYTES: u64 = 5 << 19;

/// The least RAM besides tables and value log.
const LEAST_BYTES: u64 = 4 << 20;

/// The number of segments that the RAM of a stream is for. One is collected, four are in transit, and one each is the
/// content of new containers, what zstd reads, what it writes, and the frame; a prefix and its containers are two each.
const SEGMENTS_EACH: usize = 16;

/// RAM of the name of a container that a stream has referred to, and the least number of them.
const NAME_BYTES: usize = 100;
const NAMES_MIN: usize = 1 << 12;

/// The least bytes of a segment.
const SEGMENT_BYTES_MIN: usize = 64 << 10;

/// The most bytes of a prefix.
pub(crate) const PREFIX_BYTES_MAX: usize = 4 << 20;

/// The most segments in transit.
pub(crate) const WINDOW_SEGMENTS: usize = 16;
const WINDOW_SEGMENTS_LIMITED: usize = 4;

/// The least and the most logarithm of zstd's tables that is worth a limit.
const TABLES_LOG_MIN: u32 = 16;
const TABLES_LOG_MAX: u32 = 24;

/// The limits of a cache, and of streams that are encoded against it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Limits {
    /// Bytes of containers in RAM.
    pub(super) loaded_bytes: usize,
    /// Bytes of content that wait to be published.
    pub(super) recent_bytes: usize,
    /// Those of streams.
    pub(crate) stream: StreamLimits,
}

/// The limits of a stream that is encoded.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct StreamLimits {
    /// Bytes of a segment.
    pub(crate) segment_bytes: usize,
    /// Bytes of a prefix.
    pub(crate) prefix_bytes: usize,
    /// Segments in transit.
    pub(crate) window_segments: usize,
    /// Names of containers that it has referred to.
    pub(crate) names: usize,
    /// The logarithm of the places of each of zstd's tables; `None` leaves them to the level.
    pub(crate) tables_log: Option<u32>,
}

impl Default for Limits {
    /// Returns the limits of a cache without stated RAM.
    fn default() -> Self {
        let stream = StreamLimits::default();
        Self { loaded_bytes: LOADED_BYTES_MAX, recent_bytes: RECENT_BYTES_MAX, stream }
    }
}

impl Default for StreamLimits {
    /// Returns those of the format.
    fn default() -> Self {
        Self {
            segment_bytes: SEGMENT_BYTES_MAX,
            prefix_bytes: PREFIX_BYTES_MAX,
            window_segments: WINDOW_SEGMENTS,
            names: KEPT_MAX,
            tables_log: None,
        }
    }
}

impl Limits {
    /// Returns the limits within `ram_bytes` for a cache of these structures.
    ///
    /// # Errors
    /// Too little RAM, with the least.
    pub(super) fn within(
        ram_bytes: u64,
        (content, tables): (&ValuesConfig, [&AnyConfig; 2]),
    ) -> Result<Self> {
        let structures_bytes = content.ram_bytes() + tables_bytes(tables);
        let least = structures_bytes + LEAST_BYTES;
        if ram_bytes < least {
            let reason = format!(
                "{ram_bytes} bytes; the tables of this cache take {structures_bytes}, and with a stream it needs {least} \
                 or more"
            );
            return Err(Error::Options { field: RAM, reason });
        }
        Ok(Self::of(ram_bytes - structures_bytes))
    }

    /// Divides the RAM besides the structures.
    fn of(bytes: u64) -> Self {
        let variable = usize::try_from(bytes - FIXED_BYTES).unwrap_or(usize::MAX);
        let segment_bytes = variable / 2 / SEGMENTS_EACH;
        let segment_bytes = segment_bytes.clamp(SEGMENT_BYTES_MIN, SEGMENT_BYTES_DEFAULT);
        // Two tables of 4 bytes a place.
        let tables_log = (variable / 4 / 8).max(1).ilog2().max(TABLES_LOG_MIN);
        let stream = StreamLimits {
            segment_bytes,
            prefix_bytes: (2 * segment_bytes).min(PREFIX_BYTES_MAX),
            window_segments: WINDOW_SEGMENTS_LIMITED,
            names: (variable / 12 / NAME_BYTES).clamp(NAMES_MIN, KEPT_MAX),
            tables_log: (tables_log < TABLES_LOG_MAX).then_some(tables_log),
        };
        Self {
            loaded_bytes: (variable / 4).min(LOADED_BYTES_MAX),
            recent_bytes: (variable / 6)
                .saturating_mul(RECENT_EACH)
                .clamp(RECENT_BYTES_MIN, RECENT_BYTES_MAX),
            stream,
        }
    }
}

/// Returns the RAM of tables that share the log's blocks and the memory of flushes.
fn tables_bytes(tables: [&AnyConfig; 2]) -> u64 {
    let shared = tables.map(AnyConfig::shared_ram_bytes);
    let whole = tables.map(|it| it.ram_bytes_with(0).unwrap_or(0));
    let own: u64 = whole.iter().zip(shared).map(|(whole, shared)| whole - shared).sum();
    own + shared.into_iter().max().unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_parts_of_ram_are_no_more_than_the_whole() {
        for mib in [4, 5, 8, 20, 60, 200, 1000] {
            let bytes = mib << 20;
            let Limits { loaded_bytes, recent_bytes, stream } = Limits::of(bytes);
            let segments = SEGMENTS_EACH * stream.segment_bytes;
            let names = NAME_BYTES * stream.names;
            let parts = loaded_bytes + names + recent_bytes / RECENT_EACH + segments;
            // The least segment takes some more than its part.
            assert!(parts as u64 + FIXED_BYTES <= bytes + (3 << 18), "{mib} MiB: {stream:?}");
        }
        assert_eq!(Limits::of(60 << 20).stream.segment_bytes, SEGMENT_BYTES_DEFAULT);
    }
}
