//! `nandex neardup`: finds documents of a collection that are nearly the same, from the shell. One file per verb; the
//! other files are shared.

mod add;
mod clusters;
mod create;
mod dedup;
mod hints;
mod kind;
mod near;
mod opened;
mod pairs;
mod query;
mod remove;
mod stats;

use anyhow::Result;
use clap::Subcommand;

use crate::console::Console;

/// The verbs of near-duplicates.
#[derive(Debug, Subcommand)]
pub enum NearVerb {
    /// Create an index of documents, or add documents to one
    #[command(after_help = INPUTS)]
    Index(Box<add::AddArgs>),
    /// Print the documents of an index that others are near, and add nothing; exits with 1 if all are new
    #[command(after_help = INPUTS)]
    Query(query::Args),
    /// Write the documents that are new, and a list of the duplicates; creates the index, or adds to it
    #[command(after_help = INPUTS)]
    Dedup(Box<dedup::Args>),
    /// Remove documents from an index by their ids
    Remove(remove::Args),
    /// Print all pairs of near-duplicates in an index
    Pairs(pairs::Args),
    /// Print the clusters that pairs connect: a line for each document in a cluster
    Clusters(clusters::Args),
    /// Show the content of an index, and write it to a page
    #[command(after_help = INPUTS)]
    Stats(stats::Args),
}

/// The description of documents and their ids in the help.
const INPUTS: &str = "A vector is an array of numbers in a field of JSON lines or a column of Parquet, or \
    the text of a line or file. A document is a file of a folder, a line of a text file or \
    of stdin (-), an object of JSON lines (.jsonl, .ndjson), or a row of a Parquet file \
    (.parquet). Its id is the field of --id, or the input as it is named, with the path in \
    the folder or the number of the line or row behind it: texts/a.txt, posts.jsonl:7. \
    Give inputs the same names each time, or --name.";

/// Runs the verb.
///
/// # Errors
/// The error of the verb; the exit code follows from it.
pub fn run(verb: &NearVerb, console: &Console) -> Result<()> {
    match verb {
        NearVerb::Index(args) => add::index(args, console),
        NearVerb::Query(args) => query::run(args, console),
        NearVerb::Dedup(args) => dedup::run(args, console),
        NearVerb::Remove(args) => remove::run(args, console),
        NearVerb::Pairs(args) => pairs::run(args, console),
        NearVerb::Clusters(args) => clusters::run(args, console),
        NearVerb::Stats(args) => stats::run(args, console),
    }
}
