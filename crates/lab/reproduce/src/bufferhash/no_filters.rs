//! Section 7.3.1, second part: the costs of lookups without Bloom filters.

use super::lab::{Filters, Setup, aged, lookup_reads};
use super::workload::Workload;
use super::{cpu_ns, player};
use crate::tape::Act;
use crate::{Chart, Drive, Experiment, Outcome, Result, Row, Scale, Scaling, Series, Table};

/// See the [module](self).
pub struct NoFilters;

/// Lookups and inserts that are measured.
const OPERATIONS: u64 = 1 << 26;
/// Success rates, and the paper's milliseconds without and with filters.
const PAPER: [(f64, Option<(f64, f64)>); 3] =
    [(0.0, None), (0.4, Some((1.95, 0.06))), (0.8, Some((1.5, 0.13)))];

/// The costs of one table's lookups.
struct Cost {
    reads: f64,
    flash_ms: f64,
}

impl Experiment for NoFilters {
    fn name(&self) -> &'static str {
        "no-filters"
    }

    fn title(&self) -> &'static str {
        "Lookups without Bloom filters"
    }

    fn reference(&self) -> &'static str {
        "section 7.3.1"
    }

    fn run(&self, scale: Scale) -> Result<Outcome> {
        let (mut rows, mut without, mut with) = (Vec::new(), Vec::new(), Vec::new());
        for (success, paper) in PAPER {
            let blind = cost(Filters::Blind, success, scale)?;
            let bloom = cost(Filters::Bloom, success, scale)?;
            without.push((success, blind.flash_ms));
            with.push((success, bloom.flash_ms));
            rows.extend(compare(success, paper, &blind, &bloom));
        }
        Ok(Outcome {
            setup: vec![
                "Without filters the same table has Bloom filters of one bit, which exclude nothing, so that a lookup \
                 reads incarnations from the newest to the oldest until it finds its key."
                    .into(),
                "Times are those of the Intel SSD alone, without the processor's.".into(),
            ],
            tables: vec![Table { title: "Flash reads of a lookup on the Intel SSD".into(), rows }],
            charts: vec![Chart {
                title: "Time of flash reads over the share of keys that are found".into(),
                x: "share of lookups that find their key",
                y: "ms",
                x_scaling: Scaling::Linear,
                y_scaling: Scaling::Linear,
                series: vec![
                    Series::ours("without filters", without),
                    Series::ours("with filters", with),
                    Series::paper("paper, without", vec![(0.4, 1.95), (0.8, 1.5)]),
                    Series::paper("paper, with", vec![(0.4, 0.06), (0.8, 0.13)]),
                ],
            }],
        })
    }
}

fn cost(filters: Filters, success_rate: f64, scale: Scale) -> Result<Cost> {
    let setup = Setup { filters, ..Setup::paper(scale) };
    let run = Workload::lookup_then_insert(success_rate).run(&setup, scale.of(OPERATIONS))?;
    let mut model = aged(Drive::INTEL, scale, run.taped.tape())?;
    let played = player().play(run.taped.tape(), &mut *model);
    let lookups = played.of(Act::Lookup, run.from);
    let reads: usize = lookup_reads(run.taped.tape(), run.from).sum();
    Ok(Cost {
        reads: reads as f64 / lookups.count().max(1) as f64,
        flash_ms: lookups.mean_ms() - crate::latency::millis(cpu_ns() as f64),
    })
}

fn compare(success: f64, paper: Option<(f64, f64)>, blind: &Cost, bloom: &Cost) -> Vec<Row> {
    let name = |what: &str| format!("{:.0} % found, {what}", 100.0 * success);
    let mut reads = Row::measured(name("without filters: reads"), "", blind.reads);
    if success == 0.0 {
        reads = reads.paper(16.0).why("A super table has 15 to 18 incarnations: super tables take turns in one ring, and some places in it are free for the next.");
    }
    let mut slow = Row::measured(name("without filters: time"), "ms", blind.flash_ms);
    let mut fast = Row::measured(name("with filters: time"), "ms", bloom.flash_ms);
    let mut gain =
        Row::measured(name("without over with"), "", blind.flash_ms / bloom.flash_ms.max(1e-9));
    if let Some((slow_ms, fast_ms)) = paper {
        slow = slow.paper(slow_ms);
        if success > 0.5 {
            slow = slow.why("Keys that are found often were inserted lately, so their incarnation is a young one; the paper's 1.5 ms are 10 reads, as if it were any.");
        }
        fast = fast.paper(fast_ms);
        gain = gain.paper(slow_ms / fast_ms);
    }
    vec![reads, slow, fast, gain]
}
