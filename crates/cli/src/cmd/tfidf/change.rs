//! Documents that come into an index or go out of it, and what is said of that.

use std::path::{Path, PathBuf};
use std::time::Instant;

use anyhow::{Context, Result, anyhow};
use nandex::device::Access;
use nandex::raw::Stated;
use nandex_tfidf::{Corpus, CorpusConfig, Repeats};
use serde::Serialize;

use crate::console::{Console, aligned};
use crate::devices::FileBytes;
use crate::exit::words;
use crate::interrupt::Interrupt;
use crate::size::{show_bytes, show_count};
use crate::texts::{Inputs, OnInterrupt, Stream};

use super::hints::explained;
use super::index;

/// Which way documents go.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Change {
    /// In.
    Add(Repeats),
    /// Out.
    Remove,
}

/// What happens to documents that are in the index.
#[derive(Clone, Copy, Debug, clap::Args)]
pub struct RepeatArgs {
    /// Leave out documents that the index has with the same text, so that a run that was stopped can be repeated
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
pub struct Changed {
    /// Where the index is.
    pub path: PathBuf,
    added: u64,
    removed: u64,
    skipped: u64,
    documents: u64,
    occurrences: u64,
    elapsed_s: f64,
    documents_per_s: f64,
    ram_bytes: u64,
    /// Was it stopped?
    pub interrupted: bool,
    /// What the file takes.
    #[serde(flatten)]
    pub files: Option<FileBytes>,
}

/// Adds or removes all documents, and closes the index.
///
/// # Errors
/// An input that cannot be read, a document that is refused, a failed write: with what the index has then.
pub fn change(
    mut corpus: Corpus,
    (path, config): (&Path, CorpusConfig),
    (inputs, change): (Inputs, Change),
    (console, interrupt): (&Console, &Interrupt),
) -> Result<Changed> {
    let (start, before) = (Instant::now(), corpus.documents());
    let what = if change == Change::Remove { "removing" } else { "adding" };
    let mut stream = Stream::start(inputs, (what, OnInterrupt::End), (console, interrupt))?;
    let updated = match change {
        Change::Add(repeats) => corpus.update(&mut stream, repeats),
        Change::Remove => corpus.remove(&mut stream),
    };
    stream.finish();
    let (documents, occurrences) = (corpus.documents(), corpus.occurrences());
    let ram_bytes = corpus.stats().ram_bytes;
    let closed = corpus.close();
    let updated = updated
        .map_err(explained)
        .with_context(|| left((path, config), documents.abs_diff(before)))?;
    closed.map_err(explained).with_context(|| left((path, config), documents.abs_diff(before)))?;
    let elapsed_s = start.elapsed().as_secs_f64();
    let (added, removed) = match change {
        Change::Add(_) => (updated.documents, 0),
        Change::Remove => (0, updated.documents),
    };
    Ok(Changed {
        path: path.to_owned(),
        added,
        removed,
        skipped: updated.skipped,
        documents,
        occurrences,
        elapsed_s,
        documents_per_s: (added + removed) as f64 / elapsed_s.max(f64::MIN_POSITIVE),
        ram_bytes,
        interrupted: interrupt.is_set(),
        files: None,
    })
}

/// What a failure has left.
fn left((path, config): (&Path, CorpusConfig), changed: u64) -> String {
    let shown = path.display();
    let opened = index::open(path, Access::ReadOnly, (config, &Stated::default()));
    match opened.and_then(|corpus| corpus.close().map_err(|error| anyhow!(error))) {
        Ok(()) => format!("stopped; {} documents before it count, in {shown}", show_count(changed)),
        Err(error) => format!("stopped, and {shown} cannot be used: {}", words(&error)),
    }
}

impl Changed {
    /// For people.
    pub fn text(&self) -> String {
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
        rows.extend(self.files.map(|files| ("file", files.shown())));
        aligned(&rows)
    }
}

/// What an index holds.
pub fn held(documents: u64, occurrences: u64) -> String {
    let (documents, occurrences) = (show_count(documents), show_count(occurrences));
    format!("{documents} documents, with {occurrences} occurrences of terms")
}
