//! `nandex-peers-counters`: counts in nandex's counting table and in other engines, of the same keys.
//!
//! Keys, streams, memory limit, device limits, checks and report are `nandex-bench`'s own. Keys are 8 bytes
//! and counts are exact: a wrong one ends a run. Repetitions are interleaved, each engine once in each round,
//! in a process of its own. Before counts are looked up, another process loads the engine, each key once,
//! without a memory limit. Unsafe code is in `lmdb/env` (where the crate requires a promise about the file),
//! nowhere else.

#[path = "../apart.rs"]
mod apart;
#[cfg(feature = "rocksdb")]
#[path = "../budget.rs"]
mod budget;
mod engine;
#[cfg(feature = "lmdb")]
mod lmdb;
#[cfg(feature = "rocksdb")]
mod rocksdb;
#[cfg(feature = "rocksdb")]
mod ticker;

use std::alloc::System;
use std::process::ExitCode;

use anyhow::Result;
use clap::Parser;
use nandex_bench::plan::{FilterSettings, KeyStorage, Plan};
use nandex_bench::subject::Maker;

use crate::apart::{Apart, run_here};
use crate::engine::Engine;

/// An allocator that counts Rust's allocations; RocksDB and LMDB allocate past it, and only RSS and the
/// cgroup see them.
#[global_allocator]
static ALLOCATOR: cap::Cap<System> = cap::Cap::new(System, usize::MAX);

/// Counts keys in nandex's counting table and in other engines, with the same keys, memory limit, disk and report.
#[derive(Parser, Debug)]
#[command(name = "nandex-peers-counters", version, args_override_self = true)]
struct Arguments {
    /// The counter; may be given several times.
    #[arg(long, value_enum, required_unless_present = "all")]
    counter: Vec<Engine>,
    /// Every counter that is built in, one after the other in each round.
    #[arg(long, conflicts_with = "counter")]
    all: bool,
    #[command(flatten)]
    plan: Plan,
}

/// The process settings, as for engines of tables: two arenas, and freed memory is returned.
const APART: Apart = Apart {
    flag: "--counter",
    environment: &[
        ("MALLOC_ARENA_MAX", "2"),
        ("MALLOC_TRIM_THRESHOLD_", "131072"),
        ("NANDEX_PEERS_COUNTERS_APART", "1"),
    ],
    array_of_one: true,
};

fn main() -> ExitCode {
    match try_main() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("nandex-peers-counters: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn try_main() -> Result<()> {
    let arguments = Arguments::parse();
    let filter = FilterSettings { stored_keys: KeyStorage::Whole, ..FilterSettings::default() };
    let plan = Plan { filter, ..arguments.plan };
    plan.check()?;
    let engines = if arguments.all { Engine::every() } else { arguments.counter };
    match engines.as_slice() {
        [engine] if APART.is_here() => run_here(&plan, engine, || ALLOCATOR.allocated() as u64),
        engines => {
            let makers: Vec<_> = engines.iter().map(|engine| engine as &dyn Maker).collect();
            for maker in &makers {
                plan.check_for(*maker)?;
            }
            APART.run_rounds(&plan, &makers, |_| plan.workload.looks_up())
        }
    }
}
