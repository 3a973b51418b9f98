//! Measures the savings and costs of both halves on a slow link: streams and round trips with and without them, by
//! turns.
//!
//! A run creates a new stream of records, and sends it and streams that repeat a share of it, each through the halves
//! and directly. The halves do not know a run's new stream before, and have it for the other streams.

use std::fs;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use nandex_wan::Cache;
use nandex_wan::live::LiveOptions;
use serde::Serialize;

use super::bucket::{LinkRate, SlowLink};
use super::far_end::{self, FarEnd};
use super::halves::Halves;
use super::records::{PIECE_BYTES, records, repeating};
use super::spread::{Spread, TripSpread};
use super::trips::{REQUEST_BYTES_MAX, ROUND_TRIPS_MAX, RoundTrips, Trips};
use super::{LOOPBACK, check_count};
use crate::{Error, Limits, Result};

/// The most bytes of a stream: it is in memory, twice.
const STREAM_BYTES_MAX: usize = 1 << 30;

/// The most runs, and the most shares.
const RUNS_MAX: usize = 1000;
const SHARES_MAX: usize = 16;

/// The longest direct transfer of a stream, if the link's rate is known.
const STREAM_TIME_MAX: Duration = Duration::from_secs(300);

/// The plan of a measurement.
#[derive(Clone, PartialEq, Debug)]
pub struct LinkPlan {
    /// The number of runs. A figure is their median, with the least and the most. Default 5.
    pub runs: usize,
    /// The bytes of each stream. Default 8 MiB.
    pub stream_bytes: usize,
    /// The shares, each from 0 to 1, of the run's new stream that further streams repeat. Default .5, .9 and 1.
    pub redundancy: Vec<f64>,
    /// The number of round trips of a run that count. Default 200.
    pub round_trips: usize,
    /// The bytes of a request, and of its answer. Default 100.
    pub request_bytes: usize,
    /// The link's rate, if known: it is in the report, and streams that take too long are rejected.
    pub rate: Option<LinkRate>,
    /// The seed of the streams. Streams of the same seed are equal, and known to halves that have transferred them.
    /// Default 1.
    pub seed: u64,
}

impl Default for LinkPlan {
    fn default() -> Self {
        Self {
            runs: 5,
            stream_bytes: 8 << 20,
            redundancy: vec![0.5, 0.9, 1.0],
            round_trips: 200,
            request_bytes: 100,
            rate: None,
            seed: 1,
        }
    }
}

/// Both connections to a [`FarEnd`].
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct LinkEnds {
    /// The far end itself, over the link.
    pub direct: SocketAddr,
    /// The client half's forward, whose server half has the far end as its target.
    pub through: SocketAddr,
    /// This machine's network device of the link, whose bytes are counted; without one they are unknown.
    pub device: Option<String>,
}

/// The kind of the link.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum LinkKind {
    /// A network, between addresses given by the caller.
    Network,
    /// A token bucket in this process, on loopback: it limits streams and not packets.
    TokenBucket,
}

/// The result of a measurement.
#[derive(Clone, PartialEq, Debug, Serialize)]
#[non_exhaustive]
pub struct LinkReport {
    /// The kind of the link.
    pub link: LinkKind,
    /// The stated rate, each way.
    pub rate_bits_per_s: Option<u64>,
    /// The number of runs of each figure.
    pub runs: usize,
    /// The plan's seed, which reproduces the streams.
    pub seed: u64,
    /// The bytes of each stream.
    pub stream_bytes: usize,
    /// The length of the pieces in which streams repeat others.
    pub piece_bytes: usize,
    /// First the new stream, then those that repeat it.
    pub streams: Vec<StreamReport>,
    /// The round trips.
    pub round_trips: TripsReport,
}

