//! The sending end of a live stream.

use std::sync::Arc;

use serde::Serialize;

use super::message::{Message, MessageKind};
use super::pass::Pass;
use super::{LIVE_MESSAGES_MAX, LIVE_SEGMENT_BYTES_MAX, LIVE_WINDOW_BYTES_MAX};
use crate::cache::{Cache, StreamLimits, View};
use crate::encode::{EncodeOptions, Encoder};
use crate::exchange::Sending;
use crate::frame::Kind;
use crate::owner::Owner;
use crate::segment::Cuts;
use crate::{EncodeStats, Error, Result};

/// The options of sending a live stream. The other side does not need them.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct LiveOptions {
    /// The cutting and compression of segments. Its `segment_bytes` is the maximum of a segment, up to 1 MiB.
    pub encode: EncodeOptions,
    /// The bytes of the stream that may be in transit, from those of a segment to 8 MiB. Default 4 MiB. A slow and long
    /// link needs its content of a round trip, before compression.
    pub window_bytes: usize,
    /// The number of consecutive bytes that do not shrink, after which four times as many are sent unencoded and not
    /// stored; then a segment is tried again. Default 4 MiB; 0 tries and stores everything.
    pub plain_after_bytes: u64,
}

impl Default for LiveOptions {
    fn default() -> Self {
        let encode = EncodeOptions { segment_bytes: 256 << 10, ..EncodeOptions::default() };
        Self { encode, window_bytes: 4 << 20, plain_after_bytes: 4 << 20 }
    }
}

impl LiveOptions {
    /// Checks the values.
    ///
    /// # Errors
    /// [`Error::Options`] for sizes out of range.
    pub fn validate(&self) -> Result<()> {
        self.cuts().map(drop)
    }

    fn cuts(&self) -> Result<Cuts> {
        let refuse = |field, found: usize, least: usize, most: usize| {
            let reason = format!("{found} bytes; expected {least} to {most}");
            Err(Error::Options { field, reason })
        };
        let segment_bytes = self.encode.segment_bytes;
        if segment_bytes > LIVE_SEGMENT_BYTES_MAX {
            return refuse("segment_bytes", segment_bytes, 1, LIVE_SEGMENT_BYTES_MAX);
        }
        if !(segment_bytes..=LIVE_WINDOW_BYTES_MAX).contains(&self.window_bytes) {
            return refuse("window_bytes", self.window_bytes, segment_bytes, LIVE_WINDOW_BYTES_MAX);
        }
        self.encode.cuts(StreamLimits::default())
    }
}

/// The statistics of a sender.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize)]
#[non_exhaustive]
pub struct LiveStats {
    /// The encoded part, and the whole of the stream.
    pub encode: EncodeStats,
    /// The number of segments sent unencoded.
    pub plain_segments: u64,
    /// Their bytes.
    pub plain_bytes: u64,
}

/// A sender of one direction of a connection.
///
/// RAM: the content in transit, and names of containers as [`encode`](crate::encode()).
#[derive(Debug)]
pub struct LiveSender {
    sending: Sending<Arc<Cache>>,
    options: LiveOptions,
    cuts: Cuts,
    pass: Pass,
    /// Whether the other side no longer stores content.
    is_plain: bool,
    failure: Option<Error>,
    has_ended: bool,
    plain: (u64, u64),
}

impl LiveSender {
    /// Creates the sender of a new stream.
    ///
    /// # Errors
    /// As [`LiveOptions::validate`].
    pub fn new(cache: Arc<Cache>, owner: Owner, options: LiveOptions) -> Result<Self> {
        let cuts = options.cuts()?;
        let encoder = Encoder::new(View::new(cache, owner), &options.encode);
        Ok(Self {
            sending: Sending::new(encoder),
            options,
            cuts,
            pass: Pass::new(options.plain_after_bytes),
            is_plain: false,
            failure: None,
            has_ended: false,
            plain: (0, 0),
        })
    }

