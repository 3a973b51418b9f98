//! `nandex tfidf update` and `remove`: add documents to an index, and remove them.

use anyhow::Result;
use nandex_tfidf::Corpus;

use crate::cmd::document_index::{IndexArgs, Target};
use crate::console::Console;
use crate::interrupt::Interrupt;
use crate::texts::InputArgs;

use super::change::{Change, RepeatArgs, change};

/// The index, and the documents to add.
#[derive(Debug, clap::Args)]
pub struct UpdateArgs {
    #[command(flatten)]
    documents: DocumentArgs,
    #[command(flatten)]
    repeats: RepeatArgs,
}

/// The index, and the documents.
#[derive(Debug, clap::Args)]
pub struct DocumentArgs {
    #[command(flatten)]
    index: IndexArgs,
    #[command(flatten)]
    inputs: InputArgs,
}

/// Adds all documents.
///
/// # Errors
/// An input that cannot be read, a document that is present already, an index that refuses documents. Documents before
/// it may count; the message says how many.
pub fn update(args: &UpdateArgs, console: &Console) -> Result<()> {
    run(&args.documents, args.repeats.into(), console)
}

/// Removes all of the documents. Each needs the id and the text that it was added with.
///
/// # Errors
/// A document that was never added or has another text; documents before it may be removed, as the message says.
pub fn remove(args: &DocumentArgs, console: &Console) -> Result<()> {
    run(args, Change::Remove, console)
}

fn run(args: &DocumentArgs, way: Change, console: &Console) -> Result<()> {
    let interrupt = Interrupt::listen()?;
    let (index, inputs) = (&args.index, args.inputs.find()?);
    let target = Target::there(index.open::<Corpus>()?, &index.file);
    change(target, (index.engine, index.ram), (inputs, way), (console, &interrupt))
}
