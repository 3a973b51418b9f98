//! The choice of the read to start next, so that all channels of a device work at once (ANCS'14, section 5.2).
//!
//! Reads of one channel wait for each other and reads of different channels do not. RAM answers come first,
//! and the remaining reads are not started in the order of the requests:
//!
//! ```text
//!   page, write -> channels  -> channel -> push -> a line for each channel -> next -> the device's queue
//!                                                           ^                              |
//!                                                           +------------- done -----------+
//! ```
//!
//! [`Channels`] estimates which channel holds a page. A [`Schedule`] keeps the device's queue full with the
//! reads whose channels have the least to do, batch after batch. The tests have the paper's own algorithm, in
//! passes over a batch, and measure a schedule against it.
//!
//! Where a bus serves one read at a time, spreading reads over its channels gains nothing, and reads of one channel
//! in a row overlap there ([`Geometry::serial_buses`](nandex_device::Geometry)). A schedule then spreads reads over
//! the buses alone, and each bus starts runs of one channel.
//!
//! If an estimate is wrong, reads take longer, and nothing else happens. On a device of unknown geometry there is one
//! channel, and a schedule is a queue: first in, first out.

mod channels;
mod loads;
#[cfg(test)]
mod passes;
#[cfg(test)]
mod tests;

use std::collections::VecDeque;

pub use channels::{Channels, SequentialWrite};

use self::loads::{IN_FLIGHT_MAX, Loads};

/// The most requests of a channel that a bus starts one after another, if it serves one read at a time. On the drive of
/// the tests, eight give 94 % of the reads per second of endless runs, and four 89 %. A run delays all others of its
/// bus.
const RUN_MAX: u32 = 8;

/// Requests that wait for their channel, and the number of requests in flight of each channel.
///
/// [`next`](Self::next) returns the request to start now. Of the channels with waiting requests, it picks the bus with
/// the fewest in flight and on it the channel with the fewest in flight; of several such channels it picks the request
/// that arrived first. Requests of one channel keep their order.
///
/// If buses serve one read at a time, it picks on the bus with the fewest in flight a request of the channel that the
/// bus served last, up to a run of eight; after that, and if no such request waits, the one that arrived first on that
/// bus. Of several such buses it picks the one whose first request arrived first.
///
/// No request starves: once its channel and its bus are idle, a request is started before all that are younger. On a
/// device that ends reads in the order in which they were started, a request that has b older ones waiting on its bus
/// (on its channel, if no buses are shared) and o elsewhere is started after at most 2 x depth x (b + 1) + o others,
/// however many arrive later. Runs make that eight times as many, and up to seven younger requests come first on an
/// idle bus.
///
/// [`push`](Self::push) and [`done`](Self::done) take one comparison, and [`next`](Self::next) one for each
/// bus and each channel of one, or for twice the square root of the channels if no buses are shared: a dozen
/// for 32 channels. With one channel there is nothing to compare. RAM: the requests, 8 bytes for each, and
/// about 64 bytes for each channel, up to twice that if those of a bus are no power of two.
///
/// ```
/// use nandex_store::schedule::Schedule;
///
/// let mut schedule = Schedule::new(2, 3);
/// for (channel, request) in [(0, 'a'), (0, 'b'), (0, 'c'), (1, 'd')] {
///     schedule.push(channel, (channel, request));
/// }
/// assert_eq!(schedule.next(), Some((0, 'a')));
/// assert_eq!(schedule.next(), Some((1, 'd'))); // channel 0 has one in flight, channel 1 none
/// assert_eq!(schedule.next(), Some((0, 'b')));
/// assert_eq!(schedule.next(), None); // three are in flight
/// schedule.done(1);
/// assert_eq!(schedule.next(), Some((0, 'c')));
/// ```
#[derive(Clone, Debug)]
pub struct Schedule<T> {
    /// The waiting requests, by the slot of their channel.
    lines: Vec<VecDeque<(u64, T)>>,
    loads: Loads,
    depth: usize,
    in_flight: usize,
    waiting: usize,
    /// The number of requests pushed so far: the next one's number in the order of arrival.
    arrivals: u64,
}

impl<T> Schedule<T> {
    /// Creates a schedule for `channels` equal channels, and at most `depth` requests in flight (at most 2^24, even if
    /// more are asked for). If channels share buses, use [`Channels::schedule`].
    ///
    /// # Panics
    /// If there is no channel, or more than [`CHANNELS_MAX`](nandex_device::CHANNELS_MAX).
    #[must_use]
    pub fn new(channels: u32, depth: usize) -> Self {
        Self::with_loads(Loads::new(channels, 1), depth)
    }

    fn with_loads(loads: Loads, depth: usize) -> Self {
        let lines = std::iter::repeat_with(VecDeque::new).take(loads.slots()).collect();
        Self {
            lines,
            loads,
            depth: depth.min(IN_FLIGHT_MAX),
            in_flight: 0,
            waiting: 0,
            arrivals: 0,
        }
    }

    /// Appends a request to its channel's line.
    ///
    /// # Panics
    /// If there is no such channel.
    pub fn push(&mut self, channel: u32, request: T) {
        let slot = self.loads.slot(channel);
        let line = &mut self.lines[slot];
        line.push_back((self.arrivals, request));
        if line.len() == 1 {
            self.loads.came(slot, self.arrivals);
        }
        self.arrivals += 1;
        self.waiting += 1;
    }

    /// Removes and returns the request to start now; `None` at full depth or if nothing waits.
    #[expect(
        clippy::should_implement_trait,
        reason = "none is not the end: there is more after `done`"
    )]
    pub fn next(&mut self) -> Option<T> {
        if self.is_full() || self.waiting == 0 {
            return None;
        }
        let slot = self.loads.first();
        let line = &mut self.lines[slot];
        let (_, request) = line.pop_front().expect("the first slot has a request waiting");
        let head = line.front().map(|(arrival, _)| *arrival);
        self.loads.started(slot, head);
        self.in_flight += 1;
        self.waiting -= 1;
        Some(request)
    }

    /// Notes that a request of this channel, returned by [`next`](Self::next), has ended.
    ///
    /// # Panics
    /// If no request of this channel is in flight.
    pub fn done(&mut self, channel: u32) {
        let slot = self.loads.slot(channel);
        self.loads.ended(slot);
        self.in_flight -= 1;
    }

    /// The number of requests returned by [`next`](Self::next) that have not ended.
    #[must_use]
    pub const fn in_flight(&self) -> usize {
        self.in_flight
    }

    /// The number of requests pushed that [`next`](Self::next) has not returned.
    #[must_use]
    pub const fn waiting(&self) -> usize {
        self.waiting
    }

    /// Returns whether the limit of requests in flight is reached.
    #[must_use]
    pub const fn is_full(&self) -> bool {
        self.in_flight >= self.depth
    }

    /// The most requests in flight.
    #[must_use]
    pub const fn depth(&self) -> usize {
        self.depth
    }
}
