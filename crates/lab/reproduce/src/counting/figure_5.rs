//! Figure 5: cleans against RAM buffer and change segment.

use std::sync::Arc;

use super::design::Kind;
use super::fills::Fills;
use super::lab::{Filled, FlashDrive, RAM_PERCENT, RAM_PERCENTS, of};
use super::shape::{Change, DataSet};
use crate::{Chart, Experiment, Outcome, Result, Row, Scale, Scaling, Series, Table};

/// See the [module](self).
pub struct Cleans(pub Arc<Fills>);

impl Experiment for Cleans {
    fn name(&self) -> &'static str {
        "figure-5"
    }

    fn title(&self) -> &'static str {
        "Cleans"
    }

    fn reference(&self) -> &'static str {
        "section 3.6, Figure 5"
    }

    fn run(&self, scale: Scale) -> Result<Outcome> {
        let [wiki, meme] = [DataSet::WIKI, DataSet::MEME].map(|set| self.0.of(set, scale));
        Ok(Outcome {
            setup: setup(),
            tables: vec![
                by_ram("Wiki: cleans, change segment 12.5 %", &wiki),
                by_ram("Meme: cleans, change segment 12.5 %", &meme),
                by_change("Wiki", &wiki),
                claims(&wiki),
                by_drive(&wiki)?,
            ],
            charts: vec![ram_chart("Wiki", &wiki), ram_chart("Meme", &meme)],
        })
    }
}

fn setup() -> Vec<String> {
    vec![
        "A clean is counted for each block that is written again: a data block in a merge, and a \
         block of the change segment that starts from its top. A page of the change segment that \
         is filled up counts none."
            .into(),
        "The figure's curves are not printed as numbers; what the text says of them is checked. \
         The last table has the erases of MLC-1's translation layer in addition: it maps pages, \
         so that a rewritten block needs no erase before spare blocks run out; its drive is 64 \
         times larger than the table, and was written once before."
            .into(),
    ]
}

fn cleans(all: &[Filled], kind: Kind, percent: u64) -> f64 {
    of(all, kind, percent).counts().cleans as f64
}

pub(super) fn by_ram(title: &str, all: &[Filled]) -> Table {
    let rows = RAM_PERCENTS.into_iter().flat_map(|percent| {
        let row = move |kind: Kind| {
            let what = format!("RAM {percent} %: {}", kind.name());
            Row::measured(what, "", cleans(all, kind, percent))
        };
        Kind::SMALL.map(row)
    });
    Table { title: title.into(), rows: rows.collect() }
}

pub(super) fn by_change(name: &str, all: &[Filled]) -> Table {
    let row = |kind: Kind| {
        let change = kind.change().map_or("none", |change| change.name);
        let what = format!("{}, change segment {change}", kind.name());
        Row::measured(what, "", cleans(all, kind, RAM_PERCENT))
    };
    let title = format!("{name}: cleans, RAM 5 %");
    Table { title, rows: Kind::ALL.map(row).to_vec() }
}

/// Compares the statements of the text, as ratios with a bound.
fn claims(all: &[Filled]) -> Table {
    let [half, _, eighth] = Change::ALL;
    let at = |kind, percent| cleans(all, kind, percent);
    let mut rows = Vec::new();
    for kind in Kind::SMALL {
        let what = format!("{}: RAM 1 % over RAM 10 %", kind.name());
        rows.push(Row::measured(what, "", at(kind, 1) / at(kind, 10)).paper_at_least(1.0));
    }
    let over = |what: &str, number: f64| Row::measured(what, "", number).paper_at_least(1.0);
    rows.extend([
        over("MB over MDB, RAM 1 %", at(Kind::Mb, 1) / at(Kind::Mdb(eighth), 1))
            .why("The paper: significantly more cleans for MB."),
        over("MB over MDB-L, RAM 1 %", at(Kind::Mb, 1) / at(Kind::MdbL(eighth), 1)),
        over(
            "MDB: change segment 12.5 % over 50 %",
            at(Kind::Mdb(eighth), 5) / at(Kind::Mdb(half), 5),
        ),
        over(
            "MDB-L: change segment 12.5 % over 50 %",
            at(Kind::MdbL(eighth), 5) / at(Kind::MdbL(half), 5),
        ),
        Row::measured(
            "MDB over MDB-L, RAM 5 %",
            "",
            at(Kind::Mdb(eighth), 5) / at(Kind::MdbL(eighth), 5),
        )
        .paper(1.0)
        .why("The paper: very similar, MDB-L slightly better."),
    ]);
    Table { title: "What the text says of Figure 5".into(), rows }
}

fn by_drive(all: &[Filled]) -> Result<Table> {
    let mut rows = Vec::new();
    for kind in Kind::SMALL {
        let (_, erases) = FlashDrive::MLC_1.play(&of(all, kind, RAM_PERCENT).record)?;
        rows.push(Row::measured(kind.name(), "", erases as f64));
    }
    Ok(Table { title: "Wiki: erases of MLC-1, RAM 5 %, change segment 12.5 %".into(), rows })
}

pub(super) fn ram_chart(name: &str, all: &[Filled]) -> Chart {
    let curve = |kind: Kind| {
        let points = RAM_PERCENTS.map(|percent| (percent as f64, cleans(all, kind, percent)));
        Series::ours(kind.name(), points.to_vec())
    };
    Chart {
        title: format!("{name}: cleans against the RAM buffer"),
        x: "RAM, % of the data segment",
        y: "cleans",
        x_scaling: Scaling::Linear,
        y_scaling: Scaling::Logarithmic,
        series: Kind::SMALL.map(curve).to_vec(),
    }
}
