//! `nandex completions` and `nandex-lab completions`: shell completions of the command line.

use std::io::{self, Write};

use anyhow::Result;
use clap::Command;
use clap_complete::Shell;

/// The shell.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// Shell to print completions for
    shell: Shell,
}

/// Prints the completions of a command.
///
/// # Errors
/// A failed write to stdout.
pub fn run(args: &Args, mut command: Command) -> Result<()> {
    let (mut script, name) = (Vec::new(), command.get_name().to_owned());
    clap_complete::generate(args.shell, &mut command, name, &mut script);
    Ok(io::stdout().write_all(&script)?)
}
