//! `nandex tfidf keywords`: prints the most significant terms of each document.

use std::io::{self, Write};

use anyhow::Result;
use nandex_tfidf::{Corpus, Error, Keyword};
use serde_json::json;

use crate::cmd::document_index::IndexArgs;
use crate::console::Console;
use crate::interrupt::Interrupt;
use crate::size;
use crate::texts::{InputArgs, OnInterrupt, Stream};

use super::hints::explained;
use super::model::{SelectionArgs, WeightingArgs, fit};

/// The index, and the documents.
#[derive(Debug, clap::Args)]
pub struct Args {
    #[command(flatten)]
    index: IndexArgs,
    #[command(flatten)]
    inputs: InputArgs,
    /// Most keywords of a document
    #[arg(long, value_name = "N", value_parser = size::parse_some, default_value = "10")]
    top: u64,
    #[command(flatten)]
    selection: SelectionArgs,
    #[command(flatten)]
    weighting: WeightingArgs,
}

/// Prints a line for each keyword: the document's id, the weight and the term. With `--json`, prints an object for each
/// document.
///
/// # Errors
/// As for opening; an input that cannot be read; silently, an interrupt.
pub fn run(args: &Args, console: &Console) -> Result<()> {
    let interrupt = Interrupt::listen()?;
    let (inputs, selection) = (args.inputs.find()?, args.selection.selection()?);
    let corpus: Corpus = args.index.open_to_read()?;
    let model = fit(&corpus, selection, args.weighting)?;
    let mut stream = Stream::start(inputs, ("reading", OnInterrupt::Fail), (console, &interrupt))?;
    let mut out = io::BufWriter::new(io::stdout().lock());
    let written = model.keywords(&mut stream, usize::try_from(args.top)?, |id, keywords| {
        let printed = print(&mut out, console, (id, keywords));
        printed.map_err(|source| {
            let (action, path) = ("write", "stdout".into());
            Error::Input(nandex_corpus::Error::File { action, path, source })
        })
    });
    stream.finish();
    out.flush()?;
    interrupt.check(written.map_err(explained), "the lines above are whole")?;
    drop(model);
    corpus.close().map_err(explained)
}

fn print(
    out: &mut impl Write,
    console: &Console,
    (id, keywords): (&str, &[Keyword]),
) -> io::Result<()> {
    if console.json {
        let pair = |it: &Keyword| json!({"term": it.term, "weight": it.value});
        let keywords: Vec<_> = keywords.iter().map(pair).collect();
        return writeln!(out, "{}", json!({"id": id, "keywords": keywords}));
    }
    let id = nandex_dedup::printable(id);
    keywords.iter().try_for_each(|it| writeln!(out, "{id}\t{:.6}\t{}", it.value, it.term))
}
