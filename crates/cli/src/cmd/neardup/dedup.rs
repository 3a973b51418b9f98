//! `nandex neardup dedup`: writes the documents that are new, and what the others are duplicates of.

use std::fs::{self, File};
use std::io::{self, BufWriter, IntoInnerError, Write};
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use nandex_neardup::{Document, Error, Outcome, Verdict};
use serde_json::{Value, json};

use crate::console::Console;
use crate::unfinished::Unfinished;

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

/// Adds all documents, and writes both files, which get their names in the end. A document that is in the index already
/// is written as it was decided when it came.
///
/// # Errors
/// As `index`; a file that cannot be written. No file is left after an error or an interrupt.
pub fn run(args: &Args, console: &Console) -> Result<()> {
    let mut kept = args.kept.as_deref().map(|path| Lines::begin(path, console)).transpose()?;
    let audit = args.audit.as_deref().map(|path| Lines::begin(path, console)).transpose();
    let mut audit = match audit {
        Ok(audit) => audit,
        Err(error) => {
            kept.into_iter().for_each(Lines::forget);
            return Err(error);
        }
    };
    let ended = add(&args.add, console, |document, outcome, kind| {
        let written = write((document, outcome, kind), (&mut kept, &mut audit));
        written.map_err(Error::Output)
    });
    let files = kept.into_iter().chain(audit);
    match ended {
        Ok(ended) if !ended.added.interrupted => {
            files.map(Lines::finish).collect::<Result<Vec<()>>>()?;
            ended.print(console)
        }
        ended => {
            files.for_each(Lines::forget);
            ended?.print(console)
        }
    }
}

fn write(
    (document, outcome, kind): (&Document, &Outcome, Kind),
    (kept, audit): (&mut Option<Lines>, &mut Option<Lines>),
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

/// A file of JSON lines that is being made.
struct Lines {
    out: BufWriter<File>,
    made: Unfinished,
    place: PathBuf,
}

impl Lines {
    fn begin(path: &Path, console: &Console) -> Result<Self> {
        let mut made = Unfinished::default();
        let place = made.begin(path, console)?;
        let file =
            File::create(&place).with_context(|| format!("cannot create {}", path.display()))?;
        Ok(Self { out: BufWriter::new(file), made, place })
    }

    fn write(&mut self, line: &Value) -> io::Result<()> {
        writeln!(self.out, "{line}")
    }

    /// Gives the file its name, durably.
    fn finish(mut self) -> Result<()> {
        let synced = self.out.into_inner().map_err(IntoInnerError::into_error);
        let synced = synced.and_then(|file| file.sync_all());
        synced.with_context(|| format!("cannot write {}", self.place.display()))?;
        self.made.replace()
    }

    /// Removes what was written.
    fn forget(self) {
        // Best effort: the first error counts.
        let _ = fs::remove_file(&self.place);
    }
}
