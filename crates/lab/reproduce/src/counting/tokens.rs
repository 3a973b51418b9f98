//! The laws of the tokens, and the stages that follow from the two printed counts of tokens alone.

use std::sync::Arc;

use super::design::Kind;
use super::fills::Fills;
use super::lab::{Filled, Lab, RAM_PERCENTS, TableSetup, of};
use super::law::Law;
use super::shape::DataSet;
use crate::{Experiment, Outcome, Result, Row, Scale, Table, fits};

/// See the [module](self).
pub struct TokenLaw(pub Arc<Fills>);

/// Stages of Table 2, for each RAM buffer.
const STAGES: [u64; 4] = [209, 89, 29, 13];

impl Experiment for TokenLaw {
    fn name(&self) -> &'static str {
        "tokens"
    }

    fn title(&self) -> &'static str {
        "The law of the tokens"
    }

    fn reference(&self) -> &'static str {
        "section 3.3, and the stages of Table 2"
    }

    fn run(&self, scale: Scale) -> Result<Outcome> {
        let shape = DataSet::WIKI.at(scale);
        let law = Law::by_counts(&shape, scale);
        let setups = TableSetup::all(&[Kind::Mb], &RAM_PERCENTS);
        let alone = Lab::with_law(shape, law, scale).fill(&setups);
        let stages = self.0.of(DataSet::WIKI, scale);
        let tables = vec![
            stage_table("Stages, the law fitted to both counts of tokens alone", &alone, None),
            stage_table("Stages, the law fitted to the 209 of 1 % too", &stages, Some(1)),
            laws(scale),
        ];
        Ok(Outcome { setup: setup(), tables, charts: Vec::new() })
    }
}

fn setup() -> Vec<String> {
    vec![
        "A token's rank is above x with probability (1 + x / offset)^-power: Zipf-Mandelbrot, \
         without an end. The number of tokens and that of different ones fix the power for each \
         offset. With these alone the offset is 1; or it is such that a RAM buffer of 1 % is \
         full as often as Table 2 has it (208.5 times, since the last of 209 stages may be of a \
         part)."
            .into(),
        "Meme, for which the paper prints no stages, has Wiki's offset, and the power that its own two counts give."
            .into(),
    ]
}

/// Returns the stages of tables whose law is fitted to those of one RAM buffer, or of none.
fn stage_table(title: &str, all: &[Filled], fitted_percent: Option<u64>) -> Table {
    let rows = RAM_PERCENTS.into_iter().zip(STAGES).map(|(percent, paper)| {
        let number = of(all, Kind::Mb, percent).counts().merges as f64;
        let what = format!("RAM {percent} %: stages");
        let row = if fitted_percent == Some(percent) {
            Row::fitted(what, "", number, fits::COUNTING_STAGES)
        } else {
            Row::measured(what, "", number)
        };
        let is_near = (0.9..=1.1).contains(&(number / paper as f64));
        row.paper(paper as f64).why(if is_near {
            ""
        } else {
            "The two counts leave open how fast the vocabulary grows before the end. Table 2's \
             own stages say as n^0.8, this law grows faster at the end and so slower before it."
        })
    });
    Table { title: title.into(), rows: rows.collect() }
}

fn laws(scale: Scale) -> Table {
    let mut rows = Vec::new();
    for set in [DataSet::WIKI, DataSet::MEME] {
        let shape = set.at(scale);
        let name = set.name;
        let law = Law::by_stages(&shape, scale);
        let alone = Law::by_counts(&shape, scale);
        let fitted = |what: &str, number: f64, fitted_to| {
            Row::fitted(format!("{name}: {what}"), "", number, fitted_to)
        };
        rows.extend([
            fitted("exponent, counts of tokens alone", alone.exponent(), fits::COUNTING_TOKENS),
            fitted("exponent", law.exponent(), fits::COUNTING_TOKENS),
            fitted("offset", law.offset(), fits::COUNTING_STAGES),
            Row::fitted(
                format!("{name}: different tokens for each token"),
                "",
                law.distinct(shape.tokens as f64) / shape.tokens as f64,
                fits::COUNTING_TOKENS,
            )
            .paper(set.distinct as f64 / set.tokens as f64),
            Row::input(
                format!("{name}: share of the data segment in use at the end"),
                "",
                shape.distinct as f64 / shape.entries() as f64,
            ),
        ]);
    }
    Table { title: "The laws at this scale".into(), rows }
}
