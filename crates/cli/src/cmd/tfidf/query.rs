//! `nandex tfidf query`: prints the number of documents that have terms.

use std::io::{self, Write};

use anyhow::Result;
use nandex_tfidf::{Corpus, Weighting};
use serde_json::json;

use crate::cmd::document_index::IndexArgs;
use crate::console::Console;
use crate::exit::{FAILURE, Quiet};

use super::hints::explained;

/// The index, and the terms.
#[derive(Debug, clap::Args)]
pub struct Args {
    #[command(flatten)]
    index: IndexArgs,
    /// Terms; one of several words is written with one space between them
    #[arg(value_name = "TERM", required = true)]
    terms: Vec<String>,
    /// Print the idf of scikit-learn's smooth_idf=False
    #[arg(long)]
    no_smooth_idf: bool,
}

/// Prints a line for each term: its documents, its occurrences, its idf and the term. Terms are made lower case if the
/// index is.
///
/// # Errors
/// As for opening; silently, if none of the terms is in any document.
pub fn run(args: &Args, console: &Console) -> Result<()> {
    let corpus: Corpus = args.index.open_to_read()?;
    let weighting = Weighting { smooth_idf: !args.no_smooth_idf, ..Weighting::default() };
    let lower = |term: &String| {
        if corpus.analysis().lowercase { term.to_lowercase() } else { term.clone() }
    };
    let terms: Vec<String> = args.terms.iter().map(lower).collect();
    let found = corpus.frequencies(&terms).map_err(explained)?;
    let mut out = io::BufWriter::new(io::stdout().lock());
    for (term, frequency) in terms.iter().zip(&found) {
        let (documents, occurrences) = (frequency.documents, frequency.occurrences);
        let idf = (documents > 0).then(|| weighting.idf(documents, corpus.documents()));
        if console.json {
            let line = json!({
                "term": term, "documents": documents, "occurrences": occurrences, "idf": idf
            });
            writeln!(out, "{line}")?;
        } else {
            let idf = idf.map_or_else(|| "-".to_owned(), |idf| format!("{idf:.6}"));
            writeln!(out, "{documents}\t{occurrences}\t{idf}\t{}", nandex_dedup::printable(term))?;
        }
    }
    out.flush()?;
    corpus.close().map_err(explained)?;
    let is_found = found.iter().any(|frequency| frequency.documents > 0);
    if is_found { Ok(()) } else { Err(Quiet(FAILURE).into()) }
}
