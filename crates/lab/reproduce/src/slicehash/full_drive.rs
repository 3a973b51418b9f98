//! Figure 5b and Table 5 on a drive that the table takes entirely, as the paper's does, so that the drive
//! cleans.

use nandex::raw::store::schedule::Channels;
use nandex_sim::{Model, Ssd};

use super::full::{FullTable, MergeOrder, in_pieces};
use super::incarnations::PAPER as TABLE_5;
use super::lab::{BUFFER_PAGES, INCARNATIONS, Mix, Setup};
use super::throughput::Part;
use super::workers::{Span, WorkerModel};
use crate::bufferhash::lab::Filters;
use crate::full::{PROGRAMMED, Rest, Ring, by_scale};
use crate::tape::Tape;
use crate::{Drive, Experiment, Outcome, Result, Row, Scale, Table, fits};

/// See the [module](self).
pub struct FullDrive;

const UNIT: &str = "operations/s";
const TOGETHER: &str = "buffers that began together";
/// The rounds of merges before the measurement, and the merges that are measured.
const LONG: Effort = Effort { rounds: INCARNATIONS, merges: 256 };
/// The effort from a scale of 4096 on.
const SHORT: Effort = Effort { rounds: 4, merges: 64 };
/// The paper's inserts a second in Figure 5b.
const PAPER_INSERTS: f64 = 125_000.0;
const PAPER_BUFFER_HASH: f64 = 1_100_000.0;
/// The rounds of BufferHash's ring before the measurement, in either effort: each equals the last one.
const LAPS: u32 = 2;

/// The amount of use of a drive.
#[derive(Clone, Copy)]
struct Effort {
    rounds: u32,
    merges: u64,
}

impl Effort {
    fn of(scale: Scale) -> Self {
        by_scale(scale, LONG, SHORT)
    }
}

/// A small table whose tape is spread over a drive.
struct Small {
    incarnations: u32,
    effort: Effort,
    inserts: Part,
    both: Part,
}

/// A full table on its drive.
struct OnDrive {
    table: FullTable,
    drive: [Box<dyn Model>; 1],
    /// The pages programmed for each written one, in the last round before.
    programmed: f64,
    merges: u64,
}

impl Experiment for FullDrive {
    fn name(&self) -> &'static str {
        "full-drive"
    }

    fn title(&self) -> &'static str {
        "Inserts on a full drive"
    }

    fn reference(&self) -> &'static str {
        "section 7.2, Figure 5b, and section 7.4, Table 5"
    }

    fn run(&self, scale: Scale) -> Result<Outcome> {
        let ours = ours()?;
        let mut table_5 = Vec::new();
        let mut figure_5 = Vec::new();
        for (incarnations, [inserts, mixed, _]) in TABLE_5 {
            let small = Small::new(incarnations, scale)?;
            let mut on = OnDrive::new(&small, (MergeOrder::Together, 1.0), scale)?;
            let rates = [&small.inserts, &small.both].map(|part| on.rate(&part.tape, ours));
            let name = |what: &str| format!("{incarnations} incarnations: {what}");
            table_5.extend([
                Row::measured(name("inserts"), UNIT, rates[0]).paper(inserts),
                Row::measured(name("50/50"), UNIT, rates[1]).paper(mixed),
                Row::measured(name(PROGRAMMED), "", on.programmed),
            ]);
            if incarnations == INCARNATIONS {
                figure_5 = figure_5b(&small, (on, rates[0]), scale)?;
            }
        }
        Ok(Outcome {
            setup: setup(Effort::of(scale)),
            tables: vec![
                Table { title: "Figure 5b on a full drive".into(), rows: figure_5 },
                Table { title: "Table 5 on a full drive".into(), rows: table_5 },
                Table { title: "BufferHash, Figure 5b".into(), rows: buffer_hash(scale)? },
            ],
            charts: Vec::new(),
        })
    }
}

fn setup(effort: Effort) -> Vec<String> {
    vec![
        format!(
            "The drive has 64 blocks in each plane, so that planes and blocks keep their sizes, and \
             slicetables take all of it except six spare places, or a share of it, where the rest \
             was never written. Their merges are those of the small table of Figure 5, one after \
             another in other places. Every slicetable was written once in order, and then every \
             buffer was merged {} times in no time; {} merges are measured.",
            effort.rounds, effort.merges
        ),
        "Which buffer is full next decides what cleaning costs. Together: all buffers began empty at \
         the same time and keys are random, as the paper has it. Staggered: they began at \
         different fills, as ours do. In any order: each merge is of any buffer, which no table \
         does."
            .into(),
        "BufferHash's ring takes all of the drive, as in the paper, or 40 % of a drive that was \
         written once. It is written in order, one incarnation after another."
            .into(),
    ]
}

/// Returns the workers of Figure 5.
fn ours() -> Result<WorkerModel> {
    let channels = Channels::of(&Drive::CRUCIAL.geometry()?);
    Ok(WorkerModel { span: Span::Whole, ..WorkerModel::channel_aware(channels, 1) })
}

impl Small {
    fn new(incarnations: u32, scale: Scale) -> Result<Self> {
        let setup = Setup { incarnations, ..Setup::paper(scale) };
        let [inserts, both] = Part::of(setup, [Mix::Inserts, Mix::Both])?;
        Ok(Self { incarnations, effort: Effort::of(scale), inserts, both })
    }
}

