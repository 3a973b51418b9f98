//! `nandex neardup query`: prints the documents of an index that others are near.

use std::io::{self, Write};

use anyhow::Result;
use nandex_neardup::{Document, Index, Near};
use serde_json::json;

use crate::cmd::document_index::IndexArgs;
use crate::console::Console;
use crate::exit::{FAILURE, Quiet};
use crate::interrupt::Interrupt;
use crate::texts::{Broken, BrokenArgs, InputArgs, LeftOut, OnInterrupt, Stream};

use super::hints::explained;
use super::kind::Kind;

/// The number of documents that are looked up at a time.
const BATCH: usize = 512;

/// The index, and the documents.
#[derive(Debug, clap::Args)]
pub struct Args {
    #[command(flatten)]
    index: IndexArgs,
    #[command(flatten)]
    inputs: InputArgs,
    #[command(flatten)]
    broken: BrokenArgs,
}

/// Prints a line for each document and each that it is near: its id, how near it is, whether the texts are equal, and
/// the other's id. A document that is near none has a line with `new`. With `--json`, prints an object for each
/// document.
///
/// # Errors
/// As for opening; an input that cannot be read; silently, if no document is near another.
pub fn run(args: &Args, console: &Console) -> Result<()> {
    let interrupt = Interrupt::listen()?;
    let left_out = LeftOut::default();
    let mut inputs = args.inputs.find()?;
    if args.broken.broken != Broken::Stop {
        inputs = inputs.leaving_out(&left_out);
    }
    let index: Index = args.index.open_to_read()?;
    let inputs = inputs.holding(index.content());
    let mut stream = Stream::start(inputs, ("asking", OnInterrupt::Fail), (console, &interrupt))?;
    let mut out = io::BufWriter::new(io::stdout().lock());
    let mut near = 0;
    let asked = (|| {
        loop {
            let batch: Vec<Document> = stream
                .by_ref()
                .take(BATCH)
                .collect::<Result<_, _>>()
                .map_err(|it| explained(it.into()))?;
            if batch.is_empty() {
                return anyhow::Ok(());
            }
            near += ask(&index, &batch, (&mut out, console))?;
        }
    })();
    stream.finish();
    out.flush()?;
    interrupt.check(asked, "the lines above are whole")?;
    index.close().map_err(explained)?;
    left_out.end(args.broken.broken, console)?;
    if near > 0 { Ok(()) } else { Err(Quiet(FAILURE).into()) }
}

/// Prints the documents that some documents are near. Returns the number of those that are near any.
fn ask(
    index: &Index,
    batch: &[Document],
    (out, console): (&mut impl Write, &Console),
) -> Result<usize> {
    let texts: Vec<&str> = batch.iter().map(|document| &document.text[..]).collect();
    let found = index.query(&texts).map_err(explained)?;
    let kind = Kind::of(index);
    for (document, near) in batch.iter().zip(&found) {
        print((out, console), (&document.id, near), kind)?;
    }
    Ok(found.iter().filter(|near| !near.matches.is_empty()).count())
}

fn print(
    (out, console): (&mut impl Write, &Console),
    (id, near): (&str, &Near),
    kind: Kind,
) -> io::Result<()> {
    let Near { matches, candidates } = near;
    if console.json {
        let word = kind.measure.word();
        let found: Vec<_> = matches
            .iter()
            .map(|it| json!({"id": it.id, word: it.estimate, "exact": it.is_exact}))
            .collect();
        let is_new = found.is_empty();
        let line = json!({"id": id, "new": is_new, "candidates": candidates, "matches": found});
        return writeln!(out, "{line}");
    }
    let id = nandex_dedup::printable(id);
    if matches.is_empty() {
        return writeln!(out, "{id}\tnew");
    }
    matches.iter().try_for_each(|it| {
        let how = if it.is_exact { "equal" } else { "near" };
        let (estimate, other) = (kind.shown(it.estimate), nandex_dedup::printable(&it.id));
        writeln!(out, "{id}\t{estimate}\t{how}\t{other}")
    })
}
