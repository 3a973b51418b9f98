//! `nandex tfidf rank`: prints the documents that are most like a query.

use anyhow::Result;
use nandex_tfidf::{Corpus, RankAnswer, RankIndex, Ranked, Selection};
use serde::Serialize;

use crate::cmd::document_index::IndexArgs;
use crate::console::Console;
use crate::exit::{FAILURE, Quiet};
use crate::interrupt::Interrupt;
use crate::refuse;
use crate::size::{self, show_count};
use crate::texts::{InputArgs, Inputs, OnInterrupt, Stream};

use super::hints::explained;
use super::model::{SelectionArgs, WeightingArgs, fit};

/// The index, the query and the documents.
#[derive(Debug, clap::Args)]
#[command(
    mut_arg("inputs", |inputs| inputs.required(false)),
    long_about = "Print the documents most like a query, the most alike first, with the cosine \
    of their rows and the query's.\n\nWith an index that `nandex tfidf index` made for the same \
    INPUT and options, or for any INPUT where none is named, it reads the postings of the query's \
    terms. Without one, or with --scan, it is an exact scan in two passes: the first was over the \
    documents that `build` and `update` counted; the second, now, reads and weighs every document \
    of INPUT, and takes as long as that. Both give the same cosines, and the output says which it \
    was. Nothing of INPUT need be in INDEX. Exits with 1 if no document shares a term with the \
    query."
)]
pub struct Args {
    #[command(flatten)]
    index: IndexArgs,
    /// Text, which becomes terms as documents do
    #[arg(value_name = "QUERY")]
    query: String,
    #[command(flatten)]
    inputs: InputArgs,
    /// Most documents to print
    #[arg(long, value_name = "N", value_parser = size::parse_some, default_value = "10")]
    top: u64,
    /// Read and weigh all documents of INPUT, whether there is an index or not
    #[arg(long)]
    scan: bool,
    #[command(flatten)]
    selection: SelectionArgs,
    #[command(flatten)]
    weighting: WeightingArgs,
}

/// The method of a ranking.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
#[serde(rename_all = "kebab-case")]
enum Method {
    Index,
    Scan,
}

/// The result.
#[derive(Debug, Serialize)]
struct Ranking<'a> {
    query: &'a str,
    method: Method,
    /// The reason for a scan.
    reason: Option<String>,
    /// The number of documents of the inputs that were read; none with an index.
    documents_read: u64,
    /// The number of documents that share a term with the query, if an index was used.
    documents_sharing: Option<u64>,
    /// The number of reads of flash by the query, and of their pages, if an index was used.
    reads: Option<u64>,
    pages_read: Option<u64>,
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
/// As for opening; an input that cannot be read; no usable index if no input is named; silently, if there is no such
/// document.
pub fn run(args: &Args, console: &Console) -> Result<()> {
    let interrupt = Interrupt::listen()?;
    let (inputs, selection) = (args.inputs.find()?, args.selection.selection()?);
    let corpus: Corpus = args.index.open_to_read()?;
    let ranking = match args.usable(&corpus, &inputs, &selection) {
        Ok(index) => args.by_index(&index)?,
        Err(reason) if inputs.is_empty() => refuse!(
            "cannot rank without reading documents: {reason}; name them, or make a rank index of them with \
             `nandex tfidf index`"
        ),
        Err(reason) => args.by_scan(&corpus, (inputs, selection), (reason, console, &interrupt))?,
    };
    corpus.close().map_err(explained)?;
    console.print(&ranking, text)?;
    if !console.json {
        console.note(&ranking.how());
    }
    if ranking.ranked.is_empty() { Err(Quiet(FAILURE).into()) } else { Ok(()) }
}

impl Args {
    /// Returns the rank index of these inputs and options, or the reason why there is none.
    fn usable<'c>(
        &self,
        corpus: &'c Corpus,
        inputs: &Inputs,
        selection: &Selection,
    ) -> Result<RankIndex<'c>, String> {
        if self.scan {
            return Err("--scan".to_owned());
        }
        let index = RankIndex::of(corpus, selection, self.weighting.into());
        let index = index.map_err(|why| why.to_string())?;
        let names = inputs.names();
        if inputs.is_empty() || index.source() == names {
            return Ok(index);
        }
        let found = index.source();
        Err(format!("the rank index is of other documents: expected {names}, found {found}"))
    }

    fn by_index(&self, index: &RankIndex<'_>) -> Result<Ranking<'_>> {
        let answer = index.rank(&self.query, usize::try_from(self.top)?).map_err(explained)?;
        let RankAnswer { ranked, documents, reads, pages_read } = answer;
        Ok(Ranking {
            query: &self.query,
            method: Method::Index,
            reason: None,
            documents_read: 0,
            documents_sharing: Some(documents),
            reads: Some(reads),
            pages_read: Some(pages_read),
            ranked: ranked.into_iter().map(Found::from).collect(),
        })
    }

    fn by_scan(
        &self,
        corpus: &Corpus,
        (inputs, selection): (Inputs, Selection),
        (reason, console, interrupt): (String, &Console, &Interrupt),
    ) -> Result<Ranking<'_>> {
        let model = fit(corpus, selection, self.weighting)?;
        let on_interrupt = OnInterrupt::Fail;
        let mut stream = Stream::start(inputs, ("reading", on_interrupt), (console, interrupt))?;
        let ranked = model.rank(&self.query, &mut stream, usize::try_from(self.top)?);
        let documents_read = stream.finish();
        let ranked = interrupt.check(ranked.map_err(explained), "nothing is printed")?;
        Ok(Ranking {
            query: &self.query,
            method: Method::Scan,
            reason: Some(reason),
            documents_read,
            documents_sharing: None,
            reads: None,
            pages_read: None,
            ranked: ranked.into_iter().map(Found::from).collect(),
        })
    }
}

impl Ranking<'_> {
    /// Formats the method for people.
    fn how(&self) -> String {
        let Self { documents_read, documents_sharing, reads, pages_read, reason, .. } = self;
        let [sharing, reads, pages] =
            [documents_sharing, reads, pages_read].map(|count| show_count(count.unwrap_or(0)));
        match reason {
            None => format!(
                "index: {sharing} documents share a term with the query; {reads} reads of flash, {pages} pages"
            ),
            Some(reason) => {
                let read = show_count(*documents_read);
                format!("exact scan: all {read} documents were read and weighed ({reason})")
            }
        }
    }
}

fn text(ranking: &Ranking<'_>) -> String {
    let line =
        |found: &Found| format!("{:.6}\t{}\n", found.cosine, nandex_dedup::printable(&found.id));
    ranking.ranked.iter().map(line).collect()
}
