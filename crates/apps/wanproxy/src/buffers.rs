//! Bytes of streams that a half holds for its connections, and the budget of the bytes that it sends.
//!
//! Bytes that a half has sent and the other half has not acknowledged are held at both ends: here to be sent again,
//! there until a program reads them. So one budget bounds both, without additional messages. A connection may have as
//! much in transit as the budget has free: 40 connections whose programs read nothing leave a share for the next one. A
//! connection with nothing in transit may always send a segment, so that none waits for others.

use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

use serde::Serialize;

/// The bytes that all connections of a half hold.
#[derive(Debug)]
pub(crate) struct Buffers {
    budget_bytes: usize,
    /// Sent and not acknowledged.
    sent: AtomicUsize,
    /// All held bytes.
    held: AtomicUsize,
    held_max: AtomicUsize,
}

impl Buffers {
    pub(crate) fn new(budget_bytes: usize) -> Self {
        let (sent, held, held_max) = Default::default();
        Self { budget_bytes, sent, held, held_max }
    }

    /// Returns the free bytes of the budget.
    fn free(&self) -> usize {
        self.budget_bytes.saturating_sub(self.sent.load(Relaxed))
    }

    pub(crate) fn snapshot(&self) -> BufferSnapshot {
        let bytes = |of: &AtomicUsize| of.load(Relaxed) as u64;
        BufferSnapshot {
            budget_bytes: self.budget_bytes as u64,
            sent_bytes: bytes(&self.sent),
            held_bytes: bytes(&self.held),
            held_bytes_max: bytes(&self.held_max),
        }
    }
}

/// The bytes that one connection holds; all are released with the connection.
#[derive(Debug)]
pub(crate) struct Held<'b> {
    buffers: &'b Buffers,
    /// Read from the socket and not sent.
    gathered: AtomicUsize,
    /// Sent and not taken.
    sent: AtomicUsize,
    /// Messages received from the other half, and not yet passed to the socket.
    queued: AtomicUsize,
    /// The growth of the message for the socket by decoding.
    decoded: AtomicUsize,
}

impl<'b> Held<'b> {
    pub(crate) fn new(buffers: &'b Buffers) -> Self {
        let (gathered, sent, queued, decoded) = Default::default();
        Self { buffers, gathered, sent, queued, decoded }
    }

    /// Returns whether this connection, which has `sent` bytes on their way, may send up to `space` more.
    pub(crate) fn may_send(&self, sent: usize, space: usize) -> bool {
        sent == 0 || sent + space <= self.buffers.free()
    }

    pub(crate) fn set_gathered(&self, bytes: usize) {
        self.change(&self.gathered, bytes);
    }

    pub(crate) fn set_sent(&self, bytes: usize) {
        let before = self.change(&self.sent, bytes);
        shift(&self.buffers.sent, before, bytes);
    }

    pub(crate) fn set_queued(&self, bytes: usize) {
        self.change(&self.queued, bytes);
    }

    pub(crate) fn set_decoded(&self, bytes: usize) {
        self.change(&self.decoded, bytes);
    }

    fn change(&self, part: &AtomicUsize, bytes: usize) -> usize {
        let before = part.swap(bytes, Relaxed);
        let held = shift(&self.buffers.held, before, bytes);
        self.buffers.held_max.fetch_max(held, Relaxed);
        before
    }
}

impl Drop for Held<'_> {
    fn drop(&mut self) {
        self.set_gathered(0);
        self.set_sent(0);
        self.set_queued(0);
        self.set_decoded(0);
    }
}

/// Changes a sum by the change of one of its terms; returns the sum.
fn shift(sum: &AtomicUsize, before: usize, now: usize) -> usize {
    if now >= before {
        sum.fetch_add(now - before, Relaxed) + (now - before)
    } else {
        sum.fetch_sub(before - now, Relaxed) - (before - now)
    }
}

/// The bytes of streams that a half holds.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize)]
#[non_exhaustive]
pub struct BufferSnapshot {
    /// The most bytes that all connections together may have sent without acknowledgement by the other half:
    /// [`Limits::buffer_bytes`].
    ///
    /// [`Limits::buffer_bytes`]: crate::Limits::buffer_bytes
    pub budget_bytes: u64,
    /// The bytes that they have sent without acknowledgement.
    pub sent_bytes: u64,
    /// All held bytes: `sent_bytes`, those read from sockets and not sent, and those received and not passed to
    /// sockets.
    pub held_bytes: u64,
    /// The most bytes held at a time.
    pub held_bytes_max: u64,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn connections_share_the_budget_and_each_may_always_send_a_segment() {
        let buffers = Buffers::new(1000);
        let (one, two) = (Held::new(&buffers), Held::new(&buffers));
        assert!(one.may_send(400, 100));
        one.set_sent(500);
        assert!(!one.may_send(500, 100) && two.may_send(400, 100));
        two.set_sent(250);
        assert!(!two.may_send(250, 1) && two.may_send(0, 100_000));
        two.set_gathered(70);
        one.set_queued(7);
        let now = buffers.snapshot();
        assert_eq!((now.sent_bytes, now.held_bytes, now.held_bytes_max), (750, 827, 827));
        drop(one);
        assert!(two.may_send(250, 500));
        drop(two);
        let now = buffers.snapshot();
        assert_eq!((now.sent_bytes, now.held_bytes, now.held_bytes_max), (0, 0, 827));
    }
}
