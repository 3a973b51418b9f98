//! `nandex-bench`: the benchmark of nandex's structures.
#![forbid(unsafe_code)]

use std::alloc::System;
use std::io::IsTerminal;
use std::process::ExitCode;

use anyhow::Result;
use clap::Parser;
use nandex_bench::documents::DocumentSettings;
use nandex_bench::plan::{FilterSettings, Plan, in_force};
use nandex_bench::process;
use nandex_bench::session::{self, Surroundings};
use nandex_bench::structures::Structure;

/// An allocator that counts: one relaxed addition per call, about a nanosecond.
#[global_allocator]
static ALLOCATOR: cap::Cap<System> = cap::Cap::new(System, usize::MAX);

/// Runs a workload on an index of nandex, and measures the device's own limits in the same run.
#[derive(Parser, Debug)]
#[command(name = "nandex-bench", version, args_override_self = true)]
struct Arguments {
    /// The index.
    #[arg(long, value_enum)]
    index: Structure,
    #[command(flatten)]
    plan: Plan,
    #[command(flatten)]
    filter: FilterSettings,
    #[command(flatten)]
    documents: DocumentSettings,
}

fn main() -> ExitCode {
    // The command `nandex` does the same.
    nandex::device::give_back_freed_ram();
    process::finish("nandex-bench", run())
}

fn run() -> Result<String> {
    let Arguments { filter, documents, plan, index } = Arguments::parse();
    let plan = Plan { filter, documents, ..plan };
    let cgroup = plan.enter_cgroup()?;
    let is_watched = std::io::stderr().is_terminal();
    let surroundings = Surroundings {
        allocated_bytes: || ALLOCATOR.allocated() as u64,
        memory_limit: &|| in_force(cgroup.as_ref()),
        progress: &|sentence| {
            if is_watched {
                eprintln!("{sentence}");
            }
        },
    };
    let report = session::run(&plan, &index, surroundings)?;
    Ok(if plan.json { format!("{}\n", report.json()) } else { report.text() })
}
