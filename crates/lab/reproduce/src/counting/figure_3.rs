//! Figure 3: the time of a query while tokens are inserted.

use super::design::Kind;
use super::lab::{FlashDrive, Lab, Queried, RAM_PERCENT, RAM_PERCENTS, TableSetup};
use super::shape::{Change, DataSet};
use crate::{Chart, Experiment, Outcome, Result, Row, Scale, Scaling, Series, Table};

/// See the [module](self).
pub struct Figure3;

/// Tables after their queries, and the mean time of a query on MLC-1.
pub(super) struct Asked {
    set: DataSet,
    all: Vec<(Queried, f64)>,
}

impl Experiment for Figure3 {
    fn name(&self) -> &'static str {
        "figure-3"
    }

    fn title(&self) -> &'static str {
        "Time of queries"
    }

    fn reference(&self) -> &'static str {
        "section 3.4, Figures 3a to 3c"
    }

    fn run(&self, scale: Scale) -> Result<Outcome> {
        let asked = |set| Asked::new(set, Lab::new(set, scale).query(&Asked::setups()));
        let (wiki, meme) = (asked(DataSet::WIKI)?, asked(DataSet::MEME)?);
        let mut tables = Vec::new();
        for asked in [&wiki, &meme] {
            tables.extend([asked.by_change(), asked.by_ram()]);
        }
        tables.extend([wiki.by_drive()?, claims(&wiki, &meme), found(&wiki, &meme)]);
        let charts =
            vec![wiki.change_chart(), meme.change_chart(), wiki.ram_chart(), meme.ram_chart()];
        Ok(Outcome { setup: setup(&wiki), tables, charts })
    }
}

fn setup(wiki: &Asked) -> Vec<String> {
    vec![
        format!(
            "Wiki's first 35 million of 136.7 million tokens are inserted, Meme's first 130 of \
             402; then a million queries are spread over the others, both divided by the scale: \
             {} queries. What is asked for is drawn as tokens are, which the paper does not \
             say.",
            wiki.all[0].0.queries,
        ),
        "A query reads, one after another: in MDB the whole block of the change segment, if \
         anything is staged in it; in MDB-L each page of the slot's ranges; in each design the \
         pages of the data segment where its probing goes. The change segment is read even if \
         the data segment has the key, since counts are summed."
            .into(),
        "Reads are counted for all queries; the time is the mean of 2000 of them, evenly chosen, \
         each alone on the drive. The figure's curves are not printed as numbers; what the text \
         says of them is checked."
            .into(),
    ]
}

impl Asked {
    /// Returns the required tables: each design with the RAM that figures fix, and with the change segment
    /// that they fix.
    pub fn setups() -> Vec<TableSetup> {
        let mut setups = TableSetup::all(&Kind::ALL, &[RAM_PERCENT]);
        let others = RAM_PERCENTS.into_iter().filter(|percent| *percent != RAM_PERCENT);
        setups.extend(TableSetup::all(&Kind::SMALL, &others.collect::<Vec<_>>()));
        setups
    }

    /// Plays the queries of these tables.
    pub fn new(set: DataSet, all: Vec<Queried>) -> Result<Self> {
        let played = all.into_iter().map(|queried| {
            let mean_ms = queried.mean_ms(FlashDrive::MLC_1)?;
            Ok((queried, mean_ms))
        });
        Ok(Self { set, all: played.collect::<Result<_>>()? })
    }

    fn of(&self, kind: Kind, percent: u64) -> &(Queried, f64) {
        let wanted = TableSetup { kind, percent };
        self.all.iter().find(|(it, _)| it.setup == wanted).expect("it was asked")
    }

    fn ms(&self, kind: Kind, percent: u64) -> f64 {
        self.of(kind, percent).1
    }

    /// Returns the rows of the time, and of the reads behind it.
    fn rows(&self, name: &str, kind: Kind, percent: u64) -> Vec<Row> {
        let (queried, mean_ms) = self.of(kind, percent);
        let mean = |sum| queried.mean(sum);
        let in_change = queried.reads.pages - queried.data_pages;
        let mut rows = vec![
            Row::measured(format!("{name}: mean"), "ms", *mean_ms),
            Row::measured(
                format!("{name}: pages of the data segment"),
                "",
                mean(queried.data_pages),
            ),
        ];
        match kind {
            Kind::Mb => {}
            Kind::Mdb(_) => {
                let what = format!("{name}: blocks of the change segment");
                rows.push(Row::measured(what, "", mean(queried.reads.blocks)));
            }
            Kind::MdbL(_) => {
                let what = format!("{name}: pages of the change segment");
                rows.push(Row::measured(what, "", mean(in_change)));
            }
        }
        rows
    }

    pub fn by_change(&self) -> Table {
        let rows = Kind::ALL.into_iter().flat_map(|kind| {
            let name = match kind.change() {
                Some(change) => format!("{}, change segment {}", kind.name(), change.name),
                None => kind.name().into(),
            };
            self.rows(&name, kind, RAM_PERCENT)
        });
        let title = format!("Figure 3a, {}: queries on MLC-1, RAM 5 %", self.set.name);
        Table { title, rows: rows.collect() }
    }