/// A stream with and without the halves.
#[derive(Clone, Copy, PartialEq, Debug, Serialize)]
#[non_exhaustive]
pub struct StreamReport {
    /// The share of it that the halves had transferred before; 0 for the new stream.
    pub redundancy: f64,
    /// Its bytes over the time from the connection's beginning until the far end has verified it, without the halves.
    pub direct_bytes_per_s: Spread,
    /// The same through both halves.
    pub through_bytes_per_s: Spread,
    /// The ratio of the throughput through the halves to the direct throughput, run by run.
    pub improvement: Spread,
    /// Bytes over the link for it without the halves, both ways. For a network with headers and acknowledgements.
    pub direct_link_bytes: Option<Spread>,
    /// The same through both halves.
    pub through_link_bytes: Option<Spread>,
}

/// Round trips with and without the halves.
#[derive(Clone, Copy, PartialEq, Debug, Serialize)]
#[non_exhaustive]
pub struct TripsReport {
    /// The number of those of a run that count.
    pub count: usize,
    /// The bytes of a request, and of its answer.
    pub request_bytes: usize,
    /// To the far end itself.
    pub direct: TripSpread,
    /// Through both halves.
    pub through: TripSpread,
    /// The difference of these percentiles, run by run.
    pub added: TripSpread,
}

/// Measures a link between two machines or namespaces, where both halves and a [`FarEnd`] run.
///
/// Costs twice the streams and round trips of each run, one after the other; memory for two streams.
///
/// # Errors
/// An invalid plan, a connection that fails, a stream or an answer that differs from the one sent.
pub fn measure_link(ends: &LinkEnds, plan: &LinkPlan) -> Result<LinkReport> {
    plan.validate()?;
    let count = || ends.device.as_deref().map(device_bytes).transpose();
    let ways = Ways { direct: ends.direct, through: ends.through, link_bytes: &count };
    ways.measure(LinkKind::Network, plan)
}

/// Measures both halves in this process over a link of that rate on loopback. `caches` has the client half's cache,
/// then the server half's.
///
/// Costs as much as [`measure_link`], and threads for the halves, the link and the far end.
///
/// # Errors
/// As [`measure_link`]; no free port.
pub fn measure_link_on_loopback(
    caches: (Arc<Cache>, Arc<Cache>),
    rate: LinkRate,
    plan: &LinkPlan,
) -> Result<LinkReport> {
    let plan = LinkPlan { rate: Some(rate), ..plan.clone() };
    plan.validate()?;
    let far_end = FarEnd::start(LOOPBACK, false)?;
    let target = far_end.address().address;
    let direct = SlowLink::start(rate, target)?;
    let mut link = None;
    let options = (LiveOptions::default(), Limits::default());
    let halves = Halves::start(caches, options, target, |server| {
        Ok(link.insert(SlowLink::start(rate, server)?).address())
    })?;
    let count = || {
        let through = link.as_ref().map_or(0, SlowLink::carried_bytes);
        Ok(Some(direct.carried_bytes() + through))
    };
    let (direct, through) = (direct.address(), halves.entrance());
    let report = Ways { direct, through, link_bytes: &count }.measure(LinkKind::TokenBucket, &plan);
    halves.stop()?;
    report
}

impl LinkPlan {
    fn validate(&self) -> Result<()> {
        check_count("runs", self.runs, RUNS_MAX)?;
        check_count("stream_bytes", self.stream_bytes, STREAM_BYTES_MAX)?;
        check_count("round_trips", self.round_trips, ROUND_TRIPS_MAX)?;
        check_count("request_bytes", self.request_bytes, REQUEST_BYTES_MAX)?;
        check_count("redundancy", self.redundancy.len(), SHARES_MAX)?;
        if let Some(share) = self.redundancy.iter().find(|share| !(0.0..=1.0).contains(*share)) {
            let reason = format!("{share}; expected shares from 0 to 1");
            return Err(Error::Options { field: "redundancy", reason });
        }
        let time = self.rate.map(|rate| rate.time_of(self.stream_bytes as u64));
        match time.filter(|time| *time > STREAM_TIME_MAX) {
            None => Ok(()),
            Some(time) => {
                let (found, most) = (time.as_secs(), STREAM_TIME_MAX.as_secs());
                let reason = format!(
                    "a stream takes {found} s at this rate; expected {most} s at most, so send fewer bytes"
                );
                Err(Error::Options { field: "stream_bytes", reason })
            }
        }
    }
}

