//! What the proxy adds to a round trip: both halves on loopback in this process, between a program and a target that
//! sends back what comes.
//!
//! The link is as fast as loopback. So this is the time of the halves alone, without what they save on a slow link.

use std::io::{self, Read, Write};
use std::net::{IpAddr, Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use nandex_wan::Cache;
use nandex_wan::live::LiveOptions;
use serde::Serialize;

use crate::{
    ClientConfig, Entrance, Error, Limits, Peer, Proxy, Result, Security, ServerConfig, SharedKey,
    Target,
};

/// Round trips before those that count: sockets, caches and threads are there then.
const WARM_UP: usize = 20;

/// How long a round trip may take.
const ROUND_TRIP_TIMEOUT: Duration = Duration::from_secs(60);

/// Round trips, at most, and bytes of each, at most.
const ROUND_TRIPS_MAX: usize = 10_000_000;
const BYTES_MAX: usize = 16 << 20;

const LOOPBACK: SocketAddr = SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), 0);

/// What is measured.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct LatencyPlan {
    /// Round trips that count. Default 1,000.
    pub round_trips: usize,
    /// Bytes of a request, which its answer has too. Default 100, which go as they are; from 512 on they are looked up
    /// in the cache. Each request is new, and its answer is known.
    pub bytes: usize,
    /// How streams are sent.
    pub live: LiveOptions,
    /// What the halves may take.
    pub limits: Limits,
}

impl Default for LatencyPlan {
    fn default() -> Self {
        let (live, limits) = (LiveOptions::default(), Limits::default());
        Self { round_trips: 1000, bytes: 100, live, limits }
    }
}

/// How long round trips took, in microseconds.
#[derive(Clone, Copy, PartialEq, Debug, Serialize)]
#[non_exhaustive]
pub struct RoundTrips {
    /// Half of them took no longer.
    pub p50_us: f64,
    /// 99 of 100 took no longer.
    pub p99_us: f64,
}

/// What was measured.
#[derive(Clone, Copy, PartialEq, Debug, Serialize)]
#[non_exhaustive]
pub struct LatencyReport {
    /// Round trips of each kind that count.
    pub round_trips: usize,
    /// Bytes of a request.
    pub bytes: usize,
    /// From the program to the target without the proxy.
    pub direct: RoundTrips,
    /// Through both halves.
    pub through: RoundTrips,
    /// The difference of these percentiles.
    pub added: RoundTrips,
    /// Bytes of requests and answers that went over the link as they are; the rest was looked up in the cache.
    pub plain_bytes: u64,
}

/// Measures round trips with and without both halves, whose caches these are.
///
/// Costs the round trips, one after the other, twice; a thread for the target, which ends with its connections, or with
/// the process after an error.
///
/// # Errors
/// Counts out of range, options that cannot work, no free port, a connection that fails.
pub fn measure_latency(
    caches: (Arc<Cache>, Arc<Cache>),
    plan: &LatencyPlan,
) -> Result<LatencyReport> {
    plan.validate()?;
    let target = echo()?;
    let direct = round_trips(target, plan)?;
    let key = SharedKey::generate()?;
    let key = SharedKey::of(&key).ok_or_else(|| Error::handshake("a new key is none"))?;
    let server = Proxy::server(caches.1, plan.server(target, &key))?;
    let client = Proxy::client(caches.0, plan.client(address_of(&server)?, &key))?;
    let through = round_trips(address_of(&client)?, plan)?;
    let (client, server) = (client.stop()?, server.stop()?);
    Ok(LatencyReport {
        round_trips: plan.round_trips,
        bytes: plan.bytes,
        direct,
        through,
        added: RoundTrips {
            p50_us: through.p50_us - direct.p50_us,
            p99_us: through.p99_us - direct.p99_us,
        },
        plain_bytes: client.traffic.plain_bytes + server.traffic.plain_bytes,
    })
}