    /// Returns the most bytes of the next segment; 0 until more is acknowledged.
    #[must_use]
    pub fn space_bytes(&self) -> usize {
        let (messages, bytes) = self.sending.on_the_way();
        // One place is for the end.
        if self.has_ended || messages + 1 >= LIVE_MESSAGES_MAX {
            return 0;
        }
        let segment_bytes = self.options.encode.segment_bytes;
        let space = self.options.window_bytes.saturating_sub(bytes).min(segment_bytes);
        // A window that is nearly full produces no short segments.
        if space < segment_bytes / 4 { 0 } else { space }
    }

    /// Returns whether a segment of this length would need the cache.
    #[must_use]
    pub fn needs_cache(&self, bytes: usize) -> bool {
        !self.is_plain && self.failure.is_none() && !self.pass.passes(bytes)
    }

    /// Returns the message of the next segment, of 1 to [`space_bytes`](Self::space_bytes) bytes.
    ///
    /// Costs as much as [`encode`](crate::encode()) if it [needs the cache](Self::needs_cache), and a copy otherwise.
    ///
    /// # Errors
    /// A segment that is too long, or too early; a failure of zstd. A failure of the cache is not an error: the segment
    /// is sent unencoded, and [`failure`](Self::failure) returns the cause.
    pub fn send(&mut self, bytes: &[u8]) -> Result<Message> {
        let space = self.space_bytes();
        if bytes.is_empty() || bytes.len() > space {
            let reason = format!("{} bytes; expected 1 to {space}", bytes.len());
            return Err(Error::Options { field: "segment", reason });
        }
        if self.needs_cache(bytes.len()) {
            match self.sending.segment(self.cuts.segment_of(bytes)) {
                Ok(frame) => {
                    self.pass.note_tried(bytes.len(), frame.body.len());
                    return Ok(frame.into());
                }
                Err(error) if error.is_of_cache() => self.failure = Some(error),
                Err(error) => return Err(error),
            }
        }
        self.pass.note_passed(bytes.len());
        self.plain = (self.plain.0 + 1, self.plain.1 + bytes.len() as u64);
        Ok(self.sending.plain(bytes.to_vec()).into())
    }

    /// Returns the message of the end. No segment may follow.
    ///
    /// # Errors
    /// A second end.
    pub fn end(&mut self) -> Result<Message> {
        if std::mem::replace(&mut self.has_ended, true) {
            return Err(Error::Options { field: "end", reason: "the stream has one".into() });
        }
        Ok(self.sending.end().into())
    }

    /// Takes an answer of the other side; returns the message to send in response. Only [`MessageKind::Missing`] needs
    /// the cache.
    ///
    /// # Errors
    /// An unexpected answer; a failure of zstd.
    pub fn answer(&mut self, answer: Message) -> Result<Option<Message>> {
        if answer.kind == MessageKind::Taken && answer.body == [1] {
            self.is_plain = true;
        }
        let frame = answer.into_frame()?;
        match self.sending.act_on(&frame) {
            Err(error) if error.is_of_cache() && frame.kind == Kind::Missing => {
                self.failure.get_or_insert(error);
                Ok(Some(self.sending.plain_again(&frame)?.into()))
            }
            other => Ok(other?.map(Message::from)),
        }
    }

    /// Returns whether all of the stream, including the end, was acknowledged.
    #[must_use]
    pub fn is_done(&self) -> bool {
        self.has_ended && self.sending.on_the_way().0 == 0
    }

    /// Returns the number of unacknowledged messages.
    #[must_use]
    pub fn on_the_way(&self) -> usize {
        self.sending.on_the_way().0
    }

    /// Returns the bytes of the stream in them.
    #[must_use]
    pub fn on_the_way_bytes(&self) -> usize {
        self.sending.on_the_way().1
    }

    /// Returns the reason that the stream continues without the cache.
    #[must_use]
    pub fn failure(&self) -> Option<&Error> {
        self.failure.as_ref()
    }

    /// Returns its figures.
    #[must_use]
    pub fn stats(&self) -> LiveStats {
        let (plain_segments, plain_bytes) = self.plain;
        LiveStats { encode: self.sending.encoder.stats, plain_segments, plain_bytes }
    }
}
