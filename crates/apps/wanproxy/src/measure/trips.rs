//! Round trips: small requests, one after the other, and their answers.

use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::thread;
use std::time::{Duration, Instant};

use serde::Serialize;

/// Round trips before those that count: they set up sockets, caches and threads.
const WARM_UP: usize = 20;

/// The longest time of a round trip.
const ROUND_TRIP_TIMEOUT: Duration = Duration::from_secs(60);

/// The most round trips, and the most bytes of each.
pub(super) const ROUND_TRIPS_MAX: usize = 10_000_000;
pub(super) const REQUEST_BYTES_MAX: usize = 16 << 20;

/// The length of requests that fit any socket's buffer.
const SHORT_BYTES: usize = 64 << 10;

/// The durations of round trips, in microseconds.
#[derive(Clone, Copy, PartialEq, Debug, Serialize)]
#[non_exhaustive]
pub struct RoundTrips {
    /// Half of them took no longer.
    pub p50_us: f64,
    /// 99 of 100 took no longer.
    pub p99_us: f64,
}

impl RoundTrips {
    fn of(mut times: Vec<Duration>) -> Self {
        times.sort_unstable();
        Self { p50_us: percentile_us(&times, 50), p99_us: percentile_us(&times, 99) }
    }

    /// Returns the differences of the percentiles.
    pub(super) fn less(self, other: Self) -> Self {
        Self { p50_us: self.p50_us - other.p50_us, p99_us: self.p99_us - other.p99_us }
    }
}

/// The round trips of a connection.
#[derive(Clone, Copy, Debug)]
pub(super) struct Trips {
    /// The number of those that count.
    pub(super) count: usize,
    /// The bytes of each request.
    pub(super) bytes: usize,
    /// The beginning of the connection, which gets no answer.
    pub(super) hello: &'static [u8],
    /// A seed and a run. They make requests unique, so that each is new to the caches.
    pub(super) salt: [u64; 2],
}

impl Trips {
    /// Makes the round trips over a new connection, to a target that sends back its input.
    pub(super) fn run(self, to: SocketAddr) -> io::Result<RoundTrips> {
        let stream = TcpStream::connect(to)?;
        stream.set_nodelay(true)?;
        stream.set_read_timeout(Some(ROUND_TRIP_TIMEOUT))?;
        stream.set_write_timeout(Some(ROUND_TRIP_TIMEOUT))?;
        (&stream).write_all(self.hello)?;
        let mut times = Vec::with_capacity(self.count);
        for round in 0..WARM_UP + self.count {
            let request = request(self.salt, round, self.bytes);
            let begun = Instant::now();
            let answer = round_trip(&stream, &request)?;
            let time = begun.elapsed();
            if answer != request {
                return Err(io::Error::other("the answer is not what was sent"));
            }
            if round >= WARM_UP {
                times.push(time);
            }
        }
        Ok(RoundTrips::of(times))
    }
}

/// Sends back all input until the other end closes.
pub(super) fn send_back(mut stream: &TcpStream) -> io::Result<()> {
    let mut part = vec![0; 64 << 10];
    loop {
        match stream.read(&mut part)? {
            0 => return Ok(()),
            read => stream.write_all(&part[..read])?,
        }
    }
}

/// Sends a request and concurrently reads as many bytes: a long request fills the sockets on its way back.
fn round_trip(stream: &TcpStream, request: &[u8]) -> io::Result<Vec<u8>> {
    let (mut reader, mut writer) = (stream, stream);
    let mut answer = vec![0; request.len()];
    if request.len() <= SHORT_BYTES {
        writer.write_all(request)?;
        reader.read_exact(&mut answer)?;
        return Ok(answer);
    }
    thread::scope(|scope| {
        let writing = scope.spawn(move || writer.write_all(request));
        let read = reader.read_exact(&mut answer);
        let written = writing.join().unwrap_or_else(|_| Err(io::Error::other("the writer failed")));
        written.and(read)
    })?;
    Ok(answer)
}

/// Returns text that is new in each round of each run.
fn request([seed, run]: [u64; 2], round: usize, bytes: usize) -> Vec<u8> {
    let mut text = Vec::with_capacity(bytes + 32);
    let mut line = 0_usize;
    while text.len() < bytes {
        let number = line.wrapping_mul(2_654_435_761);
        text.extend_from_slice(format!("{seed} {run} {round} {number} ").as_bytes());
        line += 1;
    }
    text.truncate(bytes);
    text
}

/// Returns the time that this many of 100 did not exceed, of sorted times.
fn percentile_us(times: &[Duration], percent: usize) -> f64 {
    let rank = (times.len() * percent).div_ceil(100).max(1);
    times.get(rank - 1).map_or(0.0, |time| time.as_secs_f64() * 1e6)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_percentile_is_the_time_of_its_rank() {
        let times: Vec<_> = (1..=200).map(Duration::from_micros).collect();
        assert_eq!((percentile_us(&times, 50), percentile_us(&times, 99)), (100.0, 198.0));
        assert_eq!((percentile_us(&times[..1], 99), percentile_us(&[], 50)), (1.0, 0.0));
    }

    #[test]
    fn requests_are_new_each_time_and_as_long_as_asked_for() {
        for bytes in [1, 100, 5000] {
            assert_eq!(request([0, 0], 7, bytes).len(), bytes);
        }
        assert_ne!(request([0, 0], 7, 100), request([0, 0], 8, 100));
        assert_ne!(request([0, 0], 7, 100), request([0, 1], 7, 100));
    }
}
