//! `nandex tfidf remove`: takes documents back that were added.

use anyhow::Result;

use crate::console::Console;
use crate::texts::InputArgs;

use super::change::Change;
use super::index::IndexArgs;
use super::update::run_change;

/// The index, and the documents as they were added.
#[derive(Debug, clap::Args)]
pub struct Args {
    #[command(flatten)]
    index: IndexArgs,
    #[command(flatten)]
    inputs: InputArgs,
}

/// Removes all documents. Each needs the id and the text that it was added with.
///
/// # Errors
/// A document that was never added or has another text; documents before it may be removed, as the message says.
pub fn run(args: &Args, console: &Console) -> Result<()> {
    run_change(&args.index, (&args.inputs, Change::Remove), console)
}
