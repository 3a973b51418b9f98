//! `nandex-bench-sim`: the speed of the simulated flash, and its costs.
//!
//! Rates are of requests simulated per second of one core, medians of several runs. They depend on the
//! machine; the behaviour of the simulated device is the same everywhere.
#![forbid(unsafe_code)]

use std::alloc::System;
use std::process::ExitCode;
use std::time::Instant;

use anyhow::{Context, Result};
use clap::Parser;
use nandex_bench::percentiles::median;
use nandex_bench::process::finish;
use nandex_sim::spec::{Flash, Ftl, Host, Spec, Timing};
use nandex_sim::workload::{Workload, closed_loop};
use nandex_sim::{Fill, Model, Request, RequestKind, Ssd};

/// An allocator that counts.
#[global_allocator]
static ALLOCATOR: cap::Cap<System> = cap::Cap::new(System, usize::MAX);

/// Measures the simulator: simulated requests per second, RAM per simulated page, time to open.
#[derive(Parser, Debug)]
#[command(name = "nandex-bench-sim", version)]
struct Arguments {
    /// Requests of each run.
    #[arg(long, default_value_t = 5_000_000)]
    requests: u64,
    /// Runs of each kind; medians are printed.
    #[arg(long, default_value_t = 5)]
    runs: usize,
    /// One line of JSON instead of a table.
    #[arg(long)]
    json: bool,
}

/// The measurements.
#[derive(serde::Serialize, Debug)]
struct Figures {
    requests: u64,
    runs: usize,
    random_reads_per_second: f64,
    random_writes_per_second: f64,
    write_amplification: f64,
    bytes_per_page: f64,
    open_tebibyte_seconds: f64,
    open_steady_tebibyte_seconds: f64,
}

/// Returns a drive of 64 dies on 8 channels, with `blocks` in each of the 128 planes.
fn spec(blocks: u32, pages: u32) -> Spec {
    let plain = Spec::plain();
    Spec {
        name: "bench".into(),
        about: "8 channels, 64 dies, 128 planes".into(),
        host: Host { link_ps_per_byte: 300, duplex: true, controller_ns: 1000, ..plain.host },
        flash: Flash { channels: 8, packages: 4, blocks, pages, ..plain.flash },
        timing: Timing {
            program_ns: 500_000,
            erase_ns: 3_000_000,
            command_ns: 300,
            transfer_ps_per_byte: 2500,
            ..plain.timing
        },
        ftl: Ftl { spare_permille: 150, clean_at_permille: 10, ..plain.ftl },
        ..plain
    }
}

/// Returns the simulated requests per second, and the write amplification meanwhile.
fn rate(requests: u64, read_ppm: u32) -> Result<(f64, f64)> {
    let mut ssd = Ssd::new(spec(256, 128), Fill::Steady { seed: 1 })?;
    let workload = Workload { read_ppm, ..Workload::pages(ssd.page_count()) };
    let stream = workload.requests()?.take(usize::try_from(requests)?);
    let start = Instant::now();
    let mut ended = 0_u64;
    closed_loop(&mut ssd, stream, 32, |_| ended += 1);
    let seconds = start.elapsed().as_secs_f64();
    anyhow::ensure!(ended == requests, "{ended} of {requests} requests ended");
    Ok((requests as f64 / seconds, ssd.counters().ftl.write_amplification(1)))
}

fn open_seconds(fill: Fill) -> Result<f64> {
    // 1.2 TiB of flash; more than one TiB is visible to the host.
    let start = Instant::now();
    let ssd = Ssd::new(spec(4915, 512), fill)?;
    let seconds = start.elapsed().as_secs_f64();
    anyhow::ensure!(ssd.page_count() >= 1 << 28, "less than a TiB");
    Ok(seconds)
}

/// Returns the RAM for each simulated page, once every page has been written.
fn bytes_per_page() -> Result<f64> {
    let before = ALLOCATOR.allocated();
    let mut ssd = Ssd::new(spec(256, 128), Fill::Empty)?;
    let (pages, mut done) = (ssd.page_count(), Vec::new());
    for page in 0..pages {
        ssd.submit(Request { token: page, kind: RequestKind::Write, page, pages: 1 });
        ssd.step(&mut done);
        done.clear();
    }
    while ssd.step(&mut done) {
        done.clear();
    }
    let bytes = ALLOCATOR.allocated() - before;
    Ok(bytes as f64 / pages as f64)
}

fn measure(arguments: &Arguments) -> Result<Figures> {
    let many = |read_ppm| -> Result<Vec<(f64, f64)>> {
        (0..arguments.runs.max(1)).map(|_| rate(arguments.requests, read_ppm)).collect()
    };
    let (reads, writes) = (many(1_000_000)?, many(0)?);
    Ok(Figures {
        requests: arguments.requests,
        runs: arguments.runs.max(1),
        random_reads_per_second: median(reads.iter().map(|run| run.0)),
        random_writes_per_second: median(writes.iter().map(|run| run.0)),
        write_amplification: writes[0].1,
        bytes_per_page: bytes_per_page()?,
        open_tebibyte_seconds: open_seconds(Fill::Sequential)?,
        open_steady_tebibyte_seconds: open_seconds(Fill::Steady { seed: 1 })?,
    })
}

fn text(figures: &Figures) -> String {
    format!(
        "simulated flash, one core, {} requests a run, medians of {} runs\n\
         random reads             {:>10.2} M/s\n\
         random writes, cleaning  {:>10.2} M/s at a write amplification of {:.2}\n\
         RAM                      {:>10.2} bytes per simulated page of 4 KiB\n\
         open 1 TiB, written once {:>10.3} s\n\
         open 1 TiB, steady state {:>10.3} s\n",
        figures.requests,
        figures.runs,
        figures.random_reads_per_second / 1e6,
        figures.random_writes_per_second / 1e6,
        figures.write_amplification,
        figures.bytes_per_page,
        figures.open_tebibyte_seconds,
        figures.open_steady_tebibyte_seconds,
    )
}

fn run() -> Result<String> {
    let arguments = Arguments::parse();
    let figures = measure(&arguments).context("the simulator could not be measured")?;
    let json = || Ok(format!("{}\n", serde_json::to_string(&figures)?));
    if arguments.json { json() } else { Ok(text(&figures)) }
}

fn main() -> ExitCode {
    finish("nandex-bench-sim", run())
}
