//! Limits of the resources of a peer or a program, before and after it is authenticated.

use std::ops::RangeInclusive;
use std::time::Duration;

use crate::{Error, Result};

/// The most threads of the engine.
const ENGINE_THREADS_MAX: usize = 256;

/// The most connections: each takes two open files.
const CONNECTIONS_MAX: usize = 100_000;

/// The longest time to collect a segment.
const FLUSH_MAX: Duration = Duration::from_secs(60);

/// The least and the most bytes of the budget of buffers.
const BUFFER_BYTES: RangeInclusive<usize> = 1 << 20..=1 << 40;

/// Limits of one half.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Limits {
    /// Concurrent connections. Default 1,024. More are closed immediately.
    pub connections_max: usize,
    /// Concurrent connections with an unfinished handshake or request. Default 256. A server half closes more
    /// immediately; a client half makes its programs wait, and does a quarter as many concurrent handshakes with the
    /// server half.
    pub pending_max: usize,
    /// Bytes that all connections together may have sent without acknowledgement by the other half, from 1 MiB. Default
    /// 16 MiB. The other half holds the bytes that it has not acknowledged. A connection with nothing in transit may
    /// send a segment beyond them.
    pub buffer_bytes: usize,
    /// The longest time of a handshake, and of a program's request. Default 5 s.
    pub handshake_timeout: Duration,
    /// The longest time to connect to a target. Default 10 s.
    pub connect_timeout: Duration,
    /// The longest time without traffic in either direction. Default 1 h.
    pub idle_timeout: Duration,
    /// The longest time in which a program may read none of its waiting bytes. Default 10 min.
    pub stall_timeout: Duration,
    /// The longest time in which the other half may accept nothing and send nothing. Default 60 s.
    pub link_timeout: Duration,
    /// The interval of pings to the other half. Default 15 s.
    pub ping_every: Duration,
    /// A segment ends when its socket was silent for this long; immediately if nothing is in transit. Default 2 ms.
    pub flush_idle: Duration,
    /// A segment ends this long after its first byte. Default 20 ms.
    pub flush_after: Duration,
    /// The interval at which the cache is made durable. Default 5 s. Content lost in a crash is requested again.
    pub sync_every: Duration,
    /// The longest time that connections may continue after a stop. Default 2 s.
    pub stop_timeout: Duration,
    /// Threads of the engine: chunking, the cache, zstd. Default: one for each processor.
    pub engine_threads: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            connections_max: 1024,
            pending_max: 256,
            buffer_bytes: 16 << 20,
            handshake_timeout: Duration::from_secs(5),
            connect_timeout: Duration::from_secs(10),
            idle_timeout: Duration::from_secs(3600),
            stall_timeout: Duration::from_secs(600),
            link_timeout: Duration::from_secs(60),
            ping_every: Duration::from_secs(15),
            flush_idle: Duration::from_millis(2),
            flush_after: Duration::from_millis(20),
            sync_every: Duration::from_secs(5),
            stop_timeout: Duration::from_secs(2),
            engine_threads: std::thread::available_parallelism().map_or(2, usize::from),
        }
    }
}

impl Limits {
    /// Checks the values.
    ///
    /// # Errors
    /// [`Error::Options`] for counts out of range, times of zero, and pings that come too late.
    pub fn validate(&self) -> Result<()> {
        let counts = [
            ("connections", self.connections_max, CONNECTIONS_MAX),
            ("pending", self.pending_max, CONNECTIONS_MAX),
            ("threads", self.engine_threads, ENGINE_THREADS_MAX),
        ];
        for (field, found, most) in counts {
            if !(1..=most).contains(&found) {
                let reason = format!("{found}; expected 1 to {most}");
                return Err(Error::Options { field, reason });
            }
        }
        if !BUFFER_BYTES.contains(&self.buffer_bytes) {
            let (least, most) = (BUFFER_BYTES.start(), BUFFER_BYTES.end());
            let reason = format!("{} bytes; expected {least} to {most}", self.buffer_bytes);
            return Err(Error::Options { field: "buffers", reason });
        }
        let times = [
            ("handshake_timeout", self.handshake_timeout),
            ("connect_timeout", self.connect_timeout),
            ("idle_timeout", self.idle_timeout),
            ("stall_timeout", self.stall_timeout),
            ("link_timeout", self.link_timeout),
            ("ping_every", self.ping_every),
            ("sync_every", self.sync_every),
        ];
        for (field, found) in times {
            if found.is_zero() {
                return Err(Error::Options { field, reason: "0 s; expected some time".into() });
            }
        }
        for (field, found) in [("flush_idle", self.flush_idle), ("flush_after", self.flush_after)] {
            if found > FLUSH_MAX {
                let reason = format!("{found:?}; expected {FLUSH_MAX:?} at most");
                return Err(Error::Options { field, reason });
            }
        }
        if self.ping_every * 2 > self.link_timeout {
            let reason =
                format!("{:?}; expected half of {:?} at most", self.ping_every, self.link_timeout);
            return Err(Error::Options { field: "ping_every", reason });
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_cannot_work_is_refused_with_the_range() {
        Limits::default().validate().unwrap();
        let refusal = |limits: Limits| limits.validate().unwrap_err().to_string();
        let limits = Limits { connections_max: 0, ..Limits::default() };
        assert_eq!(refusal(limits), "connections: 0; expected 1 to 100000");
        let limits = Limits { buffer_bytes: 1000, ..Limits::default() };
        assert!(refusal(limits).starts_with("buffers: 1000 bytes; expected 1048576 to"));
        let limits = Limits { idle_timeout: Duration::ZERO, ..Limits::default() };
        assert!(refusal(limits).starts_with("idle_timeout"));
        let limits = Limits { flush_idle: Duration::MAX, ..Limits::default() };
        assert!(refusal(limits).ends_with("expected 60s at most"));
        let limits = Limits { ping_every: Duration::from_secs(60), ..Limits::default() };
        assert!(refusal(limits).starts_with("ping_every"));
    }
}
