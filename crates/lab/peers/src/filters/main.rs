//! `nandex-peers-filters`: third-party filters under nandex's workloads.
//!
//! Keys, streams, memory limit, device limits, checks and report are `nandex-bench`'s own, and nandex's
//! filters run along with the others. Each filter is a module that explains its tuning. Filters on flash are
//! filled by a process of its own without a memory limit before they are looked up within one: a filter that
//! thrashes would never be full. Unsafe code is in `mapped` (a mapped file), nowhere else.

#[path = "../apart.rs"]
mod apart;
mod bloom;
mod buffered;
mod mapped;
mod memory;
mod rival;

use std::alloc::System;
use std::process::ExitCode;

use anyhow::Result;
use clap::Parser;
use nandex_bench::plan::{FilterSettings, Plan};
use nandex_bench::subject::Maker;
use nandex_bench::workload::Workload;

use crate::apart::{Apart, run_here};
use crate::rival::Rival;

/// An allocator that counts.
#[global_allocator]
static ALLOCATOR: cap::Cap<System> = cap::Cap::new(System, usize::MAX);

/// Runs a workload on third-party filters and on those of nandex, with the same keys, memory limit, disk and
/// report.
#[derive(Parser, Debug)]
#[command(name = "nandex-peers-filters", version, args_override_self = true)]
struct Arguments {
    /// The filter; may be given several times.
    #[arg(long, value_enum, required_unless_present = "all")]
    filter: Vec<Rival>,
    /// Every filter that supports the workload, one after the other.
    #[arg(long, conflicts_with = "filter")]
    all: bool,
    #[command(flatten)]
    plan: Plan,
    #[command(flatten)]
    filter_settings: FilterSettings,
}

const APART: Apart = Apart {
    flag: "--filter",
    environment: &[("NANDEX_PEERS_FILTERS_APART", "1")],
    array_of_one: true,
};

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
    let plan = Plan { filter: arguments.filter_settings, ..arguments.plan };
    plan.check()?;
    let able = |rival: &Rival| plan.check_for(rival).is_ok();
    let rivals = match arguments.all {
        true => Rival::every().into_iter().filter(able).collect(),
        false => arguments.filter,
    };
    match rivals.as_slice() {
        [rival] if APART.is_here() => run_here(&plan, rival, || ALLOCATOR.allocated() as u64),
        rivals => {
            let makers: Vec<_> = rivals.iter().map(|rival| rival as &dyn Maker).collect();
            let lookups = plan.workload.only_reads() && plan.workload.kind().is_none();
            let lookups = lookups && plan.workload != Workload::Load;
            APART.run_each(&plan, &makers, |rival| lookups && rival.lasting())
        }
    }
}
