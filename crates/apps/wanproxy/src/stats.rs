//! Figures of a half: atomics that connections add to, and a snapshot of them.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use nandex_wan::live::{LiveReceiver, LiveSender};
use nandex_wan::{Cache, CacheStats};
use serde::Serialize;

use crate::Error;
use crate::buffers::{BufferSnapshot, Buffers};

/// Upper bounds of the histogram of latency, in microseconds. One more bucket has the values above.
pub(crate) const LATENCY_BOUNDS_US: [u64; 13] = [
    100, 250, 500, 1_000, 2_500, 5_000, 10_000, 25_000, 50_000, 100_000, 250_000, 500_000,
    1_000_000,
];

/// The number of characters stored of an error.
const ERROR_CHARS_MAX: usize = 300;

/// A number that only grows.
#[derive(Debug, Default)]
pub(crate) struct Counter(AtomicU64);

impl Counter {
    pub(crate) fn add(&self, number: u64) {
        self.0.fetch_add(number, Relaxed);
    }

    pub(crate) fn get(&self) -> u64 {
        self.0.load(Relaxed)
    }
}

/// Figures of a half since its start.
#[derive(Debug, Default)]
pub(crate) struct Stats {
    pub(crate) accepted: Counter,
    pub(crate) full: Counter,
    pub(crate) handshakes_failed: Counter,
    pub(crate) requests_refused: Counter,
    pub(crate) unreachable: Counter,
    pub(crate) bypassed: Counter,
    pub(crate) finished: Counter,
    pub(crate) reset: Counter,
    pub(crate) traffic: Traffic,
    pub(crate) latency: Latency,
    next: AtomicU64,
    open: Mutex<BTreeMap<u64, Arc<Connection>>>,
    last_error: Mutex<Option<String>>,
    cache_failure: Mutex<Option<String>>,
}

/// The bytes of some connections.
#[derive(Debug, Default)]
pub(crate) struct Traffic {
    /// From programs or targets at this side.
    pub(crate) local_in: Counter,
    /// To them.
    pub(crate) local_out: Counter,
    /// From the other half.
    pub(crate) link_in: Counter,
    /// To it.
    pub(crate) link_out: Counter,
    pub(crate) segments: Counter,
    pub(crate) chunks: Counter,
    pub(crate) known_chunks: Counter,
    pub(crate) known_bytes: Counter,
    pub(crate) plain_bytes: Counter,
    pub(crate) again_segments: Counter,
    pub(crate) asked_segments: Counter,
    /// Bytes that bypassed the other half.
    pub(crate) bypassed: Counter,
}

/// The time that segments waited in this half.
#[derive(Debug, Default)]
pub(crate) struct Latency {
    buckets: [Counter; LATENCY_BOUNDS_US.len() + 1],
    sum_us: Counter,
}

impl Latency {
    pub(crate) fn note(&self, time: Duration) {
        let us = u64::try_from(time.as_micros()).unwrap_or(u64::MAX);
        let bucket = LATENCY_BOUNDS_US.partition_point(|bound| *bound < us);
        self.buckets[bucket].add(1);
        self.sum_us.add(us);
    }
}

/// An open connection.
#[derive(Debug)]
pub(crate) struct Connection {
    number: u64,
    begun: Instant,
    peer: String,
    target: String,
    pub(crate) traffic: Traffic,
    latency: Latency,
}

/// Removes a connection from the list of open ones when it is dropped.
#[derive(Debug)]
pub(crate) struct OpenConnection {
    stats: Arc<Stats>,
    pub(crate) connection: Arc<Connection>,
}

impl Drop for OpenConnection {
    fn drop(&mut self) {
        locked(&self.stats.open).remove(&self.connection.number);
    }
}

impl OpenConnection {
    /// Applies a change to both places that count bytes.
    pub(crate) fn each(&self, note: impl Fn(&Traffic)) {
        note(&self.stats.traffic);
        note(&self.connection.traffic);
    }

    /// Notes how long a segment waited in this half.
    pub(crate) fn note_latency(&self, time: Duration) {
        self.stats.latency.note(time);
        self.connection.latency.note(time);
    }
}

impl Stats {
    /// Adds an open connection.
    pub(crate) fn open(self: &Arc<Self>, peer: &str, target: &str) -> OpenConnection {
        let number = self.next.fetch_add(1, Relaxed);
        let connection = Arc::new(Connection {
            number,
            begun: Instant::now(),
            peer: peer.to_owned(),
            target: target.to_owned(),
            traffic: Traffic::default(),
            latency: Latency::default(),
        });
        locked(&self.open).insert(number, Arc::clone(&connection));
        OpenConnection { stats: Arc::clone(self), connection }
    }

