//! Operations a second for each dollar and watt, which make the table "cheap": sections 1, 2 and 9.

use super::lab::{Setup, aged};
use super::player;
use super::workload::Workload;
use crate::tape::Act;
use crate::{Drive, Experiment, Outcome, Result, Row, Scale, Table, fits, vary};

/// See the [module](self).
pub struct Cost;

/// Lookups and inserts that are measured.
const OPERATIONS: u64 = 1 << 27;
/// The price of the Intel SSD, in dollars. The paper does not print it: 42 lookups a second and dollar at 0.06 ms for a
/// lookup are this.
pub const INTEL_DOLLARS: f64 = 397.0;
/// The watts that flash takes at most for its I/O (section 4).
const FLASH_WATTS: f64 = 1.0;
/// The RamSan DRAM-SSD: random I/Os a second, dollars and watts (section 1).
const RAMSAN: (f64, f64, f64) = (300_000.0, 120_000.0, 650.0);
/// The Violin memory: random I/Os a second and dollars (section 2).
const VIOLIN: (f64, f64) = (200_000.0, 50_000.0);

impl Experiment for Cost {
    fn name(&self) -> &'static str {
        "cost"
    }

    fn title(&self) -> &'static str {
        "Operations a second for each dollar and watt"
    }

    fn reference(&self) -> &'static str {
        "sections 1, 2 and 9"
    }

    fn run(&self, scale: Scale) -> Result<Outcome> {
        let operations = scale.of(OPERATIONS);
        let run = Workload::lookup_then_insert(0.4).run(&Setup::paper(scale), operations)?;
        let played =
            player().play(run.taped.tape(), &mut *aged(Drive::INTEL, scale, run.taped.tape())?);
        let [lookups, inserts] =
            [Act::Lookup, Act::Insert].map(|act| 1000.0 / played.of(act, run.from).mean_ms());
        let tables = vec![dollars(lookups, inserts), watts(lookups, inserts)];
        Ok(Outcome { setup: setup(), tables, charts: Vec::new() })
    }
}

fn setup() -> Vec<String> {
    vec![
        "One lookup or insert after another on the Intel SSD, as in Figure 6, for each second. The paper counts the \
         price of the SSD alone, without its host and RAM, and does not print it: its own 42 \
         lookups a second and dollar at 0.06 ms are $397."
            .into(),
        "A table in a DRAM-SSD is counted as the paper counts it: one operation for each I/O of the device. Of watts the \
         paper prints those of the RamSan, and that I/O of flash takes less than one."
            .into(),
    ]
}

fn dollars(lookups: f64, inserts: f64) -> Table {
    const UNIT: &str = "operations/s/$";
    let price = vary::number(&fits::INTEL_PRICE, INTEL_DOLLARS);
    let ramsan = RAMSAN.0 / RAMSAN.1;
    let rows = vec![
        Row::fitted("BufferHash, lookups", UNIT, lookups / price, fits::INTEL_PER_DOLLAR)
            .paper(42.0),
        Row::measured("BufferHash, inserts", UNIT, inserts / price).paper(420.0),
        Row::formula("RamSan", UNIT, ramsan)
            .paper(2.5)
            .why("Its printed I/Os over its printed price."),
        Row::formula("Violin", UNIT, VIOLIN.0 / VIOLIN.1)
            .why("Its printed I/Os over its printed price."),
        Row::measured("BufferHash over RamSan, lookups", "", lookups / price / ramsan)
            .paper_at_least(10.0)
            .why("The paper: 1 to 2 orders of magnitude better."),
        Row::measured("BufferHash over RamSan, inserts", "", inserts / price / ramsan)
            .paper_at_least(10.0)
            .why("The paper: 1 to 2 orders of magnitude better."),
    ];
    Table { title: "For each dollar".into(), rows }
}

fn watts(lookups: f64, inserts: f64) -> Table {
    const UNIT: &str = "operations/s/W";
    let ramsan = RAMSAN.0 / RAMSAN.2;
    let rows = vec![
        Row::measured("BufferHash, lookups, at least", UNIT, lookups / FLASH_WATTS),
        Row::measured("BufferHash, inserts, at least", UNIT, inserts / FLASH_WATTS),
        Row::formula("RamSan", UNIT, ramsan).why("Its printed I/Os over its printed watts."),
        Row::measured(
            "BufferHash over RamSan, lookups, at least",
            "",
            lookups / FLASH_WATTS / ramsan,
        )
        .paper_at_least(1.0)
        .why("The paper: the gap is greater with energy, which it does not put in numbers."),
    ];
    Table { title: "For each watt".into(), rows }
}
