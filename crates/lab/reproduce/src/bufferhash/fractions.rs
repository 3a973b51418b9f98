//! Table 3: time per operation over the share of lookups, on the Transcend SSD.

use super::berkeley::Berkeley;
use super::direct::{operations, share_of};
use super::lab::{Setup, aged, incarnations_only};
use super::player;
use super::workload::Workload;
use crate::{
    Chart, Drive, Experiment, Filled, Outcome, Result, Row, Scale, Scaling, Series, Table,
};

/// See the [module](self).
pub struct Table3;

/// The number of operations that are measured for each share.
const OPERATIONS: u64 = 1 << 27;
/// The bytes of the Transcend SSD.
pub const TRANSCEND_BYTES: f64 = 32e9;
/// The shares of lookups in millionths, and the paper's milliseconds: BufferHash and Berkeley DB.
const PAPER: [(u32, f64, f64); 5] = [
    (0, 0.007, 18.4),
    (300_000, 0.01, 13.5),
    (500_000, 0.09, 10.3),
    (700_000, 0.11, 5.3),
    (1_000_000, 0.12, 0.3),
];

impl Experiment for Table3 {
    fn name(&self) -> &'static str {
        "table-3"
    }

    fn title(&self) -> &'static str {
        "Latency against the share of lookups"
    }

    fn reference(&self) -> &'static str {
        "section 7.2.3, Table 3"
    }

    fn run(&self, scale: Scale) -> Result<Outcome> {
        let ours = PAPER.map(|(lookup_ppm, ..)| mean_ms(lookup_ppm, scale));
        let ours: Vec<[f64; 4]> = ours.into_iter().collect::<Result<_>>()?;
        let share = |lookup_ppm: u32| f64::from(lookup_ppm) / 1e6;
        let rows = PAPER.iter().zip(&ours).flat_map(|(&(lookup_ppm, paper_ms, bdb_ms), means)| {
            let [paper_drive_ms, parts_ms, berkeley_ms, berkeley_parts_ms] = *means;
            let share = share(lookup_ppm);
            [
                Row::measured(format!("BufferHash, {share} lookups"), "ms", paper_drive_ms)
                    .paper(paper_ms)
                    .why(why(lookup_ppm)),
                Row::measured(
                    format!("BufferHash, {share} lookups, drive by its parts"),
                    "ms",
                    parts_ms,
                )
                .paper(paper_ms)
                .why("This one reads a page in 0.2 ms; its rates are assumed from its parts."),
                Row::measured(format!("Berkeley DB, {share} lookups"), "ms", berkeley_ms)
                    .paper(bdb_ms)
                    .why(berkeley_why(lookup_ppm)),
                Row::measured(
                    format!("Berkeley DB, {share} lookups, drive by its parts"),
                    "ms",
                    berkeley_parts_ms,
                )
                .paper(bdb_ms),
            ]
        });
        let curve = |of: usize| {
            PAPER.iter().zip(&ours).map(|(row, ours)| (share(row.0), ours[of])).collect()
        };
        let papers = |pick: fn(&(u32, f64, f64)) -> f64| {
            PAPER.iter().map(|row| (share(row.0), pick(row))).collect()
        };
        Ok(Outcome {
            setup: vec![
                format!(
                    "A full table on the Transcend SSD; {} operations, of which that share looks a key up and the others \
                 insert one, by lot; keys are drawn from a range so that 40 % are found. {} \
                 us of the processor for each. \
                 Reads and incarnations alone are played, without checkpoints and syncs.",
                    scale.of(OPERATIONS),
                    super::CPU_NS as f64 / 1000.0
                ),
                "Berkeley DB's hash table is that of Figure 7: linear hashing over a page cache \
                 that writes back. Each operation has a random key, of which 40 % are there, by \
                 the same lot; the file takes 95 % of the drive."
                    .into(),
            ],
            tables: vec![Table { title: "Mean time of an operation".into(), rows: rows.collect() }],
            charts: vec![Chart {
                title: "Mean time of an operation over the share of lookups".into(),
                x: "share of lookups",
                y: "ms",
                x_scaling: Scaling::Linear,
                y_scaling: Scaling::Logarithmic,
                series: vec![
                    Series::ours("BufferHash", curve(0)),
                    Series::ours("BufferHash, drive by its parts", curve(1)),
                    Series::ours("Berkeley DB", curve(2)),
                    Series::ours("Berkeley DB, drive by its parts", curve(3)),
                    Series::paper("paper, BufferHash", papers(|row| row.1)),
                    Series::paper("paper, Berkeley DB", papers(|row| row.2)),
                ],
            }],
        })
    }
}

fn why(lookup_ppm: u32) -> &'static str {
    match lookup_ppm {
        0 => {
            "This drive takes 30 ms for each buffer, the paper's longest; the paper's mean leaves 6 ms."
        }
        300_000 => {
            "0.4 of 0.3 operations read; at the 0.3 ms a read that the paper's last row has, that is 0.04 ms: its 0.01 ms does not fit its other rows."
        }
        _ => {
            "The paper's last row is 0.3 ms for each of the 40 % that read; this drive takes 0.6 ms for every read, which in Figure 6 nine in ten stay below."
        }
    }
}

fn berkeley_why(lookup_ppm: u32) -> &'static str {
    match lookup_ppm {
        1_000_000 => {
            "Half of the file's pages are buckets, so the cache of an eighth of the file has a quarter of them."
        }
        _ => {
            "Each page that is written back makes the drive merge a block, which takes this model 2.5 to 3 times as \
             long as the paper's: it was made for the 30 ms of its longest flush. The shape is the paper's."
        }
    }
}

/// Returns the means on the drive of the paper's printed times, and on the one from its parts: BufferHash and
/// then Berkeley DB.
fn mean_ms(lookup_ppm: u32, scale: Scale) -> Result<[f64; 4]> {
    let run = Workload::fraction(lookup_ppm).run(&Setup::paper(scale), scale.of(OPERATIONS))?;
    let tape = incarnations_only(run.taped.tape());
    let mean = |drive| -> Result<f64> {
        Ok(player().play(&tape, &mut *aged(drive, scale, &tape)?).all(run.from).mean_ms())
    };
    let table =
        Berkeley { drive_share: share_of(TRANSCEND_BYTES), success_rate: 0.4, seed: scale.seed() };
    let berkeley = |drive: Drive| -> Result<f64> {
        let mut model = drive.model(scale, Filled::Once, 0)?;
        Ok(table.play_mix(player(), &mut *model, operations(scale), lookup_ppm).mean_ms())
    };
    let (paper, parts) = (Drive::TRANSCEND, Drive::TRANSCEND_SHEET);
    Ok([mean(paper)?, mean(parts)?, berkeley(paper)?, berkeley(parts)?])
}
