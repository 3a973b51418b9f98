//! `nandex-lab sim`: runs a load on a simulated device, and reports the results.

use std::fs::File;
use std::io::{BufReader, Write};
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use clap::builder::PossibleValuesParser;
use nandex::raw::device::output::OutputFile;
use nandex_sim::Fill;
use nandex_sim::preset::Preset;
use nandex_sim::report::{Explanation, Keep, Report, html, text, write_trace};
use nandex_sim::run::{Load, Mix, Pace, Run};
use nandex_sim::spec::HOST_PAGE_BYTES;
use nandex_sim::trace::{Options, TraceFormat, TraceReader};
use nandex_sim::workload::Gaps;
use serde::Serialize;

use nandex_cli::console::{Console, aligned};
use nandex_cli::refuse;
use nandex_cli::size;
use nandex_cli::unfinished::{begin_output, cannot_write};
use nandex_cli::usage::Usage;

/// The most spans and requests in a trace file: some 200 MB.
const TRACED_MAX: usize = 1 << 20;
/// The number of spans and requests from which on a page selects what it draws.
const DRAWN_MAX: usize = 1 << 16;

/// The load and the device.
#[derive(Debug, clap::Args)]
#[command(group = clap::ArgGroup::new("device").required(true).args(["preset", "spec", "list"]))]
#[command(group = clap::ArgGroup::new("load").args(["workload", "replay"]))]
pub struct Args {
    /// List the named devices
    #[arg(long, conflicts_with = "load")]
    list: bool,
    /// Device, by name
    #[arg(long, value_name = "NAME")]
    preset: Option<String>,
    /// Device, from a file
    #[arg(long, value_name = "FILE")]
    spec: Option<PathBuf>,
    /// Workload to run
    #[arg(long, value_name = "NAME", value_parser = PossibleValuesParser::new(Mix::ALL.map(|it| it.name)))]
    workload: Option<String>,
    /// Trace to replay
    #[arg(long, value_name = "TRACE")]
    replay: Option<PathBuf>,
    /// Format of the trace; default: the one that its first lines match
    #[arg(long, requires = "replay", conflicts_with = "workload")]
    format: Option<Format>,
    /// Most requests to run; default: 10,000 of a workload, and all of a trace
    #[arg(long, value_name = "COUNT", value_parser = size::parse_count)]
    requests: Option<u64>,
    /// Number of requests to keep in flight; default: 1, or a trace's own times
    #[arg(long, value_name = "COUNT", conflicts_with = "rate", value_parser = clap::value_parser!(u32).range(1..))]
    depth: Option<u32>,
    /// Requests that arrive each second, however busy the device is
    #[arg(long, value_name = "IOPS", conflicts_with = "replay", value_parser = rate)]
    rate: Option<u64>,
    /// Time between requests that arrive at a rate
    #[arg(long, requires = "rate", default_value = "exponential")]
    gaps: Spacing,
    /// Bytes of each request of a workload, a multiple of 4096
    #[arg(long, value_name = "SIZE", conflicts_with = "replay", value_parser = pages, default_value = "4096")]
    size: u32,
    /// Percentage of reads of a mixed workload; default: 70
    #[arg(long, value_name = "PERCENT", conflicts_with = "replay", value_parser = clap::value_parser!(u32).range(0..=100))]
    read_percent: Option<u32>,
    /// Content of the device at the beginning
    #[arg(long, default_value = "sequential")]
    fill: Filled,
    /// Seed of everything random
    #[arg(long, value_name = "NUMBER", default_value_t = 1)]
    seed: u64,
    /// Write the activity of each part over time to this file, for Perfetto
    #[arg(long, value_name = "FILE")]
    trace: Option<PathBuf>,
    /// Write a report to this HTML file
    #[arg(long, value_name = "FILE")]
    report: Option<PathBuf>,
    /// Explain the latency of this many of the slowest requests
    #[arg(long, value_name = "COUNT", default_value_t = 0)]
    explain: usize,
}

