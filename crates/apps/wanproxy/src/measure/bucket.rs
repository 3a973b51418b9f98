//! A slow link on loopback: a relay that limits bytes with a token bucket for each direction.
//!
//! It limits the streams of bytes and not packets: it does not simulate headers, nor the latency of a real link.

use std::fmt;
use std::io::{self, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpStream};
use std::str::FromStr;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use super::LOOPBACK;
use super::serving::Serving;
use crate::Result;

/// The number of bytes sent immediately after the link was idle.
const BURST_BYTES: u64 = 16 << 10;

/// The number of bytes passed at a time.
const PART_BYTES: usize = 4 << 10;

/// The least and the most bits per second.
const RATE_MIN: u64 = 8_000;
const RATE_MAX: u64 = 100_000_000_000;

/// Units of a rate as `tc` writes them, in bits per second.
const UNITS: [(&str, u64); 4] =
    [("gbit", 1_000_000_000), ("mbit", 1_000_000), ("kbit", 1000), ("bit", 1)];

/// The rate of a link, each way.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct LinkRate(u64);

impl LinkRate {
    /// Returns the rate in bits per second.
    #[must_use]
    pub fn bits_per_s(self) -> u64 {
        self.0
    }

    /// Returns the time that the bytes take.
    pub(super) fn time_of(self, bytes: u64) -> Duration {
        let ns = u128::from(bytes) * 8 * 1_000_000_000 / u128::from(self.0);
        Duration::from_nanos(u64::try_from(ns).unwrap_or(u64::MAX))
    }
}

impl FromStr for LinkRate {
    type Err = String;

    fn from_str(text: &str) -> std::result::Result<Self, String> {
        let refuse =
            || format!("`{text}` is not a rate; expected one like 10mbit, from 8kbit to 100gbit");
        let found = UNITS.iter().find_map(|(unit, bits)| Some((text.strip_suffix(unit)?, bits)));
        let (number, bits) = found.ok_or_else(refuse)?;
        let number: u64 = number.parse().map_err(|_| refuse())?;
        let rate = number.checked_mul(*bits).filter(|rate| (RATE_MIN..=RATE_MAX).contains(rate));
        rate.map(Self).ok_or_else(refuse)
    }
}

impl fmt::Display for LinkRate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let whole = UNITS.iter().find(|(_, bits)| self.0.is_multiple_of(*bits));
        let (unit, bits) = whole.unwrap_or(&("bit", 1));
        write!(f, "{}{unit}", self.0 / bits)
    }
}

/// The tokens of one direction, as the time at which all bytes so far have been sent.
#[derive(Debug)]
struct Bucket {
    rate: LinkRate,
    free_at: Instant,
}

impl Bucket {
    /// Returns when these bytes, which arrive now, may be sent.
    fn admit(&mut self, now: Instant, bytes: u64) -> Instant {
        let full = now.checked_sub(self.rate.time_of(BURST_BYTES)).unwrap_or(now);
        self.free_at = self.free_at.max(full) + self.rate.time_of(bytes);
        self.free_at
    }
}

/// Both directions of a link, shared by all its connections, and the bytes sent.
#[derive(Debug)]
struct Link {
    up: Mutex<Bucket>,
    down: Mutex<Bucket>,
    carried_bytes: Arc<AtomicU64>,
}

/// A link to one address.
#[derive(Debug)]
pub(super) struct SlowLink {
    serving: Serving,
    carried_bytes: Arc<AtomicU64>,
}

impl SlowLink {
    /// Listens on loopback, and forwards each connection to that address.
    pub(super) fn start(rate: LinkRate, to: SocketAddr) -> Result<Self> {
        let bucket = || Mutex::new(Bucket { rate, free_at: Instant::now() });
        let carried_bytes = Arc::new(AtomicU64::new(0));
        let link = Link { up: bucket(), down: bucket(), carried_bytes: Arc::clone(&carried_bytes) };
        let serving = Serving::start(LOOPBACK, move |near| link.carry(&near, to))?;
        Ok(Self { serving, carried_bytes })
    }