    pub fn by_ram(&self) -> Table {
        let rows = RAM_PERCENTS.into_iter().flat_map(|percent| {
            let rows = move |kind: Kind| {
                self.rows(&format!("{}, RAM {percent} %", kind.name()), kind, percent)
            };
            Kind::SMALL.into_iter().flat_map(rows)
        });
        let title =
            format!("Figure 3b, {}: queries on MLC-1, change segment 12.5 %", self.set.name);
        Table { title, rows: rows.collect() }
    }

    pub fn change_chart(&self) -> Chart {
        let share = |change: Change| 100.0 / change.data_blocks as f64;
        let curve = |name: &str, kind: fn(Change) -> Kind| {
            let points = Change::ALL.map(|it| (share(it), self.ms(kind(it), RAM_PERCENT)));
            Series::ours(name, points.to_vec())
        };
        Chart {
            title: format!("{}: queries against the change segment", self.set.name),
            x: "change segment, % of the data segment",
            y: "ms",
            x_scaling: Scaling::Linear,
            y_scaling: Scaling::Logarithmic,
            series: vec![
                curve("MB", |_| Kind::Mb),
                curve("MDB", Kind::Mdb),
                curve("MDB-L", Kind::MdbL),
            ],
        }
    }

    pub fn ram_chart(&self) -> Chart {
        let curve = |kind: Kind| {
            let points = RAM_PERCENTS.map(|percent| (percent as f64, self.ms(kind, percent)));
            Series::ours(kind.name(), points.to_vec())
        };
        Chart {
            title: format!("{}: queries against the RAM buffer", self.set.name),
            x: "RAM, % of the data segment",
            y: "ms",
            x_scaling: Scaling::Linear,
            y_scaling: Scaling::Logarithmic,
            series: Kind::SMALL.map(curve).to_vec(),
        }
    }

    pub fn by_drive(&self) -> Result<Table> {
        let mut rows = Vec::new();
        for kind in Kind::SMALL {
            for drive in FlashDrive::ALL {
                let mean_ms = self.of(kind, RAM_PERCENT).0.mean_ms(drive)?;
                let what = format!("{}: {}", kind.name(), drive.name);
                rows.push(Row::measured(what, "ms", mean_ms));
            }
        }
        let title =
            format!("Figure 3c, {}: queries, RAM 5 %, change segment 12.5 %", self.set.name);
        Ok(Table { title, rows })
    }
}

/// Compares the statements of the text, as ratios.
fn claims(wiki: &Asked, meme: &Asked) -> Table {
    let [half, _, eighth] = Change::ALL;
    let (mdb, mdb_l) = (Kind::Mdb(eighth), Kind::MdbL(eighth));
    let at = |kind, percent| wiki.ms(kind, percent);
    let over =
        |what: &str, number: f64, paper: f64| Row::measured(what, "", number).paper_at_least(paper);
    let pages = |asked: &Asked| {
        let queried = &asked.of(mdb_l, RAM_PERCENT).0;
        queried.mean(queried.reads.pages)
    };
    let rows = vec![
        over("MDB over MB", at(mdb, 5) / at(Kind::Mb, 5), 10.0)
            .why("The paper: MDB is always an order of magnitude worse."),
        over("MDB-L over MB", at(mdb_l, 5) / at(Kind::Mb, 5), 1.0)
            .why("The paper: MB is always the fastest; MDB-L typically approaches it."),
        over("MDB over MDB-L", at(mdb, 5) / at(mdb_l, 5), 1.0)
            .why("The paper: MDB-L outperforms MDB."),
        Row::measured(
            "MDB: change segment 50 % over 12.5 %",
            "",
            at(Kind::Mdb(half), 5) / at(mdb, 5),
        )
        .paper(1.0)
        .why("The paper: it does not drop significantly."),
        over("MDB-L: change segment 50 % over 12.5 %", at(Kind::MdbL(half), 5) / at(mdb_l, 5), 1.0)
            .why("The paper: improves dramatically with a reduction in change segment size."),
        Row::measured("MB: RAM 1 % over 10 %", "", at(Kind::Mb, 1) / at(Kind::Mb, 10))
            .paper(1.0)
            .why("The paper: a negligible change."),
        over("MDB: RAM 1 % over 10 %", at(mdb, 1) / at(mdb, 10), 1.0).why("The paper: decreases."),
        over("MDB-L: RAM 1 % over 10 %", at(mdb_l, 1) / at(mdb_l, 10), 1.0)
            .why("The paper: a significant decrease."),
        Row::measured("pages of a query, MDB-L, Wiki over Meme", "", pages(wiki) / pages(meme))
            .paper(1.115)
            .why("The paper names no design for its 11.5 %; here the log's fill decides."),
    ];
    Table { title: "What the text says of Figure 3, MLC-1".into(), rows }
}

fn found(wiki: &Asked, meme: &Asked) -> Table {
    let row = |asked: &Asked| {
        let queried = &asked.of(Kind::Mb, RAM_PERCENT).0;
        let what = format!("{}: share of queries whose key is in the table", asked.set.name);
        Row::input(what, "", queried.mean(queried.found)).paper(asked.set.found as f64 / 1e6)
    };
    Table { title: "Queries that find their key".into(), rows: vec![row(wiki), row(meme)] }
}
