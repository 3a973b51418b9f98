//! `nandex dedup`: finds the duplicate chunks of files and directories.

mod index;

use std::path::PathBuf;

use anyhow::{Result, bail};
use nandex::{AnyTable, TableOrMap};
use nandex_dedup::{Error, IndexSettings, Options, Summary, TREES_MAX};

use crate::chunk_list::{ChunkList, Watching};
use crate::console::Console;
use crate::exit::{FAILURE, LEFT_OUT, Quiet};
use crate::interrupt::Interrupt;
use crate::provenance;
use crate::size::show_count;
use crate::unfinished::write_output;

pub use index::in_scratch;
use index::{IndexArgs, open_or_make};

/// The inputs, the index and the outputs.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// Files and directories to read
    #[arg(required = true)]
    paths: Vec<PathBuf>,
    #[command(flatten)]
    index: IndexArgs,
    /// Compare 2 to 14 trees with one another: the share of each pair, and the files that have content of earlier files
    #[arg(long, conflicts_with = "file")]
    compare: bool,
    /// Write a report to this HTML file
    #[arg(long, value_name = "FILE")]
    report: Option<PathBuf>,
    /// Write every chunk and its place to this file, one per line
    #[arg(long, value_name = "FILE")]
    list: Option<PathBuf>,
}

/// Returns the table of an index, which has fixed widths.
fn fixed(index: &TableOrMap) -> Result<&AnyTable> {
    match index {
        TableOrMap::Table(table) => Ok(table),
        TableOrMap::Map(_) => {
            bail!("the table has keys and values of any size; name one of fixed widths")
        }
    }
}

/// Reads all paths and prints the duplicates.
///
/// # Errors
/// A missing path, an index of another hash, no space; silently, after the result, an interrupt or unreadable files.
pub fn run(args: &Args, console: &Console) -> Result<()> {
    let interrupt = Interrupt::listen()?;
    let provenance = provenance::now();
    refuse_trees(args)?;
    let list = ChunkList::begin(args.list.as_deref(), console)?;
    let options =
        Options { compare: args.compare, leave_out: list.files(), ..Options::new(&args.paths) };
    let survey = nandex_dedup::survey(&args.paths)?;
    let value_bytes = options.value_bytes();
    let (index, IndexSettings { chunking, hash }) =
        open_or_make(&args.index, (&survey, value_bytes), console)?;
    let options = Options { chunking, hash, ..options };
    let meter = console.meter("reading", Some(survey.bytes));
    let progress = Watching { meter: &meter, list: &list };
    let summary =
        nandex_dedup::dedup(fixed(&index.structure)?, &options, &progress, interrupt.flag());
    meter.finish();
    let summary = Summary { provenance: Some(provenance), ..summary? };
    index.close()?;
    args.index.tell_size(console)?;
    list.finish()?;
    if let Some(path) = &args.report {
        write_output(path, nandex_dedup::html(&summary), console)?;
    }
    console.print_peak(&summary, nandex_dedup::text)?;
    tell(args, &summary, console);
    match (summary.interrupted, summary.unreadable_count) {
        (true, _) => Err(Quiet(FAILURE).into()),
        (false, 0) => Ok(()),
        (false, _) => Err(Quiet(LEFT_OUT).into()),
    }
}

/// Rejects a comparison of too few trees, or too many.
fn refuse_trees(args: &Args) -> Result<()> {
    let found = args.paths.len();
    if args.compare && !(2..=TREES_MAX).contains(&found) {
        return Err(Error::Trees { found }.into());
    }
    Ok(())
}

fn tell(args: &Args, summary: &Summary, console: &Console) {
    if let Some(path) = &args.report {
        console.note(&format!("report: {}", path.display()));
    }
    if summary.forgotten_entries_life > 0 {
        console.note(&format!(
            "the index is full: it forgot {} fingerprints in this run and {} in its life, and their chunks count as \
             unique when they come again; make a new index for all trees, with --expect, more --ram or a larger --avg",
            show_count(summary.forgotten_entries),
            show_count(summary.forgotten_entries_life)
        ));
    }
    if summary.unreadable_count > 0 {
        console.note(&format!(
            "{} files and directories could not be read, and the figures are without them; they are listed: run it as \
             a user who may read them",
            show_count(summary.unreadable_count)
        ));
    }
    if let (true, Some(path)) = (summary.interrupted, &args.index.file) {
        console.note(&format!("stopped; the same command goes on with {}", path.display()));
    }
}
