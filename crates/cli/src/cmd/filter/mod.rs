//! `nandex filter`: sets of keys in 11 bits each, bigger than RAM, from the shell. One file per verb; the other files
//! are shared.

mod add;
mod build;
mod delete;
pub mod figures;
mod info;
mod kind;
mod merge;
mod open;
mod requirements;
mod test;
mod unique;

use anyhow::Result;
use clap::Subcommand;

use crate::console::Console;

/// The verb.
#[derive(Debug, clap::Args)]
pub struct Args {
    #[command(subcommand)]
    verb: Verb,
}

/// The verbs of filters.
#[derive(Debug, Subcommand)]
enum Verb {
    /// Create a volume with one filter of all keys of files or stdin
    #[command(after_help = SHARED_KEY)]
    Build(Box<build::Args>),
    /// Add more keys to a filter
    Add(add::Args),
    /// Print the keys that are in a filter; exits with 1 if none is
    Test(test::Args),
    /// Delete keys from a filter
    Delete(delete::Args),
    /// Merge several filters with the same configuration into one
    Merge(merge::Args),
    /// Show a filter's content, rate of false positives, RAM and flash
    Info(info::Args),
    /// Print each key the first time it is seen
    #[command(after_help = SHARED_KEY)]
    Unique(Box<unique::Args>),
}

/// The help on the hash keys of filters.
const SHARED_KEY: &str = "Filters merge only when they hash alike, so all of them are made with \
    one published hash key unless --hash-key says otherwise. Whoever knows it can choose keys that \
    collide: for keys from strangers take --hash sip13 --hash-key random, or a key of your own.";

/// Runs the verb.
///
/// # Errors
/// The error of the verb; the exit code follows from it.
pub fn run(args: &Args, console: &Console) -> Result<()> {
    match &args.verb {
        Verb::Build(args) => build::run(args, console),
        Verb::Add(args) => add::run(args, console),
        Verb::Test(args) => test::run(args, console),
        Verb::Delete(args) => delete::run(args, console),
        Verb::Merge(args) => merge::run(args, console),
        Verb::Info(args) => info::run(args, console),
        Verb::Unique(args) => unique::run(args, console),
    }
}
