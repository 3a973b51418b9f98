//! `nandex wan proxy latency`: measures what both halves add to a round trip on this machine.

use std::sync::Arc;

use anyhow::Result;
use nandex::device::MemoryDevice;
use nandex_wan::{CACHE_BYTES_MIN, Cache, CacheConfig};
use nandex_wanproxy::{LatencyPlan, LatencyReport, measure_latency};

use crate::console::{Console, aligned};
use crate::size::{self, show_count};

/// The number and the size of the round trips.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// Number of round trips that count
    #[arg(long, value_name = "COUNT", default_value_t = 1000)]
    count: usize,
    /// Bytes of each request and of its answer; from 512 on they are looked up in the cache
    #[arg(long, value_name = "SIZE", value_parser = size::parse, default_value = "100")]
    bytes: u64,
}

/// Measures on loopback, with caches in RAM, and shows percentiles.
///
/// # Errors
/// Numbers out of range, no free port, a failed connection.
pub fn run(args: &Args, console: &Console) -> Result<()> {
    let plan = LatencyPlan {
        round_trips: args.count,
        bytes: usize::try_from(args.bytes)?,
        ..LatencyPlan::default()
    };
    let report = measure_latency((cache()?, cache()?), &plan)?;
    console.print(&report, |report| aligned(&rows(report)))
}

fn cache() -> Result<Arc<Cache>> {
    let config = CacheConfig { content_bytes: CACHE_BYTES_MIN, ..CacheConfig::default() };
    Ok(Arc::new(Cache::create(Arc::new(MemoryDevice::new()), config)?))
}

fn rows(report: &LatencyReport) -> [(&'static str, String); 8] {
    let us = |time: f64| format!("{time:.1} us");
    [
        ("round trips", show_count(report.round_trips as u64)),
        ("bytes as they are", show_count(report.plain_bytes)),
        ("direct, p50", us(report.direct.p50_us)),
        ("direct, p99", us(report.direct.p99_us)),
        ("through both halves, p50", us(report.through.p50_us)),
        ("through both halves, p99", us(report.through.p99_us)),
        ("added, p50", us(report.added.p50_us)),
        ("added, p99", us(report.added.p99_us)),
    ]
}
