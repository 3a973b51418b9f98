//! `nandex wan proxy measure`: measures bandwidth and round trips over a slow link, with and without both halves.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

use anyhow::{Context, Result};
use nandex::device::MemoryDevice;
use nandex_wan::{CACHE_BYTES_MIN, Cache, CacheConfig};
use nandex_wanproxy::{
    LinkEnds, LinkKind, LinkPlan, LinkRate, LinkReport, Spread, StreamReport, TripSpread,
    measure_link, measure_link_on_loopback,
};

use crate::console::{Console, aligned};
use crate::size::{self, show_bytes, show_count};

/// The link, and the load.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// Address of the target itself, over the link; default: everything on loopback in this process
    #[arg(long, value_name = "ADDRESS", requires = "through")]
    direct: Option<SocketAddr>,
    /// Address of a forward of the client half, whose server half has this target
    #[arg(long, value_name = "ADDRESS", requires = "direct")]
    through: Option<SocketAddr>,
    /// This machine's network device of the link, to count its bytes
    #[arg(long, value_name = "NAME", requires = "direct")]
    device: Option<String>,
    /// Rate of the link, as tc writes it: that of loopback, by default 10mbit; with addresses it is only reported
    #[arg(long, value_name = "RATE")]
    rate: Option<LinkRate>,
    /// Number of runs; a figure is their median, with the least and the most
    #[arg(long, value_name = "COUNT", default_value_t = 5)]
    runs: usize,
    /// Bytes of each stream
    #[arg(long, value_name = "SIZE", value_parser = size::parse_some_bytes, default_value = "8MiB")]
    bytes: u64,
    /// Shares of streams that repeat the run's new one
    #[arg(long, value_name = "SHARES", value_parser = size::parse_share, value_delimiter = ',',
        default_value = "0.5,0.9,1")]
    redundancy: Vec<f64>,
    /// Number of round trips of a run that count
    #[arg(long, value_name = "COUNT", default_value_t = 200)]
    count: usize,
    /// Bytes of each request and of its answer
    #[arg(long, value_name = "SIZE", value_parser = size::parse_some_bytes, default_value = "100")]
    request: u64,
    /// Seed of the streams, in place of one from the clock; halves must not have carried them before
    #[arg(long, value_name = "NUMBER")]
    seed: Option<u64>,
}

/// Measures, and shows medians with the least and the most.
///
/// # Errors
/// Numbers out of range, a failed connection, a stream that arrives incomplete.
pub fn run(args: &Args, console: &Console) -> Result<()> {
    let plan = LinkPlan {
        runs: args.runs,
        stream_bytes: usize::try_from(args.bytes)?,
        redundancy: args.redundancy.clone(),
        round_trips: args.count,
        request_bytes: usize::try_from(args.request)?,
        rate: args.rate,
        seed: args.seed.map_or_else(seed_of_clock, Ok)?,
    };
    let report = match (args.direct, args.through) {
        (Some(direct), Some(through)) => {
            measure_link(&LinkEnds { direct, through, device: args.device.clone() }, &plan)?
        }
        _ => {
            let rate = args.rate.map_or_else(|| "10mbit".parse(), Ok);
            let rate = rate.map_err(anyhow::Error::msg)?;
            let caches = (cache(&plan)?, cache(&plan)?);
            measure_link_on_loopback(caches, rate, &plan)?
        }
    };
    console.print(&report, text)
}

/// Returns a seed from the clock. Streams of the same seed are known to halves that keep running, so each call uses
/// another.
fn seed_of_clock() -> Result<u64> {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).context("the clock is before 1970")?;
    Ok(now.as_secs())
}

/// Returns a cache in RAM that is large enough for all streams of a run.
fn cache(plan: &LinkPlan) -> Result<Arc<Cache>> {
    let streams = plan.redundancy.len() as u64 + 1;
    let content_bytes = (plan.stream_bytes as u64 * streams).max(CACHE_BYTES_MIN);
    let config = CacheConfig { content_bytes, ..CacheConfig::default() };
    Ok(Arc::new(Cache::create(Arc::new(MemoryDevice::new()), config)?))
}

fn text(report: &LinkReport) -> String {
    let rate = report
        .rate_bits_per_s
        .map_or_else(String::new, |bits| format!(", {:.3} MB/s each way", bits as f64 / 8e6));
    let link = match report.link {
        LinkKind::TokenBucket => "a token bucket in this process, on loopback",
        _ => "a network",
    };
    let trips = &report.round_trips;
    let head = aligned(&[
        ("link", format!("{link}{rate}")),
        ("runs", format!("{}; the median of each figure (least to most)", report.runs)),
        ("seed", report.seed.to_string()),
        ("a stream", format!("{} of records", show_bytes(report.stream_bytes as u64))),
    ]);
    let streams: String = report.streams.iter().map(stream_text).collect();
    let (count, bytes) = (show_count(trips.count as u64), show_bytes(trips.request_bytes as u64));
    let round_trips = [
        trip_text("direct", &trips.direct),
        trip_text("through", &trips.through),
        trip_text("added", &trips.added),
    ];
    format!("{head}{streams}{count} round trips of {bytes}, in us\n{}", round_trips.concat())
}

fn stream_text(stream: &StreamReport) -> String {
    let title = match stream.redundancy {
        0.0 => "a stream that is new".to_owned(),
        share => format!("a stream of which {:.0} % is known", share * 100.0),
    };
    let mega = |spread: &Spread| shown(spread, 1e6, 3);
    let mut rows = vec![
        ("  direct, MB/s", mega(&stream.direct_bytes_per_s)),
        ("  through, MB/s", mega(&stream.through_bytes_per_s)),
        ("  times the bandwidth", shown(&stream.improvement, 1.0, 2)),
    ];
    if let Some((direct, through)) = stream.direct_link_bytes.zip(stream.through_link_bytes) {
        rows.push(("  direct, MB over the link", mega(&direct)));
        rows.push(("  through, MB over the link", mega(&through)));
    }
    format!("{title}\n{}", aligned(&rows))
}

fn trip_text(name: &str, trips: &TripSpread) -> String {
    let of = |spread| shown(spread, 1.0, 0);
    format!("  {name:8} p50 {}, p99 {}\n", of(&trips.p50_us), of(&trips.p99_us))
}

/// Formats the median, and the least and the most, in this unit.
fn shown(spread: &Spread, unit: f64, digits: usize) -> String {
    let Spread { median, min, max, .. } = *spread;
    let of = |figure: f64| format!("{:.digits$}", figure / unit);
    format!("{} ({} to {})", of(median), of(min), of(max))
}
