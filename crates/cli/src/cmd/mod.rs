//! The verbs, one file each.

mod advise;
mod backup;
mod check;
mod compact;
mod completions;
mod count;
mod create;
mod dedup;
mod delete;
mod document_index;
mod dump;
mod filter;
mod get;
mod info;
mod kvssd;
mod load;
mod man;
mod merge;
mod neardup;
mod parameters;
pub mod probe;
mod reproduce;
mod sim;
mod tfidf;
mod wan;

use anyhow::Result;
use clap::Subcommand;

use crate::console::Console;

/// What the command can do.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Find the duplicate chunks of files and directories
    Dedup(dedup::Args),
    /// Make a volume with one empty table
    Create(Box<create::Args>),
    /// Show what a volume holds, and what it takes in RAM and on flash
    Info(info::Args),
    /// Read every page of a volume and check it; exits with 3 where one is damaged
    Check(check::Args),
    /// Copy a volume, also while another process writes to it, and prove the copy
    Backup(backup::Args),
    /// Rewrite a volume to the least space
    Compact(compact::Args),
    /// Put records from a file or stdin into a table
    Load(load::Args),
    /// Look keys up; exits with 1 where one is not there
    Get(get::Args),
    /// Remove keys from a table
    Delete(delete::Args),
    /// Write all records of a table to stdout
    Dump(dump::Args),
    /// Make one table of two, in long reads and writes, or count what they share
    Merge(Box<merge::Args>),
    /// Sets of keys in 11 bits each, bigger than RAM: make, ask, merge them
    Filter(filter::Args),
    /// Counts of keys, bigger than RAM: words, lines, numbers
    Count(count::Args),
    /// The words that say most about documents: keywords, ranks, matrices, with scikit-learn's numbers
    #[command(subcommand)]
    Tfidf(tfidf::CorpusVerb),
    /// Near-duplicates among documents: is this one new? An index bigger than RAM, with datasketch's answers
    #[command(subcommand)]
    Neardup(neardup::NearVerb),
    /// Streams in few bytes over a slow link or as references to a cache of earlier content, on flash
    #[command(subcommand)]
    Wan(wan::WanVerb),
    /// A key-value SSD, emulated: a drive that is addressed by key, on a file or on simulated flash
    #[command(subcommand)]
    Kvssd(Box<kvssd::DriveVerb>),
    /// Say what a table would cost, before there is one
    Advise(advise::Args),
    /// List all that a kind of structure can be told with --set
    Parameters(parameters::Args),
    /// Find the chunk size, the channels and the mapping of a flash device by timing
    Probe(probe::Args),
    /// Run a workload or a trace on a simulated device, and report what came of it
    Sim(Box<sim::Args>),
    /// Run a paper's experiments again on simulated drives, and show ours next to the paper's
    Reproduce(reproduce::Args),
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
            Self::Dedup(args) => dedup::run(&args, console),
            Self::Create(args) => create::run(&args, console),
            Self::Info(args) => info::run(&args, console),
            Self::Check(args) => check::run(&args, console),
            Self::Backup(args) => backup::run(&args, console),
            Self::Compact(args) => compact::run(&args, console),
            Self::Load(args) => load::run(&args, console),
            Self::Get(args) => get::run(&args, console),
            Self::Delete(args) => delete::run(&args, console),
            Self::Dump(args) => dump::run(&args, console),
            Self::Merge(args) => merge::run(&args, console),
            Self::Filter(args) => filter::run(&args, console),
            Self::Count(args) => count::run(&args, console),
            Self::Tfidf(args) => tfidf::run(&args, console),
            Self::Neardup(args) => neardup::run(&args, console),
            Self::Wan(args) => wan::run(&args, console),
            Self::Kvssd(args) => kvssd::run(&args, console),
            Self::Advise(args) => advise::run(&args, console),
            Self::Parameters(args) => parameters::run(&args, console),
            Self::Probe(args) => probe::run(&args, console),
            Self::Sim(args) => sim::run(&args, console),
            Self::Reproduce(args) => reproduce::run(&args, console),
            Self::Completions(args) => completions::run(&args),
            Self::Man(args) => man::run(&args, console),
        }
    }
}