impl OnDrive {
    /// Creates a table that takes a share of the drive; the rest was never written.
    fn new(small: &Small, (order, share): (MergeOrder, f64), scale: Scale) -> Result<Self> {
        let mut drive: Ssd = Drive::CRUCIAL.ssd()?;
        let pages = u64::from(small.incarnations * BUFFER_PAGES);
        let inserts = small.inserts.inserts_per_flush;
        let taken = (drive.page_count() as f64 * share) as u64;
        let mut table = FullTable::new(taken, pages, inserts, order, scale.seed());
        let programmed = table.age(&mut drive, small.effort.rounds);
        Ok(Self { table, drive: [Box::new(drive)], programmed, merges: small.effort.merges })
    }

    /// Returns the operations a second of the small table's operations.
    fn rate(&mut self, small: &Tape, model: WorkerModel) -> f64 {
        let tape = self.table.tape(small, self.merges);
        model.work(&tape, &mut self.drive).operations_per_s
    }
}

const FULL: &str = "Buffers that began together are full in another order each time, so a block of the drive has \
     slicetables that are overwritten at different times, and cleaning moves most of it.";
const SHARE: &str = "The paper's rate is that of a table on 85 to 91 % of this drive, more if its buffers were merged \
     more often before. Its 32,768 slicetables of 4 MiB are 137 GB, which its drive of 128 GB does not have.";
const STAGGERED: &str = "Slicetables are written in nearly the same order each time, so all of a block are overwritten \
     before it is cleaned. Cleaning costs nothing then, however full the drive is.";
const ONE_BY_ONE: &str = "Another explanation of the paper's rate: its table reads and writes a block, and then the \
     next. That costs little.";

/// Returns the rows of Figure 5b. Given is the table whose buffers began together, and its rate.
fn figure_5b(
    small: &Small,
    (mut together, rate): (OnDrive, f64),
    scale: Scale,
) -> Result<Vec<Row>> {
    let ours = ours()?;
    let blocks = in_pieces(&small.inserts.tape, BUFFER_PAGES);
    let one_by_one = together.rate(&blocks, WorkerModel { chunks: 1, ..ours });
    let mut rows = Vec::new();
    let mut add = |name: &str, rate, programmed, why: &str| {
        let row = Row::measured(format!("SliceHash, {name}"), UNIT, rate);
        rows.push(row.paper(PAPER_INSERTS).why(why));
        rows.push(Row::measured(format!("{name}: {PROGRAMMED}"), "", programmed));
    };
    add(TOGETHER, rate, together.programmed, FULL);
    for (order, share, name, why) in [
        (MergeOrder::Together, 0.95, "the same on 95 % of the drive", ""),
        (MergeOrder::Together, 0.9, "the same on 90 % of the drive", SHARE),
        (MergeOrder::Together, 0.8, "the same on 80 % of the drive", SHARE),
        (MergeOrder::Staggered, 1.0, "staggered buffers", STAGGERED),
        (MergeOrder::AnyOrder, 1.0, "buffers in any order", ""),
    ] {
        let mut on = OnDrive::new(small, (order, share), scale)?;
        add(name, on.rate(&small.inserts.tape, ours), on.programmed, why);
    }
    let empty = small.inserts.work_aware(scale)?.operations_per_s;
    let others = [
        ("buffers that began together, a block of 128 KiB after another", one_by_one, ONE_BY_ONE),
        ("on a small part of the drive, as in Figure 5", empty, ""),
    ];
    rows.extend(others.map(|(name, rate, why)| {
        let row = Row::measured(format!("SliceHash, {name}"), UNIT, rate);
        row.paper(PAPER_INSERTS).why(why)
    }));
    Ok(rows)
}

const CORES: &str = "Its ring is written in order, so cleaning moves hardly a page, and eight cores are the limit, as \
     on a small part of the drive.";

/// Returns the rows of BufferHash, whose flash is a ring: on all of the drive, as in the paper, and on less.
fn buffer_hash(scale: Scale) -> Result<Vec<Row>> {
    let [small] = Part::of_buffer_hash(Filters::Bloom, [Mix::Inserts], scale)?;
    let mut rows = Vec::new();
    for (part, name, why) in [
        ((100, Rest::Unwritten), "all of the drive", CORES),
        ((40, Rest::Written), "40 % of the drive, the rest full of other data", ""),
    ] {
        let mut drive = Drive::CRUCIAL.ssd()?;
        let (mut ring, programmed) = Ring::aged(&mut drive, part, &small.tape, LAPS);
        let tape = ring.tape(&small.tape, Effort::of(scale).merges);
        let mut drive: [Box<dyn Model>; 1] = [Box::new(drive)];
        let rate = WorkerModel::buffer_hash().work(&tape, &mut drive).operations_per_s;
        let row = Row::fitted(format!("BufferHash, {name}"), UNIT, rate, fits::BUFFERHASH_INSERTS);
        rows.push(row.paper(PAPER_BUFFER_HASH).why(why));
        rows.push(Row::measured(format!("{name}: {PROGRAMMED}"), "", programmed));
    }
    Ok(rows)
}
