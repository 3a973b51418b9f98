//! Section 7.3.1, first part: the costs of inserts without buffers.

use super::direct::{Direct, Lookups, operations, share_of};
use super::lab::{Setup, aged};
use super::player;
use super::workload::Workload;
use crate::play::Player;
use crate::tape::Act;
use crate::{
    Chart, Drive, Experiment, Filled, Latencies, Outcome, Result, Row, Scale, Scaling, Series,
    Table, fits,
};

/// See the [module](self).
pub struct NoBuffering;

/// The Intel SSD's 80 GB.
const INTEL_BYTES: f64 = 80e9;
/// The pause before each insert at a low rate: 20 inserts a second.
const REST_NS: u64 = 50_000_000;
/// The number of inserts with buffers that are measured.
const OPERATIONS: u64 = 1 << 27;

impl Experiment for NoBuffering {
    fn name(&self) -> &'static str {
        "no-buffering"
    }

    fn title(&self) -> &'static str {
        "Inserts without buffers"
    }

    fn reference(&self) -> &'static str {
        "section 7.3.1"
    }

    fn run(&self, scale: Scale) -> Result<Outcome> {
        let without = |drive, rest_ns, filled| inserts(drive, rest_ns, filled, scale);
        let high = without(Drive::INTEL, 0, Filled::ForEver)?;
        let low =
            without(Drive { cleans_at_rest: true, ..Drive::INTEL }, REST_NS, Filled::ForEver)?;
        let sheet_high = without(Drive::INTEL_SHEET, 0, Filled::ForEver)?;
        let sheet_low = without(Drive::INTEL_SHEET, REST_NS, Filled::ForEver)?;
        let with = buffered(scale)?;
        let rows = vec![
            Row::measured("without buffers, inserts without a pause: mean", "ms", high.mean_ms()).paper(4.8)
                .why("Most of it is cleaning, whose cost follows from spare space and from how the drive was filled, which the paper does not print."),
            Row::measured("without buffers, 20 inserts a second: mean", "ms", low.mean_ms()).paper(0.3)
                .why("The drive cleans at rest. A page read of 0.15 ms, and a write that waits for the flash: this drive, which is made for the times of whole buffers, has no write buffer to hide it."),
            Row::measured("the same by the data sheet, without a pause: mean", "ms", sheet_high.mean_ms()).paper(4.8)
                .why("A model of the drive from its data sheet, in the state after random writes without end. It programs pages of twenty dies at once out of its write buffer, so its cleaning is spread."),
            Row::measured("the same by the data sheet, 20 a second: mean", "ms", sheet_low.mean_ms()).paper(0.3)
                .why("Its write buffer takes the page and it cleans at rest."),
            Row::fitted("with buffers: mean", "ms", with.mean_ms(), fits::INTEL_INSERT).paper(0.006),
            Row::measured("without buffers over with buffers", "", high.mean_ms() / with.mean_ms()).paper(4.8 / 0.006).why("The quotient of two rows above."),
        ];
        let series =
            [("without buffers", &high), ("without, 20 a second", &low), ("with buffers", &with)];
        Ok(Outcome {
            setup: vec![
                "Without buffers each insert reads the page of its bucket and writes it back; buckets take the share of \
                 the drive that 32 GiB take of 80 GB. The drive begins as after random writes without end."
                    .into(),
                format!("{} inserts, of which the second half counts.", operations(scale)),
            ],
            tables: vec![Table { title: "Inserts on the Intel SSD".into(), rows }],
            charts: vec![Chart {
                title: "Inserts: share that takes no longer".into(),
                x: "latency, ms",
                y: "share",
                x_scaling: Scaling::Logarithmic,
                y_scaling: Scaling::Linear,
                series: series.map(|(name, all)| Series::ours(name, all.distribution())).into(),
            }],
        })
    }
}

fn inserts(drive: Drive, pause_ns: u64, filled: Filled, scale: Scale) -> Result<Latencies> {
    let table = Direct { drive_share: share_of(INTEL_BYTES), seed: scale.seed() };
    let player = Player { pause_ns, ..player() };
    let mut model = drive.model(scale, filled, 0)?;
    Ok(table.play(player, &mut *model, operations(scale), Lookups::Never).inserts)
}

fn buffered(scale: Scale) -> Result<Latencies> {
    let workload = Workload::fraction(0);
    let run = workload.run(&Setup::paper(scale), scale.of(OPERATIONS))?;
    let mut model = aged(Drive::INTEL, scale, run.taped.tape())?;
    Ok(player().play(run.taped.tape(), &mut *model).of(Act::Insert, run.from))
}
