//! `nandex neardup pairs`: prints all pairs of near-duplicates in an index.

use std::io::{self, Write};

use anyhow::Result;
use nandex_neardup::{Error, Index, Pair};
use serde_json::json;

use crate::cmd::document_index::IndexArgs;
use crate::console::Console;

use super::hints::explained;
use super::kind::Kind;

/// The index.
#[derive(Debug, clap::Args)]
pub struct Args {
    #[command(flatten)]
    index: IndexArgs,
}

/// Prints a line for each pair: how near they are, whether the texts are equal, the later document's id and the earlier
/// one's.
///
/// # Errors
/// As for opening; a failed write to stdout.
pub fn run(args: &Args, console: &Console) -> Result<()> {
    let index: Index = args.index.open_to_read()?;
    let mut out = io::BufWriter::new(io::stdout().lock());
    let kind = Kind::of(&index);
    let printed = index.pairs(|pair| print((&mut out, console), pair, kind).map_err(Error::Output));
    printed.map_err(explained)?;
    out.flush()?;
    index.close().map_err(explained)
}

fn print((out, console): (&mut impl Write, &Console), pair: &Pair, kind: Kind) -> io::Result<()> {
    let Pair { id, earlier, estimate, is_exact } = pair;
    if console.json {
        let word = kind.measure.word();
        let line = json!({"id": id, "earlier": earlier, word: estimate, "exact": is_exact});
        return writeln!(out, "{line}");
    }
    let (how, estimate) = (if *is_exact { "equal" } else { "near" }, kind.shown(*estimate));
    let (id, earlier) = (nandex_dedup::printable(id), nandex_dedup::printable(earlier));
    writeln!(out, "{estimate}\t{how}\t{id}\t{earlier}")
}
