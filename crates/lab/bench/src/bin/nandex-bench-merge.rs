//! `nandex-bench-merge`: merges two indexes with a stated overlap into one, compared with the disk's
//! bandwidth.
//!
//! For two indexes of 10 GB of 16 + 16 bytes: `--entries 312.5M`, and space for all three files. With fewer
//! entries the time is scaled to this size, and the output says so.
#![forbid(unsafe_code)]

use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use anyhow::{Result, ensure};
use clap::Parser;
use nandex::raw::size::parse;
use nandex_bench::merging::{MergeLoad, merge};
use nandex_bench::process::finish;

/// Measures the merge of two indexes.
#[derive(Parser, Debug)]
#[command(name = "nandex-bench-merge", version)]
struct Arguments {
    /// The kind of all tables: bufferhash or slicehash.
    #[arg(long, value_parser = ["bufferhash", "slicehash"], default_value = "bufferhash")]
    structure: String,
    /// Entries of each index.
    #[arg(long, value_parser = parse, default_value = "10M")]
    entries: u64,
    /// The share of each one's keys that the other has too, 0 to 1.
    #[arg(long, default_value_t = 0.5)]
    overlap: f64,
    /// Bytes of each key, 8 to 32.
    #[arg(long, default_value_t = 16)]
    key_bytes: u32,
    /// Bytes of each value, 0 to 64.
    #[arg(long, default_value_t = 16)]
    value_bytes: u32,
    /// RAM for entries while they are merged.
    #[arg(long, value_parser = parse, default_value = "256MiB")]
    merge_ram: u64,
    /// Use another hash in the second index.
    #[arg(long)]
    hashes_otherwise: bool,
    /// Count the shared keys, and make no index.
    #[arg(long)]
    count: bool,
    /// The file on which the disk's bandwidth is measured.
    #[arg(long, value_parser = parse, default_value = "256MiB")]
    scratch: u64,
    /// Seconds for which each bandwidth is measured, before and after.
    #[arg(long, default_value_t = 2.0)]
    limit_seconds: f64,
    /// The folder of the files.
    #[arg(long, default_value = ".")]
    dir: PathBuf,
    /// One line of JSON instead of text.
    #[arg(long)]
    json: bool,
}

fn main() -> ExitCode {
    finish("nandex-bench-merge", run(&Arguments::parse()))
}

fn run(arguments: &Arguments) -> Result<String> {
    ensure!((0.0..=1.0).contains(&arguments.overlap), "--overlap must be 0 to 1");
    let load = MergeLoad {
        structure: if arguments.structure == "slicehash" { "slicehash" } else { "bufferhash" },
        entries: arguments.entries,
        overlap: arguments.overlap,
        key_bytes: arguments.key_bytes,
        value_bytes: arguments.value_bytes,
        ram_bytes: arguments.merge_ram,
        hashes_otherwise: arguments.hashes_otherwise,
        counts: arguments.count,
        scratch_bytes: arguments.scratch,
        limit_time: Duration::try_from_secs_f64(arguments.limit_seconds)?,
    };
    let figures = merge(&arguments.dir, &load)?;
    if arguments.json { Ok(serde_json::to_string(&figures)?) } else { Ok(figures.text()) }
}
