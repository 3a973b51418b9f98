//! Lookup throughput: the deck's second curve.

use super::bloom::{Bloom, Kind};
use super::grown::{BATCHED, Final, Grown, LOOKUPS, Looked};
use super::insertion::FAN_OUTS;
use super::lab::Measures;
use crate::{Chart, Experiment, Outcome, Result, Row, Scale, Scaling, Series, Table};

/// See the [module](self).
pub struct Lookups;

/// Lookups a second of the deck's cascade filter.
pub const DECK_LOOKUPS_PER_S: f64 = 530.0;
/// The rate of the deck's cascade filter over that of its others: a third.
pub const DECK_PART: f64 = 1.0 / 3.0;

/// The answers of a filter.
struct Answers {
    name: &'static str,
    last: Final,
    /// The average as it grew, for a cascade filter.
    mean: Option<Looked>,
    /// The answers as it grew; empty for a Bloom filter.
    grown: Vec<Looked>,
}

impl Experiment for Lookups {
    fn name(&self) -> &'static str {
        "lookups"
    }

    fn title(&self) -> &'static str {
        "Lookup throughput"
    }

    fn reference(&self) -> &'static str {
        "the slides on lookup throughput"
    }

    fn run(&self, scale: Scale) -> Result<Outcome> {
        let measures = Measures::deck(scale)?;
        let mut all = Vec::new();
        for (fan_out, name) in FAN_OUTS {
            let mut grown = Grown::full(measures, fan_out)?;
            let (last, mean) = (grown.last_lookups()?, Some(grown.mean_looked()));
            all.push(Answers { name, last, mean, grown: grown.looked });
        }
        for kind in Kind::ALL {
            let last = Bloom::full(kind, measures)?.last_lookups()?;
            all.push(Answers { name: kind.name(), last, mean: None, grown: Vec::new() });
        }
        let setup = vec![
            format!(
                "The filters of the insertions. At random: {LOOKUPS} keys that are not there and \
                 {LOOKUPS} that are, one after another as in the deck, and {BATCHED} that are \
                 not there in one batch, which keeps 32 reads in flight. The processor takes 1 \
                 us for each, which is assumed.",
            ),
            "Nothing is inserted meanwhile. What a lookup reads in a cascade filter depends on \
             which levels are empty: it is looked at 24 times while the filter grows, and at the \
             end."
                .into(),
            "An absent key asks every level; a key that is there is found in the largest level \
             first. In a Bloom filter whose bits are anywhere an absent key reads until a bit is \
             not set, two pages on average, and a key that is there reads eight. The RAM has \
             some pages of a Bloom filter, and one after another its keys need not be read \
             there; a cascade filter's RAM has buffers, and each level is read."
                .into(),
        ];
        Ok(Outcome {
            setup,
            tables: vec![absent(&all), present(&all), batched(&all), reads(&all)],
            charts: vec![while_growing(&all)],
        })
    }
}

fn absent(all: &[Answers]) -> Table {
    let mut rows = Vec::new();
    for it in all {
        let row = Row::measured(it.name, "lookups/s", it.last.absent.single_per_s());
        if it.name != FAN_OUTS[0].1 {
            rows.push(row);
        } else {
            rows.push(row.paper(DECK_LOOKUPS_PER_S).why(
                "530 a second are 1.9 ms for each: six pages of 0.31 ms, where this drive reads one in 0.074. What else the deck's lookups did it does not say.",
            ));
        }
        rows.extend(it.mean.map(|mean| {
            Row::measured(format!("{}, while it grows", it.name), "lookups/s", mean.single_per_s())
        }));
    }
    Table { title: "Absent keys, one after another".into(), rows }
}

fn present(all: &[Answers]) -> Table {
    let row = |it: &Answers| Row::measured(it.name, "lookups/s", it.last.present.single_per_s());
    Table {
        title: "Keys that are there, one after another".into(),
        rows: all.iter().map(row).collect(),
    }
}

fn batched(all: &[Answers]) -> Table {
    let row = |it: &Answers| Row::measured(it.name, "lookups/s", it.last.batched.batched_per_s());
    Table {
        title: "Absent keys in a batch, 32 reads in flight".into(),
        rows: all.iter().map(row).collect(),
    }
}

fn reads(all: &[Answers]) -> Table {
    let mut rows = Vec::new();
    for it in all {
        rows.push(Row::measured(format!("{}, absent", it.name), "", it.last.absent.reads));
        rows.push(Row::measured(format!("{}, there", it.name), "", it.last.present.reads));
        rows.extend(it.mean.map(|mean| {
            Row::measured(format!("{}, absent, while it grows", it.name), "", mean.reads)
        }));
    }
    Table { title: "Pages read for each lookup".into(), rows }
}

fn while_growing(all: &[Answers]) -> Chart {
    let keys = all[0].last.absent.keys as f64;
    // Reads of a buffered filter equal those of a page-blocked one.
    let mut series: Vec<Series> = all
        .iter()
        .filter(|it| it.name != Kind::Buffered.name())
        .map(|it| {
            let rate = it.last.absent.single_per_s();
            let points = match &it.grown[..] {
                [] => vec![(0.0, rate), (1.0, rate)],
                grown => {
                    grown.iter().map(|at| (at.keys as f64 / keys, at.single_per_s())).collect()
                }
            };
            Series::ours(it.name, points)
        })
        .collect();
    series.push(Series::paper("deck, cascade filter", vec![(1.0, DECK_LOOKUPS_PER_S)]));
    series.push(Series::paper("deck, its others", vec![(1.0, DECK_LOOKUPS_PER_S / DECK_PART)]));
    Chart {
        title: "Lookups of absent keys, one after another, while the filter grows".into(),
        x: "share of all keys that are in",
        y: "lookups/s",
        x_scaling: Scaling::Linear,
        y_scaling: Scaling::Logarithmic,
        series,
    }
}
