//! Figure 2: the gain of parallel reads and writes and of large reads on this drive.

use std::ops::RangeInclusive;

use nandex::raw::store::schedule::Channels;
use nandex_sim::RequestKind;
use nandex_sim::workload::SplitMix64;

use super::orders::Order;
use super::workers::{THREADS, WorkerModel};
use crate::tape::{Act, Step, Tape};
use crate::{
    Chart, Drive, Experiment, Filled, Outcome, Result, Row, Scale, Scaling, Series, Table, fits,
};

/// See the [module](self).
pub struct Figure2;

/// The numbers of threads that issue requests: the figure has a curve for them, from one to the depth of the
/// drive's queue.
const ALL_THREADS: RangeInclusive<usize> = 1..=THREADS;
/// The numbers of threads that have rows.
const ROWS: [usize; 6] = [1, 2, 4, 8, 16, THREADS];
/// Reads that are measured for each point.
const READS: usize = 4_000;
/// The number of pages that the reads are spread over; the paper has the drive's 128 GB.
const PAGES: u64 = 1 << 18;
/// Pages of a write: a block of 128 KiB.
const BLOCK_PAGES: u32 = 32;
/// Blocks written for each point: 128 MiB, much more than the drive's buffer.
const BLOCKS: u64 = 1_000;
/// Pages of a read in the third part.
const SIZES: [u32; 8] = [1, 2, 4, 8, 16, 32, 64, 128];
/// The paper's reads a second with 32 threads (7.2), and the factors of the other orders (4.2).
const PAPER_BEST: f64 = 69_000.0;
const PAPER_OVER_WORST: f64 = 5.2;
const PAPER_OVER_RANDOM: f64 = 1.5;

impl Experiment for Figure2 {
    fn name(&self) -> &'static str {
        "figure-2"
    }

    fn title(&self) -> &'static str {
        "Concurrent reads and writes"
    }

    fn reference(&self) -> &'static str {
        "section 4.2, Figure 2"
    }

    fn run(&self, scale: Scale) -> Result<Outcome> {
        let curve = |drive, order| reads_by_threads(drive, order, scale);
        let best = curve(Drive::CRUCIAL, Order::Ordered(1))?;
        let random = curve(Drive::CRUCIAL, Order::Random)?;
        let worst = curve(Drive::CRUCIAL, Order::Same)?;
        let sheet = curve(Drive::CRUCIAL_SHEET, Order::Ordered(1))?;
        let at_most = |points: &[(f64, f64)]| points.last().map_or(0.0, |point| point.1);
        let rows = vec![
            Row::fitted("reads a second, best", "", at_most(&best), fits::CRUCIAL_READS)
                .paper(PAPER_BEST),
            Row::measured("reads a second, random", "", at_most(&random)),
            Row::fitted("reads a second, worst", "", at_most(&worst), fits::CRUCIAL_WORST),
            Row::fitted(
                "best over worst",
                "",
                at_most(&best) / at_most(&worst),
                fits::CRUCIAL_WORST,
            )
            .paper(PAPER_OVER_WORST),
            Row::measured("best over random", "", at_most(&best) / at_most(&random))
                .paper_at_most(PAPER_OVER_RANDOM)
                .why(
                    "Threads that take the next read as soon as theirs ends keep 32 in the \
                     drive, and its eight buses find work among them. Figure 6 has batches, \
                     where all wait for the slowest.",
                ),
            Row::fitted(
                "reads a second, best, drive by its data sheet",
                "",
                at_most(&sheet),
                fits::CRUCIAL_SHEET_READS,
            )
            .why("This drive's controller takes 25 us for each request, as 40 000 IOPS say."),
        ];
        let writes = bandwidth_by_threads(scale)?;
        let sizes = bandwidth_by_size(scale)?;
        let depths = by_depth(&best, &random, &worst);
        Ok(Outcome {
            setup: vec![
                "32 channels, chunks of 8 KiB, written once in order. Each thread takes the next \
                 read when its last one has ended; the processor takes no time."
                    .into(),
                "Best: each read goes to the next channel. Worst: all go to one. Random: to any."
                    .into(),
            ],
            tables: vec![
                Table { title: "Reads of 4 KiB with 32 threads".into(), rows },
                Table { title: "Reads of 4 KiB by threads".into(), rows: depths },
                Table { title: "Bandwidth".into(), rows: bandwidths(&writes, &sizes) },
            ],
            charts: charts([best, random, worst], writes, sizes),
        })
    }
}

/// Returns the rows of fewer threads. The paper prints numbers of 32 only.
fn by_depth(best: &[(f64, f64)], random: &[(f64, f64)], worst: &[(f64, f64)]) -> Vec<Row> {
    let mut rows = Vec::new();
    for threads in ROWS.into_iter().filter(|threads| *threads < THREADS) {
        let at = |points: &[(f64, f64)]| points.get(threads - 1).map_or(0.0, |point| point.1);
        let [best, random, worst] = [at(best), at(random), at(worst)];
        let row = |what: &str, value| {
            let plural = if threads == 1 { "thread" } else { "threads" };
            Row::measured(format!("{threads} {plural}: {what}"), "", value)
        };
        rows.extend([
            row("reads a second, best", best),
            row("reads a second, random", random),
            worst_row(threads, row("reads a second, worst", worst)),
            row("best over random", best / random),
            row("best over worst", best / worst),
        ]);
    }
    rows
}

