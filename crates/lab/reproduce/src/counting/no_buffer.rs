//! A table without any buffer: each token reads a page of the data segment and writes it again.

use std::sync::Arc;

use nandex_sim::RequestKind::{Read, Write};

use super::design::Kind;
use super::fills::Fills;
use super::lab::{FlashDrive, LARGER_TIMES, Lab, RAM_PERCENT, larger_times, of};
use super::record::{Places, Record};
use super::shape::{BLOCK_PAGES, DataSet};
use crate::{Experiment, Outcome, Result, Row, Scale, Table};

/// See the [module](self).
pub struct NoBuffer(pub Arc<Fills>);

/// The tokens that are played before the measurement, for each page of the drive: more than it has spare
/// pages.
const WARM_PERMILLE: u64 = 200;
/// The tokens before the measurement on the smallest drive, until it copies as much as it will.
const WARM_PERMILLE_LEAST: u64 = 2000;
/// The number of tokens that are measured.
const MEASURED: u64 = 200_000;

/// The paper's statement on a data set: cleans, and the slowdown compared with buffers.
struct Said {
    set: DataSet,
    cleans: f64,
    times_slower: f64,
}

const SAID: [Said; 2] = [
    Said { set: DataSet::WIKI, cleans: 1_680_323.0, times_slower: 615.0 },
    Said { set: DataSet::MEME, cleans: 6_669_932.0, times_slower: 1500.0 },
];

impl Experiment for NoBuffer {
    fn name(&self) -> &'static str {
        "no-buffer"
    }

    fn title(&self) -> &'static str {
        "A table without a buffer"
    }

    fn reference(&self) -> &'static str {
        "section 3.5, \"Not shown in our reports\""
    }

    fn run(&self, scale: Scale) -> Result<Outcome> {
        let tables =
            SAID.iter().map(|said| said.table(&self.0, scale)).collect::<Result<Vec<_>>>()?;
        Ok(Outcome { setup: setup(), tables, charts: Vec::new() })
    }
}

fn setup() -> Vec<String> {
    vec![
        format!(
            "Each token reads a page of the data segment and writes it again. {MEASURED} of them \
             are played on MLC-1 when its spare blocks are used up, and the outcome is \
             multiplied to all of the paper's tokens. Erases are those of the simulated \
             translation layer."
        ),
        format!(
            "How much a translation layer copies depends on how much of the drive is in use, \
             which the paper does not say. The drive is full, and either just holds the table or \
             is {LARGER_TIMES} times larger, with spare blocks for all of the table several \
             times over, so that hardly anything is copied."
        ),
    ]
}

/// The cleans and seconds of one token.
struct Each {
    cleans: f64,
    seconds: f64,
}

impl Said {
    fn table(&self, fills: &Fills, scale: Scale) -> Result<Table> {
        let lab = Lab::new(self.set, scale);
        let table_pages = Places::new(&lab.shape, None).pages();
        let least = measured(&lab, table_pages, WARM_PERMILLE_LEAST)?;
        let each = measured(&lab, table_pages * larger_times(), WARM_PERMILLE)?;
        let tokens = self.set.tokens as f64;
        let all = fills.of(self.set, scale);
        let why = "The paper's is between the two drives. It does not print how much of its drive is in use or spare.";
        let mut rows = vec![
            Row::predicted("cleans, if nothing is copied", "", tokens / BLOCK_PAGES as f64)
                .paper_at_most(self.cleans)
                .why("The least that there can be: one erase for each 128 pages written."),
            Row::measured("cleans, larger drive", "", each.cleans * tokens)
                .paper(self.cleans)
                .why(why),
            Row::measured("cleans, smallest drive", "", least.cleans * tokens)
                .paper(self.cleans)
                .why(why),
            Row::measured("time, larger drive", "h", each.seconds * tokens / 3600.0),
            Row::measured("time, smallest drive", "h", least.seconds * tokens / 3600.0),
        ];
        for kind in Kind::SMALL {
            let (seconds, _) = FlashDrive::MLC_1.play(&of(&all, kind, RAM_PERCENT).record)?;
            let what = format!("times slower than {}, larger drive", kind.name());
            rows.push(
                Row::measured(what, "", each.seconds * tokens / seconds)
                    .paper(self.times_slower)
                    .why("The paper does not say slower than which design, on which drive; here all is on MLC-1."),
            );
        }
        Ok(Table { title: format!("{}, MLC-1", self.set.name), rows })
    }
}

/// Measures the cost of a token on a drive of `pages` pages.
fn measured(lab: &Lab, pages: u64, warm_permille: u64) -> Result<Each> {
    let update = |record: &mut Record, key: u64| {
        let page = lab.shape.slot(key) / lab.shape.page_entries;
        record.page(Read, page);
        record.page(Write, page);
    };
    let mut tokens = lab.tokens();
    let [mut warm, mut measured] = [Record::default(), Record::default()];
    (0..pages * warm_permille / 1000).for_each(|_| update(&mut warm, tokens.draw()));
    (0..MEASURED).for_each(|_| update(&mut measured, tokens.draw()));
    let (seconds, erases) = FlashDrive::MLC_1.play_after(pages, &warm, &measured)?;
    let each = MEASURED as f64;
    Ok(Each { cleans: erases as f64 / each, seconds: seconds / each })
}