    /// Notes why a connection ended or did not begin.
    pub(crate) fn note_error(&self, error: &Error) {
        match error {
            Error::Full { .. } => self.full.add(1),
            Error::Handshake { .. } => self.handshakes_failed.add(1),
            Error::Unreachable { .. } => self.unreachable.add(1),
            Error::Request { .. } | Error::Refused { .. } => self.requests_refused.add(1),
            _ => self.reset.add(1),
        }
        *locked(&self.last_error) = Some(shortened(&error.to_string()));
    }

    /// Notes that the cache failed, and that streams continue without it.
    pub(crate) fn note_cache_failure(&self, error: &nandex_wan::Error) {
        locked(&self.cache_failure).get_or_insert(shortened(&error.to_string()));
    }

    /// Returns all current figures.
    pub(crate) fn snapshot(&self, cache: &Cache, buffers: &Buffers) -> Snapshot {
        let connections: Vec<ConnectionSnapshot> =
            locked(&self.open).values().map(|connection| connection.snapshot()).collect();
        Snapshot {
            accepted: self.accepted.get(),
            full: self.full.get(),
            handshakes_failed: self.handshakes_failed.get(),
            requests_refused: self.requests_refused.get(),
            unreachable: self.unreachable.get(),
            bypassed: self.bypassed.get(),
            finished: self.finished.get(),
            reset: self.reset.get(),
            traffic: self.traffic.snapshot(),
            latency: self.latency.snapshot(),
            buffers: buffers.snapshot(),
            cache: cache.stats(),
            cache_failure: locked(&self.cache_failure).clone(),
            last_error: locked(&self.last_error).clone(),
            connections,
        }
    }
}

impl Traffic {
    /// Adds a sender's work since the last call.
    pub(crate) fn note_sent(&self, sender: &LiveSender, before: &nandex_wan::live::LiveStats) {
        let (now, old) = (sender.stats(), before);
        self.segments.add(now.encode.segments - old.encode.segments);
        self.chunks.add(now.encode.chunks - old.encode.chunks);
        self.known_chunks.add(now.encode.known_chunks - old.encode.known_chunks);
        self.known_bytes.add(now.encode.known_bytes - old.encode.known_bytes);
        self.plain_bytes.add(now.plain_bytes - old.plain_bytes);
        self.again_segments.add(now.encode.again_segments - old.encode.again_segments);
    }

    /// Adds the requests of a receiver.
    pub(crate) fn note_received(&self, receiver: &LiveReceiver, before: u64) {
        self.asked_segments.add(receiver.stats().again_segments - before);
    }

    fn snapshot(&self) -> TrafficSnapshot {
        TrafficSnapshot {
            local_in_bytes: self.local_in.get(),
            local_out_bytes: self.local_out.get(),
            link_in_bytes: self.link_in.get(),
            link_out_bytes: self.link_out.get(),
            segments: self.segments.get(),
            chunks: self.chunks.get(),
            known_chunks: self.known_chunks.get(),
            known_bytes: self.known_bytes.get(),
            plain_bytes: self.plain_bytes.get(),
            again_segments: self.again_segments.get(),
            asked_segments: self.asked_segments.get(),
            bypassed_bytes: self.bypassed.get(),
        }
    }
}

impl Latency {
    fn snapshot(&self) -> LatencySnapshot {
        let buckets: Vec<u64> = self.buckets.iter().map(Counter::get).collect();
        LatencySnapshot { count: buckets.iter().sum(), buckets, sum_us: self.sum_us.get() }
    }
}

