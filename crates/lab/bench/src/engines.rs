//! A comparison of nandex's engine and fio, which read the same pages, repeatedly in turn, at several depths.
//!
//! A report of a workload has both rates, too, but measures them once before a run and once after it, and the
//! drive drifts in between. Here they take turns, and the one that begins a round changes with each.

use std::time::Instant;

use anyhow::{Context, Result};
use serde::Serialize;

use crate::percentiles::Spread;
use crate::process::cpu_ns;
use crate::reads::{RandomReads, ReadLoad};

/// The rates of both at one depth.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct AtDepth {
    /// Reads in flight, for each thread.
    pub depth: usize,
    /// Reads a second through our engine.
    pub engine_reads_per_s: Spread,
    /// Reads a second by fio.
    pub fio_reads_per_s: Spread,
    /// The ratio of each round: nandex's rate over fio's.
    pub ratio: Spread,
    /// Processor time of a read through our engine, in microseconds.
    pub engine_cpu_us_per_read: Spread,
    /// CPU time of a read by fio, in microseconds.
    pub fio_cpu_us_per_read: Spread,
}

/// The rates of one round: nandex's and fio's.
struct Round {
    engine_reads_per_s: f64,
    engine_cpu_us: f64,
    fio_reads_per_s: f64,
    fio_cpu_us: f64,
}

/// Reads `rounds` times by each of both.
///
/// # Errors
/// Fails on a failed read, without rounds, and without fio: if it is not installed, or the time is below a
/// tenth of a second.
pub fn compare(reads: &RandomReads, load: ReadLoad, rounds: usize) -> Result<AtDepth> {
    let rounds: Vec<Round> =
        (0..rounds).map(|number| round(reads, load, number % 2 == 0)).collect::<Result<_>>()?;
    let spread = |of: fn(&Round) -> f64| {
        Spread::of(rounds.iter().map(of)).context("no rounds: ask for at least one")
    };
    Ok(AtDepth {
        depth: load.depth,
        engine_reads_per_s: spread(|it| it.engine_reads_per_s)?,
        fio_reads_per_s: spread(|it| it.fio_reads_per_s)?,
        ratio: spread(|it| it.engine_reads_per_s / it.fio_reads_per_s)?,
        engine_cpu_us_per_read: spread(|it| it.engine_cpu_us)?,
        fio_cpu_us_per_read: spread(|it| it.fio_cpu_us)?,
    })
}

fn round(reads: &RandomReads, load: ReadLoad, begins: bool) -> Result<Round> {
    let fio = || {
        reads.by_fio(load).context(
            "fio read nothing: it must be installed, read for .1 s or more, and be able to read the file",
        )
    };
    let before = if begins { None } else { Some(fio()?) };
    let (start, cpu_start_ns) = (Instant::now(), cpu_ns());
    let engine_reads_per_s = reads.per_s(load)?;
    let engine_reads = engine_reads_per_s * start.elapsed().as_secs_f64();
    let engine_cpu_us = (cpu_ns() - cpu_start_ns) as f64 / 1e3 / engine_reads;
    let fio = before.map_or_else(fio, Ok)?;
    Ok(Round {
        engine_reads_per_s,
        engine_cpu_us,
        fio_reads_per_s: fio.reads_per_s,
        fio_cpu_us: fio.cpu_us_per_read,
    })
}
