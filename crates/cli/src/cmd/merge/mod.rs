//! `nandex merge`: merges two tables into one, or counts what they share.

mod input;
mod output;
mod report;

use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::time::Instant;

use anyhow::{Context, Error, Result, bail};
use clap::ValueEnum;
use nandex::raw::device::output::refuse_existing;
use nandex::raw::{Absorbed, Versions};
use nandex::{AbsorbOptions, Policy, Prefer, count_shared, expected_passes};

use crate::console::{Console, Meter};
use crate::devices::EngineArgs;
use crate::exit::{LEFT_OUT, Quiet, is_damage};
use crate::interrupt::Interrupt;
use crate::place::TableArgs;
use crate::sizing::RequirementArgs;
use crate::{merging, size, sizing};

use input::Input;
use output::{Making, Output, kinds};
use report::{Both, How, Merged, Shared};

/// The help on the merging of tables.
const RULES: &str = "Both tables must have keys and values of the same fixed widths; structures, \
    partitions and hash keys may differ. On duplicate keys --prefer names the input that wins. \
    What one table has removed hides nothing of the other. A run that was stopped or killed leaves \
    NAME.unfinished: the same command with --resume goes on, without it begins again. Tables that \
    were created with --hash-key shared are read once each.";

/// Options of the new table, which have no meaning if none is created.
const ONLY_OF_OUTPUT: [&str; 16] = [
    "output",
    "resume",
    "force",
    "prefer",
    "entries",
    "structure",
    "policy",
    "ram",
    "flash",
    "inserts",
    "lookups",
    "misses",
    "updates",
    "miss_reads",
    "worst_insert",
    "device",
];

/// The inputs, the output, and the rule.
#[derive(Debug, clap::Args)]
#[command(after_help = RULES)]
pub struct Args {
    /// First volume; it stays as it is
    first: PathBuf,
    /// Second volume; it stays as it is
    second: PathBuf,
    /// Volume to create
    #[arg(short, long, value_name = "FILE", required_unless_present = "count")]
    output: Option<PathBuf>,
    /// Continue a merge whose earlier run was stopped, and write only what is missing
    #[arg(long)]
    resume: bool,
    /// Create the volume again on a block device that a stopped run has left unfinished
    #[arg(long, conflicts_with = "resume")]
    force: bool,
    /// Count what both have, and create no volume
    #[arg(long, conflicts_with_all = ONLY_OF_OUTPUT)]
    count: bool,
    /// Which input wins on duplicate keys
    #[arg(long, value_name = "WHICH", default_value = "first")]
    prefer: PreferArg,
    #[command(flatten)]
    pub(super) engine: EngineArgs,
    #[command(flatten)]
    table: TableArgs,
    /// Number of entries that the new table must hold; default: those of both
    #[arg(long, value_name = "COUNT", value_parser = size::parse_some)]
    entries: Option<u64>,
    /// Structure of the new table; default: that of the first volume, of a fixed size
    #[arg(long, value_name = "STRUCTURE", value_parser = kinds())]
    structure: Option<String>,
    /// Behaviour if the new table is too small: reject creates none; fifo drops the oldest, and exits with 4
    #[arg(long, default_value = "reject", value_parser = sizing::policy)]
    policy: Policy,
    #[command(flatten)]
    requirements: RequirementArgs,
    /// RAM for entries while they are merged, in addition to that of the tables
    #[arg(long, value_name = "SIZE", default_value = "256MiB", value_parser = size::parse_some_bytes)]
    merge_ram: u64,
}

/// The input that wins on duplicate keys.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
enum PreferArg {
    /// The volume that is named first
    First,
    /// The volume that is named second
    Second,
}

impl Args {
    fn options(&self) -> AbsorbOptions {
        let prefer = match self.prefer {
            PreferArg::First => Prefer::First,
            PreferArg::Second => Prefer::Last,
        };
        AbsorbOptions { prefer, ram_bytes: self.merge_ram, ..AbsorbOptions::default() }
    }
}

/// Opens both inputs, and merges or counts them.
///
/// # Errors
/// Files that do not exist, are in use, damaged or the same file; tables of different widths; an existing output; a
/// table that would be too small; an interrupt. Silently, evicted entries.
pub fn run(args: &Args, console: &Console) -> Result<()> {
    let interrupt = Interrupt::listen()?;
    if let Some(output) = args.output.as_deref().filter(|output| output.is_file()) {
        refuse_existing(&[output])?;
    }
    merging::refuse_twice([args.first.as_path(), &args.second], "volume")?;
    let first = Input::open((&args.first, args.engine), &args.table)?;
    let second = Input::open((&args.second, args.engine), &args.table)?;
    first.refuse_other_widths(&second)?;
    let both = [first, second];
    tell_passes(args, &both, console)?;
    match &args.output {
        Some(path) => merge(args, path, &both, (&interrupt, console)),
        None => {
            let counted = count(args, &both, (&interrupt, console))?;
            console.print(&Shared { both: Both::of(&both, &counted, 0) }, Shared::text)
        }
    }
}

