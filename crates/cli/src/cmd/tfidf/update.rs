//! `nandex tfidf update`: adds documents to an index.

use anyhow::Result;

use crate::console::Console;
use crate::devices::FileBytes;
use crate::exit::{FAILURE, Quiet};
use crate::interrupt::Interrupt;
use crate::texts::InputArgs;

use super::change::{Change, Changed, RepeatArgs, change};
use super::index::IndexArgs;

/// The index, and the documents.
#[derive(Debug, clap::Args)]
pub struct Args {
    #[command(flatten)]
    index: IndexArgs,
    #[command(flatten)]
    inputs: InputArgs,
    #[command(flatten)]
    repeats: RepeatArgs,
}

/// Adds all documents.
///
/// # Errors
/// An input that cannot be read, a document that is there already, an index that refuses. Documents before it may
/// count; the message says how many.
pub fn run(args: &Args, console: &Console) -> Result<()> {
    run_change(&args.index, (&args.inputs, args.repeats.into()), console)
}

/// Adds or removes all documents.
///
/// # Errors
/// As the verbs.
pub fn run_change(
    index: &IndexArgs,
    (inputs, way): (&InputArgs, Change),
    console: &Console,
) -> Result<()> {
    let interrupt = Interrupt::listen()?;
    let inputs = inputs.find()?;
    let (path, config) = (index.file.as_path(), index.config()?);
    let corpus = index.open()?;
    let mut changed = change(corpus, (path, config), (inputs, way), (console, &interrupt))?;
    changed.files = Some(FileBytes::of([path])?);
    console.print(&changed, Changed::text)?;
    if changed.interrupted { Err(Quiet(FAILURE).into()) } else { Ok(()) }
}
