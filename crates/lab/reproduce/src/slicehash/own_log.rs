//! SliceHash with its log, its checkpoints and its syncs on the drive of the table.

use nandex::SliceHash;
use nandex::Table as _;
use nandex::raw::store::schedule::Channels;
use nandex_sim::{Model, RequestKind};

use super::lab::{CHUNK_PAGES, Mix, Setup, chunks_only};
use super::throughput::{LOOKUPS, NEW_KEYS};
use super::workers::{Pace, Span, WorkerModel};
use crate::tape::{Act, Step, Tape};
use crate::{Drive, Experiment, Filled, Outcome, Result, Row, Scale, Table, Taped};

/// See the [module](self).
pub struct OwnLog;

/// The number of inserts between two syncs: less than the 100 ms that an acknowledged update is at risk by
/// default.
const SYNC_INSERTS: u64 = 10_000;
/// The number of buffers' keys in a table before the measurement.
const BUFFERS: u64 = 2;
/// The number of times that the inserts are played to age a drive.
const AGED: usize = 2;

/// The tapes of a table.
struct Tapes {
    inserts: Tape,
    lookups: Tape,
}

/// Operations a second.
struct Rates {
    inserts: f64,
    /// The lookups as a stream, and in batches of 32.
    lookups: [f64; 2],
    /// The lookups in batches of 32 without knowledge of channels.
    unaware: f64,
}

impl Experiment for OwnLog {
    fn name(&self) -> &'static str {
        "own-log"
    }

    fn title(&self) -> &'static str {
        "With log and checkpoints on the drive"
    }

    fn reference(&self) -> &'static str {
        "section 8, Tolerating failures"
    }

    fn run(&self, scale: Scale) -> Result<Outcome> {
        let setup = Setup::paper(scale);
        let bare = Tapes::of(setup.open()?, setup, None)?;
        let whole = Tapes::of(setup.open_with_log()?, setup, Some(SYNC_INSERTS))?;
        let ideal = bare.rates(chunks_only(&bare.inserts), scale)?;
        let with_log = whole.rates(whole.inserts.clone(), scale)?;
        Ok(Outcome {
            setup: set_up(),
            tables: vec![rates(&ideal, &with_log), written(&whole.inserts)],
            charts: Vec::new(),
        })
    }
}

fn set_up() -> Vec<String> {
    vec![
        format!(
            "All other experiments have the paper's conditions: nothing is written but slicetables, whose \
             chunks begin on the first channel, and the log is on a device of its own and writes \
             nothing. Here the table is a volume as it comes: its log is on the same drive and is \
             written in blocks of at most 128 KiB, and synced after every {SYNC_INSERTS} inserts; \
             superblocks and checkpoints are written too. An insert waits for its share of them, \
             and not for merges."
        ),
        "The drive gives its channels to chunks in the order in which they are written. So each page of \
         the log between two chunks of a slicetable shifts those after it, and the channel that is \
         computed from a page's place is another than the page's."
            .into(),
        "Lookups come after the inserts, on the drive that these have left behind.".into(),
    ]
}

impl Tapes {
    fn of(mut taped: Taped<SliceHash>, setup: Setup, sync_every: Option<u64>) -> Result<Self> {
        for key in 1..=setup.keys(BUFFERS) {
            taped.table.insert_u64(key, key)?;
        }
        taped.forget();
        for number in 0..setup.keys(setup.rounds()) {
            let key = (NEW_KEYS + number).to_le_bytes();
            let syncs = sync_every.is_some_and(|every| (number + 1).is_multiple_of(every));
            taped.operate(Act::Insert, |table| {
                table.insert(&key, &key)?;
                if syncs {
                    table.sync()?;
                }
                Ok(())
            })?;
        }
        let inserts = taped.take_tape();
        let keys = (setup.keys(1) / 2, NEW_KEYS);
        let lookups = super::lab::tape_of(&mut taped, Mix::Lookups, LOOKUPS, keys, setup.seed)?;
        Ok(Self { inserts, lookups })
    }

    fn rates(&self, inserts: Tape, scale: Scale) -> Result<Rates> {
        let channels = Channels::of(&Drive::CRUCIAL.geometry()?);
        let aware = WorkerModel::channel_aware(channels, 1);
        let pages = inserts.page_count().max(self.lookups.page_count());
        let mut drives: [Box<dyn Model>; 1] = [Drive::CRUCIAL.model(scale, Filled::Once, pages)?];
        let writing = WorkerModel { span: Span::Whole, log_pages_below: CHUNK_PAGES, ..aware };
        for _ in 0..AGED {
            let _ = writing.work(&inserts, &mut drives);
        }
        let inserting = writing.work(&inserts, &mut drives);
        let mut looking =
            |model: WorkerModel| model.work(&self.lookups, &mut drives).operations_per_s;
        let batches = |model| WorkerModel { pace: Pace::Batches, ..model };
        Ok(Rates {
            inserts: inserting.operations_per_s,
            lookups: [looking(aware), looking(batches(aware))],
            unaware: looking(batches(WorkerModel::in_order_of_arrival())),
        })
    }
}

fn rates(ideal: &Rates, with_log: &Rates) -> Table {
    const LOST: &str = "Channels are computed from places, and the log has shifted them: the schedule gains nothing. \
         A log on another drive, as the paper has it, keeps the gain.";
    let all = [
        ("inserts", ideal.inserts, with_log.inserts, ""),
        ("lookups, as a stream", ideal.lookups[0], with_log.lookups[0], ""),
        ("lookups in batches of 32", ideal.lookups[1], with_log.lookups[1], LOST),
        (
            "lookups in batches of 32, without knowledge of channels",
            ideal.unaware,
            with_log.unaware,
            "",
        ),
    ];
    let rows = all.into_iter().flat_map(|(what, ideal, with_log, why)| {
        [
            Row::measured(format!("{what}: slicetables alone"), "operations/s", ideal),
            Row::measured(format!("{what}: with the log"), "operations/s", with_log),
            Row::measured(format!("{what}: with over alone"), "", with_log / ideal).why(why),
        ]
    });
    Table { title: "Operations a second".into(), rows: rows.collect() }
}

fn written(tape: &Tape) -> Table {
    let all = || tape.operations().flat_map(|(_, steps)| steps);
    let writes = |is_chunk: bool| -> u64 {
        let of = |step: &&Step| {
            step.kind == RequestKind::Write && (step.pages >= CHUNK_PAGES) == is_chunk
        };
        all().filter(of).map(|step| u64::from(step.pages)).sum()
    };
    let syncs = all().filter(|step| step.kind == RequestKind::Sync).count() as f64;
    let share = writes(false) as f64 / writes(true).max(1) as f64;
    let inserts = tape.len() as f64;
    let rows = vec![
        Row::measured(
            "pages of log, checkpoints and superblocks for each of a slicetable",
            "",
            share,
        ),
        Row::measured("inserts for each sync", "", inserts / syncs.max(1.0)),
    ];
    Table { title: "What is written in addition".into(), rows }
}