/// Warns beforehand that pages will be read several times.
fn tell_passes(args: &Args, both: &[Input; 2], console: &Console) -> Result<()> {
    let passes =
        expected_passes(&versions(both)?, &args.options()).context("--merge-ram is too small")?;
    if passes > 1 {
        let why = if both[0].hashes_as(&both[1]) {
            "partitions take more RAM than --merge-ram"
        } else {
            "the volumes hash keys under different keys; `create --hash-key shared` avoids that"
        };
        let passes = size::show_count(passes);
        console.note(&format!(
            "pages are read up to {passes} times, fewer with more --merge-ram: {why}"
        ));
    }
    Ok(())
}

/// Counts what both have.
fn count(
    args: &Args,
    both: &[Input; 2],
    (interrupt, console): (&Interrupt, &Console),
) -> Result<Absorbed> {
    let meter = meter(both, "counting", console);
    let versions = versions(both)?;
    let counted = count_shared(&versions, &args.options(), &|done| at(&meter, done, interrupt));
    meter.finish();
    let counted = counted.map_err(|error| told_where(args, error.into()));
    interrupt.check(counted, "nothing was made")
}

/// Creates the new volume.
fn merge(
    args: &Args,
    path: &Path,
    both: &[Input; 2],
    (interrupt, console): (&Interrupt, &Console),
) -> Result<()> {
    let start = Instant::now();
    let plan = Output::plan(args, both)?;
    let resumed =
        if args.resume { plan.resume((path, args.engine), both[0].name(), console)? } else { None };
    if resumed.is_none() && plan.may_be_too_small(both) {
        plan.refuse_too_small(args, count(args, both, (interrupt, console))?.keys)?;
    }
    let mut output = match resumed {
        Some(output) => output,
        None => plan.create((path, args.engine, args.force), both, console)?,
    };
    let meter = meter(both, "merging", console);
    let options = AbsorbOptions { resumes: output.is_resumed(), ..args.options() };
    let versions = versions(both)?;
    let absorbed = output.absorb(&versions, &options, &|done| at(&meter, done, interrupt));
    meter.finish();
    let absorbed = match absorbed {
        Ok(absorbed) => absorbed,
        Err(nandex::Error::Stopped) => bail!("stopped; {}", output.stop(path)?),
        Err(error) => {
            output.made().remove();
            return Err(told_where(args, error.into()));
        }
    };
    let merged = finish(args, (output, path), both, &absorbed, start)?;
    console.print_peak(&merged, Merged::text)?;
    if merged.evicted() > 0 { Err(Quiet(LEFT_OUT).into()) } else { Ok(()) }
}

/// Gives the new volume its name, and reports its content.
fn finish(
    args: &Args,
    (output, path): (Making, &Path),
    both: &[Input; 2],
    absorbed: &Absorbed,
    start: Instant,
) -> Result<Merged> {
    output.refuse_others(path, absorbed)?;
    let ram_bytes = both.iter().map(Input::ram_bytes).sum::<u64>() + output.ram_bytes();
    let (kind, resumed, made) = (output.kind(), output.is_resumed(), output.made());
    output.close().inspect_err(|_| made.remove())?;
    let prefer = match args.prefer {
        PreferArg::First => "first",
        PreferArg::Second => "second",
    };
    let how = How { structure: kind, prefer, resumed, ram_bytes, elapsed: start.elapsed() };
    Merged::new(path, how, Both::of(both, absorbed, 1), absorbed)
}

/// Adds to an error of damage, which names only the page, that `check` finds the volume.
fn told_where(args: &Args, error: Error) -> Error {
    if !is_damage(&error) {
        return error;
    }
    let (first, second) = (args.first.display(), args.second.display());
    error.context(format!(
        "cannot merge {first} and {second}: one of them is damaged; `nandex check` says which"
    ))
}

fn versions(both: &[Input; 2]) -> Result<Vec<Versions<'_>>> {
    both.iter().map(Input::versions).collect()
}

fn meter(both: &[Input; 2], what: &'static str, console: &Console) -> Meter {
    console.meter(what, Some(both.iter().map(Input::bytes).sum()))
}

/// Shows the share that is done, and stops if the user wants to.
fn at(meter: &Meter, done: f64, interrupt: &Interrupt) -> ControlFlow<()> {
    meter.at_share(done);
    if interrupt.is_set() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
}
