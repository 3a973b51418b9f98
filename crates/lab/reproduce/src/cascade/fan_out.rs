//! Writes and reads against the fan-out: the reason why nandex takes one or two wide levels.

use super::bloom::{Bloom, Kind};
use super::grown::Grown;
use super::insertion::Measured;
use super::lab::{KEYS, Measures};
use super::policy::{Cost, cost};
use super::rounds::Costs;
use crate::{Chart, Experiment, Outcome, Result, Row, Scale, Scaling, Series, Table, fits};

/// See the [module](self).
pub struct FanOut;

/// Ratios of filter to RAM.
const RATIOS: [u64; 3] = [4, 16, 64];
/// Fan-outs, and one level.
const FAN_OUTS: [Option<u32>; 5] = [Some(2), Some(4), Some(8), Some(16), None];
/// The divisor of the deck's keys: a ratio of 64 with one level writes each a hundred times.
const PART: u64 = 8;

/// The measurements.
struct Measurement {
    ratio: u64,
    fan_out: Option<u32>,
    policy: Cost,
    writes: f64,
    bytes: f64,
    reads: f64,
    inserts_per_s: f64,
    device_per_s: f64,
}

impl Experiment for FanOut {
    fn name(&self) -> &'static str {
        "fan-out"
    }

    fn title(&self) -> &'static str {
        "Writes and reads against the fan-out"
    }

    fn reference(&self) -> &'static str {
        "the slide \"Cascade Filter\"; the deck has fan-out 2"
    }

    fn run(&self, scale: Scale) -> Result<Outcome> {
        let mut all = Vec::new();
        let mut tables = Vec::new();
        for ratio in RATIOS {
            let measures = Measures::new(scale, scale.of(KEYS / PART), ratio)?;
            for fan_out in FAN_OUTS {
                all.push(measure(measures, ratio, fan_out)?);
            }
            let mut strongest = Bloom::full(Kind::PageBlocked, measures)?;
            tables.push(table(&all, ratio, &Measured::bloom(&mut strongest)?));
        }
        let setup = vec![
            format!(
                "Filters of {} keys, an eighth of those of the insertions. Each key is written \
                 to flash that many times; the drive's 4 KiB pages, rounded up, are counted in the \
                 bytes. Lookups are of absent keys, means over 24 times while the filter grows, \
                 one read for each level that is not empty.",
                scale.of(KEYS / PART)
            ),
            "The policy's own rows are a formula: full buffers are merged with every level above \
             the first one that can hold it. With one level n buffers write each key (n + 1) / 2 \
             times."
                .into(),
        ];
        let charts = vec![
            chart(&all, "times a key is written", |it| it.writes, Scaling::Logarithmic),
            chart(&all, "pages read for each lookup", |it| it.reads, Scaling::Linear),
        ];
        Ok(Outcome { setup, tables, charts })
    }
}

fn measure(measures: Measures, ratio: u64, fan_out: Option<u32>) -> Result<Measurement> {
    let grown = Grown::full(measures, fan_out)?;
    let inserts = Measured::cascade(&grown, "");
    let reads = grown.mean_looked().reads;
    Ok(Measurement {
        ratio,
        fan_out,
        policy: cost(grown.buffers(), fan_out),
        writes: grown.writes_per_key(),
        bytes: grown.bytes_per_key(),
        reads,
        inserts_per_s: inserts.per_s_with(Costs::cascade()),
        device_per_s: inserts.device_per_s(),
    })
}

fn table(all: &[Measurement], ratio: u64, strongest: &Measured) -> Table {
    let mut rows = Vec::new();
    for it in all.iter().filter(|it| it.ratio == ratio) {
        let name = it.fan_out.map_or("one level".into(), |fan_out| format!("fan-out {fan_out}"));
        rows.push(Row::measured(format!("{name}: times a key is written"), "", it.writes));
        rows.push(Row::predicted(format!("{name}: times, by the policy"), "", it.policy.writes));
        rows.push(Row::measured(format!("{name}: written for each key"), "B", it.bytes));
        rows.push(Row::measured(format!("{name}: pages read for each lookup"), "", it.reads));
        rows.push(Row::assumed(
            format!("{name}: inserts"),
            "1/s",
            it.inserts_per_s,
            fits::CASCADE_INSERT.name,
        ));
        rows.push(Row::measured(
            format!("{name}: inserts if the processor took no time"),
            "1/s",
            it.device_per_s,
        ));
    }
    rows.push(
        Row::assumed(
            format!("{}: inserts", strongest.name),
            "1/s",
            strongest.per_s(),
            strongest.processor,
        )
        .why("A lookup reads one page of it; a key can be deleted from none."),
    );
    Table { title: format!("Filter {ratio} times the RAM"), rows }
}

fn chart(
    all: &[Measurement],
    what: &'static str,
    of: fn(&Measurement) -> f64,
    y_scaling: Scaling,
) -> Chart {
    let series = RATIOS.iter().map(|ratio| {
        let points = all.iter().filter(|it| it.ratio == *ratio);
        // One level is as wide as all buffers.
        let x = |it: &Measurement| f64::from(it.fan_out.unwrap_or(32));
        Series::ours(
            format!("filter {ratio} times the RAM"),
            points.map(|it| (x(it), of(it))).collect(),
        )
    });
    Chart {
        title: format!("Fan-out against {what} (one level drawn at 32)"),
        x: "fan-out",
        y: what,
        x_scaling: Scaling::Logarithmic,
        y_scaling,
        series: series.collect(),
    }
}
