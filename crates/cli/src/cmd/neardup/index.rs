//! `nandex neardup index`: makes an index of documents, or adds documents to one.

use anyhow::Result;

use crate::console::Console;

use super::add::{AddArgs, add};

/// The index, and the documents.
#[derive(Debug, clap::Args)]
pub struct Args {
    #[command(flatten)]
    add: AddArgs,
}

/// Adds all documents. A new file gets its name when it has all; a block device is marked until then.
///
/// # Errors
/// An input that cannot be read, a document that is there already, an index that refuses. Documents before it may
/// count; the message says how many.
pub fn run(args: &Args, console: &Console) -> Result<()> {
    add(&args.add, console, |_, _, _| Ok(()))?.print(console)
}
