//! The `nandex-lab` command: simulated devices, and the experiments of the papers.
//!
//! One file or folder per verb in `cmd`. What `nandex` has too, such as the console and the load of `kvssd bench`, is
//! in the library of `nandex-cli`. Exit codes: 0 success, 1 failure, 2 wrong command line.
#![forbid(unsafe_code)]

mod cmd;

use std::process::ExitCode;

use clap::Parser;
use nandex_cli::console::Console;

use crate::cmd::Command;

/// Simulated flash, and the experiments of papers on it.
#[derive(Debug, Parser)]
#[command(name = "nandex-lab", version, max_term_width = 100)]
#[command(
    after_help = "Sizes are written like 4096, 64MiB (2^20), 64M (10^6) or 1e9; counts like 64M or 1e9.\n\
    Exit codes: 0 success, 1 failure, 2 wrong command line or value."
)]
struct Cli {
    #[command(flatten)]
    console: Console,
    #[command(subcommand)]
    command: Command,
}

fn main() -> ExitCode {
    nandex_cli::run_as(|cli: Cli| cli.command.run(&cli.console))
}
