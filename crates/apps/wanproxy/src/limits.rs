//! Limits: what a peer or a program may take before and after it is known.

use std::ops::RangeInclusive;
use std::time::Duration;

use crate::{Error, Result};

/// Threads of the engine, at most.
const ENGINE_THREADS_MAX: usize = 256;

/// Connections, at most: each takes two open files.
const CONNECTIONS_MAX: usize = 100_000;

/// How long a segment may be gathered.
const FLUSH_MAX: Duration = Duration::from_secs(60);

/// The budget of buffers, at least and at most.
const BUFFER_BYTES: RangeInclusive<usize> = 1 << 20..=1 << 40;

/// Limits of one half.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Limits {
    /// Connections at a time. Default 1,024. More are closed at once.
    pub connections_max: usize,
    /// Connections at a time whose handshake or request is not done. Default 256. A server half closes more at once; a
    /// client half lets its programs wait, and does a quarter as many handshakes with the server half at a time.
    pub pending_max: usize,
    /// Bytes that all connections together may have sent and the other half has not taken, from 1 MiB. Default 16 MiB.
    /// The other half holds what it has not taken. A connection that has nothing on its way may send a segment beyond
    /// them.
    pub buffer_bytes: usize,
    /// How long a handshake may take, and a program's request. Default 5 s.
    pub handshake_timeout: Duration,
    /// How long a connection to a target may take. Default 10 s.
    pub connect_timeout: Duration,
    /// How long nothing may go either way. Default 1 h.
    pub idle_timeout: Duration,
    /// How long a program may read nothing of what waits for it. Default 10 min.
    pub stall_timeout: Duration,
    /// How long the other half may take nothing and say nothing. Default 60 s.
    pub link_timeout: Duration,
    /// How often the other half is told that this one is there. Default 15 s.
    pub ping_every: Duration,
    /// A segment ends when its socket was silent for this long; at once if nothing is on its way. Default 2 ms.
    pub flush_idle: Duration,
    /// A segment ends this long after its first byte. Default 20 ms.
    pub flush_after: Duration,
    /// How often the cache is made durable. Default 5 s. What a crash loses of it is asked for.
    pub sync_every: Duration,
    /// How long connections may go on after a stop. Default 2 s.
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
    /// Refuses what cannot work.
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
