//! `nandex tfidf report`: shows the content of an index, as text, as JSON and as a page.

use std::path::PathBuf;

use anyhow::Result;
use nandex_tfidf::{Analysis, Corpus, CorpusSummary, StopWords};
use serde::Serialize;

use crate::cmd::document_index::IndexArgs;
use crate::console::{Console, aligned};
use crate::size::{show_bytes, show_count};
use crate::unfinished::write_output;

use super::change::held;
use super::hints::explained;

/// The number of most frequent terms that text shows; JSON and the page have more.
const TOP_SHOWN: usize = 10;

/// The index, and the page.
#[derive(Debug, clap::Args)]
pub struct Args {
    #[command(flatten)]
    index: IndexArgs,
    /// Write a page to this HTML file
    #[arg(long, visible_alias = "report", value_name = "FILE")]
    html: Option<PathBuf>,
}

/// The figures of an index.
#[derive(Debug, Serialize)]
struct Report {
    path: PathBuf,
    analysis: Analysis,
    #[serde(flatten)]
    summary: CorpusSummary,
}

/// Prints the figures.
///
/// # Errors
/// As for opening; a page that cannot be written.
pub fn run(args: &Args, console: &Console) -> Result<()> {
    let corpus: Corpus = args.index.open_to_read()?;
    let summary = corpus.summary().map_err(explained)?;
    let analysis = corpus.analysis().clone();
    corpus.close().map_err(explained)?;
    let report = Report { path: args.index.file.clone(), analysis, summary };
    if let Some(path) = &args.html {
        write_output(path, nandex_tfidf::html(&report.summary), console)?;
        console.note(&format!("report: {}", path.display()));
    }
    console.print(&report, text)
}

fn text(report: &Report) -> String {
    let Report { path, analysis, summary } = report;
    let (terms, once) = (show_count(summary.terms), show_count(summary.terms_once));
    let mut rows = vec![
        ("index", path.display().to_string()),
        ("terms of", analysis_text(analysis)),
        ("holds", held(summary.documents, summary.occurrences)),
        ("terms", format!("{terms}, {once} of them once")),
        ("RAM", show_bytes(summary.ram_bytes)),
    ];
    for top in summary.top.iter().take(TOP_SHOWN) {
        let (occurrences, documents) = (show_count(top.occurrences), show_count(top.documents));
        rows.push(("often", format!("{}, {occurrences} times in {documents} documents", top.term)));
    }
    aligned(&rows)
}

/// Formats the analysis of text.
fn analysis_text(analysis: &Analysis) -> String {
    let Analysis { lowercase, ngram_min, ngram_max, stop_words } = analysis;
    let words = match (ngram_min, ngram_max) {
        (1, 1) => "1 word".to_owned(),
        (min, max) if min == max => format!("{min} words"),
        (min, max) => format!("{min} to {max} words"),
    };
    let case = if *lowercase { "lower case" } else { "capitals as they are" };
    let stop = match stop_words {
        StopWords::None => String::new(),
        StopWords::English => ", without English stop words".to_owned(),
        StopWords::List(list) => format!(", without {} stop words", show_count(list.len() as u64)),
    };
    format!("{words}, {case}{stop}")
}
