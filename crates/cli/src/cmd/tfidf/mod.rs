//! `nandex tfidf`: finds the most significant words of each document of a collection, from the shell. One file per
//! verb; the other files are shared.

mod build;
mod change;
mod export;
mod hints;
mod index;
mod keywords;
mod merge;
mod model;
mod query;
mod rank;
mod ranked;
mod report;
mod update;

use anyhow::Result;
use clap::Subcommand;

use crate::console::Console;

/// The verbs of an index of documents.
#[derive(Debug, Subcommand)]
pub enum CorpusVerb {
    /// Create an index of documents
    #[command(after_help = INPUTS)]
    Build(Box<build::Args>),
    /// Add documents to an index
    #[command(after_help = INPUTS)]
    Update(update::UpdateArgs),
    /// Remove documents that were added
    #[command(after_help = INPUTS)]
    Remove(update::DocumentArgs),
    /// Add all documents of other indexes
    Merge(merge::Args),
    /// Show the number of documents that have each term; exits with 1 if none has any
    Query(query::Args),
    /// Print the most significant terms of each document
    #[command(after_help = INPUTS)]
    Keywords(keywords::Args),
    /// Create an index for `rank`, which then reads the postings of a query's terms instead of all documents
    #[command(after_help = INPUTS)]
    Index(ranked::Args),
    /// Print the documents most like a query, by an index or an exact scan; exits with 1 if none is
    #[command(after_help = INPUTS)]
    Rank(Box<rank::Args>),
    /// Write the TF-IDF matrix of documents for scipy or in Parquet
    #[command(after_help = INPUTS)]
    Export(Box<export::Args>),
    /// Show the content of an index, and write it to a page
    Report(report::Args),
}

/// The description of documents and their ids in the help.
const INPUTS: &str = "A document is a file of a folder, a line of a text file or of stdin (-), \
    an object of JSON lines (.jsonl, .ndjson), or a row of a Parquet file (.parquet). Its id is \
    the field of --id, or the input as it is named, with the path in the folder or the number of \
    the line or row behind it: texts/a.txt, posts.jsonl:7. Give inputs the same names each time, \
    or --name.";

/// Runs the verb.
///
/// # Errors
/// The error of the verb; the exit code follows from it.
pub fn run(verb: &CorpusVerb, console: &Console) -> Result<()> {
    match verb {
        CorpusVerb::Build(args) => build::run(args, console),
        CorpusVerb::Update(args) => update::update(args, console),
        CorpusVerb::Remove(args) => update::remove(args, console),
        CorpusVerb::Merge(args) => merge::run(args, console),
        CorpusVerb::Query(args) => query::run(args, console),
        CorpusVerb::Keywords(args) => keywords::run(args, console),
        CorpusVerb::Index(args) => ranked::run(args, console),
        CorpusVerb::Rank(args) => rank::run(args, console),
        CorpusVerb::Export(args) => export::run(args, console),
        CorpusVerb::Report(args) => report::run(args, console),
    }
}
