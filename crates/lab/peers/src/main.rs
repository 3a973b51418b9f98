//! `nandex-peers`: RocksDB, LMDB, redb, fjall, SQLite and Berkeley DB under nandex's workloads.
//!
//! Keys, streams, memory limit, device limits, checks and report are `nandex-bench`'s own. Each engine is a
//! module that explains its tuning. With `--load sorted` each engine is loaded in its own key order, without
//! a memory limit, and looked up by a process of its own within it: tables much larger than memory, at their
//! best. Unsafe code is in `bdb` (a C library without a crate) and in `lmdb` (where the crate requires a
//! promise about the file), nowhere else.

mod apart;
#[cfg(feature = "bdb")]
mod bdb;
mod budget;
mod engine;
#[cfg(feature = "fjall")]
mod fjall;
#[cfg(feature = "lmdb")]
mod lmdb;
#[cfg(feature = "redb")]
mod redb;
#[cfg(feature = "rocksdb")]
mod rocksdb;
#[cfg(feature = "sqlite")]
mod sqlite;

use std::alloc::System;
use std::process::ExitCode;

use anyhow::Result;
use clap::Parser;
use nandex_bench::plan::{LOAD_BATCH, Load, Plan};
use nandex_bench::subject::Maker;
use nandex_bench::workload::Workload;

use crate::apart::{Apart, run_here};
use crate::engine::Engine;

/// An allocator that counts Rust's allocations; RocksDB, LMDB, SQLite and Berkeley DB allocate past it, and
/// only RSS and the cgroup see them.
#[global_allocator]
static ALLOCATOR: cap::Cap<System> = cap::Cap::new(System, usize::MAX);

/// Runs a workload on other engines, with nandex's keys, memory limit, disk and report.
#[derive(Parser, Debug)]
#[command(name = "nandex-peers", version, args_override_self = true)]
struct Arguments {
    /// The engine; may be given several times.
    #[arg(long, value_enum, required_unless_present = "all")]
    engine: Vec<Engine>,
    /// Every engine that is built in and supports the workload, one after the other.
    #[arg(long, conflicts_with = "engine")]
    all: bool,
    #[command(flatten)]
    plan: Plan,
}

/// The process settings: processes that run an engine get two arenas, and freed memory is returned. By
/// default the C library keeps an arena per thread and grows its thresholds, and engines with many threads
/// then run into the memory limit with memory that they have freed.
const APART: Apart = Apart {
    flag: "--engine",
    environment: &[("MALLOC_ARENA_MAX", "2"), ("MALLOC_TRIM_THRESHOLD_", "131072")],
    array_of_one: false,
};

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
    let plan = in_batches(arguments.plan);
    plan.check()?;
    let mut engines = arguments.engine;
    if arguments.all {
        engines = Engine::every();
        engines.retain(|engine| engine.supports(plan.workload));
    }
    match engines.as_slice() {
        [engine] if APART.is_here() => run_here(&plan, engine, || ALLOCATOR.allocated() as u64),
        engines => {
            let makers: Vec<_> = engines.iter().map(|engine| engine as &dyn Maker).collect();
            let is_sorted = plan.load == Load::Sorted && plan.workload.only_reads();
            APART.run_each(&plan, &makers, |_| is_sorted && plan.workload != Workload::Load)
        }
    }
}

/// Returns the plan with inserts in batches unless stated otherwise, since these engines pay for each
/// transaction.
fn in_batches(plan: Plan) -> Plan {
    let usual = (plan.workload == Workload::Insert).then_some(LOAD_BATCH as u64);
    Plan { batch: plan.batch.or(usual), ..plan }
}
