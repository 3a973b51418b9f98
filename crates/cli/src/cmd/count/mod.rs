//! `nandex count`: counts of keys that are bigger than RAM, from the shell. One file per verb; `adding`, `estimate`,
//! `form`, `input`, `open`, `quoted` and `written` are shared.

mod add;
mod adding;
mod estimate;
mod form;
mod get;
mod input;
mod list;
mod merge;
mod open;
mod quoted;
mod remove;
mod written;

use anyhow::Result;
use clap::Subcommand;

use crate::console::Console;

/// The verb.
#[derive(Debug, clap::Args)]
pub struct Args {
    #[command(subcommand)]
    verb: Verb,
}

/// The verbs of counts.
#[derive(Debug, Subcommand)]
enum Verb {
    /// Create a volume with one table of counts of all keys of files or stdin
    Build(Box<add::BuildArgs>),
    /// Add more keys to the counts
    Add(add::AddArgs),
    /// Print the counts of keys, one per line; exits with 1 if none is above 0
    Get(get::Args),
    /// Print the most frequent keys, the most frequent first: key, tab, count
    Top(list::TopArgs),
    /// Print all keys with their counts, in no order: key, tab, count
    Dump(list::DumpArgs),
    /// Set counts of keys to 0
    Remove(remove::Args),
    /// Merge several tables that store keys alike into one; counts add up
    Merge(merge::Args),
}

/// Runs the verb.
///
/// # Errors
/// The error of the verb; the exit code follows from it.
pub fn run(args: &Args, console: &Console) -> Result<()> {
    match &args.verb {
        Verb::Build(args) => add::build(args, console),
        Verb::Add(args) => add::add(args, console),
        Verb::Get(args) => get::run(args, console),
        Verb::Top(args) => list::top(args, console),
        Verb::Dump(args) => list::dump(args, console),
        Verb::Remove(args) => remove::run(args, console),
        Verb::Merge(args) => merge::run(args, console),
    }
}
