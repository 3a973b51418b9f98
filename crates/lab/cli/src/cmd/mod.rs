//! The verbs, one file or folder each.

mod kvssd;
mod probe;
mod reproduce;
mod sim;

use anyhow::Result;
use clap::{CommandFactory, Subcommand};
use nandex_cli::console::Console;
use nandex_cli::{completions, man};

/// The commands.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Run a workload or a trace on a simulated device, and report the results
    Sim(Box<sim::Args>),
    /// Run a paper's experiments again on simulated drives, and show the results next to the paper's
    Reproduce(reproduce::Args),
    /// Find the chunk size, the channels and the mapping of a simulated device by timing
    Probe(probe::Args),
    /// Measure a key-value SSD on simulated flash
    #[command(subcommand)]
    Kvssd(Box<kvssd::DriveVerb>),
    /// Print the completions of a shell
    Completions(completions::Args),
    /// Print the manual page, or write all of them into a directory
    Man(man::Args),
}

impl Command {
    /// Runs the verb.
    ///
    /// # Errors
    /// Any failure; the exit code follows from the error.
    pub fn run(self, console: &Console) -> Result<()> {
        match self {
            Self::Sim(args) => sim::run(&args, console),
            Self::Reproduce(args) => reproduce::run(&args, console),
            Self::Probe(args) => probe::run(&args, console),
            Self::Kvssd(verb) => kvssd::run(&verb, console),
            Self::Completions(args) => completions::run(&args, crate::Cli::command()),
            Self::Man(args) => man::run(&args, crate::Cli::command(), console),
        }
    }
}
