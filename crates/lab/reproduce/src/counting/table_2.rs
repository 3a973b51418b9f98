//! Table 2: operations on blocks and pages, merges and stages, for RAM buffers and change segments of each size.

use std::sync::Arc;

use super::design::Kind;
use super::fills::Fills;
use super::lab::{Filled, Lab, RAM_PERCENTS, TableSetup, of};
use super::shape::{Change, DataSet};
use crate::{Experiment, Outcome, Result, Row, Scale, Table, fits};

/// See the [module](self).
pub struct Table2(pub Arc<Fills>);

/// The quantity of a row.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Count {
    Blocks,
    Pages,
    Merges,
    Stages,
}

impl Count {
    /// Returns the quantities that the table has for a design.
    pub const fn of_kind(kind: Kind) -> &'static [Self] {
        match kind {
            Kind::Mb => &[Self::Blocks, Self::Merges],
            Kind::Mdb(_) | Kind::MdbL(_) => {
                &[Self::Blocks, Self::Pages, Self::Merges, Self::Stages]
            }
        }
    }

    pub fn of(self, filled: &Filled) -> u64 {
        let counts = filled.counts();
        match self {
            Self::Blocks => counts.blocks,
            Self::Pages => counts.pages,
            Self::Merges => counts.merges,
            Self::Stages => counts.stages,
        }
    }

    pub const fn word(self) -> &'static str {
        match self {
            Self::Blocks => "operations on blocks",
            Self::Pages => "operations on pages",
            Self::Merges => "merges",
            Self::Stages => "stages",
        }
    }
}

/// Returns the printed count of a design with this RAM; its change segment is that of `Change::ALL`.
///
/// # Panics
/// Panics if the table has none.
pub(super) fn papers(kind: Kind, change: usize, percent: u64, count: Count) -> u64 {
    let line = LINES.iter().find(|it| (it.change, it.percent) == (change, percent));
    let line = line.expect("it has each change segment with each RAM buffer");
    let place = Count::of_kind(kind).iter().position(|it| *it == count);
    let place = place.expect("MB has no pages and no stages");
    match kind {
        Kind::Mb => line.mb[place],
        Kind::Mdb(_) => line.mdb[place],
        Kind::MdbL(_) => line.mdb_l[place],
    }
}

/// A row of the paper: MB's blocks and merges, and the counts of MDB and MDB-L.
struct Line {
    change: usize,
    percent: u64,
    mb: [u64; 2],
    mdb: [u64; 4],
    mdb_l: [u64; 4],
}

const fn line(change: usize, percent: u64, mb: [u64; 2], mdb: [u64; 4], mdb_l: [u64; 4]) -> Line {
    Line { change, percent, mb, mdb, mdb_l }
}

/// The table as it is printed, without the shares, which follow from it.
const LINES: [Line; 12] = [
    line(0, 1, [85_690, 209], [2394, 76_133, 480, 209], [2050, 138_731, 5, 209]),
    line(0, 2, [36_490, 89], [2120, 55_690, 426, 89], [1640, 103_789, 4, 89]),
    line(0, 5, [11_890, 29], [1665, 40_435, 335, 29], [1230, 77_974, 3, 29]),
    line(0, 10, [5330, 13], [1569, 33_026, 315, 13], [1230, 64_846, 3, 13]),
    line(1, 1, [85_690, 209], [4083, 65_517, 455, 209], [3690, 138_731, 9, 209]),
    line(1, 2, [36_490, 89], [3492, 51_186, 392, 89], [2870, 103_792, 7, 89]),
    line(1, 5, [11_890, 29], [2871, 38_995, 323, 29], [2460, 77_977, 6, 29]),
    line(1, 10, [5330, 13], [2419, 32_390, 271, 13], [2050, 64_845, 5, 13]),
    line(2, 1, [85_690, 209], [7421, 60_108, 441, 209], [6970, 138_733, 17, 209]),
    line(2, 2, [36_490, 89], [6307, 48_883, 375, 89], [5740, 103_796, 14, 89]),
    line(2, 5, [11_890, 29], [5134, 38_250, 306, 29], [4920, 77_982, 12, 29]),
    line(2, 10, [5330, 13], [4404, 32_066, 264, 13], [4100, 64_848, 10, 13]),
];

impl Experiment for Table2 {
    fn name(&self) -> &'static str {
        "table-2"
    }

    fn title(&self) -> &'static str {
        "Operations on blocks and pages"
    }

    fn reference(&self) -> &'static str {
        "section 3.5, Table 2"
    }

    fn run(&self, scale: Scale) -> Result<Outcome> {
        let lab = Lab::new(DataSet::WIKI, scale);
        let all = self.0.of(DataSet::WIKI, scale);
        let mut tables = vec![memory_bounded(&all)];
        for (number, change) in Change::ALL.into_iter().enumerate() {
            for kind in [Kind::Mdb(change), Kind::MdbL(change)] {
                tables.push(with_change(&all, kind, number));
            }
        }
        tables.push(trends(&all));
        Ok(Outcome { setup: setup(&lab), tables, charts: Vec::new() })
    }
}