/// Formats of traces.
#[derive(Clone, Copy, Debug, clap::ValueEnum)]
enum Format {
    /// DiskSim's ASCII input
    Disksim,
    /// The output of blkparse
    Blkparse,
    /// The CSV of the MSR Cambridge traces
    Msr,
}

/// The time between requests.
#[derive(Clone, Copy, Debug, clap::ValueEnum)]
enum Spacing {
    /// Random, so that arrivals are a Poisson process
    Exponential,
    /// Always the same
    Constant,
}

/// The content of a device.
#[derive(Clone, Copy, Debug, clap::ValueEnum)]
enum Filled {
    /// Nothing
    Empty,
    /// Every page, written once in order
    Sequential,
    /// Every page, as after random writes without end
    Steady,
}

fn rate(text: &str) -> Result<u64, String> {
    match size::parse_count(text)? {
        rate @ 1..=1_000_000_000 => Ok(rate),
        rate => Err(format!("{rate} is not a rate; expected 1 to 1e9 requests per second")),
    }
}

fn pages(text: &str) -> Result<u32, String> {
    let bytes = size::parse(text)?;
    let pages = u32::try_from(bytes / HOST_PAGE_BYTES).ok();
    let whole = bytes > 0 && bytes.is_multiple_of(HOST_PAGE_BYTES);
    pages.filter(|_| whole).ok_or_else(|| {
        format!("{bytes} bytes are not a request; expected a multiple of 4096, up to 16 TiB")
    })
}

/// Runs the load and prints the report, or lists the devices.
///
/// # Errors
/// An unknown or impossible device, a trace that does not parse, a file that cannot be written.
pub fn run(args: &Args, console: &Console) -> Result<()> {
    if args.list {
        return list(console);
    }
    let preset = match (&args.preset, &args.spec) {
        (Some(name), _) => Preset::named(name)?,
        (None, Some(path)) => Preset::from_file(path)?,
        (None, None) => refuse!("give a --preset or a --spec"),
    };
    let run = start(args)?;
    let outputs = Outputs::open(args, console)?;
    let report = run.on(&preset, args.fill()).with_context(|| args.what())?;
    outputs.finish(&report, console)?;
    let output = SimOutput { explained: explained(&report, args.explain), report: &report };
    console.print(&output, |output| {
        let explained: String = output.explained.iter().map(|it| format!("\n{it}")).collect();
        text(output.report) + &explained
    })?;
    Ok(())
}

/// The report and the requests to explain.
#[derive(Serialize)]
struct SimOutput<'a> {
    #[serde(flatten)]
    report: &'a Report,
    explained: Vec<Explanation>,
}

fn explained(report: &Report, count: usize) -> Vec<Explanation> {
    let slowest = report.slowest.iter().take(count);
    slowest.map(|done| Explanation::of(done, report.spec())).collect()
}

/// The named devices.
#[derive(Serialize)]
struct List {
    presets: Vec<Listed>,
}

/// A named device.
#[derive(Serialize)]
struct Listed {
    name: &'static str,
    about: String,
}

fn list(console: &Console) -> Result<()> {
    let listed = |name| Ok(Listed { name, about: Preset::named(name)?.about().to_owned() });
    let presets = Preset::names().map(listed).collect::<Result<Vec<_>>>()?;
    console.print(&List { presets }, |list| {
        let rows: Vec<_> =
            list.presets.iter().map(|it| (it.name, first_sentence(&it.about))).collect();
        aligned(&rows)
    })
}

/// Returns the first sentence, on one line.
fn first_sentence(text: &str) -> String {
    let line = text.split_whitespace().collect::<Vec<_>>().join(" ");
    let end = line.find(". ").map_or(line.len(), |at| at + 1);
    line[..end].to_owned()
}

fn start(args: &Args) -> Result<Run<BufReader<File>>> {
    let (load, pace) = match (&args.workload, &args.replay) {
        (Some(name), _) => (args.mix(name)?, args.pace()),
        (None, Some(path)) => (args.trace(path)?, args.depth.map_or(Pace::Recorded, closed)),
        (None, None) => {
            refuse!("give a --workload or a --replay")
        }
    };
    let kept = match (&args.trace, &args.report) {
        (Some(_), _) => TRACED_MAX,
        (None, Some(_)) => DRAWN_MAX,
        (None, None) => 0,
    };
    let keep = Keep { slowest: args.explain.max(1), first: kept };
    Ok(Run { requests_max: args.requests, keep, spans_max: kept, ..Run::new(load, pace) })
}