impl Connection {
    fn snapshot(&self) -> ConnectionSnapshot {
        ConnectionSnapshot {
            number: self.number,
            peer: self.peer.clone(),
            target: self.target.clone(),
            open_s: self.begun.elapsed().as_secs(),
            traffic: self.traffic.snapshot(),
            latency: self.latency.snapshot(),
        }
    }
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Returns the beginning of an error's text, which may be the other half's: without control characters of terminals.
fn shortened(text: &str) -> String {
    let shown = |it: char| if it.is_control() { char::REPLACEMENT_CHARACTER } else { it };
    text.chars().take(ERROR_CHARS_MAX).map(shown).collect()
}

/// All figures of a half since its start.
#[derive(Clone, PartialEq, Debug, Serialize)]
#[non_exhaustive]
pub struct Snapshot {
    /// Connections accepted.
    pub accepted: u64,
    /// Connections closed immediately, because there were too many.
    pub full: u64,
    /// Failed handshakes: another key, another version, another protocol.
    pub handshakes_failed: u64,
    /// Rejected requests: malformed, not allowed, a target that does not answer.
    pub requests_refused: u64,
    /// The number of times that the other half could not be reached.
    pub unreachable: u64,
    /// Connections that bypassed the unreachable other half, as configured.
    pub bypassed: u64,
    /// Connections transferred completely.
    pub finished: u64,
    /// Connections reset, by either end or by a failure.
    pub reset: u64,
    /// Bytes and segments of all connections.
    pub traffic: TrafficSnapshot,
    /// The time from the first byte of a segment in this half until it was sent, and the engine's time for a received
    /// one.
    pub latency: LatencySnapshot,
    /// The bytes of streams that it holds.
    pub buffers: BufferSnapshot,
    /// The cache.
    pub cache: CacheStats,
    /// The reason that streams continue without the cache.
    pub cache_failure: Option<String>,
    /// The error of the last failed connection.
    pub last_error: Option<String>,
    /// The open connections.
    pub connections: Vec<ConnectionSnapshot>,
}

/// Bytes and segments.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize)]
#[non_exhaustive]
pub struct TrafficSnapshot {
    /// Bytes from programs or targets at this side.
    pub local_in_bytes: u64,
    /// Bytes to them.
    pub local_out_bytes: u64,
    /// Bytes of messages from the other half; records and their tags are a hundredth more.
    pub link_in_bytes: u64,
    /// Bytes of messages to it.
    pub link_out_bytes: u64,
    /// Segments sent.
    pub segments: u64,
    /// Chunks looked up.
    pub chunks: u64,
    /// Chunks replaced by references.
    pub known_chunks: u64,
    /// Their bytes.
    pub known_bytes: u64,
    /// Bytes sent unencoded: of short segments, and of incompressible content.
    pub plain_bytes: u64,
    /// Segments that the other half requested again.
    pub again_segments: u64,
    /// Segments that this half requested again.
    pub asked_segments: u64,
    /// Bytes that bypassed the other half, both ways.
    pub bypassed_bytes: u64,
}

impl LatencySnapshot {
    /// Returns the mean, in microseconds; 0 if there was none.
    #[must_use]
    pub fn mean_us(&self) -> f64 {
        self.sum_us as f64 / self.count.max(1) as f64
    }
}

impl TrafficSnapshot {
    /// Returns the share of the looked-up chunks that were replaced by references, from 0 to 1.
    #[must_use]
    pub fn hit_rate(&self) -> f64 {
        self.known_chunks as f64 / self.chunks.max(1) as f64
    }

    /// Returns the bytes of streams for each byte over the link, both ways.
    #[must_use]
    pub fn ratio(&self) -> f64 {
        let link = self.link_in_bytes + self.link_out_bytes;
        (self.local_in_bytes + self.local_out_bytes) as f64 / link.max(1) as f64
    }
}

/// The time that segments waited in this half.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize)]
#[non_exhaustive]
pub struct LatencySnapshot {
    /// Segments, by upper bounds of .1, .25, .5, 1, 2.5 and so on up to 1000 ms; the last bucket has the values above.
    pub buckets: Vec<u64>,
    /// The number of all.
    pub count: u64,
    /// The sum of their times, in microseconds.
    pub sum_us: u64,
}

/// An open connection.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
#[non_exhaustive]
pub struct ConnectionSnapshot {
    /// Its number, from 0 on.
    pub number: u64,
    /// The beginning of the name of the peer's key, or of its certificate's digest.
    pub peer: String,
    /// The target.
    pub target: String,
    /// Its age, in seconds.
    pub open_s: u64,
    /// Its bytes.
    pub traffic: TrafficSnapshot,
    /// The time that its segments waited in this half.
    pub latency: LatencySnapshot,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_counted_by_their_upper_bounds() {
        let latency = Latency::default();
        for us in [0, 100, 101, 1_000_000, 1_000_001] {
            latency.note(Duration::from_micros(us));
        }
        let snapshot = latency.snapshot();
        assert_eq!((snapshot.count, snapshot.sum_us), (5, 2_000_202));
        assert_eq!((snapshot.buckets[0], snapshot.buckets[1]), (2, 1));
        assert_eq!(snapshot.buckets[12..], [1, 1]);
    }

    #[test]
    fn the_text_of_an_error_controls_no_terminal() {
        let stats = Stats::default();
        stats.note_error(&Error::Reset { reason: "\u{1b}[2J\r\ngone \u{9b}1m é".into() });
        let shown = locked(&stats.last_error).clone().unwrap();
        assert!(shown.ends_with("\u{fffd}[2J\u{fffd}\u{fffd}gone \u{fffd}1m é"), "{shown}");
    }

    #[test]
    fn a_connection_is_listed_while_it_is_open() {
        let stats = Arc::new(Stats::default());
        let open = stats.open("peer", "target");
        open.each(|traffic| traffic.local_in.add(7));
        open.note_latency(Duration::from_micros(5));
        let of_connection = open.connection.snapshot().latency;
        assert_eq!((stats.latency.snapshot().count, of_connection.sum_us), (1, 5));
        assert_eq!(locked(&stats.open).len(), 1);
        assert_eq!(open.connection.snapshot().traffic.local_in_bytes, 7);
        drop(open);
        assert!(locked(&stats.open).is_empty());
        assert_eq!(stats.traffic.local_in.get(), 7);
    }
}
