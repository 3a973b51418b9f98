//! Adding documents to an index, and the report about it.

use std::path::PathBuf;
use std::time::Instant;

use anyhow::{Context, Result};
use nandex_neardup::{Document, Outcome, Repeats, Updated};
use serde::Serialize;

use crate::cmd::document_index::{IndexArgs, Target};
use crate::console::{Console, aligned};
use crate::devices::FileBytes;
use crate::exit::{FAILURE, Quiet};
use crate::interrupt::Interrupt;
use crate::size::{show_bytes, show_count};
use crate::texts::{Broken, BrokenArgs, InputArgs, LeftOut, OnInterrupt, Stream};

use super::create::{MakeArgs, find};
use super::hints::explained;
use super::kind::Kind;
use super::near::NearArgs;

/// The index, the documents, and the definition of near-duplicates.
#[derive(Debug, clap::Args)]
pub struct AddArgs {
    #[command(flatten)]
    index: IndexArgs,
    #[command(flatten)]
    inputs: InputArgs,
    #[command(flatten)]
    near: NearArgs,
    #[command(flatten)]
    make: MakeArgs,
    #[command(flatten)]
    broken: BrokenArgs,
    /// Leave out documents that the index has with the same text, so that a stopped run can be repeated
    #[arg(long)]
    skip_repeats: bool,
}

/// The result.
#[derive(Debug, Serialize)]
pub struct Added {
    /// The place of the index.
    pub path: PathBuf,
    added: u64,
    kept: u64,
    exact: u64,
    near: u64,
    repeated: u64,
    broken: u64,
    documents: u64,
    elapsed_s: f64,
    documents_per_s: f64,
    ram_bytes: u64,
    /// Whether it was stopped.
    pub interrupted: bool,
    /// The size of the file.
    #[serde(flatten)]
    files: FileBytes,
}

/// The end of a run.
pub struct Ended {
    /// The result.
    pub added: Added,
    broken: Broken,
    left_out: LeftOut,
}

/// `nandex neardup index`: adds all documents. A new file gets its name when it has all of them; a block device is
/// marked until then.
///
/// # Errors
/// An input that cannot be read, a document that is present already, an index that refuses documents. Documents before
/// it may count; the message says how many.
pub fn index(args: &AddArgs, console: &Console) -> Result<()> {
    add(args, console, |_, _, _| Ok(()))?.print(console)
}

/// Adds all documents, calls `take` with each that counts and the kind of the index, and closes the index, which then
/// has its name.
///
/// # Errors
/// An input that cannot be read, a document that is rejected, a failed write, an error of `take`.
pub fn add(
    args: &AddArgs,
    console: &Console,
    mut take: impl FnMut(&Document, &Outcome, Kind) -> nandex_neardup::Result<()>,
) -> Result<Ended> {
    let interrupt = Interrupt::listen()?;
    let left_out = LeftOut::default();
    let mut inputs = args.inputs.find()?;
    if args.broken.broken != Broken::Stop {
        inputs = inputs.leaving_out(&left_out);
    }
    let target = find(&args.index, (&args.near, &args.make), console)?;
    let Target { mut index, file, is_resumed } = target;
    let kind = Kind::of(&index);
    let inputs = inputs.holding(kind.content).within(args.index.ram);
    let skips = args.skip_repeats || is_resumed;
    let repeats = if skips { Repeats::Skip } else { Repeats::Refuse };
    let start = Instant::now();
    let mut stream = Stream::start(inputs, ("adding", OnInterrupt::End), (console, &interrupt))?;
    let updated =
        index.update(&mut stream, repeats, |document, outcome| take(document, outcome, kind));
    stream.finish();
    let (documents, ram_bytes) = (index.documents(), index.stats().ram_bytes);
    let end = index.close();
    let left = || {
        let shown = file.place.display();
        format!("stopped; {} documents count, in {shown}", show_count(documents))
    };
    let updated = updated.map_err(explained).with_context(left)?;
    end.map_err(explained).with_context(left)?;
    let interrupted = interrupt.is_set();
    let path = file.end(interrupted, console)?;
    let Updated { documents: added, kept, exact, near, repeated } = updated;
    let elapsed_s = start.elapsed().as_secs_f64();
    let added = Added {
        files: FileBytes::of([path.as_path()])?,
        path,
        added,
        kept,
        exact,
        near,
        repeated,
        broken: left_out.count(),
        documents,
        elapsed_s,
        documents_per_s: (added + repeated) as f64 / elapsed_s.max(f64::MIN_POSITIVE),
        ram_bytes,
        interrupted,
    };
    Ok(Ended { added, broken: args.broken.broken, left_out })
}

impl Ended {
    /// Prints the result, and chooses the exit code.
    ///
    /// # Errors
    /// A failed write to stdout; silently, an interrupt, and broken documents if they determine an exit code.
    pub fn print(&self, console: &Console) -> Result<()> {
        console.print_peak(&self.added, Added::text)?;
        if self.added.interrupted {
            return Err(Quiet(FAILURE).into());
        }
        self.left_out.end(self.broken, console)
    }
}

impl Added {
    fn text(&self) -> String {
        let note = if self.interrupted { ", interrupted" } else { "" };
        let rate =
            format!("in {:.1} s ({:.0} a second){note}", self.elapsed_s, self.documents_per_s);
        let mut rows = vec![
            ("index", self.path.display().to_string()),
            ("added", format!("{} documents {rate}", show_count(self.added))),
            ("new", show_count(self.kept)),
            ("equal", format!("{} with the text of another", show_count(self.exact))),
            ("near", format!("{} near another", show_count(self.near))),
        ];
        if self.repeated > 0 {
            let repeated = show_count(self.repeated);
            rows.push(("repeated", format!("{repeated} documents that were there")));
        }
        rows.push(("holds", format!("{} documents", show_count(self.documents))));
        rows.push(("RAM", show_bytes(self.ram_bytes)));
        rows.push(("file", self.files.shown()));
        aligned(&rows)
    }
}
