//! `nandex-bench`: the figures nandex is judged by.
#![forbid(unsafe_code)]

use std::alloc::System;
use std::io::{IsTerminal, Write};
use std::process::ExitCode;

use anyhow::Result;
use clap::builder::PossibleValue;
use clap::{Parser, ValueEnum};
use nandex_bench::filter::plan::{FilterOptions, FilterPlan};
use nandex_bench::filter::rooms::FilterIndex;
use nandex_bench::options::{Options, in_force};
use nandex_bench::session::{self, Surroundings};
use nandex_bench::subject::Index;

/// Counts what is allocated: one relaxed addition per call, a nanosecond or so.
#[global_allocator]
static ALLOCATOR: cap::Cap<System> = cap::Cap::new(System, usize::MAX);

/// Runs a workload on an index of nandex, beside the device's own limits in the same run.
#[derive(Parser, Debug)]
#[command(name = "nandex-bench", version, args_override_self = true)]
struct Arguments {
    /// The index.
    #[arg(long, value_enum)]
    index: Structure,
    #[command(flatten)]
    options: Options,
    #[command(flatten)]
    filter: FilterOptions,
}

/// Anything that can be measured.
#[derive(Clone, Copy, Debug)]
enum Structure {
    Table(Index),
    Filter(FilterIndex),
}

impl ValueEnum for Structure {
    fn value_variants<'a>() -> &'a [Self] {
        &[
            Self::Table(Index::Oracle),
            Self::Table(Index::Bufferhash),
            Self::Table(Index::Slicehash),
            Self::Filter(FilterIndex::Multiset),
            Self::Filter(FilterIndex::Quotient),
            Self::Filter(FilterIndex::Cascade),
        ]
    }

    fn to_possible_value(&self) -> Option<PossibleValue> {
        match self {
            Self::Table(index) => index.to_possible_value(),
            Self::Filter(index) => index.to_possible_value(),
        }
    }
}

fn main() -> ExitCode {
    match try_main() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("nandex-bench: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn try_main() -> Result<()> {
    let arguments = Arguments::parse();
    let options = &arguments.options;
    let plan = options.plan()?;
    let cgroup = options.enter_cgroup()?;
    let talk = std::io::stderr().is_terminal();
    let surroundings = Surroundings {
        allocated_bytes: || ALLOCATOR.allocated() as u64,
        memory_limit: &|| in_force(cgroup.as_ref()),
        progress: &|sentence| {
            if talk {
                eprintln!("{sentence}");
            }
        },
    };
    let (json, text) = match arguments.index {
        Structure::Table(index) => {
            let report = session::run(&plan, &index, surroundings)?;
            (report.json(), report.text())
        }
        Structure::Filter(index) => {
            let plan = FilterPlan::new(plan, &arguments.filter)?;
            let report = nandex_bench::filter::session::run(&plan, &index, surroundings)?;
            (report.json(), report.text())
        }
    };
    let text = if options.json { format!("{json}\n") } else { text };
    Ok(std::io::stdout().write_all(text.as_bytes())?)
}