    /// Returns its address.
    pub(super) fn address(&self) -> SocketAddr {
        self.serving.address()
    }

    /// Returns the bytes sent so far, both ways.
    pub(super) fn carried_bytes(&self) -> u64 {
        self.carried_bytes.load(Relaxed)
    }
}

impl Link {
    fn carry(&self, near: &TcpStream, to: SocketAddr) -> io::Result<()> {
        let far = TcpStream::connect(to)?;
        far.set_nodelay(true)?;
        thread::scope(|scope| {
            scope.spawn(|| self.pump((near, &far), &self.up));
            self.pump((&far, near), &self.down);
        });
        Ok(())
    }

    /// Moves one direction until its end, or until either socket fails, which ends both.
    fn pump(&self, (from, to): (&TcpStream, &TcpStream), bucket: &Mutex<Bucket>) {
        if self.try_pump((from, to), bucket).is_err() {
            for socket in [from, to] {
                // It may already be closed.
                let _ = socket.shutdown(Shutdown::Both);
            }
        }
    }

    fn try_pump(
        &self,
        (mut from, mut to): (&TcpStream, &TcpStream),
        bucket: &Mutex<Bucket>,
    ) -> io::Result<()> {
        let mut part = vec![0; PART_BYTES];
        loop {
            let read = from.read(&mut part)?;
            if read == 0 {
                return to.shutdown(Shutdown::Write);
            }
            let now = Instant::now();
            let mut tokens = bucket.lock().unwrap_or_else(PoisonError::into_inner);
            let goes_at = tokens.admit(now, read as u64);
            drop(tokens);
            thread::sleep(goes_at.saturating_duration_since(now));
            // Counted before it is sent: a receiver of an answer finds all of it counted.
            self.carried_bytes.fetch_add(read as u64, Relaxed);
            to.write_all(&part[..read])?;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::measure::trips::send_back;

    #[test]
    fn rates_are_read_and_shown_as_tc_writes_them() {
        for (text, bits) in [("10mbit", 10_000_000), ("8kbit", 8000), ("1gbit", 1_000_000_000)] {
            let rate: LinkRate = text.parse().unwrap();
            assert_eq!((rate.bits_per_s(), rate.to_string()), (bits, text.to_owned()));
        }
        for text in ["", "10", "mbit", "7kbit", "101gbit", "1.5mbit", "-1mbit", "99999999999gbit"] {
            assert!(text.parse::<LinkRate>().unwrap_err().contains("like 10mbit"), "{text}");
        }
    }

    #[test]
    fn a_bucket_lets_a_burst_go_at_once_and_the_rest_at_the_rate() {
        let rate: LinkRate = "8mbit".parse().unwrap();
        let start = Instant::now();
        let mut bucket = Bucket { rate, free_at: start };
        let later = start + Duration::from_secs(100);
        // 16 KiB at 1 byte per microsecond.
        assert_eq!(bucket.admit(later, BURST_BYTES), later);
        assert_eq!(bucket.admit(later, 5000), later + Duration::from_micros(5000));
        assert_eq!(bucket.admit(later, 1000), later + Duration::from_micros(6000));
    }

    #[test]
    fn a_link_carries_both_ways_and_counts() {
        let echo = Serving::start(LOOPBACK, |stream| send_back(&stream)).unwrap();
        let link = SlowLink::start("1gbit".parse().unwrap(), echo.address()).unwrap();
        let mut stream = TcpStream::connect(link.address()).unwrap();
        stream.write_all(&[3; 50_000]).unwrap();
        stream.shutdown(Shutdown::Write).unwrap();
        let mut back = Vec::new();
        stream.read_to_end(&mut back).unwrap();
        assert_eq!((back, link.carried_bytes()), (vec![3; 50_000], 100_000));
    }
}
