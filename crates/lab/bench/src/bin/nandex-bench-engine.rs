//! `nandex-bench-engine`: random reads of 4 KiB through nandex's engine next to fio's, at several depths, in
//! turn.
#![forbid(unsafe_code)]

use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use anyhow::Result;
use clap::Parser;
use nandex::raw::size::parse;
use nandex_bench::engines::{AtDepth, compare};
use nandex_bench::limit::Scratch;
use nandex_bench::percentiles::Spread;
use nandex_bench::process::finish;
use nandex_bench::reads::ReadLoad;
use serde::Serialize;

/// Measures the engine of reads next to fio.
#[derive(Parser, Debug)]
#[command(name = "nandex-bench-engine", version)]
struct Arguments {
    /// Reads in flight.
    #[arg(long, value_delimiter = ',', default_values_t = [1, 8, 32, 128])]
    depths: Vec<usize>,
    /// Threads that read.
    #[arg(long, default_value_t = 1)]
    threads: usize,
    /// The number of runs of each at each depth.
    #[arg(long, default_value_t = 7)]
    runs: usize,
    /// Seconds for which each reads.
    #[arg(long, default_value_t = 2.0)]
    seconds: f64,
    /// The file that is written once and then read.
    #[arg(long, value_parser = parse, default_value = "2GiB")]
    file_bytes: u64,
    /// The folder of the file.
    #[arg(long, default_value = ".")]
    dir: PathBuf,
    /// One line of JSON instead of a table.
    #[arg(long)]
    json: bool,
}

#[derive(Serialize, Debug)]
struct Figures {
    schema: &'static str,
    threads: usize,
    file_bytes: u64,
    at_depths: Vec<AtDepth>,
}

fn main() -> ExitCode {
    finish("nandex-bench-engine", run(&Arguments::parse()))
}

fn run(arguments: &Arguments) -> Result<String> {
    let scratch = Scratch::in_dir(&arguments.dir, arguments.file_bytes)?;
    let (reads, time) = (scratch.reads(), Duration::try_from_secs_f64(arguments.seconds)?);
    let at = |depth: &usize| {
        let load = ReadLoad { threads: arguments.threads, depth: *depth, time };
        compare(&reads, load, arguments.runs)
    };
    let figures = Figures {
        schema: "nandex-bench-engine/1",
        threads: arguments.threads,
        file_bytes: scratch.bytes(),
        at_depths: arguments.depths.iter().map(at).collect::<Result<_>>()?,
    };
    if arguments.json {
        return Ok(serde_json::to_string(&figures)?);
    }
    let head = format!(
        "{:>5} {:>22} {:>22} {:>18} {:>18} {:>18}\n",
        "depth", "engine, k reads/s", "fio, k reads/s", "ratio", "engine CPU, us", "fio CPU, us"
    );
    Ok(head + &figures.at_depths.iter().map(line).collect::<String>())
}

fn line(it: &AtDepth) -> String {
    let shown = |spread: Spread, scale: f64, digits: usize| {
        let of = |value: f64| format!("{:.digits$}", value / scale);
        format!("{} ({} to {})", of(spread.median), of(spread.min), of(spread.max))
    };
    format!(
        "{:>5} {:>22} {:>22} {:>18} {:>18} {:>18}\n",
        it.depth,
        shown(it.engine_reads_per_s, 1e3, 1),
        shown(it.fio_reads_per_s, 1e3, 1),
        shown(it.ratio, 1.0, 2),
        shown(it.engine_cpu_us_per_read, 1.0, 1),
        shown(it.fio_cpu_us_per_read, 1.0, 1)
    )
}
