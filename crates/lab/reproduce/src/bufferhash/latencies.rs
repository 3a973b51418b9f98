//! Figure 6: the latencies of lookups and inserts on the Intel SSD, the Transcend SSD and a disk.

use super::lab::{Setup, aged, incarnations_only};
use super::player;
use super::workload::{Measured, Workload};
use crate::play::Played;
use crate::tape::{Act, Tape};
use crate::{
    Chart, Drive, Experiment, Latencies, Outcome, Result, Row, Scale, Scaling, Series, Table, fits,
};

/// See the [module](self).
pub struct Figure6;

/// Lookups and inserts that are measured.
const OPERATIONS: u64 = 1 << 28;

const DRIVES: [Drive; 4] = [Drive::INTEL, Drive::TRANSCEND, Drive::DISK, Drive::TRANSCEND_SHEET];

/// One drive's latencies.
struct OnDrive {
    lookups: Latencies,
    inserts: Latencies,
    /// The inserts if only incarnations are written, as in the paper.
    bare_inserts: Latencies,
    /// The longest insert of all, including those that filled the table: few flushes wait for an erase.
    longest_ms: f64,
    /// The longest insert if only incarnations are written.
    bare_longest_ms: f64,
}

impl Experiment for Figure6 {
    fn name(&self) -> &'static str {
        "figure-6"
    }

    fn title(&self) -> &'static str {
        "Latencies of lookups and inserts on different media"
    }

    fn reference(&self) -> &'static str {
        "sections 7.2.1 and 7.3.2, Figure 6"
    }

    fn run(&self, scale: Scale) -> Result<Outcome> {
        let operations = scale.of(OPERATIONS);
        let run = Workload::lookup_then_insert(0.4).run(&Setup::paper(scale), operations)?;
        let on = DRIVES.map(|drive| on_drive(&run, drive, scale));
        let [intel, transcend, disk, sheet] = on;
        let (intel, transcend, disk, sheet) = (intel?, transcend?, disk?, sheet?);
        let named = [("Intel SSD", &intel), ("Transcend SSD", &transcend), ("Disk", &disk)];
        Ok(Outcome {
            setup: vec![
                format!(
                    "{} keys, each looked up and then inserted, one after another; {:.1} % are found. The processor \
                     takes {} us for each operation, which is assumed.",
                    operations / 2,
                    100.0 * run.counts.success_rate(),
                    super::CPU_NS as f64 / 1000.0
                ),
                "The table is a volume that survives a power cut: it syncs what it flushes and writes checkpoints, \
                 which the paper's does not. Rows of incarnations alone leave these writes \
                 out, to compare like \
                 with like; curves have them. The longest inserts are those of the whole run, \
                 its filling included."
                    .into(),
            ],
            tables: vec![
                lookups(&intel, &transcend, &disk),
                inserts(&intel, &transcend, &disk, &sheet),
            ],
            charts: vec![
                chart("Lookups", named.map(|(name, on)| (name, &on.lookups))),
                chart("Inserts", named.map(|(name, on)| (name, &on.inserts))),
            ],
        })
    }
}

fn on_drive(run: &Measured, drive: Drive, scale: Scale) -> Result<OnDrive> {
    let play = |tape: &Tape| -> Result<Played> {
        Ok(player().play(tape, &mut *aged(drive, scale, run.taped.tape())?))
    };
    let whole = play(run.taped.tape())?;
    let bare = play(&incarnations_only(run.taped.tape()))?;
    Ok(OnDrive {
        lookups: whole.of(Act::Lookup, run.from),
        inserts: whole.of(Act::Insert, run.from),
        bare_inserts: bare.of(Act::Insert, run.from),
        longest_ms: whole.of(Act::Insert, 0).max_ms(),
        bare_longest_ms: bare.of(Act::Insert, 0).max_ms(),
    })
}

