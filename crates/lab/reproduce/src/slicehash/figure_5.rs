//! Figure 5: lookups, inserts and both, SliceHash and BufferHash with threads, and SILT as printed.

use super::lab::{Mix, Setup};
use super::throughput::Part;
use super::workers::{Pace, Worked, WorkerModel};
use crate::bufferhash::lab::Filters;
use crate::{Chart, Drive, Experiment, Outcome, Result, Row, Scale, Scaling, Series, Table, fits};

/// See the [module](self).
pub struct Figure5;

const UNIT: &str = "operations/s";

/// Rows that all three workloads have.
const SLICE_HASH: &str = "SliceHash";
const BUFFER_HASH: &str = "BufferHash, 32 threads";
const SILT: &str = "SILT";

/// The reason why inserts are faster than the paper's.
pub const FULL_BANDWIDTH: &str = "Each 7 K inserts read a slicetable of 4 MiB and write it. This table takes a \
     small part of the drive, so that hardly a live page is moved. On a full one the drive cleans, \
     and the paper's rate is between the two: see the experiment full-drive.";

/// The paper's numbers of a workload.
struct Printed {
    slice_hash: f64,
    buffer_hash: f64,
    silt: f64,
}

impl Experiment for Figure5 {
    fn name(&self) -> &'static str {
        "figure-5"
    }

    fn title(&self) -> &'static str {
        "SliceHash, BufferHash with threads, and SILT"
    }

    fn reference(&self) -> &'static str {
        "section 7.2, Figure 5"
    }

    fn run(&self, scale: Scale) -> Result<Outcome> {
        // Inserts last: a full BufferHash evicts the keys that are looked up.
        let mixes = [Mix::Lookups, Mix::Both, Mix::Inserts];
        let slice = Part::of(Setup::paper(scale), mixes)?;
        let buffer = Part::of_buffer_hash(Filters::Bloom, mixes, scale)?;
        let lookups = lookups(&slice[0], &buffer[0], scale)?;
        let mixed = mixed(&slice[1], &buffer[1], scale)?;
        let inserts = inserts(&slice[2], &buffer[2], scale)?;
        let charts = vec![chart([(0.0, &lookups), (50.0, &mixed), (100.0, &inserts)])];
        Ok(Outcome { setup: setup(), tables: vec![lookups, inserts, mixed], charts })
    }
}

fn setup() -> Vec<String> {
    vec![
        "SliceHash: buffers of 128 KiB, slicetables of 4 MiB with 32 of them. Lookups are \
         started in the order of its schedule, 32 at a time; a merge goes on meanwhile, and \
         while one more buffer waits nothing is taken up. BufferHash: 16 incarnations, 4096 \
         entries in a buffer, Bloom filters; 32 threads, each of which takes the next operation, \
         waits for its reads, and writes the buffer that it fills."
            .into(),
        "Looked up are keys that are on flash. A filled buffer more or less changes neither what \
         a lookup reads nor what a merge rewrites, so SliceHash has two buffers' keys in each \
         partition."
            .into(),
        "The processor's times are from the paper's Table 4 at the rates of Figure 5: of eight \
         cores 18.5 us for a lookup of SliceHash and 5.1 us for an insert, 25.3 and 6.7 us for \
         BufferHash."
            .into(),
        "No two threads ever wait for the same table here: among the paper's 65,536 they hardly \
         do."
        .into(),
    ]
}

/// Charts the rates of all three workloads, by the share of inserts.
fn chart(tables: [(f64, &Table); 3]) -> Chart {
    let points = |what: &str, number: fn(&Row) -> Option<f64>| {
        let row = |table: &Table| table.rows.iter().find(|row| row.what == what).and_then(number);
        tables.iter().filter_map(|(share, table)| Some((*share, row(table)?))).collect::<Vec<_>>()
    };
    let ours = |what: &str| Series::ours(what, points(what, |row| row.ours));
    let paper = |what: &str| {
        let printed = points(what, |row| row.paper.map(|printed| printed.value));
        Series::paper(format!("{what}, paper"), printed)
    };
    Chart {
        title: "Figure 5: rates by the share of inserts".into(),
        x: "inserts, % of the operations",
        y: UNIT,
        x_scaling: Scaling::Linear,
        y_scaling: Scaling::Logarithmic,
        series: vec![
            ours(SLICE_HASH),
            paper(SLICE_HASH),
            ours(BUFFER_HASH),
            paper(BUFFER_HASH),
            paper(SILT),
        ],
    }
}

fn compare(what: &str, worked: Worked, paper: f64) -> Row {
    Row::measured(what, UNIT, worked.operations_per_s).paper(paper)
}

