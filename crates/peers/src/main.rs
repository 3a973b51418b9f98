//! `nandex-peers`: RocksDB, LMDB, redb, fjall and Berkeley DB under nandex's workloads.
//!
//! Keys, streams, memory limit, device limits, checks and report are `nandex-bench`'s own. Each engine
//! is a module that says how it is tuned and why. Unsafe code is in `bdb` (a C library without a crate)
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

use anyhow::{Context, Result};
use clap::Parser;
use nandex_bench::options::{Options, in_force};
use nandex_bench::plan::Plan;
use nandex_bench::report::{self, Report};
use nandex_bench::session::{self, Surroundings};
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

fn main() -> Result<()> {
    let arguments = Arguments::parse();
    let plan = arguments.options.plan()?;
    let engines = if arguments.all { Engine::every() } else { arguments.engine };
    let reports = engines
        .iter()
        .map(|&engine| {
            let name = engine.to_string();
            run(&plan, engine, &arguments.options).with_context(|| name)
        })
        .collect::<Result<Vec<_>>>()?;
    let text = if arguments.options.json { json_text(&reports) } else { people_text(&reports) };
    Ok(std::io::stdout().write_all(text.as_bytes())?)
}

/// One engine, in a cgroup of its own, so that no peak is inherited from the one before.
fn run(plan: &Plan, engine: Engine, options: &Options) -> Result<Report> {
    let cgroup = options.enter_cgroup()?;
    let mut plan = plan.clone();
    plan.dir = plan.dir.join(engine.to_string());
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

/// One object for one engine, an array of them for several.
fn json_text(reports: &[Report]) -> String {
    let mut objects: Vec<_> = reports.iter().map(Report::json).collect();
    let json = if objects.len() == 1 { objects.remove(0) } else { json!(objects) };
    format!("{json}\n")
}

fn people_text(reports: &[Report]) -> String {
    let mut text = String::new();
    for report in reports {
        text.push_str(&report.text());
        text.push('\n');
    }
    if reports.len() > 1 {
        text.push_str(&report::summary(reports));
    }
    text
}
