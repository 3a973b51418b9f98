//! `nandex completions`: shell completions of the command line.

use std::io::{self, Write};

use anyhow::Result;
use clap::CommandFactory;
use clap_complete::Shell;

/// The shell.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// Shell to print completions for
    shell: Shell,
}

/// Prints the completions.
///
/// # Errors
/// A failed write to stdout.
pub fn run(args: &Args) -> Result<()> {
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut crate::Cli::command(), "nandex", &mut script);
    Ok(io::stdout().write_all(&script)?)
}
