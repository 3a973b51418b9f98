//! `nandex neardup stats`: shows the content of an index, as text, as JSON and as a page.

use std::collections::HashMap;
use std::path::PathBuf;

use anyhow::Result;
use nandex_neardup::{Example, Index, IndexSummary, Measure};
use serde::Serialize;

use crate::cmd::document_index::IndexArgs;
use crate::console::{Console, aligned};
use crate::interrupt::Interrupt;
use crate::size::{show_bytes, show_count};
use crate::texts::{OnInterrupt, OptionalInputArgs, Stream, scratch};
use crate::unfinished::write_output;

use super::hints::explained;

/// The number of pairs that a page shows.
const EXAMPLES: usize = 10;

/// The index, the page, and the inputs with the texts of examples.
#[derive(Debug, clap::Args)]
pub struct Args {
    #[command(flatten)]
    index: IndexArgs,
    #[command(flatten)]
    inputs: OptionalInputArgs,
    /// Write a page to this HTML file; it shows the texts of examples if the inputs that have them are named
    #[arg(long, visible_alias = "report", value_name = "FILE")]
    html: Option<PathBuf>,
}

/// The figures of an index.
#[derive(Debug, Serialize)]
struct Report {
    path: PathBuf,
    #[serde(flatten)]
    summary: IndexSummary,
}

/// Prints the figures.
///
/// # Errors
/// As for opening; an input that cannot be read, a page that cannot be written.
pub fn run(args: &Args, console: &Console) -> Result<()> {
    let inputs = args.inputs.find()?;
    let index: Index = args.index.open_to_read()?;
    let inputs = inputs.holding(index.content());
    let mut summary = index.summary(Some(&scratch()), EXAMPLES).map_err(explained)?;
    index.close().map_err(explained)?;
    if !inputs.is_empty() && !summary.examples.is_empty() {
        let interrupt = Interrupt::listen()?;
        let mut stream =
            Stream::start(inputs, ("reading", OnInterrupt::Fail), (console, &interrupt))?;
        let found = find_texts(&mut stream, &mut summary.examples);
        stream.finish();
        interrupt.check(found, "no page is written")?;
    }
    if let Some(path) = &args.html {
        write_output(path, nandex_neardup::html(&summary), console)?;
        console.note(&format!("report: {}", path.display()));
    }
    console.print(&Report { path: args.index.file.clone(), summary }, text)
}

/// Finds the texts of examples by their ids.
fn find_texts(stream: &mut Stream<'_>, examples: &mut [Example]) -> Result<()> {
    let ids = examples.iter().flat_map(|it| [it.id.clone(), it.earlier.clone()]);
    let mut texts: HashMap<String, Option<String>> = ids.map(|id| (id, None)).collect();
    for document in stream {
        let document = document.map_err(|error| explained(error.into()))?;
        if let Some(text) = texts.get_mut(&document.id) {
            *text = Some(document.text);
        }
    }
    for example in examples {
        let text = |id: &String| texts.get(id).cloned().flatten();
        example.texts = text(&example.id).zip(text(&example.earlier));
    }
    Ok(())
}

fn text(report: &Report) -> String {
    let Report { path, summary } = report;
    let clusters =
        format!("{} documents in {}", show_count(summary.clustered), show_count(summary.clusters));
    let largest = summary.cluster_sizes.keys().last().copied().unwrap_or(0);
    aligned(&[
        ("index", path.display().to_string()),
        ("holds", format!("{} documents", show_count(summary.documents))),
        ("new", show_count(summary.kept)),
        ("equal", format!("{} with the text of another", show_count(summary.exact))),
        ("near", format!("{} near another", show_count(summary.near))),
        ("clusters", format!("{clusters}, at most {} in one", show_count(largest))),
        ("family", summary.family.clone()),
        ("threshold", threshold(summary)),
        ("space for", format!("about {} documents", show_count(summary.documents_capacity))),
        ("dropped", format!("{} ids by full buckets", show_count(summary.dropped))),
        ("RAM", show_bytes(summary.ram_bytes)),
    ])
}

/// Returns the threshold of nearness.
fn threshold(summary: &IndexSummary) -> String {
    let (threshold, name) = (summary.threshold, summary.measure.name());
    match summary.measure {
        Measure::Jaccard => format!("{name} of {threshold} or more"),
        Measure::Hamming => format!("{threshold} {name}, or fewer"),
        Measure::Euclidean => {
            format!("{name} of {threshold} or less, with {} probes", summary.probes)
        }
    }
}