fn lookups(intel: &OnDrive, transcend: &OnDrive, disk: &OnDrive) -> Table {
    let rows = vec![
        Row::measured("Intel: mean", "ms", intel.lookups.mean_ms()).paper(0.06),
        Row::measured("Intel: share within 0.02 ms", "", intel.lookups.share_within_ms(0.02)).paper(0.62)
            .why("What RAM answers: all that is not there, and what is still in a buffer."),
        Row::measured("Intel: 99.8 % take at most", "ms", intel.lookups.quantile_ms(0.998)).paper(0.176)
            .why("A few lookups in a thousand read twice, or wait for an earlier write."),
        Row::measured("Transcend: share within 0.02 ms", "", transcend.lookups.share_within_ms(0.02)).paper(0.62),
        Row::fitted("Transcend: 90 % take at most", "ms", transcend.lookups.quantile_ms(0.9), fits::TRANSCEND_READ).paper(0.6)
            .why("The drive's read is made for the paper's number; the processor's time comes on top."),
        Row::measured("Transcend: the longest", "ms", transcend.lookups.max_ms()).paper(1.0)
            .why("Two reads; and now and then a read right after a flush waits up to 3.5 ms for the erase of a block that the write left behind."),
        Row::measured("Disk: the shortest that reads", "ms", disk.lookups.least_above_ms(0.02)).paper(0.1)
            .why("The controller's time and a page that comes by, or one that was read ahead."),
        Row::measured("Disk: 99 % take at most", "ms", disk.lookups.quantile_ms(0.99)).paper(12.0)
            .why("A seek over the two fifths of the disk that 32 GiB take, and up to a turn of 8.3 ms. By the drive's specification that is more than the paper's 12 ms, as if its table had less of the disk."),
        Row::measured("Disk: mean", "ms", disk.lookups.mean_ms()),
    ];
    Table { title: "Lookups".into(), rows }
}

fn inserts(intel: &OnDrive, transcend: &OnDrive, disk: &OnDrive, sheet: &OnDrive) -> Table {
    let every = "The drive is made so that each buffer takes the paper's longest, 30 ms; the paper's mean of 0.007 ms means some 6 ms for most.";
    let rows = vec![
        Row::fitted("Intel: mean", "ms", intel.inserts.mean_ms(), fits::INTEL_INSERT).paper(0.006),
        Row::fitted("Intel: mean, incarnations alone", "ms", intel.bare_inserts.mean_ms(), fits::INTEL_INSERT).paper(0.006),
        Row::fitted("Intel: the longest", "ms", intel.longest_ms, fits::INTEL_FLUSH).paper(2.72).why("Checkpoints and syncs on top."),
        Row::fitted("Intel: the longest, incarnations alone", "ms", intel.bare_longest_ms, fits::INTEL_FLUSH).paper(2.72)
            .why("A flush that waits for an erase. A segment is 35 pages, 3 of them the filter, where the paper writes 32; over twenty dies that is the same time."),
        Row::measured("Transcend: mean", "ms", transcend.inserts.mean_ms()).paper(0.007).why(every),
        Row::measured("Transcend: mean, incarnations alone", "ms", transcend.bare_inserts.mean_ms()).paper(0.007).why(every),
        Row::measured("Transcend by its parts: mean, incarnations alone", "ms", sheet.bare_inserts.mean_ms()).paper(0.007)
            .why("A model of the drive from its parts, which has the usual flush and not the longest."),
        Row::fitted("Transcend: the longest", "ms", transcend.longest_ms, fits::TRANSCEND_FLUSH).paper(30.0)
            .why("A drive that maps blocks copies one for each small write out of order: superblock and checkpoint, which the paper does not write."),
        Row::fitted("Transcend: the longest, incarnations alone", "ms", transcend.bare_longest_ms, fits::TRANSCEND_FLUSH).paper(30.0)
            .why("29 ms where a flush stays within a block of 64 pages, 32.6 where it ends one and waits for an erase; once a lap, where the ring begins again inside a block, that block is copied."),
        Row::measured("Disk: mean", "ms", disk.inserts.mean_ms()),
        Row::measured("Disk: the longest", "ms", disk.longest_ms).paper(12.0)
            .why("A flush with a checkpoint seeks several times."),
        Row::measured("Disk: the longest, incarnations alone", "ms", disk.bare_longest_ms).paper(12.0).why("A seek, up to a turn of 8.3 ms, and 2.3 ms for the pages."),
    ];
    Table { title: "Inserts".into(), rows }
}

fn chart(what: &str, on: [(&str, &Latencies); 3]) -> Chart {
    let series =
        on.map(|(name, all)| Series::ours(format!("BufferHash, {name}"), all.distribution()));
    let mut series = Vec::from(series);
    series.extend(match what {
        "Lookups" => vec![
            Series::paper("paper, Intel", vec![(0.02, 0.62), (0.176, 0.998)]),
            Series::paper("paper, Transcend", vec![(0.02, 0.62), (0.6, 0.9), (1.0, 1.0)]),
        ],
        _ => vec![Series::paper("paper, the longest", vec![(2.72, 1.0), (12.0, 1.0), (30.0, 1.0)])],
    });
    Chart {
        title: format!("{what}: share that takes no longer"),
        x: "latency, ms",
        y: "share",
        x_scaling: Scaling::Logarithmic,
        y_scaling: Scaling::Linear,
        series,
    }
}