/// Returns the bytes that a network device has sent and received, as the kernel reports to this process's namespace.
fn device_bytes(device: &str) -> io::Result<u64> {
    let text = fs::read_to_string("/proc/self/net/dev")?;
    let refuse =
        || io::Error::other(format!("there is no network device {device}; `ip link` lists them"));
    device_bytes_in(&text, device).ok_or_else(refuse)
}

fn device_bytes_in(text: &str, device: &str) -> Option<u64> {
    let named = text.lines().filter_map(|line| line.trim_start().split_once(':'));
    let (_, figures) = named.into_iter().find(|(name, _)| *name == device)?;
    let figures: Vec<u64> = figures.split_whitespace().map_while(|it| it.parse().ok()).collect();
    // Eight figures of received data, then those of sent data; bytes are the first of both.
    Some(figures.first()? + figures.get(8)?)
}

/// Both connections to the far end, and the counter of bytes over the link.
struct Ways<'a> {
    direct: SocketAddr,
    through: SocketAddr,
    link_bytes: &'a dyn Fn() -> io::Result<Option<u64>>,
}

/// One stream, sent once.
#[derive(Clone, Copy)]
struct Sent {
    bytes_per_s: f64,
    link_bytes: Option<f64>,
}

/// One run of a stream or of round trips.
#[derive(Clone, Copy)]
struct BothWays<T> {
    direct: T,
    through: T,
}

impl Ways<'_> {
    fn measure(&self, link: LinkKind, plan: &LinkPlan) -> Result<LinkReport> {
        let mut streams = vec![Vec::new(); 1 + plan.redundancy.len()];
        let mut trips = Vec::new();
        for run in 0..plan.runs {
            self.send_streams(run, plan, &mut streams).map_err(Error::Local)?;
            trips.push(self.round_trips(run, plan).map_err(Error::Local)?);
        }
        let shares = [0.0].into_iter().chain(plan.redundancy.iter().copied());
        let reports =
            shares.zip(&streams).filter_map(|(share, runs)| StreamReport::of(share, runs));
        Ok(LinkReport {
            link,
            rate_bits_per_s: plan.rate.map(LinkRate::bits_per_s),
            runs: plan.runs,
            seed: plan.seed,
            stream_bytes: plan.stream_bytes,
            piece_bytes: PIECE_BYTES,
            streams: reports.collect(),
            round_trips: TripsReport::of(plan, &trips).ok_or_else(no_runs)?,
        })
    }

    fn send_streams(
        &self,
        run: usize,
        plan: &LinkPlan,
        sent: &mut [Vec<BothWays<Sent>>],
    ) -> io::Result<()> {
        let base = records(plan.stream_bytes, [plan.seed, run as u64, 0]);
        sent[0].push(self.each_way(run, |way| self.send(way, &base))?);
        let later = plan.redundancy.iter().zip(&mut sent[1..]);
        for (number, (share, sent)) in (1..).zip(later) {
            let stream = repeating(&base, *share, [plan.seed, run as u64, number]);
            sent.push(self.each_way(run, |way| self.send(way, &stream))?);
        }
        Ok(())
    }

    /// Measures both ways, each first by turns, so that other load of the machine affects both.
    fn each_way<T>(
        &self,
        run: usize,
        mut go: impl FnMut(SocketAddr) -> io::Result<T>,
    ) -> io::Result<BothWays<T>> {
        if run.is_multiple_of(2) {
            let direct = go(self.direct)?;
            return Ok(BothWays { direct, through: go(self.through)? });
        }
        let through = go(self.through)?;
        Ok(BothWays { direct: go(self.direct)?, through })
    }

    fn send(&self, way: SocketAddr, stream: &[u8]) -> io::Result<Sent> {
        let before = (self.link_bytes)()?;
        let time = far_end::send(way, stream)?;
        let link_bytes = (self.link_bytes)()?.zip(before).map(|(now, before)| now - before);
        Ok(Sent {
            bytes_per_s: stream.len() as f64 / time.as_secs_f64(),
            link_bytes: link_bytes.map(|bytes| bytes as f64),
        })
    }

    fn round_trips(&self, run: usize, plan: &LinkPlan) -> io::Result<BothWays<RoundTrips>> {
        let (count, bytes) = (plan.round_trips, plan.request_bytes);
        let trips = Trips { count, bytes, hello: far_end::ECHO, salt: [plan.seed, run as u64] };
        self.each_way(run, |way| trips.run(way))
    }
}

