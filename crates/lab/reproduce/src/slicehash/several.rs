//! Table 6: one to three drives, for more operations or for less RAM (section 5.3).

use super::lab::{Design, Mix, Setup, ram_bytes_per_entry};
use super::throughput::Part;
use crate::{Experiment, Outcome, Result, Row, Scale, Table, fits};

/// See the [module](self).
pub struct Table6;

/// Drives, and the paper's lookups a second, operations a second of a 50/50 mix, and bytes for an entry.
const PAPER: [(u32, [f64; 3]); 3] = [
    (1, [69_000.0, 93_000.0, 0.6]),
    (2, [138_000.0, 186_000.0, 0.3]),
    (3, [207_000.0, 279_000.0, 0.2]),
];
/// The fewest partitions: three drives have 3, 3 and 2 of them.
const PARTITIONS_MIN: u32 = 8;

/// The reason why mixes grow less than the drives.
const MERGES: &str = "Less than the multiple of the rate of one drive, because buffers fill by \
     lot: now and then several merges fall to one drive, and the others wait for inserts. The \
     paper's one drive has 93 K here.";

impl Experiment for Table6 {
    fn name(&self) -> &'static str {
        "table-6"
    }

    fn title(&self) -> &'static str {
        "Several drives"
    }

    fn reference(&self) -> &'static str {
        "section 7.4, Table 6"
    }

    fn run(&self, scale: Scale) -> Result<Outcome> {
        let (mut throughput, mut memory) = (Vec::new(), Vec::new());
        let paper = Setup::paper(scale);
        let spread = Setup { partitions: paper.partitions.max(PARTITIONS_MIN), ..paper };
        for (drives, [lookups, mixed, ram]) in PAPER {
            let name = |what: &str| match drives {
                1 => format!("1 drive: {what}"),
                _ => format!("{drives} drives: {what}"),
            };
            let setup = Setup { drives, ..spread };
            let rates = rates(setup, scale)?;
            let why = balance(&setup, &rates);
            throughput
                .push(lookups_row(drives, name("lookups"), rates.lookups).paper(lookups).why(why));
            let why = if drives == 1 { "" } else { MERGES };
            throughput.push(row(name("50/50"), rates.mixed).paper(mixed).why(why));
            let setup = Setup { drives, design: Design::Memory, ..paper };
            let rates = self::rates(setup, scale)?;
            memory.push(
                Row::measured(name("RAM"), "B/entry", ram_bytes_per_entry(setup)?).paper(ram),
            );
            // The throughput "stays the same as using a single SSD".
            memory.push(lookups_row(drives, name("lookups"), rates.lookups).paper(PAPER[0].1[0]));
            memory.push(row(name("50/50"), rates.mixed).paper(PAPER[0].1[1]));
        }
        Ok(Outcome {
            setup: vec![
                "The table is on an array of drives, which share a clock. Throughput-oriented: \
                 each slicetable on one drive, whose schedule has 32 reads in flight; a merge on \
                 each drive at a time, during the lookups. Memory-oriented: a page of each slice \
                 on every drive, all read at once."
                    .into(),
                "The mix for one drive is that of Figure 5c, where the paper has 105 K and not \
                 93 K."
                    .into(),
            ],
            tables: vec![
                Table { title: "Throughput-oriented".into(), rows: throughput },
                Table { title: "Memory-oriented".into(), rows: memory },
            ],
            charts: Vec::new(),
        })
    }
}

/// The operations a second.
struct Rates {
    lookups: f64,
    mixed: f64,
    /// The share of all reads on the busiest drive.
    share_most: f64,
}

fn rates(setup: Setup, scale: Scale) -> Result<Rates> {
    let [lookups, both] = Part::of(setup, [Mix::Lookups, Mix::Both])?;
    Ok(Rates {
        lookups: lookups.work_aware(scale)?.operations_per_s,
        mixed: both.work_aware(scale)?.operations_per_s,
        share_most: lookups.share_most,
    })
}

const UNIT: &str = "operations/s";

/// Reads of one drive are those that it was made for; more drives follow from it.
fn lookups_row(drives: u32, what: String, rate: f64) -> Row {
    match drives {
        1 => Row::fitted(what, UNIT, rate, fits::CRUCIAL_READS),
        _ => row(what, rate),
    }
}

fn row(what: String, rate: f64) -> Row {
    Row::measured(what, UNIT, rate)
}

/// The effect of the drive with the most partitions.
fn balance(setup: &Setup, rates: &Rates) -> String {
    let left = 1.0 / (f64::from(setup.drives) * rates.share_most);
    if left > 0.99 {
        return String::new();
    }
    format!(
        "{} partitions are not many: the drive that is asked for most has {:.1} % of the \
         lookups, which leaves {:.0} % of the rate. The paper has 32,768.",
        setup.partitions,
        100.0 * rates.share_most,
        100.0 * left
    )
}
