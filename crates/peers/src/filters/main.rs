//! `nandex-peers-filters`: other people's filters under nandex's workloads.
//!
//! Keys, streams, memory limit, device limits, checks and report are `nandex-bench`'s own, and nandex's
//! filters run beside the others. Each filter is a module that says how it is tuned and why. Filters on
//! flash are filled by a process of its own without a memory limit before they are looked up within one: a
//! filter that thrashes would never be full. Unsafe code is in `mapped` (a mapped file), nowhere else.

mod bloom;
mod buffered;
mod mapped;
mod memory;
mod rival;

use std::alloc::System;
use std::io::Write;
use std::os::unix::process::ExitStatusExt;
use std::process::{Command, ExitCode, ExitStatus, Stdio};

use anyhow::{Context, Result, ensure};
use clap::Parser;
use nandex_bench::filter::plan::{FilterOptions, FilterPlan};
use nandex_bench::filter::report::{self, FilterReport};
use nandex_bench::filter::session;
use nandex_bench::filter::subject::FilterMaker;
use nandex_bench::loaded::Loaded;
use nandex_bench::options::{Options, in_force};
use nandex_bench::plan::Workload;
use nandex_bench::session::Surroundings;
use serde_json::json;

use crate::rival::Rival;

/// Counts what is allocated.
#[global_allocator]
static ALLOCATOR: cap::Cap<System> = cap::Cap::new(System, usize::MAX);

/// Runs a workload on filters of others and of nandex, with the same keys, memory limit, disk and report.
#[derive(Parser, Debug)]
#[command(name = "nandex-peers-filters", version, args_override_self = true)]
struct Arguments {
    /// The filter; may be given several times.
    #[arg(long, value_enum, required_unless_present = "all")]
    filter: Vec<Rival>,
    /// Every filter that can do the workload, one after the other.
    #[arg(long, conflicts_with = "filter")]
    all: bool,
    #[command(flatten)]
    options: Options,
    #[command(flatten)]
    own: FilterOptions,
}

/// Set for the processes that run a filter; says to them that they are those.
const APART: &str = "NANDEX_PEERS_FILTERS_APART";

fn main() -> ExitCode {
    match try_main() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("nandex-peers-filters: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn try_main() -> Result<()> {
    let arguments = Arguments::parse();
    let plan = FilterPlan::new(arguments.options.plan()?, &arguments.own)?;
    match arguments.filter.as_slice() {
        &[rival] if std::env::var_os(APART).is_some() => {
            let report = run(&plan, rival, &arguments.options)?;
            print(&format!("{}\n", report.json()))
        }
        given => {
            let able = |rival: &Rival| plan.check_for(rival).is_ok();
            let all = Rival::every().into_iter().filter(able).collect();
            let rivals = if arguments.all { all } else { given.to_vec() };
            run_each(&plan, &rivals, arguments.options.json)
        }
    }
}

/// Runs each filter in a process of its own: none inherits memory from the one before, and one that its
/// memory limit kills does not take the others with it.
fn run_each(plan: &FilterPlan, rivals: &[Rival], json: bool) -> Result<()> {
    let (mut reports, mut failures) = (Vec::new(), Vec::new());
    for &rival in rivals {
        match fill_apart(plan, rival).and_then(|()| run_apart(rival, &[])) {
            Ok(report) => reports.push(report),
            Err(error) => failures.push(format!("{rival}: {error:#}")),
        }
    }
    if json {
        let all: Vec<_> = reports.iter().map(FilterReport::json).collect();
        print(&format!("{}\n", json!(all)))?;
    } else {
        let texts = reports.iter().map(|report| report.text() + "\n");
        print(&texts.chain([report::summary(&reports)]).collect::<String>())?;
    }
    ensure!(failures.is_empty(), "not all filters went through:\n{}", failures.join("\n"));
    Ok(())
}

/// Fills a filter on flash without the memory limit, for lookups.
fn fill_apart(plan: &FilterPlan, rival: Rival) -> Result<()> {
    let lookups = [Workload::LookupHit, Workload::LookupMiss].contains(&plan.plan.workload);
    let mut plan = plan.clone();
    plan.plan.dir = plan.plan.dir.join(rival.name());
    let is_full = Loaded::find(&plan.plan, &plan.note_name(&rival)).is_some();
    if lookups && rival.on_flash() && !is_full {
        run_apart(rival, &["--workload", "load"]).context("it could not be filled")?;
    }
    Ok(())
}

/// This program again, with the same settings but for one filter; filling has no memory limit.
fn run_apart(rival: Rival, other: &[&str]) -> Result<FilterReport> {
    let mut command = Command::new(std::env::current_exe()?);
    let mut arguments = std::env::args_os().skip(1);
    while let Some(argument) = arguments.next() {
        match argument.to_str() {
            Some("--all") => {}
            Some(text) if text.starts_with("--cgroup") && !other.is_empty() => {}
            Some("--filter") => drop(arguments.next()),
            Some(text) if text.starts_with("--filter=") => {}
            _ => drop(command.arg(argument)),
        }
    }
    let output = command
        .args(["--json", "--filter", rival.name()])
        .args(other)
        .env(APART, "1")
        .stderr(Stdio::inherit())
        .output()
        .context("cannot start a process for it")?;
    ensure!(output.status.success(), "{}{}", output.status, killed(output.status));
    let json = serde_json::from_slice(&output.stdout).context("it printed no JSON")?;
    FilterReport::parse(&json).context("it printed no report")
}

fn killed(status: ExitStatus) -> &'static str {
    match status.signal() {
        Some(9) => {
            ": killed, most likely by its memory limit; give more with --ram or --cgroup=BYTES"
        }
        _ => "",
    }
}

/// One filter, in this process.
fn run(plan: &FilterPlan, rival: Rival, options: &Options) -> Result<FilterReport> {
    let cgroup = options.enter_cgroup()?;
    let mut plan = plan.clone();
    plan.plan.dir = plan.plan.dir.join(rival.name());
    session::run(
        &plan,
        &rival,
        Surroundings {
            allocated_bytes: || ALLOCATOR.allocated() as u64,
            memory_limit: &|| in_force(cgroup.as_ref()),
            progress: &|sentence| eprintln!("{rival}: {sentence}"),
        },
    )
}

fn print(text: &str) -> Result<()> {
    Ok(std::io::stdout().write_all(text.as_bytes())?)
}
