//! The `nandex` command: hash indexes on flash, from the shell.
//!
//! One file per verb in `cmd`; the other files are shared by verbs, some of them with `nandex-lab`, whose verbs run
//! simulated devices. Data goes to stdout, messages to stderr. Exit codes: 0 success, 1 failure, 2 wrong command line,
//! 3 damaged volume, 4 files that `dedup` could not read.
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

use std::process::ExitCode;

use clap::Parser;

use crate::cmd::Command;
pub use crate::cmd::{kvssd, probe};
use crate::console::Console;

/// Hash indexes that are bigger than RAM, on flash.
#[derive(Debug, Parser)]
#[command(name = "nandex", version, max_term_width = 100)]
#[command(
    after_help = "Sizes are written like 4096, 64MiB (2^20), 64M (10^6) or 1e9; counts like 64M or 1e9.\n\
    Exit codes: 0 success, 1 failure, 2 wrong command line, 3 damaged volume."
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
    nandex::device::give_back_freed_ram();
    let cli = Cli::parse();
    match cli.command.run(&cli.console) {
        Ok(()) => ExitCode::from(exit::SUCCESS),
        Err(error) => exit::report(&error),
    }
}
