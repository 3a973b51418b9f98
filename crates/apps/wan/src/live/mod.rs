//! Live streams: connections that are open for long, go both ways, and may not wait for a segment to fill.
//!
//! ```text
//!   bytes -> LiveSender --Segment, Plain, Again, End--> other side's LiveReceiver -> bytes
//!                ^                                               |
//!                +----------------Taken, Missing-----------------+
//! ```
//!
//! 1. Nothing here reads, writes or waits: whoever moves [`Message`]s decides when a segment ends, and on which thread
//!    the cache is asked. A call that needs the cache says so before ([`LiveSender::needs_cache`],
//!    [`LiveReceiver::needs_cache`]).
//! 2. A sender has [`LiveOptions::window_bytes`] and [`LIVE_MESSAGES_MAX`] messages on their way at most. So a receiver
//!    may always read: what comes has its limit.
//! 3. Short segments, and all of a stream that does not shrink, go as they are and are not kept ([`LiveOptions`]).
//! 4. A stream goes on as it is when the cache of either side fails.
//! 5. Messages have no checksum: the connection has to be authenticated.

mod message;
mod pass;
mod receive;
mod send;
#[cfg(test)]
mod tests;

pub use message::{LIVE_BODY_BYTES_MAX, Message, MessageKind};
pub use receive::{LiveReceiver, Received};
pub use send::{LiveOptions, LiveSender, LiveStats};

use crate::segment::SegmentLimits;

/// Bytes of a live segment, at most, and of what a message decodes to.
pub const LIVE_SEGMENT_BYTES_MAX: usize = 1 << 20;

/// What a live segment may have, for whoever decodes it: chunks of an average of 1 KiB have 256 bytes at least, but for
/// the last.
const SEGMENT_LIMITS: SegmentLimits =
    SegmentLimits { bytes_max: LIVE_SEGMENT_BYTES_MAX, chunks_max: 8192 };

/// Bytes of a stream that are on their way and were not taken, at most.
pub const LIVE_WINDOW_BYTES_MAX: usize = 8 << 20;

/// Messages of a direction that were not taken, at most.
pub const LIVE_MESSAGES_MAX: usize = 256;
