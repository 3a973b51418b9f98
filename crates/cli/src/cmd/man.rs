//! `nandex man` and `nandex-lab man`: print the manual, made from the same definition as the command line.

use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use clap::Command;
use clap_mangen::Man;
use serde::Serialize;

use crate::console::Console;
use crate::unfinished::write_output;

/// The target directory.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// Write a page for each verb into this directory; default: print the main page
    dir: Option<PathBuf>,
}

/// The result.
#[derive(Debug, Serialize)]
struct Written {
    pages: Vec<PathBuf>,
}

/// Prints the main page of a command, or writes all of its pages.
///
/// # Errors
/// A directory or a file that cannot be written.
pub fn run(args: &Args, command: Command, console: &Console) -> Result<()> {
    let mut command = command.disable_help_subcommand(true);
    command.build();
    let Some(dir) = &args.dir else {
        let mut page = Vec::new();
        Man::new(command).render(&mut page)?;
        return Ok(io::stdout().write_all(&page)?);
    };
    let pages = write_all(command, dir, console)?;
    console.print(&Written { pages }, |written| {
        written.pages.iter().map(|page| format!("{}\n", page.display())).collect()
    })
}

fn write_all(command: Command, dir: &Path, console: &Console) -> Result<Vec<PathBuf>> {
    fs::create_dir_all(dir).with_context(|| format!("cannot create {}", dir.display()))?;
    let write = |command| {
        let man = Man::new(command);
        let (path, mut page) = (dir.join(man.get_filename()), Vec::new());
        man.render(&mut page)?;
        write_output(&path, page, console)?;
        Ok(path)
    };
    with_verbs(command).into_iter().map(write).collect()
}

/// Returns a command and all of its verbs, recursively.
fn with_verbs(command: Command) -> Vec<Command> {
    let is_shown = |verb: &&Command| verb.get_name() != "help" && !verb.is_hide_set();
    let verbs = command.get_subcommands().filter(is_shown).cloned();
    let mut all: Vec<Command> = verbs.flat_map(with_verbs).collect();
    all.push(command);
    all
}
