//! `nandex tfidf rank`: the documents that are most like a query.

use anyhow::Result;
use nandex_tfidf::Ranked;
use serde::Serialize;

use crate::console::Console;
use crate::exit::{FAILURE, Quiet};
use crate::interrupt::Interrupt;
use crate::size::{self, show_count};

use super::hints::explained;
use super::index::IndexArgs;
use super::input::InputArgs;
use super::model::{SelectionArgs, WeightingArgs, fit};
use super::stream::{OnInterrupt, Stream};

/// How it is done; in help and output.
const METHOD: &str = "exact scan";

/// The index, the query and the documents.
#[derive(Debug, clap::Args)]
#[command(
    long_about = "Print the documents most like a query, the most alike first, with the cosine \
    of their rows and the query's.\n\nThis is an exact scan in two passes: the first was over the \
    documents that `build` and `update` counted; the second, now, reads and weighs every document \
    of INPUT. It finds what a search over all rows would, and takes as long as reading all inputs. \
    Nothing of INPUT need be in the index. Exits with 1 if no document shares a term with the \
    query."
)]
pub struct Args {
    #[command(flatten)]
    index: IndexArgs,
    /// A text, which becomes terms as documents do
    #[arg(value_name = "QUERY")]
    query: String,
    #[command(flatten)]
    inputs: InputArgs,
    /// Documents that are printed, at most
    #[arg(long, value_name = "N", value_parser = size::parse_count, default_value = "10")]
    top: u64,
    #[command(flatten)]
    selection: SelectionArgs,
    #[command(flatten)]
    weighting: WeightingArgs,
}

/// The result.
#[derive(Debug, Serialize)]
struct Ranking<'a> {
    query: &'a str,
    method: &'static str,
    documents_read: u64,
    ranked: Vec<Found>,
}

/// A document like the query.
#[derive(Debug, Serialize)]
struct Found {
    id: String,
    cosine: f64,
}

impl From<Ranked> for Found {
    fn from(ranked: Ranked) -> Self {
        Self { id: ranked.id, cosine: ranked.cosine }
    }
}

/// Prints a line for each document: the cosine and the id.
///
/// # Errors
/// As for opening; an input that cannot be read; quietly, no such document.
pub fn run(args: &Args, console: &Console) -> Result<()> {
    let interrupt = Interrupt::listen()?;
    let (inputs, selection) = (args.inputs.find()?, args.selection.selection()?);
    let corpus = args.index.open_to_read()?;
    let model = fit(&corpus, selection, args.weighting)?;
    let mut stream = Stream::start(inputs, ("reading", OnInterrupt::Fail), (console, &interrupt))?;
    let ranked = model.rank(&args.query, &mut stream, usize::try_from(args.top)?);
    let documents_read = stream.finish();
    let ranked = interrupt.check(ranked.map_err(explained), "nothing is printed")?;
    drop(model);
    corpus.close().map_err(explained)?;
    let ranked = ranked.into_iter().map(Found::from).collect();
    let ranking = Ranking { query: &args.query, method: METHOD, documents_read, ranked };
    console.print(&ranking, text)?;
    if !console.json {
        let read = show_count(documents_read);
        console.note(&format!("{METHOD}: all {read} documents were read and weighed"));
    }
    if ranking.ranked.is_empty() { Err(Quiet(FAILURE).into()) } else { Ok(()) }
}

fn text(ranking: &Ranking<'_>) -> String {
    let line =
        |found: &Found| format!("{:.6}\t{}\n", found.cosine, nandex_dedup::printable(&found.id));
    ranking.ranked.iter().map(line).collect()
}