impl LatencyPlan {
    fn validate(&self) -> Result<()> {
        let counts =
            [("round_trips", self.round_trips, ROUND_TRIPS_MAX), ("bytes", self.bytes, BYTES_MAX)];
        for (field, found, most) in counts {
            if !(1..=most).contains(&found) {
                let reason = format!("{found}; expected 1 to {most}");
                return Err(Error::Options { field, reason });
            }
        }
        Ok(())
    }

    fn server(&self, target: SocketAddr, key: &SharedKey) -> ServerConfig {
        ServerConfig {
            listen: LOOPBACK,
            target: Some(Target::of(target)),
            allowed: Vec::new(),
            security: Security::Key(key.clone()),
            status: None,
            is_public: false,
            live: self.live,
            limits: self.limits,
        }
    }

    fn client(&self, server: SocketAddr, key: &SharedKey) -> ClientConfig {
        ClientConfig {
            entrances: vec![(LOOPBACK, Entrance::Forward(None))],
            peer: Peer { address: Target::of(server), tls_name: None },
            security: Security::Key(key.clone()),
            status: None,
            is_public: false,
            bypasses: false,
            live: self.live,
            limits: self.limits,
        }
    }
}

fn address_of(proxy: &Proxy) -> Result<SocketAddr> {
    let first = proxy.addresses().first();
    first.map(|it| it.address).ok_or_else(|| Error::request("the half listens nowhere"))
}

/// A target that sends back what comes, for two connections one after the other.
fn echo() -> Result<SocketAddr> {
    let refuse = |source| Error::Listen { address: LOOPBACK, source };
    let listener = TcpListener::bind(LOOPBACK).map_err(refuse)?;
    let address = listener.local_addr().map_err(refuse)?;
    thread::spawn(move || {
        for stream in listener.incoming().take(2).flatten() {
            // The program sees that it gets no answer.
            let _ = send_back(stream);
        }
    });
    Ok(address)
}

fn send_back(mut stream: TcpStream) -> io::Result<()> {
    stream.set_nodelay(true)?;
    let mut part = vec![0; 64 << 10];
    loop {
        match stream.read(&mut part)? {
            0 => return Ok(()),
            read => stream.write_all(&part[..read])?,
        }
    }
}

fn round_trips(to: SocketAddr, plan: &LatencyPlan) -> Result<RoundTrips> {
    let mut times = timed(to, plan).map_err(Error::Local)?;
    times.sort_unstable();
    Ok(RoundTrips { p50_us: percentile_us(&times, 50), p99_us: percentile_us(&times, 99) })
}

fn timed(to: SocketAddr, plan: &LatencyPlan) -> io::Result<Vec<Duration>> {
    let stream = TcpStream::connect(to)?;
    stream.set_nodelay(true)?;
    stream.set_read_timeout(Some(ROUND_TRIP_TIMEOUT))?;
    stream.set_write_timeout(Some(ROUND_TRIP_TIMEOUT))?;
    let mut times = Vec::with_capacity(plan.round_trips);
    for round in 0..WARM_UP + plan.round_trips {
        let request = request(round, plan.bytes);
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
    Ok(times)
}

/// Sends a request and reads as much, both at once: a long request fills the sockets on its way back.
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

/// Requests that any socket's buffer takes.
const SHORT_BYTES: usize = 64 << 10;

/// Text that is new in each round.
fn request(round: usize, bytes: usize) -> Vec<u8> {
    let mut text = Vec::with_capacity(bytes + 32);
    let mut line = 0_usize;
    while text.len() < bytes {
        text.extend_from_slice(format!("{round} {} ", line.wrapping_mul(2_654_435_761)).as_bytes());
        line += 1;
    }
    text.truncate(bytes);
    text
}

/// The time that this many of 100 did not exceed, of times in order.
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
            assert_eq!(request(7, bytes).len(), bytes);
        }
        assert_ne!(request(7, 100), request(8, 100));
    }
}
