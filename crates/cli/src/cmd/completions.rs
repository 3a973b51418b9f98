//! `nandex completions`: what a shell needs to complete our command line.

use std::io::{self, Write};

use anyhow::Result;
use clap::CommandFactory;
use clap_complete::Shell;

/// Which shell.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// The shell to print completions for
    shell: Shell,
}

/// Prints the completions.
///
/// # Errors
/// Stdout's refusal.
pub fn run(args: &Args) -> Result<()> {
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut crate::Cli::command(), "nandex", &mut script);
    Ok(io::stdout().write_all(&script)?)
}
