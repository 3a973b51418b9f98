//! `nandex filter`: sets of keys in 11 bits each, bigger than RAM, from the shell. One file per verb; the
//! files beside them are what the verbs share.

mod add;
mod build;
mod delete;
pub mod figures;
mod info;
mod keys;
mod merge;
mod open;
mod test;
mod unique;
mod wish;

use anyhow::Result;
use clap::Subcommand;

use crate::talk::Talk;

/// Which verb.
#[derive(Debug, clap::Args)]
pub struct Args {
    #[command(subcommand)]
    verb: Verb,
}

/// What can be done with a filter.
#[derive(Debug, Subcommand)]
enum Verb {
    /// Make a volume with one filter of all keys of files or stdin
    #[command(after_help = SHARED_KEY)]
    Build(Box<build::Args>),
    /// Put more keys into a filter
    Add(add::Args),
    /// Print the keys that are in a filter; exits with 1 where none is
    Test(test::Args),
    /// Take keys out of a filter
    Delete(delete::Args),
    /// Make one filter of several that were made alike
    Merge(merge::Args),
    /// Show what a filter holds, how often it errs, and what it takes
    Info(info::Args),
    /// Print each key the first time it is seen
    #[command(after_help = SHARED_KEY)]
    Unique(Box<unique::Args>),
}

/// What users of filters have to know about hash keys.
const SHARED_KEY: &str = "Filters merge only when they hash alike, so all of them are made with \
    one published hash key unless --hash-key says otherwise. Whoever knows it can choose keys that \
    collide: for keys from strangers take --hash sip13 --hash-key random, or a key of your own.";

/// Runs the verb.
///
/// # Errors
/// Whatever stops it; the exit code follows from the error.
pub fn run(args: &Args, talk: &Talk) -> Result<()> {
    match &args.verb {
        Verb::Build(args) => build::run(args, talk),
        Verb::Add(args) => add::run(args, talk),
        Verb::Test(args) => test::run(args, talk),
        Verb::Delete(args) => delete::run(args, talk),
        Verb::Merge(args) => merge::run(args, talk),
        Verb::Info(args) => info::run(args, talk),
        Verb::Unique(args) => unique::run(args, talk),
    }
}