/// Returns a row of the worst order: as soon as two reads wait on a channel it is as busy as with 32, for
/// which the drive was fitted.
fn worst_row(threads: usize, row: Row) -> Row {
    match row.ours {
        Some(rate) if threads > 1 => Row::fitted(row.what, "", rate, fits::CRUCIAL_WORST),
        _ => row,
    }
}

fn bandwidths(writes: &[(f64, f64)], sizes: &[(f64, f64)]) -> Vec<Row> {
    let depths = ROWS.iter().filter_map(|threads| writes.get(threads - 1));
    let writes = depths.map(|(threads, rate)| {
        let what = format!("writes of 128 KiB, threads: {threads}");
        Row::fitted(what, "MB/s", *rate, fits::CRUCIAL_WRITES)
    });
    let reads = sizes.iter().map(|(kib, rate)| {
        Row::measured(format!("one thread's random reads of {kib} KiB"), "MB/s", *rate)
    });
    writes.chain(reads).collect()
}

fn charts(
    reads: [Vec<(f64, f64)>; 3],
    writes: Vec<(f64, f64)>,
    sizes: Vec<(f64, f64)>,
) -> Vec<Chart> {
    let [best, random, worst] = reads;
    let chart = |title: &str, x, y, series| Chart {
        title: title.into(),
        x,
        y,
        x_scaling: Scaling::Logarithmic,
        y_scaling: Scaling::Linear,
        series,
    };
    let paper = vec![(THREADS as f64, PAPER_BEST)];
    vec![
        chart(
            "Figure 2a: reads of 4 KiB",
            "threads",
            "reads a second",
            vec![
                Series::ours("best", best),
                Series::ours("random", random),
                Series::ours("worst", worst),
                Series::paper("paper, best", paper),
            ],
        ),
        chart(
            "Figure 2b: writes of 128 KiB",
            "threads",
            "MB/s",
            vec![Series::ours("writes", writes)],
        ),
        chart("Figure 2c: reads of one thread", "KiB", "MB/s", vec![Series::ours("reads", sizes)]),
    ]
}

/// Returns threads that only wait for the drive.
fn threads(count: usize) -> WorkerModel {
    WorkerModel {
        window: count,
        depth: count,
        merges: count,
        lookup_cpu_ns: 0,
        insert_cpu_ns: 0,
        spare_buffers: None,
        ..WorkerModel::in_order_of_arrival()
    }
}

fn work(tape: &Tape, count: usize, drive: Drive, scale: Scale) -> Result<f64> {
    let mut drives = [drive.model(scale, Filled::Once, PAGES)?];
    Ok(threads(count).work(tape, &mut drives).operations_per_s)
}

fn reads_by_threads(drive: Drive, order: Order, scale: Scale) -> Result<Vec<(f64, f64)>> {
    let channels = Channels::of(&drive.geometry()?);
    let pages: Vec<u64> = (0..PAGES).collect();
    let tape = order.tape(&pages, channels, READS, scale.seed());
    let point = |count| Ok((count as f64, work(&tape, count, drive, scale)?));
    ALL_THREADS.map(point).collect()
}

/// Returns the megabytes a second of requests of a step's length, anywhere.
fn megabytes_per_s(step: Step, act: Act, count: (u64, usize), scale: Scale) -> Result<f64> {
    let (requests, threads) = count;
    let mut rng = SplitMix64::stream(scale.seed(), 5);
    let mut tape = Tape::default();
    for _ in 0..requests {
        let page = rng.below(PAGES / u64::from(step.pages)) * u64::from(step.pages);
        tape.push(act, &[Step { page, ..step }]);
    }
    let rate = work(&tape, threads, Drive::CRUCIAL, scale)?;
    Ok(rate * f64::from(step.pages) * 4096.0 / 1e6)
}

fn bandwidth_by_threads(scale: Scale) -> Result<Vec<(f64, f64)>> {
    let step = Step { kind: RequestKind::Write, page: 0, pages: BLOCK_PAGES, wave: 0 };
    let point =
        |count| Ok((count as f64, megabytes_per_s(step, Act::Insert, (BLOCKS, count), scale)?));
    ALL_THREADS.map(point).collect()
}

fn bandwidth_by_size(scale: Scale) -> Result<Vec<(f64, f64)>> {
    let point = |pages: u32| {
        let step = Step { kind: RequestKind::Read, page: 0, pages, wave: 0 };
        Ok((f64::from(4 * pages), megabytes_per_s(step, Act::Lookup, (1_000, 1), scale)?))
    };
    SIZES.into_iter().map(point).collect()
}
