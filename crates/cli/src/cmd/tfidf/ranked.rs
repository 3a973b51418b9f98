//! `nandex tfidf index`: creates the rank index of documents, for `rank`.

use std::path::PathBuf;
use std::time::Instant;

use anyhow::Result;
use nandex_tfidf::{Corpus, Indexed, Indexing};
use serde::Serialize;

use crate::cmd::document_index::IndexArgs;
use crate::console::{Console, aligned};
use crate::devices::FileBytes;
use crate::interrupt::Interrupt;
use crate::size::{show_bytes, show_count};
use crate::texts::{InputArgs, OnInterrupt, Stream, scratch};

use super::hints::explained;
use super::model::{SelectionArgs, WeightingArgs};

/// The index, the documents, and their weighting.
#[derive(Debug, clap::Args)]
#[command(
    long_about = "Make an index for `rank` in the file of INDEX: for each term the documents that \
    have it.\n\nThe documents of INPUT are read and weighed once, and `rank` with the same options \
    then reads the postings of the query's terms and none of the documents. It ranks them as they \
    are now. Adding or removing documents of INDEX makes the rank index stale, since it changes \
    all weights: make it again afterwards."
)]
pub struct Args {
    #[command(flatten)]
    index: IndexArgs,
    #[command(flatten)]
    inputs: InputArgs,
    #[command(flatten)]
    selection: SelectionArgs,
    #[command(flatten)]
    weighting: WeightingArgs,
}

/// The result.
#[derive(Debug, Serialize)]
struct Made {
    path: PathBuf,
    /// The numbers of documents, terms and postings, and the bytes of the rank index.
    #[serde(flatten)]
    indexed: Indexed,
    elapsed_s: f64,
    #[serde(flatten)]
    files: FileBytes,
}

/// Creates the rank index in place of an existing one.
///
/// # Errors
/// As for opening; an input that cannot be read, an interrupt: the index is then unchanged.
pub fn run(args: &Args, console: &Console) -> Result<()> {
    let (interrupt, start) = (Interrupt::listen()?, Instant::now());
    let (inputs, selection) = (args.inputs.find()?, args.selection.selection()?);
    let path = args.index.file.as_path();
    let indexing = Indexing { selection, weighting: args.weighting.into(), source: inputs.names() };
    let mut corpus: Corpus = args.index.open()?;
    let mut stream = Stream::start(inputs, ("indexing", OnInterrupt::Fail), (console, &interrupt))?;
    let indexed = corpus.index(&mut stream, &indexing, Some(&scratch()));
    stream.finish();
    let closed = corpus.close();
    let indexed = interrupt.check(indexed.map_err(explained), "the index is as it was before")?;
    closed.map_err(explained)?;
    let elapsed_s = start.elapsed().as_secs_f64();
    let files = FileBytes::of([path])?;
    let made = Made { path: path.to_owned(), indexed, elapsed_s, files };
    console.print_peak(&made, text)
}

fn text(made: &Made) -> String {
    let Indexed { documents, terms, postings, bytes } = made.indexed;
    let [documents, terms, postings] = [documents, terms, postings].map(show_count);
    aligned(&[
        ("index", made.path.display().to_string()),
        ("ranks", format!("{documents} documents by {terms} terms, in {:.1} s", made.elapsed_s)),
        ("postings", format!("{postings}, with terms and ids {}", show_bytes(bytes))),
        ("file", made.files.shown()),
    ])
}