fn fitted(what: &str, worked: Worked, fitted_to: &'static str) -> Row {
    Row::fitted(what, UNIT, worked.operations_per_s, fitted_to)
}

fn ratio_row(slice_hash: Worked, buffer_hash: Worked, paper: &Printed) -> Row {
    let ours = slice_hash.operations_per_s / buffer_hash.operations_per_s;
    Row::measured("SliceHash over BufferHash", "", ours).paper(paper.slice_hash / paper.buffer_hash)
}

fn lookups(slice: &Part, buffer: &Part, scale: Scale) -> Result<Table> {
    let paper = Printed { slice_hash: 69_000.0, buffer_hash: 57_000.0, silt: 62_000.0 };
    let aware = slice.work_aware(scale)?;
    let on = |part: &Part, model| part.work(model, Drive::CRUCIAL, scale);
    let threads = on(buffer, WorkerModel::buffer_hash())?;
    let waiting = on(buffer, WorkerModel { pace: Pace::Batches, ..WorkerModel::buffer_hash() })?;
    let unaware = on(slice, WorkerModel::in_order_of_arrival())?;
    let sheet = slice.work(WorkerModel::in_order_of_arrival(), Drive::CRUCIAL_SHEET, scale)?;
    let mut in_batches = ratio_row(aware, waiting, &paper);
    in_batches.what.push_str(", whose threads wait for each other");
    let rows = vec![
        fitted(SLICE_HASH, aware, fits::CRUCIAL_READS).paper(paper.slice_hash),
        compare(BUFFER_HASH, threads, paper.buffer_hash),
        compare("BufferHash, 32 threads that wait for each other", waiting, paper.buffer_hash),
        Row::stated(SILT, UNIT, paper.silt),
        ratio_row(aware, threads, &paper).why(format!(
            "Threads that go on at once keep {:.1} reads in the drive, where the schedule keeps \
             {:.1}; its eight buses are busy with either. The paper's 57 K are between such \
             threads and those that wait for each other.",
            threads.in_flight, aware.in_flight
        )),
        in_batches,
        compare("SliceHash without knowledge of channels, 32 threads", unaware, 57_000.0)
            .why("The figure of 7.3."),
        Row::measured("SliceHash: pages read for each lookup", "", slice.reads),
        Row::measured("BufferHash: pages read for each lookup", "", buffer.reads)
            .why("Some keys are still in a buffer, and some filters err."),
        fitted("SliceHash, drive by its data sheet", sheet, fits::CRUCIAL_SHEET_READS)
            .why("40 000 IOPS are what its makers promise; this drive's controller is the limit."),
    ];
    Ok(Table { title: "Figure 5a: lookups".into(), rows })
}

fn inserts(slice: &Part, buffer: &Part, scale: Scale) -> Result<Table> {
    let paper = Printed { slice_hash: 125_000.0, buffer_hash: 1_100_000.0, silt: 254_000.0 };
    let (slice_rate, buffer_rate) =
        (slice.work_aware(scale)?, buffer.work(WorkerModel::buffer_hash(), Drive::CRUCIAL, scale)?);
    let rows = vec![
        compare(SLICE_HASH, slice_rate, paper.slice_hash).why(FULL_BANDWIDTH),
        Row::measured("SliceHash: inserts for each merge", "", slice.inserts_per_flush).paper(7_000.0),
        fitted(BUFFER_HASH, buffer_rate, fits::BUFFERHASH_INSERTS)
            .paper(paper.buffer_hash)
            .why("Eight cores are the limit, as the paper's 92 % of them say: 1.19 M are eight cores over 6.7 us."),
        Row::stated(SILT, UNIT, paper.silt),
        Row::stated("SILT in as much RAM as SliceHash", UNIT, 46_000.0),
    ];
    Ok(Table { title: "Figure 5b: inserts".into(), rows })
}

fn mixed(slice: &Part, buffer: &Part, scale: Scale) -> Result<Table> {
    let paper = Printed { slice_hash: 105_000.0, buffer_hash: 121_000.0, silt: 92_000.0 };
    let slice = slice.work_aware(scale)?;
    let buffer = buffer.work(WorkerModel::buffer_hash(), Drive::CRUCIAL, scale)?;
    let rows = vec![
        compare(SLICE_HASH, slice, paper.slice_hash),
        compare(BUFFER_HASH, buffer, paper.buffer_hash),
        Row::stated(SILT, UNIT, paper.silt),
        ratio_row(slice, buffer, &paper),
    ];
    Ok(Table { title: "Figure 5c: 50 % lookups, 50 % inserts".into(), rows })
}
