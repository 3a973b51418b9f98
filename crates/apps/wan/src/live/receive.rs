//! The receiving end of a live stream.

use std::sync::Arc;

use super::message::{Message, MessageKind};
use super::{LIVE_MESSAGES_MAX, SEGMENT_LIMITS};
use crate::cache::{Cache, View};
use crate::decode::Decoder;
use crate::exchange::{Step, Taking};
use crate::owner::Owner;
use crate::{DecodeStats, Error, Result};

/// The next step of a receiver.
#[derive(PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum Received {
    /// Bytes of the stream, and the answer to send after they were passed on.
    Bytes {
        /// The bytes, at most [`LIVE_SEGMENT_BYTES_MAX`](super::LIVE_SEGMENT_BYTES_MAX).
        bytes: Vec<u8>,
        /// The answer.
        answer: Message,
    },
    /// A request, which must be sent immediately.
    Ask(Message),
    /// The end, and the answer to send after everything was passed on.
    End(Message),
}

/// A receiver of one direction of a connection.
///
/// RAM: waiting messages, whose bytes the caller limits, and names of containers as [`decode`](crate::decode()).
#[derive(Debug)]
pub struct LiveReceiver {
    taking: Taking<Arc<Cache>>,
}

impl LiveReceiver {
    /// Creates the receiver of a new stream.
    #[must_use]
    pub fn new(cache: Arc<Cache>, owner: Owner) -> Self {
        let decoder = Decoder::of_live(View::new(cache, owner), SEGMENT_LIMITS);
        Self { taking: Taking::new(decoder, LIVE_MESSAGES_MAX) }
    }

    /// Takes a message of the other side.
    ///
    /// # Errors
    /// An unexpected message, or one that no sender produces.
    pub fn take(&mut self, message: Message) -> Result<()> {
        self.taking.take(message.into_frame()?)
    }

    /// Returns whether the next step needs the cache.
    #[must_use]
    pub fn needs_cache(&self) -> bool {
        self.taking.needs_cache()
    }

    /// Takes the next step; returns `None` if another message must come before.
    ///
    /// Costs as much as [`decode`](crate::decode()) if it [needs the cache](Self::needs_cache).
    ///
    /// # Errors
    /// A message that no sender produces. A failure of the cache is not an error: the missing content is requested, the
    /// sender is told to send everything unencoded, and [`failure`](Self::failure) returns the cause.
    pub fn step(&mut self) -> Result<Option<Received>> {
        let told = self.failure().is_some();
        let Some(step) = self.taking.step()? else { return Ok(None) };
        let taken = |answer: crate::frame::Frame| {
            let mut answer = Message::from(answer);
            if answer.kind == MessageKind::Taken && told {
                answer.body = vec![1];
            }
            answer
        };
        Ok(Some(match step {
            Step::Pass { bytes, answer } => Received::Bytes { bytes, answer: taken(answer) },
            Step::Ask(answer) => Received::Ask(taken(answer)),
            Step::End(answer) => Received::End(taken(answer)),
        }))
    }

    /// Returns the reason that the stream continues without the cache.
    #[must_use]
    pub fn failure(&self) -> Option<&Error> {
        self.taking.decoder.failure.as_ref()
    }

    /// Returns its figures. Bytes of frames are for the caller to count.
    #[must_use]
    pub fn stats(&self) -> DecodeStats {
        self.taking.stats
    }
}
