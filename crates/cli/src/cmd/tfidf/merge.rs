//! `nandex tfidf merge`: adds all documents of other indexes to one.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Instant;

use anyhow::{Context, Result};
use nandex::device::Access;
use nandex::raw::Stated;
use nandex_tfidf::{Corpus, Error};
use serde::Serialize;

use crate::cmd::document_index::{IndexArgs, open};
use crate::console::{Console, aligned};
use crate::devices::{EngineArgs, FileBytes};
use crate::exit::{FAILURE, Quiet};
use crate::interrupt::Interrupt;
use crate::merging;
use crate::size::show_bytes;

use super::change::held;
use super::hints::explained;

/// The help on the merging of indexes.
const ALIKE: &str = "Indexes merge when they were made with the same --ngram, --stop-words and --no-lowercase, and \
    have no document in common. FROM stays as it is. Each of the two indexes at hand takes --ram.";

/// The index, and those that are merged into it.
#[derive(Debug, clap::Args)]
#[command(after_help = ALIKE)]
pub struct Args {
    #[command(flatten)]
    index: IndexArgs,
    /// Indexes whose documents are added
    #[arg(value_name = "FROM", required = true)]
    from: Vec<PathBuf>,
}

/// The result.
#[derive(Debug, Serialize)]
struct Merged {
    path: PathBuf,
    files: usize,
    documents: u64,
    occurrences: u64,
    elapsed_s: f64,
    ram_bytes: u64,
    interrupted: bool,
    #[serde(flatten)]
    bytes: FileBytes,
}

/// Merges all of them into the index, one after another.
///
/// # Errors
/// Files that are not indexes or have another analysis, before anything is changed; a document that two have.
pub fn run(args: &Args, console: &Console) -> Result<()> {
    let interrupt = Interrupt::listen()?;
    let (start, ram_bytes) = (Instant::now(), args.index.ram);
    let path = args.index.file.as_path();
    let files = std::iter::once(path).chain(args.from.iter().map(PathBuf::as_path));
    merging::refuse_twice(files, "index")?;
    let mut corpus: Corpus = args.index.open()?;
    for from in &args.from {
        let other =
            open((from, args.index.engine), Access::ReadOnly, (ram_bytes, &Stated::default()))?;
        refuse_unlike((&corpus, path), (&other, from))?;
    }
    let files =
        absorb_all(&mut corpus, (&args.from, args.index.engine, ram_bytes), (console, &interrupt));
    let (documents, occurrences) = (corpus.documents(), corpus.occurrences());
    let ram_bytes = corpus.stats().ram_bytes;
    let closed = corpus.close();
    let files = files?;
    closed.map_err(explained)?;
    let merged = Merged {
        path: path.to_owned(),
        files,
        documents,
        occurrences,
        elapsed_s: start.elapsed().as_secs_f64(),
        ram_bytes,
        interrupted: files < args.from.len(),
        bytes: FileBytes::of([path])?,
    };
    console.print_peak(&merged, text)?;
    if merged.interrupted { Err(Quiet(FAILURE).into()) } else { Ok(()) }
}

/// Merges one index after another, until all are merged or the user wants to stop. Returns the number of merged ones.
fn absorb_all(
    corpus: &mut Corpus,
    (from, engine, ram_bytes): (&[PathBuf], EngineArgs, u64),
    (console, interrupt): (&Console, &Interrupt),
) -> Result<usize> {
    let meter = console.meter("merging", None);
    let mut bytes = 0;
    for (done, path) in from.iter().enumerate() {
        if interrupt.is_set() {
            return Ok(done);
        }
        let stopped = || {
            let shown = path.display();
            format!("stopped at {shown}; {done} of {} indexes are merged", from.len())
        };
        let other: Corpus = open((path, engine), Access::ReadOnly, (ram_bytes, &Stated::default()))
            .with_context(stopped)?;
        // Its option is for documents, not for indexes.
        let merged = corpus.merge(&other).map_err(|error| match error {
            Error::Repeated { .. } => error.into(),
            error => explained(error),
        });
        merged.with_context(stopped)?;
        bytes += fs::metadata(path).map_or(0, |found| found.len());
        meter.at(bytes);
    }
    meter.finish();
    Ok(from.len())
}

/// Fails for an index of another analysis before anything is changed.
fn refuse_unlike((one, path): (&Corpus, &Path), (other, from): (&Corpus, &Path)) -> Result<()> {
    if one.analysis() == other.analysis() {
        return Ok(());
    }
    let text = |corpus: &Corpus| serde_json::to_string(corpus.analysis()).unwrap_or_default();
    let (expected, found) = (text(one), text(other));
    let error = Error::OtherAnalysis { expected, found };
    let (path, from) = (path.display(), from.display());
    Err(error).with_context(|| format!("cannot merge {from} into {path}; nothing is changed"))
}

fn text(merged: &Merged) -> String {
    let note = if merged.interrupted { ", interrupted" } else { "" };
    aligned(&[
        ("index", merged.path.display().to_string()),
        ("merged", format!("{} indexes in {:.1} s{note}", merged.files, merged.elapsed_s)),
        ("holds", held(merged.documents, merged.occurrences)),
        ("RAM", show_bytes(merged.ram_bytes)),
        ("file", merged.bytes.shown()),
    ])
}
