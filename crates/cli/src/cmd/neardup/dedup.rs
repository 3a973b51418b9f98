//! `nandex neardup dedup`: writes the documents that are new, and a list of the duplicates.

use std::io::{self, Write};
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use nandex::raw::device::output::OutputFile;
use nandex_neardup::{Document, Error, Outcome, Verdict};
use serde_json::{Value, json};

use crate::console::Console;
use crate::unfinished::{begin_output, cannot_write};

use super::add::{AddArgs, add};
use super::kind::Kind;

/// The index, the documents and the files.
#[derive(Debug, clap::Args)]
pub struct Args {
    #[command(flatten)]
    add: AddArgs,
    /// Write the documents that are new to this file, as JSON lines of `id` and `text` or `vector`
    #[arg(long, value_name = "FILE", required_unless_present = "audit")]
    kept: Option<PathBuf>,
    /// Write a line for each other document to this file: `removed`, `kept`, `estimate` or `distance`, `exact`
    #[arg(long, value_name = "FILE")]
    audit: Option<PathBuf>,
}

/// Adds all documents, and writes both files, which get their names at the end. A document that is in the index already
/// is written as it was decided when it was added.
///
/// # Errors
/// As `index`; a file that cannot be written. After an error or an interrupt both files are unchanged.
pub fn run(args: &Args, console: &Console) -> Result<()> {
    let mut kept = args.kept.as_deref().map(|path| Lines::begin(path, console)).transpose()?;
    let mut audit = args.audit.as_deref().map(|path| Lines::begin(path, console)).transpose()?;
    let ended = add(&args.add, console, |document, outcome, kind| {
        let written = write((document, outcome, kind), (&mut kept, &mut audit));
        written.map_err(Error::Output)
    });
    let ended = ended?;
    if !ended.added.interrupted {
        kept.into_iter().chain(audit).try_for_each(Lines::finish)?;
    }
    ended.print(console)
}

fn write(
    (document, outcome, kind): (&Document, &Outcome, Kind),
    (kept, audit): (&mut Option<Lines<'_>>, &mut Option<Lines<'_>>),
) -> io::Result<()> {
    let (id, word) = (&document.id, kind.measure.word());
    let audited = match &outcome.verdict {
        Verdict::Kept => {
            let Some(kept) = kept else { return Ok(()) };
            return kept.write(&kind.document(document)?);
        }
        Verdict::Removed(found) => json!({
            "removed": id, "kept": found.id, word: found.estimate, "exact": found.is_exact
        }),
        Verdict::RemovedForGone => {
            json!({"removed": id, "kept": null, word: null, "exact": null})
        }
    };
    audit.as_mut().map_or(Ok(()), |it| it.write(&audited))
}

/// A file of JSON lines that is being written.
struct Lines<'a> {
    out: OutputFile,
    path: &'a Path,
}

impl<'a> Lines<'a> {
    fn begin(path: &'a Path, console: &Console) -> Result<Self> {
        Ok(Self { out: begin_output(path, console)?, path })
    }

    fn write(&mut self, line: &Value) -> io::Result<()> {
        writeln!(self.out, "{line}")
    }

    fn finish(self) -> Result<()> {
        self.out.finish().with_context(|| cannot_write(self.path))
    }
}
