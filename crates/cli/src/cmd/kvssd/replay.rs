//! `nandex kvssd replay`: replays a trace of key-value requests on a drive.

use std::fs::File;
use std::io::{self, BufRead, BufReader};
use std::path::PathBuf;

use anyhow::{Context, Result};
use clap::ValueEnum;
use nandex_kvssd::{DriveStats, ReplayPlan, ReplayReport, TraceFormat, TraceReader};
use serde::Serialize;

use super::place::MeasuredDrive;
use super::shown::{run_rows, use_rows};
use crate::console::{Console, aligned};
use crate::exit::{FAILURE, Quiet};
use crate::interrupt::Interrupt;
use crate::size::{self, show_count};

/// The format of the trace.
#[derive(Clone, Copy, Debug, ValueEnum)]
enum FormatWord {
    /// IBM Cloud Object Store, from SNIA's IOTTA
    Ibm,
    /// Twitter's cache clusters
    Twitter,
    /// Meta's CacheLib, with a line that names the columns
    Meta,
    /// The storage caches of the ARC paper
    Arc,
}

impl From<FormatWord> for TraceFormat {
    fn from(word: FormatWord) -> Self {
        match word {
            FormatWord::Ibm => Self::Ibm,
            FormatWord::Twitter => Self::Twitter,
            FormatWord::Meta => Self::Meta,
            FormatWord::Arc => Self::Arc,
        }
    }
}

/// The trace, and the drive.
#[derive(Debug, clap::Args)]
pub struct Args<D: clap::Args> {
    /// Trace to replay; `-` is stdin
    #[arg(long, value_name = "FILE")]
    trace: PathBuf,
    /// Format of the trace
    #[arg(long)]
    format: FormatWord,
    #[command(flatten)]
    drive: D,
    /// Commands in flight
    #[arg(long, value_name = "COUNT", default_value_t = 64)]
    depth: usize,
    /// Store what a request does not find, so that a cache's trace fills the drive
    #[arg(long)]
    fill: bool,
    /// Bytes of every value, in place of the trace's
    #[arg(long, value_name = "SIZE", value_parser = size::parse)]
    value_bytes: Option<u64>,
    /// Most requests to replay; default: all
    #[arg(long, value_name = "COUNT", value_parser = size::parse_count)]
    requests: Option<u64>,
}

/// The result of a replay.
#[derive(Debug, Serialize)]
struct Replayed {
    device: String,
    index: String,
    #[serde(flatten)]
    report: ReplayReport,
    drive: DriveStats,
    capacity_bytes: u64,
    interrupted: bool,
}

/// Replays the trace.
///
/// # Errors
/// The first line that does not parse, a failed read or write; silently, refused commands and an interrupt.
pub fn run<D: MeasuredDrive>(args: &Args<D>, console: &Console) -> Result<()> {
    let interrupt = Interrupt::listen()?;
    let (input, total) = open_trace(&args.trace)?;
    let plan = ReplayPlan {
        depth: args.depth,
        fills: args.fill,
        value_bytes: args.value_bytes,
        requests: args.requests,
    };
    let name = args.trace.display().to_string();
    let mut trace = TraceReader::new(input, &name, args.format.into());
    let (report, drive, info) = args.drive.with(|drive, space| {
        let meter = console.meter("replaying", total);
        let result = plan.run(space, &mut trace, &mut |bytes| {
            meter.at(bytes);
            !interrupt.is_set()
        });
        meter.finish();
        Ok((result?, drive.stats()?, drive.info()?))
    })?;
    let replayed = Replayed {
        device: args.drive.device(),
        index: info.index,
        report,
        drive,
        capacity_bytes: info.capacity_bytes,
        interrupted: interrupt.is_set(),
    };
    console.print_peak(&replayed, text)?;
    let is_clean = replayed.report.refused.is_empty() && !replayed.interrupted;
    if is_clean { Ok(()) } else { Err(Quiet(FAILURE).into()) }
}

fn open_trace(path: &PathBuf) -> Result<(Box<dyn BufRead>, Option<u64>)> {
    if path.as_os_str() == "-" {
        return Ok((Box::new(BufReader::new(io::stdin())), None));
    }
    let file = File::open(path).with_context(|| format!("cannot open {}", path.display()))?;
    let bytes = file.metadata().map(|found| found.len()).ok();
    Ok((Box::new(BufReader::new(file)), bytes))
}

fn text(replayed: &Replayed) -> String {
    let report = &replayed.report;
    let mut rows = vec![("device", format!("{}, index {}", replayed.device, replayed.index))];
    rows.extend(run_rows(&report.run));
    let counted = |(name, count): (&&str, &u64)| format!("{name}: {}", show_count(*count));
    let list = |counts: &std::collections::BTreeMap<&'static str, u64>| {
        counts.iter().map(counted).collect::<Vec<_>>().join(", ")
    };
    rows.push(("  requests", list(&report.requests)));
    rows.push(("  not found", show_count(report.misses)));
    let more = [
        ("  stored then", report.filled),
        ("  values cut", report.cut_values),
        ("  keys hashed", report.hashed_keys),
    ];
    rows.extend(
        more.into_iter()
            .filter(|(_, count)| *count > 0)
            .map(|(name, count)| (name, show_count(count))),
    );
    if !report.refused.is_empty() {
        rows.push(("  refused", list(&report.refused)));
    }
    if !report.is_whole {
        rows.push(("  stopped", "before the end of the trace".to_owned()));
    }
    rows.extend(use_rows(&replayed.drive, replayed.capacity_bytes));
    aligned(&rows)
}
