//! The `nandex` command: hash indexes on flash, from the shell.
//!
//! One file per verb in `cmd`; the other files are shared by verbs, some of them with `nandex-lab`, whose verbs run
//! simulated devices. Data goes to stdout, messages to stderr. Exit codes: 0 success, 1 failure, 2 wrong command line
//! or value, 3 damaged volume, 4 done without a part of the input.
#![forbid(unsafe_code)]

mod chart;
mod chunk_list;
mod cmd;
pub mod console;
mod devices;
pub mod exit;
mod field;
mod geometry;
mod growth;
mod hashing;
mod held;
mod interrupt;
mod key_feed;
mod keys;
mod left;
mod lost;
mod merging;
mod neighbors;
mod place;
mod provenance;
mod records;
pub mod size;
mod sizing;
pub mod stated;
mod texts;
pub mod unfinished;
pub mod usage;

use std::process::ExitCode;

use clap::Parser;

use crate::cmd::Command;
pub use crate::cmd::{completions, kvssd, man, probe};
use crate::console::Console;
use crate::usage::CommandLine;

/// Hash indexes that are bigger than RAM, on flash.
#[derive(Debug, Parser)]
#[command(name = "nandex", version, max_term_width = 100)]
#[command(
    after_help = "Sizes are written like 4096, 64MiB (2^20), 64M (10^6) or 1e9; counts like 64M or 1e9.\n\
    Exit codes: 0 success, 1 failure, 2 wrong command line or value, 3 damaged volume, 4 done without a part of the input."
)]
struct Cli {
    #[command(flatten)]
    console: Console,
    #[command(subcommand)]
    command: Command,
}

/// Runs the command line of this process.
#[must_use]
pub fn run() -> ExitCode {
    run_as(|cli: Cli| cli.command.run(&cli.console))
}

/// Parses the command line of this process, runs it, and reports its error, if it fails, as text or as JSON.
pub fn run_as<C: Parser>(run: impl FnOnce(C) -> anyhow::Result<()>) -> ExitCode {
    nandex::device::give_back_freed_ram();
    let mut command = C::command();
    let line = CommandLine::unparsed(command.get_name());
    let parsed = command.try_get_matches_from_mut(std::env::args_os());
    let parsed = parsed.and_then(|matches| Ok((C::from_arg_matches(&matches)?, matches)));
    let (cli, matches) = match parsed {
        Ok(parsed) => parsed,
        Err(error) => return exit::report_usage(&error, &line),
    };
    match run(cli) {
        Ok(()) => ExitCode::from(exit::SUCCESS),
        Err(error) => exit::report(&error, &line.parsed(&command, &matches)),
    }
}
