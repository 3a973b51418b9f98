//! Table 2 and Figures 3 to 5 on a corpus of the user.

use super::corpus::Corpus;
use super::design::Kind;
use super::figure_3::Asked;
use super::lab::{Filled, RAM_PERCENTS, TableSetup, fill, of, query};
use super::shape::{Change, DataSet, Shape};
use super::table_2::{Count, papers};
use super::{figure_4, figure_5};
use crate::{Experiment, Outcome, Result, Row, Scale, Table};
use nandex_sim::workload::SplitMix64;

/// See the [module](self).
pub struct OnCorpus(pub Corpus);

impl Experiment for OnCorpus {
    fn name(&self) -> &'static str {
        "corpus"
    }

    fn title(&self) -> &'static str {
        "The same on your corpus"
    }

    fn reference(&self) -> &'static str {
        "Table 2, Figures 3 to 5"
    }

    fn run(&self, scale: Scale) -> Result<Outcome> {
        let set = self.0.data_set();
        let shape = set.sized();
        let stream = || self.0.tokens.iter().copied();
        let all = fill(shape, &TableSetup::all(&Kind::ALL, &RAM_PERCENTS), stream);
        let queried = query(shape, &Asked::setups(), stream, || self.asked(scale.seed()));
        let asked = Asked::new(set, queried)?;
        let mut tables = vec![sizes(&self.0, &shape)];
        tables.extend(Kind::ALL.into_iter().map(|kind| counts(&all, kind)));
        tables.extend(Change::ALL.into_iter().enumerate().map(|(at, it)| ratios(&all, at, it)));
        tables.extend([asked.by_change(), asked.by_ram(), asked.by_drive()?]);
        tables.push(figure_4::Costs::of(&all)?.table(set.name));
        let cleans = format!("{}: cleans, change segment 12.5 %", set.name);
        tables.extend([figure_5::by_ram(&cleans, &all), figure_5::by_change(set.name, &all)]);
        let charts =
            vec![asked.change_chart(), asked.ram_chart(), figure_5::ram_chart(set.name, &all)];
        Ok(Outcome {
            setup: self.setup(&shape),
            tables: tables.into_iter().map(Table::of_corpus).collect(),
            charts,
        })
    }
}

impl OnCorpus {
    /// Returns tokens from random places of the corpus, which has the frequencies of the law's draws.
    fn asked(&self, seed: u64) -> impl Iterator<Item = u64> + use<'_> {
        let tokens = &self.0.tokens;
        let mut rng = SplitMix64::stream(seed, 1);
        std::iter::repeat_with(move || tokens[(rng.next_u64() % tokens.len() as u64) as usize])
    }

    fn setup(&self, shape: &Shape) -> Vec<String> {
        vec![
            self.0.described(),
            format!(
                "Its table has the paper's shares for Wiki: 205 blocks of 128 pages, and as many \
                 entries for each different token, so a page has {} and a RAM buffer of 1 % {}. \
                 Queries begin after as large a part of the tokens, and are as many for each; what \
                 is asked for is drawn from all of the corpus. --scale changes none of it.",
                shape.page_entries,
                shape.buffer_entries(1),
            ),
            "The paper has no numbers for this corpus. Next to ratios of two disciplines are those of the paper's \
             Table 2, for Wiki."
                .into(),
        ]
    }
}

fn sizes(corpus: &Corpus, shape: &Shape) -> Table {
    let (tokens, distinct) = (shape.tokens as f64, shape.distinct as f64);
    let wiki = DataSet::WIKI;
    let rows = vec![
        Row::of_corpus("tokens", "", tokens),
        Row::of_corpus("different tokens", "", distinct),
        Row::of_corpus("different tokens for each token", "", distinct / tokens)
            .paper(wiki.distinct as f64 / wiki.tokens as f64)
            .why("The paper's is of its Wiki, with 136.7 million tokens: a share falls with the length of a text."),
        Row::of_corpus(
            "share of the data segment in use at the end",
            "",
            distinct / shape.entries() as f64,
        ),
    ];
    Table { title: format!("The corpus, {}", corpus.name()), rows }
}

/// Returns a row of Table 2 for each RAM buffer.
fn counts(all: &[Filled], kind: Kind) -> Table {
    let rows = RAM_PERCENTS.into_iter().flat_map(|percent| {
        let filled = of(all, kind, percent);
        Count::of_kind(kind).iter().map(move |count| {
            let what = format!("RAM {percent} %: {}", count.word());
            Row::of_corpus(what, "", count.of(filled) as f64)
        })
    });
    let change = kind.change().map_or(String::new(), |it| format!(", change segment {}", it.name));
    Table { title: format!("{}{change}", kind.name()), rows: rows.collect() }
}

/// Compares the disciplines, in the corpus and in Table 2.
fn ratios(all: &[Filled], number: usize, change: Change) -> Table {
    let (mdb, mdb_l) = (Kind::Mdb(change), Kind::MdbL(change));
    let pairs = [
        (Count::Blocks, Kind::Mb, mdb),
        (Count::Blocks, Kind::Mb, mdb_l),
        (Count::Blocks, mdb, mdb_l),
        (Count::Merges, mdb, mdb_l),
        (Count::Pages, mdb_l, mdb),
    ];
    let rows = RAM_PERCENTS.into_iter().flat_map(|percent| {
        pairs.map(|(count, kind, other)| {
            let ours = |kind| count.of(of(all, kind, percent)) as f64;
            let paper = |kind| papers(kind, number, percent, count) as f64;
            let [name, other_name] = [kind, other].map(Kind::name);
            let what = format!("RAM {percent} %: {}, {name} over {other_name}", count.word());
            Row::of_corpus(what, "", ours(kind) / ours(other)).paper(paper(kind) / paper(other))
        })
    });
    let title = format!("One discipline over another, change segment {}", change.name);
    Table { title, rows: rows.collect() }
}
