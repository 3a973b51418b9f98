//! Figure 4: the time that the SSDs work for all tokens.

use std::sync::Arc;

use nandex_sim::RequestKind::{Read, Write};

use super::design::Kind;
use super::fills::Fills;
use super::lab::{Filled, FlashDrive, RAM_PERCENT, Whole, of};
use super::shape::DataSet;
use crate::{Experiment, Outcome, Result, Row, Scale, Table};

/// See the [module](self).
pub struct Figure4(pub Arc<Fills>);

/// A block over a page, read and written (footnote 4).
const BLOCKS_OVER_PAGES: [(FlashDrive, [f64; 2]); 3] = [
    (FlashDrive::MLC_1, [30.0, 50.0]),
    (FlashDrive::MLC_2, [25.0, 35.0]),
    (FlashDrive::SLC, [24.0, 28.0]),
];

impl Experiment for Figure4 {
    fn name(&self) -> &'static str {
        "figure-4"
    }

    fn title(&self) -> &'static str {
        "Cost of I/O"
    }

    fn reference(&self) -> &'static str {
        "section 3.5, Figures 4a and 4b, footnote 4"
    }

    fn run(&self, scale: Scale) -> Result<Outcome> {
        let [wiki, meme] = [DataSet::WIKI, DataSet::MEME].map(|set| self.0.of(set, scale));
        let [wiki, meme] = [Costs::of(&wiki)?, Costs::of(&meme)?];
        let tables = vec![wiki.table("Wiki"), meme.table("Meme"), claims(&wiki, &meme), blocks()?];
        Ok(Outcome { setup: setup(), tables, charts: Vec::new() })
    }
}

fn setup() -> Vec<String> {
    vec![
        "All tokens are inserted with a RAM buffer of 5 % and a change segment of 12.5 %. The \
         operations are played one after another, without any time between them, on MLC-1, MLC-2 \
         and SLC with the times of Table 1; drives are full, and 64 times larger than the table. \
         Blocks and pages are as many at each scale, so times are those of the full size."
            .into(),
        "The figure's bars are not printed as numbers; what the text says of them is checked."
            .into(),
    ]
}

/// The seconds for each drive and design.
pub(super) struct Costs([[f64; 3]; 3]);

impl Costs {
    pub fn of(all: &[Filled]) -> Result<Self> {
        let mut costs = [[0.0; 3]; 3];
        for (drive, costs) in FlashDrive::ALL.into_iter().zip(&mut costs) {
            for (kind, cost) in Kind::SMALL.into_iter().zip(costs) {
                *cost = drive.play(&of(all, kind, RAM_PERCENT).record)?.0;
            }
        }
        Ok(Self(costs))
    }

    pub fn table(&self, name: &str) -> Table {
        let mut rows = Vec::new();
        for (drive, costs) in FlashDrive::ALL.into_iter().zip(self.0) {
            for (kind, cost) in Kind::SMALL.into_iter().zip(costs) {
                rows.push(Row::measured(format!("{}: {}", drive.name, kind.name()), "s", cost));
            }
        }
        Table { title: format!("{name}: time of all operations"), rows }
    }
}

/// Compares the statements of the text, as ratios with a bound.
fn claims(wiki: &Costs, meme: &Costs) -> Table {
    let [[mb, mdb, mdb_l], [_, _, on_mlc_2], [_, _, on_slc]] = wiki.0;
    let over = |what: &str, number: f64| Row::measured(what, "", number).paper_at_least(1.0);
    let rows = vec![
        over("MB over MDB, MLC-1", mb / mdb)
            .why("The paper: significantly lower costs with a change segment."),
        over("MB over MDB-L, MLC-1", mb / mdb_l),
        Row::measured("MDB over MDB-L, MLC-1", "", mdb / mdb_l)
            .paper(1.0)
            .why("The paper: comparable."),
        over("MLC-1 over MLC-2, MDB-L", mdb_l / on_mlc_2)
            .why("The paper: MLC-1 is quite a bit slower."),
        over("MLC-2 over SLC, MDB-L", on_mlc_2 / on_slc)
            .why("The paper: comparable, a slight edge to SLC."),
        over("Meme over Wiki, MB, MLC-1", meme.0[0][0] / mb),
        over("Meme over Wiki, MDB-L, MLC-1", meme.0[0][2] / mdb_l),
    ];
    Table { title: "What the text says of Figure 4".into(), rows }
}

fn blocks() -> Result<Table> {
    let why = "The paper's simulator has its own inside of a drive; ours has the rates of Table \
               1, by which 128 pages take at least this long. A single write ends in the drive's \
               write buffer.";
    let mut rows = Vec::new();
    for (drive, papers) in BLOCKS_OVER_PAGES {
        for ((kind, word), paper) in [(Read, "read"), (Write, "write")].into_iter().zip(papers) {
            let ratio =
                drive.request_ms(kind, Whole::Block)? / drive.request_ms(kind, Whole::Page)?;
            let what = format!("{}: {word} of a block over a page", drive.name);
            rows.push(Row::measured(what, "", ratio).paper(paper).why(why));
        }
    }
    Ok(Table { title: "Blocks over pages".into(), rows })
}
