//! The verbs, one file each.

mod advise;
mod backup;
mod check;
mod compact;
pub mod completions;
mod count;
mod create;
mod dedup;
mod delete;
mod document_index;
mod drop;
mod dump;
mod elsewhere;
mod filter;
mod get;
mod info;
pub mod kvssd;
mod load;
pub mod man;
mod merge;
mod neardup;
mod parameters;
pub mod probe;
mod tfidf;
mod wan;

use anyhow::Result;
use clap::{CommandFactory, Subcommand};

use crate::console::Console;

/// The commands.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Find the duplicate chunks of files and directories
    Dedup(dedup::Args),
    /// Create a volume with one empty table
    Create(Box<create::Args>),
    /// Show the content of a volume, and its RAM and flash
    Info(info::Args),
    /// Read and check every page of a volume; exits with 3 if one is damaged
    Check(check::Args),
    /// Copy a volume, also while another process writes to it, and verify the copy
    Backup(backup::Args),
    /// Rewrite a volume to the least space
    Compact(compact::Args),
    /// Load records from a file or stdin into a table
    Load(load::Args),
    /// Look keys up; exits with 1 if one is absent
    Get(get::Args),
    /// Remove keys from a table
    Delete(delete::Args),
    /// Remove structures from a volume, with all that they hold
    Drop(drop::Args),
    /// Write all records of a table to stdout
    Dump(dump::Args),
    /// Merge two tables into one, in long reads and writes, or count what they share
    Merge(Box<merge::Args>),
    /// Create, query and merge sets of keys in 11 bits each, bigger than RAM
    Filter(filter::Args),
    /// Count keys, bigger than RAM: words, lines, numbers
    Count(count::Args),
    /// Find the most significant words of documents: keywords, ranks, matrices, with scikit-learn's numbers
    #[command(subcommand)]
    Tfidf(tfidf::CorpusVerb),
    /// Find near-duplicates among documents with an index bigger than RAM, and datasketch's answers
    #[command(subcommand)]
    Neardup(neardup::NearVerb),
    /// Send or store streams in few bytes, as references to a cache of earlier content on flash
    #[command(subcommand)]
    Wan(wan::WanVerb),
    /// Emulate a key-value SSD: a drive that is addressed by key
    #[command(subcommand)]
    Kvssd(Box<kvssd::DriveVerb>),
    /// Predict the costs of a table before it is created
    Advise(advise::Args),
    /// List all parameters of a kind of structure for --set
    Parameters(parameters::Args),
    /// Find the chunk size, the channels and the mapping of a flash device by timing
    Probe(probe::Args),
    /// A verb of `nandex-lab`
    #[command(hide = true, disable_help_flag = true)]
    Sim(elsewhere::Args),
    /// A verb of `nandex-lab`
    #[command(hide = true, disable_help_flag = true)]
    Reproduce(elsewhere::Args),
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
            Self::Drop(args) => drop::run(&args, console),
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
            Self::Sim(_) => elsewhere::refuse_verb("sim"),
            Self::Reproduce(_) => elsewhere::refuse_verb("reproduce"),
            Self::Completions(args) => completions::run(&args, crate::Cli::command()),
            Self::Man(args) => man::run(&args, crate::Cli::command(), console),
        }
    }
}
