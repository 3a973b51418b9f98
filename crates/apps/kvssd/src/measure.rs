//! Measurements of a run of commands: counts, latencies and the drive's own figures over the run.

use nandex::READS_HISTOGRAM_LEN;
use serde::Serialize;

use crate::info::DriveStats;
use crate::{Drive, Result};

/// The figures of a run.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
#[non_exhaustive]
pub struct RunReport {
    /// The name of the run.
    pub name: String,
    /// The number of commands executed.
    pub commands: u64,
    /// The duration of the run, by the drive's timing, in seconds.
    pub elapsed_s: f64,
    /// Commands per second.
    pub commands_per_s: f64,
    /// Mean, median and worse latencies of a command, in microseconds.
    pub latency_us: LatencyReport,
    /// Index accesses by the number of flash pages that they read.
    pub index_reads: [u64; READS_HISTOGRAM_LEN],
    /// The mean number of flash pages that an index access read.
    pub index_reads_mean: f64,
    /// Pages of records read.
    pub value_pages_read: u64,
    /// Bytes of keys and values stored.
    pub host_bytes_written: u64,
    /// Bytes that the device was told to program.
    pub device_bytes_written: u64,
    /// Device bytes per byte of the host.
    pub write_amplification: f64,
}

/// Latencies, in microseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
#[non_exhaustive]
pub struct LatencyReport {
    /// The mean.
    pub mean: f64,
    /// The median.
    pub p50: f64,
    /// The 99th percentile.
    pub p99: f64,
    /// The longest.
    pub max: f64,
}

/// Measures a run.
#[derive(Debug)]
pub(crate) struct Measure {
    name: String,
    before: DriveStats,
    start_ns: u64,
    commands: u64,
    /// The latencies of at most [`LATENCIES_MAX`] commands, evenly spread.
    latencies_ns: Vec<u64>,
    every: u64,
    sum_ns: u128,
    max_ns: u64,
}

/// The number of latencies that are kept for percentiles; beyond it, every second one is dropped.
const LATENCIES_MAX: usize = 1 << 16;

impl Measure {
    pub(crate) fn start(drive: &Drive, name: &str) -> Result<Self> {
        Ok(Self {
            name: name.to_owned(),
            before: drive.stats()?,
            start_ns: drive.inner.clock.now_ns(),
            commands: 0,
            latencies_ns: Vec::new(),
            every: 1,
            sum_ns: 0,
            max_ns: 0,
        })
    }

    pub(crate) fn note(&mut self, latency_ns: u64) {
        if self.commands.is_multiple_of(self.every) {
            self.latencies_ns.push(latency_ns);
        }
        self.commands += 1;
        self.sum_ns += u128::from(latency_ns);
        self.max_ns = self.max_ns.max(latency_ns);
        if self.latencies_ns.len() >= LATENCIES_MAX {
            let mut index = 0;
            self.latencies_ns.retain(|_| {
                index += 1;
                index % 2 == 1
            });
            self.every *= 2;
        }
    }

    pub(crate) fn end(mut self, drive: &Drive) -> Result<RunReport> {
        let elapsed_ns = drive.inner.clock.now_ns().saturating_sub(self.start_ns);
        let after = drive.stats()?;
        self.latencies_ns.sort_unstable();
        let us = |ns: u64| ns as f64 / 1e3;
        let part = |percent: usize| {
            let at =
                (self.latencies_ns.len() * percent / 100).min(self.latencies_ns.len().max(1) - 1);
            us(self.latencies_ns.get(at).copied().unwrap_or(0))
        };
        let mut index_reads = after.index_reads;
        index_reads.iter_mut().zip(self.before.index_reads).for_each(|(now, old)| *now -= old);
        let accesses: u64 = index_reads.iter().sum();
        let pages: u64 = (0..).zip(index_reads).map(|(pages, count)| pages * count).sum();
        let host = after.host_bytes_written - self.before.host_bytes_written;
        let device = after.device_bytes_written - self.before.device_bytes_written;
        let elapsed_s = elapsed_ns as f64 / 1e9;
        let ratio = |part: f64, whole: f64| if whole > 0.0 { part / whole } else { 0.0 };
        Ok(RunReport {
            commands: self.commands,
            elapsed_s,
            commands_per_s: ratio(self.commands as f64, elapsed_s),
            latency_us: LatencyReport {
                mean: ratio(self.sum_ns as f64 / 1e3, self.commands as f64),
                p50: part(50),
                p99: part(99),
                max: us(self.max_ns),
            },
            index_reads,
            index_reads_mean: ratio(pages as f64, accesses as f64),
            value_pages_read: after.value_pages_read - self.before.value_pages_read,
            host_bytes_written: host,
            device_bytes_written: device,
            write_amplification: ratio(device as f64, host as f64),
            name: self.name,
        })
    }
}