fn setup(lab: &Lab) -> Vec<String> {
    vec![
        format!(
            "{} tokens are inserted. A data segment of 205 blocks of 128 pages has {} entries, \
             {} in each page; a RAM buffer of 1 % is full with {} of them.",
            lab.shape.tokens,
            lab.shape.entries(),
            lab.shape.page_entries,
            lab.shape.buffer_entries(1),
        ),
        "The law of the tokens is fitted to the paper's tokens, different tokens, and 209 stages \
         at 1 % of RAM; what the counts of tokens alone give is in experiment `tokens`."
            .into(),
        "Two points that the text leaves open were decided by Table 2: a page of the change \
         segment that is filled in part is filled up by the next stage, and what is in RAM and \
         change segment at the end is merged. Change segments are rounded up to 103, 52 and 26 \
         blocks."
            .into(),
    ]
}

/// Returns a row, fitted if it is the number of buffers of 1 %, in this or another form.
fn row(filled: &Filled, count: Count, paper: u64) -> Row {
    let TableSetup { kind, percent } = filled.setup;
    let what = format!("RAM {percent} %: {}", count.word());
    let number = count.of(filled) as f64;
    let is_fitted = percent == 1 && (kind == Kind::Mb || count == Count::Stages);
    let row = if is_fitted {
        Row::fitted(what, "", number, fits::COUNTING_STAGES)
    } else {
        Row::measured(what, "", number)
    };
    let is_near = (0.9..=1.1).contains(&(number / paper as f64));
    row.paper(paper as f64).why(if is_near { "" } else { why(kind, count) })
}

/// Returns the reason why a count is more than a tenth off, wherever one is.
fn why(kind: Kind, count: Count) -> &'static str {
    match (kind, count) {
        (Kind::MdbL(_), Count::Merges | Count::Blocks) => {
            "The last merge is of a log that is filled in part: a little more or less of the \
             stream is a merge of 410 operations on blocks more or less."
        }
        (Kind::Mdb(_), Count::Merges | Count::Blocks) => {
            "All blocks of the change segment fill at the same pace here, so that nearly all of \
             them end with the same number of merges; the paper's counts are those of blocks at \
             different paces."
        }
        (Kind::MdbL(_), Count::Pages) => {
            "Here each slot reads each page that has entries of it: one page more than it fills, \
             on average, for each stage. The paper's counts leave half a page for it. At smaller \
             scales a page has few entries."
        }
        _ => "At smaller scales a page has few entries, and a stage few tokens.",
    }
}

/// Returns all rows of a design with this RAM.
fn rows(all: &[Filled], kind: Kind, change: usize, percent: u64) -> impl Iterator<Item = Row> {
    let filled = of(all, kind, percent);
    let counts = Count::of_kind(kind).iter();
    counts.map(move |count| row(filled, *count, papers(kind, change, percent, *count)))
}

fn memory_bounded(all: &[Filled]) -> Table {
    let rows = RAM_PERCENTS.into_iter().flat_map(|percent| rows(all, Kind::Mb, 0, percent));
    Table { title: "MB".into(), rows: rows.collect() }
}

fn with_change(all: &[Filled], kind: Kind, change: usize) -> Table {
    let rows = RAM_PERCENTS.into_iter().flat_map(|percent| rows(all, kind, change, percent));
    let title = format!("{}, change segment {}", kind.name(), Change::ALL[change].name);
    Table { title, rows: rows.collect() }
}

/// Compares the operations on blocks for each merge, which identify the discipline.
fn trends(all: &[Filled]) -> Table {
    let half = Change::ALL[0];
    let each = |kind| {
        let counts = of(all, kind, 1).counts();
        counts.blocks as f64 / counts.merges as f64
    };
    let per = |what: &str, kind, paper: f64| {
        Row::measured(format!("{what}: operations on blocks for each merge"), "", each(kind))
            .paper(paper)
    };
    Table {
        title: "Operations on blocks for each merge, RAM 1 %".into(),
        rows: vec![
            per("MB", Kind::Mb, 85_690.0 / 209.0).why("Each of 205 blocks is read and written."),
            per("MDB, change segment 50 %", Kind::Mdb(half), 2394.0 / 480.0).why(
                "A block of the change segment is read, two data blocks are read and written.",
            ),
            per("MDB-L, change segment 50 %", Kind::MdbL(half), 2050.0 / 5.0)
                .why("The log is read by pages, each of 205 blocks is read and written."),
        ],
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_printed_table_is_what_its_designs_make() {
        for line in LINES {
            let [blocks, merges] = line.mb;
            assert_eq!(blocks, merges * 2 * 205);
            assert_eq!((line.mdb[3], line.mdb_l[3]), (merges, merges));
            assert_eq!(line.mdb_l[0], line.mdb_l[2] * 2 * 205);
            // Each merge of MDB has a block of the change segment and up to k data blocks.
            let most = 2 * Change::ALL[line.change].data_blocks + 1;
            assert!(
                line.mdb[0] <= line.mdb[2] * most && line.mdb[0] * 51 > line.mdb[2] * most * 50
            );
        }
    }
}
