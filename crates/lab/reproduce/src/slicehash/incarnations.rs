//! Table 5: more incarnations take less RAM and cost inserts.

use super::figure_5::FULL_BANDWIDTH;
use super::lab::{Mix, Setup, ram_bytes_per_entry};
use super::throughput::Part;
use crate::{Chart, Experiment, Outcome, Result, Row, Scale, Scaling, Series, Table};

/// See the [module](self).
pub struct Table5;

/// Incarnations, and the paper's inserts a second, operations a second of a 50/50 mix, and bytes for an entry.
pub const PAPER: [(u32, [f64; 3]); 4] = [
    (16, [207_000.0, 110_000.0, 1.1]),
    (32, [139_000.0, 93_000.0, 0.6]),
    (48, [85_000.0, 79_000.0, 0.38]),
    (64, [66_000.0, 70_000.0, 0.27]),
];

impl Experiment for Table5 {
    fn name(&self) -> &'static str {
        "table-5"
    }

    fn title(&self) -> &'static str {
        "RAM against performance"
    }

    fn reference(&self) -> &'static str {
        "section 7.4, Table 5"
    }

    fn run(&self, scale: Scale) -> Result<Outcome> {
        let mut rows = Vec::new();
        let mut curves = [(); 4].map(|()| Vec::new());
        for (incarnations, [inserts, mixed, ram]) in PAPER {
            let setup = Setup { incarnations, ..Setup::paper(scale) };
            let [inserting, both] = Part::of(setup, [Mix::Inserts, Mix::Both])?;
            let ours = [inserting.work_aware(scale)?, both.work_aware(scale)?]
                .map(|worked| worked.operations_per_s);
            let name = |what: &str| format!("{incarnations} incarnations: {what}");
            let row = Row::measured(name("inserts"), "operations/s", ours[0]).paper(inserts);
            rows.push(if incarnations == 16 { row.why(FULL_BANDWIDTH) } else { row });
            rows.push(Row::measured(name("50/50"), "operations/s", ours[1]).paper(mixed));
            rows.push(
                Row::measured(name("RAM"), "B/entry", ram_bytes_per_entry(setup)?).paper(ram),
            );
            for (curve, rate) in curves.iter_mut().zip([ours[0], ours[1], inserts, mixed]) {
                curve.push((f64::from(incarnations), rate));
            }
        }
        let [inserts, mixed, paper_inserts, paper_mixed] = curves;
        Ok(Outcome {
            setup: vec![
                "Slicetables of 128 KiB for each incarnation; all else as in Figure 5.".into(),
                "A mix of one lookup and one insert takes a page's time and a share of a merge, \
                 one after the other on the drive's buses: more inserts a second than the \
                 paper's mean a faster mix too."
                    .into(),
            ],
            tables: vec![Table { title: "Incarnations".into(), rows }],
            charts: vec![Chart {
                title: "Operations a second over incarnations".into(),
                x: "incarnations",
                y: "operations a second",
                x_scaling: Scaling::Linear,
                y_scaling: Scaling::Linear,
                series: vec![
                    Series::ours("inserts", inserts),
                    Series::ours("50/50", mixed),
                    Series::paper("paper, inserts", paper_inserts),
                    Series::paper("paper, 50/50", paper_mixed),
                ],
            }],
        })
    }
}