const fn closed(depth: u32) -> Pace {
    Pace::Closed { depth }
}

impl Args {
    const fn fill(&self) -> Fill {
        match self.fill {
            Filled::Empty => Fill::Empty,
            Filled::Sequential => Fill::Sequential,
            Filled::Steady => Fill::Steady { seed: self.seed },
        }
    }

    fn mix<R>(&self, name: &str) -> Result<Load<R>> {
        let Some(mut mix) = Mix::named(name) else { refuse!("there is no workload {name}") };
        if let Some(percent) = self.read_percent {
            if !mix.is_mixed() {
                let text = format!(
                    "--read-percent is for mixed workloads, and {name} is none: take mixed, zipf-mixed \
                     or hot-cold-mixed"
                );
                return Err(Usage(text).into());
            }
            mix.read_ppm = percent * 10_000;
        }
        Ok(Load::Mix { mix, request_pages: self.size, seed: self.seed })
    }

    fn pace(&self) -> Pace {
        let Some(rate) = self.rate else { return closed(self.depth.unwrap_or(1)) };
        let gap_ns = (1_000_000_000 + rate / 2) / rate;
        Pace::Open(match self.gaps {
            Spacing::Constant => Gaps::Constant { gap_ns },
            Spacing::Exponential => Gaps::Exponential { mean_ns: gap_ns },
        })
    }

    fn trace(&self, path: &Path) -> Result<Load<BufReader<File>>> {
        let file = File::open(path).with_context(|| format!("cannot open {}", path.display()))?;
        let (input, options) = (BufReader::new(file), Options::default());
        let format = self.format.map(|format| match format {
            Format::Disksim => TraceFormat::DiskSim,
            Format::Blkparse => TraceFormat::Blkparse,
            Format::Msr => TraceFormat::Msr,
        });
        Ok(Load::Trace(match format {
            Some(format) => TraceReader::new(format, input, options),
            None => TraceReader::detecting(input, options)
                .with_context(|| format!("cannot read {}", path.display()))?,
        }))
    }

    /// Returns the subject of a failure.
    fn what(&self) -> String {
        match &self.replay {
            Some(path) => format!("cannot replay {}", path.display()),
            None => "cannot run".into(),
        }
    }
}

/// The requested files, opened before the run, so that no run is lost to a path that cannot be written. A failed run
/// keeps an earlier report.
struct Outputs<'a> {
    trace: Option<(&'a Path, OutputFile)>,
    page: Option<(&'a Path, OutputFile)>,
}

impl<'a> Outputs<'a> {
    fn open(args: &'a Args, console: &Console) -> Result<Self> {
        let open = |path: &'a PathBuf| {
            Ok::<_, anyhow::Error>((path.as_path(), begin_output(path, console)?))
        };
        let trace = args.trace.as_ref().map(open).transpose()?;
        Ok(Self { trace, page: args.report.as_ref().map(open).transpose()? })
    }

    fn finish(self, report: &Report, console: &Console) -> Result<()> {
        if let Some((path, mut file)) = self.trace {
            let written = write_trace(report, &mut file).and_then(|()| file.finish());
            written.with_context(|| cannot_write(path))?;
            tell_trace(path, report, console);
        }
        if let Some((path, mut file)) = self.page {
            let written = file.write_all(html(report).as_bytes()).and_then(|()| file.finish());
            written.with_context(|| cannot_write(path))?;
            console.note(&format!("report: {}", path.display()));
        }
        Ok(())
    }
}

fn tell_trace(path: &Path, report: &Report, console: &Console) {
    console.note(&format!("trace: {}", path.display()));
    let missed = report.spans().1;
    if missed > 0 {
        console.note(&format!(
            "the trace holds the beginning of the run: {} spans were left out",
            size::show_count(missed)
        ));
    }
}
