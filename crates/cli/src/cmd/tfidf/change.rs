//! Adding documents to an index or removing them, and the report about it.

use std::path::{Path, PathBuf};
use std::time::Instant;

use anyhow::{Context, Result, anyhow};
use nandex::device::Access;
use nandex::raw::{Stated, words};
use nandex_tfidf::{Corpus, Repeats};
use serde::Serialize;

use crate::cmd::document_index::{Target, open};
use crate::console::{Console, aligned};
use crate::devices::{EngineArgs, FileBytes};
use crate::exit::{FAILURE, Quiet};
use crate::interrupt::Interrupt;
use crate::size::{show_bytes, show_count};
use crate::texts::{Inputs, OnInterrupt, Stream};

use super::hints::explained;

/// The direction of a change.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Change {
    /// Adds documents.
    Add(Repeats),
    /// Removes documents.
    Remove,
}

/// The handling of documents that are in the index.
#[derive(Clone, Copy, Debug, clap::Args)]
pub struct RepeatArgs {
    /// Leave out documents that the index has with the same text, so that a stopped run can be repeated
    #[arg(long)]
    skip_repeats: bool,
}

impl From<RepeatArgs> for Change {
    fn from(args: RepeatArgs) -> Self {
        Self::Add(if args.skip_repeats { Repeats::Skip } else { Repeats::Refuse })
    }
}

/// The result.
#[derive(Debug, Serialize)]
struct Changed {
    path: PathBuf,
    added: u64,
    removed: u64,
    skipped: u64,
    documents: u64,
    occurrences: u64,
    elapsed_s: f64,
    documents_per_s: f64,
    ram_bytes: u64,
    interrupted: bool,
    #[serde(flatten)]
    files: FileBytes,
}

/// Adds or removes all documents, closes the index, and prints the result.
///
/// # Errors
/// An input that cannot be read, a document that is rejected, a failed write, each with what the index has then;
/// silently, an interrupt.
pub fn change(
    target: Target<Corpus>,
    (engine, ram_bytes): (EngineArgs, u64),
    (inputs, change): (Inputs, Change),
    (console, interrupt): (&Console, &Interrupt),
) -> Result<()> {
    let Target { index: mut corpus, file, .. } = target;
    let (start, before) = (Instant::now(), corpus.documents());
    let what = if change == Change::Remove { "removing" } else { "adding" };
    let inputs = inputs.within(ram_bytes);
    let mut stream = Stream::start(inputs, (what, OnInterrupt::End), (console, interrupt))?;
    let updated = match change {
        Change::Add(repeats) => corpus.update(&mut stream, repeats),
        Change::Remove => corpus.remove(&mut stream),
    };
    stream.finish();
    let (documents, occurrences) = (corpus.documents(), corpus.occurrences());
    let taken_bytes = corpus.stats().ram_bytes;
    let closed = corpus.close();
    let left = || left((&file.place, engine), ram_bytes, documents.abs_diff(before));
    let updated = updated.map_err(explained).with_context(left)?;
    closed.map_err(explained).with_context(left)?;
    let elapsed_s = start.elapsed().as_secs_f64();
    let (added, removed) = match change {
        Change::Add(_) => (updated.documents, 0),
        Change::Remove => (0, updated.documents),
    };
    let interrupted = interrupt.is_set();
    let path = file.end(interrupted, console)?;
    let changed = Changed {
        files: FileBytes::of([path.as_path()])?,
        path,
        added,
        removed,
        skipped: updated.skipped,
        documents,
        occurrences,
        elapsed_s,
        documents_per_s: (added + removed) as f64 / elapsed_s.max(f64::MIN_POSITIVE),
        ram_bytes: taken_bytes,
        interrupted,
    };
    console.print_peak(&changed, Changed::text)?;
    if interrupted { Err(Quiet(FAILURE).into()) } else { Ok(()) }
}

/// Returns what a failure has left.
fn left(place: (&Path, EngineArgs), ram_bytes: u64, changed: u64) -> String {
    let shown = place.0.display();
    let opened = open::<Corpus>(place, Access::ReadOnly, (ram_bytes, &Stated::default()));
    match opened.and_then(|corpus| corpus.close().map_err(|error| anyhow!(error))) {
        Ok(()) => format!("stopped; {} documents before it count, in {shown}", show_count(changed)),
        Err(error) => format!("stopped, and {shown} cannot be used: {}", words(error.as_ref())),
    }
}

impl Changed {
    /// Formats the result for people.
    fn text(&self) -> String {
        let note = if self.interrupted { ", interrupted" } else { "" };
        let mut rows = vec![("index", self.path.display().to_string())];
        let (count, word) = match self.removed {
            0 => (self.added, "added"),
            removed => (removed, "removed"),
        };
        let rate =
            format!("in {:.1} s ({:.0} a second){note}", self.elapsed_s, self.documents_per_s);
        rows.push((word, format!("{} documents {rate}", show_count(count))));
        if self.skipped > 0 {
            let skipped = show_count(self.skipped);
            rows.push((
                "skipped",
                format!("{skipped} documents that were there with the same text"),
            ));
        }
        rows.push(("holds", held(self.documents, self.occurrences)));
        rows.push(("RAM", show_bytes(self.ram_bytes)));
        rows.push(("file", self.files.shown()));
        aligned(&rows)
    }
}

/// Formats the content of an index.
pub fn held(documents: u64, occurrences: u64) -> String {
    let (documents, occurrences) = (show_count(documents), show_count(occurrences));
    format!("{documents} documents, with {occurrences} occurrences of terms")
}
