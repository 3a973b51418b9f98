//! `nandex kvssd bench`, also on simulated drives: stores, overwrites and reads pairs at a queue depth.

use anyhow::Result;
use nandex_kvssd::{BenchPlan, RunReport};
use serde::Serialize;

use super::place::MeasuredDrive;
use super::shown::run_rows;
use crate::console::{Console, aligned};
use crate::exit::{FAILURE, Quiet};
use crate::interrupt::Interrupt;
use crate::size;

/// The load, and the drive.
#[derive(Debug, clap::Args)]
pub struct Args<D: clap::Args> {
    #[command(flatten)]
    drive: D,
    /// Number of pairs to store
    #[arg(long = "count", value_name = "COUNT", value_parser = size::parse_some, default_value = "10000")]
    count: u64,
    /// Number of commands of each run after that; default: as many as pairs
    #[arg(long, value_name = "COUNT", value_parser = size::parse_count)]
    commands: Option<u64>,
    /// Bytes of each key, at least 8
    #[arg(long, value_name = "BYTES", default_value_t = 16)]
    key_bytes: usize,
    /// Bytes of each value; several, separated by commas, give a run for each
    #[arg(long, value_name = "SIZES", value_parser = size::parse, value_delimiter = ',', default_value = "4096")]
    value_bytes: Vec<u64>,
    /// Commands in flight
    #[arg(long, value_name = "COUNT", default_value_t = 64)]
    depth: usize,
    /// Percentage of reads among the commands of the mixed run
    #[arg(long, value_name = "PERCENT", default_value_t = 50)]
    read_percent: u64,
    /// Seed of the choice of keys
    #[arg(long, value_name = "NUMBER", default_value_t = 1)]
    seed: u64,
}

/// The runs of one value length.
#[derive(Debug, Serialize)]
struct BenchedSize {
    value_bytes: u64,
    device: String,
    index: String,
    depth: usize,
    /// RAM of the drive at the end.
    ram_bytes: u64,
    /// The most memory of the process that was resident until then, where the kernel says it.
    #[serde(skip_serializing_if = "Option::is_none")]
    resident_peak_bytes: Option<u64>,
    runs: Vec<RunReport>,
}

/// Runs the load for each value length, on a new drive if it is simulated.
///
/// # Errors
/// An invalid plan, a full drive; silently, an interrupt.
pub fn run<D: MeasuredDrive>(args: &Args<D>, console: &Console) -> Result<()> {
    let interrupt = Interrupt::listen()?;
    let mut sizes = Vec::new();
    for value_bytes in &args.value_bytes {
        sizes.push(run_size(args, *value_bytes, &interrupt)?);
        if interrupt.is_set() {
            break;
        }
    }
    console.print(&sizes, |sizes| sizes.iter().map(text).collect())?;
    if interrupt.is_set() { Err(Quiet(FAILURE).into()) } else { Ok(()) }
}

fn run_size<D: MeasuredDrive>(
    args: &Args<D>,
    value_bytes: u64,
    interrupt: &Interrupt,
) -> Result<BenchedSize> {
    let plan = BenchPlan {
        pairs: args.count,
        key_bytes: args.key_bytes,
        value_bytes: usize::try_from(value_bytes)?,
        depth: args.depth,
        commands: args.commands,
        read_percent: args.read_percent,
        seed: args.seed,
    };
    let (runs, index, ram_bytes) = args.drive.with(|drive, space| {
        let runs = plan.run(space, &mut |_| !interrupt.is_set())?;
        Ok((runs, drive.info()?.index, drive.stats()?.ram_bytes))
    })?;
    let (device, depth) = (args.drive.device(), args.depth);
    let resident_peak_bytes = nandex::device::resident_peak_bytes();
    Ok(BenchedSize { value_bytes, device, index, depth, ram_bytes, resident_peak_bytes, runs })
}

fn text(size: &BenchedSize) -> String {
    let mut rows = vec![
        ("values", format!("{} B", size.value_bytes)),
        ("device", format!("{}, index {}, depth {}", size.device, size.index, size.depth)),
    ];
    rows.extend(size.runs.iter().flat_map(run_rows));
    aligned(&rows)
}
