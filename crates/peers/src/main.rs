//! `nandex-peers`: RocksDB, LMDB, redb, fjall and Berkeley DB under nandex's workloads.
//!
//! Keys, streams, memory limit, device limits, checks and report are `nandex-bench`'s own. Each engine
//! is a module that says how it is tuned and why. With `--load sorted` each engine is loaded in its own key
//! order, without a memory limit, and looked up by a process of its own within it: tables much larger than
//! memory, at their best. Unsafe code is in `bdb` (a C library without a crate)
//! and in `lmdb` (where the crate asks for a promise about the file), nowhere else.

#[cfg(feature = "bdb")]
mod bdb;
mod engine;
#[cfg(feature = "fjall")]
mod fjall;
#[cfg(feature = "lmdb")]
mod lmdb;
#[cfg(feature = "redb")]
mod redb;
#[cfg(feature = "rocksdb")]
mod rocksdb;

use std::alloc::System;
use std::io::Write;
use std::os::unix::process::ExitStatusExt;
use std::process::{Command, ExitCode, ExitStatus, Stdio};

use anyhow::{Context, Result, ensure};
use clap::Parser;
use nandex_bench::loaded::Loaded;
use nandex_bench::options::{Options, in_force};
use nandex_bench::plan::{LOAD_BATCH, Load, Plan, Workload};
use nandex_bench::report::{self, Report};
use nandex_bench::session::{self, Surroundings};
use nandex_bench::subject::Maker;
use serde_json::json;

use crate::engine::Engine;

/// Counts what Rust allocates; RocksDB, LMDB and Berkeley DB allocate past it, and only RSS and the
/// cgroup see them.
#[global_allocator]
static ALLOCATOR: cap::Cap<System> = cap::Cap::new(System, usize::MAX);

/// Runs a workload on other engines, with nandex's keys, memory limit, disk and report.
#[derive(Parser, Debug)]
#[command(name = "nandex-peers", version, args_override_self = true)]
struct Arguments {
    /// The engine; may be given several times.
    #[arg(long, value_enum, required_unless_present = "all")]
    engine: Vec<Engine>,
    /// Every engine that is built in, one after the other.
    #[arg(long, conflicts_with = "engine")]
    all: bool,
    #[command(flatten)]
    options: Options,
}

/// Set for the processes that run an engine: two arenas, and freed memory is given back. By default the
/// C library keeps an arena per thread and grows its thresholds, and engines with many threads then
/// run into the memory limit with memory that they have freed.
const MALLOC: [(&str, &str); 2] = [("MALLOC_ARENA_MAX", "2"), ("MALLOC_TRIM_THRESHOLD_", "131072")];

fn main() -> ExitCode {
    match try_main() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("nandex-peers: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn try_main() -> Result<()> {
    let arguments = Arguments::parse();
    let plan = plan(&arguments.options)?;
    let engines = if arguments.all { Engine::every() } else { arguments.engine };
    match engines.as_slice() {
        &[engine] if MALLOC.iter().all(|(name, _)| std::env::var_os(name).is_some()) => {
            let report = run(&plan, engine, &arguments.options)?;
            print(&[report], arguments.options.json)
        }
        engines => run_each(&plan, engines, arguments.options.json),
    }
}

/// Runs each engine in a process of its own: none inherits memory from the one before, and one that
/// its memory limit kills does not take the others with it.
fn run_each(plan: &Plan, engines: &[Engine], json: bool) -> Result<()> {
    let (mut reports, mut failures) = (Vec::new(), Vec::new());
    for &engine in engines {
        match load_apart(plan, engine).and_then(|()| run_apart(engine, &[])) {
            Ok(report) => reports.push(report),
            Err(error) => failures.push(format!("{engine}: {error:#}")),
        }
    }
    print(&reports, json)?;
    if !json && reports.len() > 1 {
        print!("{}", report::summary(&reports));
    }
    ensure!(failures.is_empty(), "not all engines went through:\n{}", failures.join("\n"));
    Ok(())
}

/// Loads in key order come first, without the memory limit: a load is not what is measured, and nothing
/// of its memory or cached pages is left to the process that looks up.
fn load_apart(plan: &Plan, engine: Engine) -> Result<()> {
    let mut plan = plan.clone();
    plan.dir = plan.dir.join(engine.name());
    let wanted = plan.load == Load::Sorted && plan.workload.only_reads();
    if wanted && plan.workload != Workload::Load && Loaded::find(&plan, engine.name()).is_none() {
        run_apart(engine, &["--workload", "load"]).context("it could not be loaded")?;
    }
    Ok(())
}

/// This program again, with the same settings but for one engine; a load has no memory limit.
fn run_apart(engine: Engine, other: &[&str]) -> Result<Report> {
    let mut command = Command::new(std::env::current_exe()?);
    let mut arguments = std::env::args_os().skip(1);
    while let Some(argument) = arguments.next() {
        match argument.to_str() {
            Some("--all") => {}
            Some(text) if text.starts_with("--cgroup") && !other.is_empty() => {}
            Some("--engine") => drop(arguments.next()),
            Some(text) if text.starts_with("--engine=") => {}
            _ => drop(command.arg(argument)),
        }
    }
    let output = command
        .args(["--json", "--engine", engine.name()])
        .args(other)
        .envs(MALLOC)
        .stderr(Stdio::inherit())
        .output()
        .context("cannot start a process for it")?;
    ensure!(output.status.success(), "{}{}", output.status, killed(output.status));
    let json = serde_json::from_slice(&output.stdout).context("it printed no JSON")?;
    Report::parse(&json).context("it printed no report")
}

fn killed(status: ExitStatus) -> &'static str {
    match status.signal() {
        Some(9) => {
            ": killed, most likely by its memory limit; give more with --ram or --cgroup=BYTES"
        }
        _ => "",
    }
}

/// The plan of the options; inserts go in batches unless told otherwise, since these engines pay for
/// each transaction.
fn plan(options: &Options) -> Result<Plan> {
    let mut plan = options.plan()?;
    if options.batch.is_none() && plan.workload == Workload::Insert {
        plan.batch = LOAD_BATCH;
    }
    Ok(plan)
}

/// One engine, in this process.
fn run(plan: &Plan, engine: Engine, options: &Options) -> Result<Report> {
    let cgroup = options.enter_cgroup()?;
    let mut plan = plan.clone();
    plan.dir = plan.dir.join(engine.name());
    session::run(
        &plan,
        &engine,
        Surroundings {
            allocated_bytes: || ALLOCATOR.allocated() as u64,
            memory_limit: &|| in_force(cgroup.as_ref()),
            progress: &|sentence| eprintln!("{engine}: {sentence}"),
        },
    )
}

/// One JSON object for one engine, an array of them for several; or the reports for people.
fn print(reports: &[Report], json: bool) -> Result<()> {
    let text = match reports {
        [report] if json => format!("{}\n", report.json()),
        reports if json => {
            format!("{}\n", json!(reports.iter().map(Report::json).collect::<Vec<_>>()))
        }
        reports => reports.iter().map(|report| report.text() + "\n").collect(),
    };
    Ok(std::io::stdout().write_all(text.as_bytes())?)
}
