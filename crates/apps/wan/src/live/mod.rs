//! Live streams: connections that stay open long, have two directions, and must not wait for a segment to fill.
//!
//! ```text
//!   bytes -> LiveSender --Segment, Plain, Again, End--> other side's LiveReceiver -> bytes
//!                ^                                               |
//!                +----------------Taken, Missing-----------------+
//! ```
//!
//! 1. Nothing here reads, writes or waits: the mover of [`Message`]s decides when a segment ends, and on which thread
//!    the cache is used. [`LiveSender::needs_cache`] and [`LiveReceiver::needs_cache`] announce a call that needs the
//!    cache.
//! 2. A sender has at most [`LiveOptions::window_bytes`] and [`LIVE_MESSAGES_MAX`] messages in transit. So a receiver
//!    can always read: the incoming messages are limited.
//! 3. Short segments, and all of an incompressible stream, are sent unencoded and are not stored ([`LiveOptions`]).
//! 4. A stream continues unencoded when the cache of either side fails.
//! 5. Messages have no checksum: the connection must be authenticated.

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

/// The most bytes of a live segment, and of a decoded message.
pub const LIVE_SEGMENT_BYTES_MAX: usize = 1 << 20;

/// The decoder's limits of a live segment: chunks of an average of 1 KiB have at least 256 bytes, except for the last.
const SEGMENT_LIMITS: SegmentLimits =
    SegmentLimits { bytes_max: LIVE_SEGMENT_BYTES_MAX, chunks_max: 8192 };

/// The most unacknowledged bytes of a stream in transit.
pub const LIVE_WINDOW_BYTES_MAX: usize = 8 << 20;

/// The most unacknowledged messages of a direction.
pub const LIVE_MESSAGES_MAX: usize = 256;