fn no_runs() -> Error {
    Error::Options { field: "runs", reason: "0; expected 1 or more".into() }
}

impl StreamReport {
    fn of(redundancy: f64, runs: &[BothWays<Sent>]) -> Option<Self> {
        let of = |figure: fn(&BothWays<Sent>) -> f64| Spread::of(runs.iter().map(figure));
        let link_bytes = |way: fn(&BothWays<Sent>) -> Sent| {
            let counted: Option<Vec<f64>> = runs.iter().map(|run| way(run).link_bytes).collect();
            Spread::of(counted?)
        };
        Some(Self {
            redundancy,
            direct_bytes_per_s: of(|run| run.direct.bytes_per_s)?,
            through_bytes_per_s: of(|run| run.through.bytes_per_s)?,
            improvement: of(|run| run.through.bytes_per_s / run.direct.bytes_per_s)?,
            direct_link_bytes: link_bytes(|run| run.direct),
            through_link_bytes: link_bytes(|run| run.through),
        })
    }
}

impl TripsReport {
    fn of(plan: &LinkPlan, runs: &[BothWays<RoundTrips>]) -> Option<Self> {
        let of = |figure: fn(&BothWays<RoundTrips>) -> RoundTrips| {
            TripSpread::of(&runs.iter().map(figure).collect::<Vec<_>>())
        };
        Some(Self {
            count: plan.round_trips,
            request_bytes: plan.request_bytes,
            direct: of(|run| run.direct)?,
            through: of(|run| run.through)?,
            added: of(|run| run.through.less(run.direct))?,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_of_a_device_are_those_received_and_sent() {
        let text = "Inter-| Receive\n face |bytes packets\n    lo: 1 0 0 0 0 0 0 0 2 0\n wan0:10 1 0 0 0 0 0 0 300 1 0 0\n";
        assert_eq!(device_bytes_in(text, "wan0"), Some(310));
        assert_eq!((device_bytes_in(text, "wan"), device_bytes_in(text, "lo")), (None, Some(3)));
        let error = device_bytes("no-such-device").unwrap_err();
        assert!(error.to_string().contains("`ip link` lists them"), "{error}");
    }

    #[test]
    fn a_plan_that_cannot_work_is_refused_by_its_field() {
        let refused = |change: fn(&mut LinkPlan)| {
            let mut plan = LinkPlan::default();
            change(&mut plan);
            plan.validate().unwrap_err().to_string()
        };
        assert!(LinkPlan::default().validate().is_ok());
        assert!(refused(|plan| plan.runs = 0).contains("runs: 0; expected 1 to"));
        assert!(refused(|plan| plan.redundancy = vec![1.5]).contains("redundancy: 1.5"));
        assert!(refused(|plan| plan.redundancy.clear()).contains("redundancy: 0; expected 1 to"));
        let slow = refused(|plan| plan.rate = Some("8kbit".parse().unwrap()));
        assert!(slow.contains("stream_bytes: a stream takes 8388 s"), "{slow}");
    }
}
