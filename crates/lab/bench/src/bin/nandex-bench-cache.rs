//! `nandex-bench-cache`: replays a cache trace as lookups in a table with a cache of entries, next to other caches.
//!
//! The table is in memory and has all blocks of the trace, so each lookup that its buffers cannot answer goes to the
//! cache. The other caches are computed from the same requests, for as many entries.
#![forbid(unsafe_code)]

use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Instant;

use anyhow::{Result, ensure};
use clap::Parser;
use nandex::device::MemoryDevice;
use nandex::raw::size::parse;
use nandex::{
    Durability, OpenOptions, Policy, Requirements, SliceHash, Table, Volume, VolumeOptions,
    slicehash,
};
use nandex_bench::keys::KeySpace;
use nandex_bench::process::finish;
use nandex_bench::replay::{RIVALS, Trace};

/// Measures the hit ratio of a table's cache of entries.
#[derive(Parser, Debug)]
#[command(name = "nandex-bench-cache", version)]
struct Arguments {
    /// A trace as text: in each line the first block and the number of blocks.
    trace: PathBuf,
    /// The number of entries of each cache.
    #[arg(long, value_delimiter = ',', default_value = "1k,10k,100k", value_parser = parse)]
    entries: Vec<u64>,
    /// The maximum number of requests to replay.
    #[arg(long, default_value = "100M", value_parser = parse)]
    requests: u64,
    /// One line of JSON instead of a table.
    #[arg(long)]
    json: bool,
}

/// The hit ratios of caches with `entries` entries.
#[derive(serde::Serialize, Debug)]
struct Row {
    entries: u64,
    cache: f64,
    lru: f64,
    s3_fifo: f64,
    optimal: f64,
    /// Lookups of the table a second, in memory.
    lookups_per_s: f64,
}

#[derive(serde::Serialize, Debug)]
struct Figures {
    requests: usize,
    blocks: u32,
    rows: Vec<Row>,
}

fn main() -> ExitCode {
    finish("nandex-bench-cache", run(&Arguments::parse()))
}

fn run(arguments: &Arguments) -> Result<String> {
    let trace = Trace::read(&arguments.trace, usize::try_from(arguments.requests)?)?;
    let rows = arguments.entries.iter().map(|entries| row(&trace, *entries));
    let rows = rows.collect::<Result<_>>()?;
    let figures = Figures { requests: trace.requests.len(), blocks: trace.blocks, rows };
    if arguments.json {
        return Ok(format!("{}\n", serde_json::to_string(&figures)?));
    }
    let head = "   entries    cache      LRU  S3-FIFO  optimal  lookups/s";
    let line = |row: &Row| {
        format!(
            "{:>10} {:>8.4} {:>8.4} {:>8.4} {:>8.4} {:>10.0}\n",
            row.entries, row.cache, row.lru, row.s3_fifo, row.optimal, row.lookups_per_s
        )
    };
    let lines: String = figures.rows.iter().map(line).collect();
    Ok(format!("{} requests for {} blocks\n{head}\n{lines}", figures.requests, figures.blocks))
}

fn row(trace: &Trace, entries: u64) -> Result<Row> {
    let (cache, lookups_per_s) = replay(trace, entries)?;
    let [lru, s3_fifo, optimal] =
        RIVALS.map(|(_, of)| of(&trace.requests, usize::try_from(entries).unwrap_or(usize::MAX)));
    Ok(Row { entries, cache, lru, s3_fifo, optimal, lookups_per_s })
}

/// Returns the share of lookups that the cache of a table answers, and their rate.
fn replay(trace: &Trace, entries: u64) -> Result<(f64, f64)> {
    // More space than all entries need, so that no slice is full.
    let asked = Requirements::new(2 * u64::from(trace.blocks), 8, 8);
    let asked = Requirements { policy: Policy::Reject, ..asked };
    let config = asked.advise_one(slicehash::KIND)?.config;
    let options = VolumeOptions {
        log_bytes: config.log_bytes_best(),
        durability: Durability::Never,
        ..VolumeOptions::default()
    };
    let volume = Volume::create(Arc::new(MemoryDevice::new()), options)?;
    let config: slicehash::Config = *config.of()?;
    let (keys, name) = (KeySpace::new(1), "t");
    let table = SliceHash::create(&volume, name, config)?;
    (0..trace.blocks).try_for_each(|it| table.insert_u64(keys.key(it.into()), it.into()))?;
    table.close()?;
    // Seven entries of 8 + 8 bytes take 128.
    let cache_bytes = entries * 128 / 7;
    let own = OpenOptions { cache_bytes, ..OpenOptions::default() };
    let table = SliceHash::open_with(&volume, name, own)?;
    ensure!(table.stats().cache_bytes > 0, "--entries {entries}: a cache has at least 7");
    let start = Instant::now();
    for block in &trace.requests {
        let found = table.get_u64(keys.key((*block).into()))?;
        ensure!(found == Some((*block).into()), "block {block} is {found:?}");
    }
    let (stats, seconds) = (table.stats(), start.elapsed().as_secs_f64());
    // The cache is not involved in lookups of entries that are still in a buffer.
    let asked = stats.cache_hits + stats.hits - stats.reads_histogram[0];
    Ok((stats.cache_hits as f64 / asked as f64, trace.requests.len() as f64 / seconds))
}
