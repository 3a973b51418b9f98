//! `nandex neardup`: which documents of a collection are nearly the same, from the shell. One file per verb; the other
//! files are shared.

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

/// What can be done with an index of documents.
#[derive(Debug, Subcommand)]
pub enum NearVerb {
    /// Make an index of documents, or add documents to one
    #[command(after_help = INPUTS)]
    Index(Box<add::AddArgs>),
    /// Print which documents of an index others are near, and add nothing; exits with 1 if all are new
    #[command(after_help = INPUTS)]
    Query(query::Args),
    /// Write the documents that are new, and what the others are duplicates of; makes the index, or adds to it
    #[command(after_help = INPUTS)]
    Dedup(Box<dedup::Args>),
    /// Take documents out of an index by their ids
    Remove(remove::Args),
    /// Print all pairs of near-duplicates in an index
    Pairs(pairs::Args),
    /// Print the clusters that pairs connect: a line for each document that is in one
    Clusters(clusters::Args),
    /// Show what an index holds, and write it to a page
    #[command(after_help = INPUTS)]
    Stats(stats::Args),
}

/// What a document is, and what it is called.
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
