//! Section 3: the merge of two indexes of fingerprints, in order or key by key.

use nandex_sim::RequestKind;

use super::berkeley::{Berkeley, Inserted};
use super::direct::{DISK_BYTES, Direct, DirectRun, Lookups, operations};
use super::lab::{Setup, aged};
use super::workload::Workload;
use super::{cpu_ns, player};
use crate::play::Player;
use crate::tape::{Act, Step, Tape};
use crate::{Drive, Experiment, Filled, Outcome, Result, Row, Scale, Table, fits, vary};

/// See the [module](self).
pub struct Merge;

/// The bytes of each of the two indexes: half of the paper's 20 GB for a data set.
const INDEX_BYTES: u64 = 10_000_000_000;
/// Bytes of an entry.
const ENTRY_BYTES: u64 = 16;
/// Pages that a merge reads and writes at once: 1 MiB.
const CHUNK_PAGES: u64 = 256;
const PAGE_BYTES: u64 = 4096;
/// The paper's time of a merge with Berkeley DB, in hours, and with BufferHash, in minutes.
const BERKELEY_HOURS: f64 = 2.0;
const CLAM_MINUTES: f64 = 2.0;
/// Berkeley DB's lookup and insert on the disk, in milliseconds (7.2.2).
const BERKELEY_MS: f64 = 6.8 + 7.0;
/// The CPU time of an entry that a merge moves, in nanoseconds. Assumed.
pub const MERGE_CPU_NS: u64 = 50;
/// The reason why Berkeley DB's merge is shorter.
const BERKELEY: &str = "The paper's 2 hours are its estimate. An insert of the key that was looked up finds its page \
     in the cache here, where the paper's takes as long as a lookup: see Figure 7.";
/// Lookups and inserts of BufferHash that are measured.
const OPERATIONS: u64 = 1 << 27;

/// The drives, their bytes, and their fill before keys are changed in place.
const DRIVES: [(Drive, f64, Filled); 2] =
    [(Drive::INTEL, 80e9, Filled::ForEver), (Drive::DISK, DISK_BYTES, Filled::Once)];
/// The times of a drive.
struct OnDrive {
    name: &'static str,
    /// The time of merging both indexes in order.
    sequential_s: f64,
    /// The time of a lookup and an insert without buffers.
    direct_ms: f64,
    /// The time of both with Berkeley DB.
    berkeley_ms: f64,
    /// The time of both with BufferHash.
    buffered_ms: f64,
}

impl Experiment for Merge {
    fn name(&self) -> &'static str {
        "merge"
    }

    fn title(&self) -> &'static str {
        "Merging two indexes"
    }

    fn reference(&self) -> &'static str {
        "section 3"
    }

    fn run(&self, scale: Scale) -> Result<Outcome> {
        let run =
            Workload::lookup_then_insert(0.4).run(&Setup::paper(scale), scale.of(OPERATIONS))?;
        let mut all = Vec::new();
        for (drive, bytes, filled) in DRIVES {
            let mut model = aged(drive, scale, run.taped.tape())?;
            let played = player().play(run.taped.tape(), &mut *model);
            let [lookups, inserts] =
                [Act::Lookup, Act::Insert].map(|act| played.of(act, run.from).mean_ms());
            let direct = without_buffers(drive, (bytes, filled), scale)?;
            let berkeley = with_berkeley(drive, (bytes, filled), scale)?;
            all.push(OnDrive {
                name: drive.name,
                sequential_s: sequential_s(drive, scale)?,
                direct_ms: direct.lookups.mean_ms() + direct.inserts.mean_ms(),
                berkeley_ms: berkeley.lookups.mean_ms() + berkeley.inserts.mean_ms(),
                buffered_ms: lookups + inserts,
            });
        }
        Ok(Outcome {
            setup: setup(),
            tables: vec![keys_of_two_hours(&all), two_indexes(&all)],
            charts: Vec::new(),
        })
    }
}

fn setup() -> Vec<String> {
    vec![
        "The paper estimates 2 hours with Berkeley DB and under 2 minutes with its prototypes, and \
         does not say of what: a smaller index's fingerprints are looked up in a larger one and \
         put in. At its own times of Berkeley DB on a disk, 2 hours are half a million \
         fingerprints. So that is the first table: as many lookups and inserts, at the means \
         that are measured here."
            .into(),
        format!(
            "The second table merges two indexes of 10 GB, {:.0} million fingerprints each. In order: both \
             are read from their first page to their last and the result is written, 1 MiB at a \
             time, a request of each index and then two of the result; played for as many \
             bytes as the scale has, and computed for all. The processor takes {} us for a key. \
             Key by key: the same means, for each fingerprint of one index.",
            (INDEX_BYTES / ENTRY_BYTES) as f64 / 1e6,
            MERGE_CPU_NS as f64 / 1000.0
        ),
    ]
}

/// Returns the time of a merge in order, for the paper's bytes.
fn sequential_s(drive: Drive, scale: Scale) -> Result<f64> {
    let chunks = (scale.of(INDEX_BYTES) / PAGE_BYTES / CHUNK_PAGES).max(1);
    let pages = chunks * CHUNK_PAGES;
    let mut model = drive.model(scale, Filled::Once, 4 * pages)?;
    let entries = 2 * CHUNK_PAGES * PAGE_BYTES / ENTRY_BYTES;
    let player = Player::single(entries * vary::value(&fits::MERGE_KEY, MERGE_CPU_NS));
    let played = player.play(&merge_tape(chunks), &mut *model);
    let bytes = (chunks * CHUNK_PAGES * PAGE_BYTES) as f64;
    Ok(played.elapsed_ns as f64 / 1e9 * INDEX_BYTES as f64 / bytes)
}

/// Returns a merge of two indexes of `chunks` chunks, into as many pages behind them.
fn merge_tape(chunks: u64) -> Tape {
    let mut tape = Tape::default();
    let step = |kind, chunk: u64, wave| {
        let (page, pages) = (chunk * CHUNK_PAGES, CHUNK_PAGES as u32);
        Step { kind, page, pages, wave }
    };
    for chunk in 0..chunks {
        tape.push(
            Act::Insert,
            &[
                step(RequestKind::Read, chunk, 0),
                step(RequestKind::Read, chunks + chunk, 0),
                step(RequestKind::Write, 2 * (chunks + chunk), 1),
                step(RequestKind::Write, 2 * (chunks + chunk) + 1, 1),
            ],
        );
    }
    tape
}

fn without_buffers(
    drive: Drive,
    (bytes, filled): (f64, Filled),
    scale: Scale,
) -> Result<DirectRun> {
    let drive_share = (2.0 * INDEX_BYTES as f64 / bytes).min(0.95);
    let table = Direct { drive_share, seed: scale.seed() };
    let mut model = drive.model(scale, filled, 0)?;
    Ok(table.play(player(), &mut *model, operations(scale), Lookups::BeforeInserts))
}

/// Looks up each key and then inserts it in a table that takes as much of the drive.
fn with_berkeley(drive: Drive, (bytes, filled): (f64, Filled), scale: Scale) -> Result<DirectRun> {
    let drive_share = (2.0 * INDEX_BYTES as f64 / bytes).min(0.95);
    let table = Berkeley { drive_share, success_rate: 0.4, seed: scale.seed() };
    let mut model = drive.model(scale, filled, 0)?;
    Ok(table.play(player(), &mut *model, operations(scale), Inserted::SameKey))
}

fn keys_of_two_hours(all: &[OnDrive]) -> Table {
    let keys = BERKELEY_HOURS * 3600.0 * 1000.0 / BERKELEY_MS;
    let minutes = |ms: f64| keys * ms / 60_000.0;
    let mut rows =
        vec![Row::predicted("fingerprints in 2 hours, with Berkeley DB on a disk", "", keys).why(
            "Computed from the paper's 2 hours, 6.8 ms for a lookup and 7.0 ms for an insert.",
        )];
    for on in all {
        let row =
            |what: &str, ms| Row::predicted(format!("{}: {what}", on.name), "min", minutes(ms));
        let ours = row("BufferHash", on.buffered_ms);
        rows.push(if on.name == Drive::DISK.name {
            ours
        } else {
            ours.paper_at_most(CLAM_MINUTES)
        });
        let berkeley = row("Berkeley DB", on.berkeley_ms);
        rows.push(match on.name == Drive::DISK.name {
            true => berkeley.paper(60.0 * BERKELEY_HOURS).why(BERKELEY),
            false => berkeley,
        });
        rows.push(row("without buffers", on.direct_ms));
    }
    let cpu = minutes(2.0 * cpu_ns() as f64 / 1e6);
    rows.push(Row::fitted("of which the processor", "min", cpu, fits::INTEL_INSERT));
    Table { title: "As many fingerprints as Berkeley DB merges in 2 hours".into(), rows }
}

fn two_indexes(all: &[OnDrive]) -> Table {
    const DAY_MS: f64 = 86_400_000.0;
    let keys = (INDEX_BYTES / ENTRY_BYTES) as f64;
    let mut rows = Vec::new();
    for on in all {
        let named = |what: &str| format!("{}: {what}", on.name);
        let by_key_s = keys * on.direct_ms / 1000.0;
        rows.extend([
            Row::predicted(named("in order"), "min", on.sequential_s / 60.0),
            Row::predicted(
                named("key by key, with BufferHash"),
                "min",
                keys * on.buffered_ms / 60_000.0,
            ),
            Row::predicted(
                named("key by key, with Berkeley DB"),
                "days",
                keys * on.berkeley_ms / DAY_MS,
            ),
            Row::predicted(
                named("key by key, without buffers"),
                "days",
                keys * on.direct_ms / DAY_MS,
            ),
            Row::predicted(
                named("key by key without buffers, over in order"),
                "",
                by_key_s / on.sequential_s,
            ),
        ]);
    }
    Table { title: "Two indexes of 10 GB".into(), rows }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_merge_reads_both_indexes_once_and_writes_as_much_in_order() {
        let tape = merge_tape(3);
        let mut pages = [Vec::new(), Vec::new()];
        for (_, steps) in tape.operations() {
            for step in steps {
                let is_write = usize::from(step.kind == RequestKind::Write);
                pages[is_write].extend(step.page..step.page + u64::from(step.pages));
            }
        }
        pages[0].sort_unstable();
        assert_eq!(pages[0], (0..6 * CHUNK_PAGES).collect::<Vec<_>>());
        assert_eq!(pages[1], (6 * CHUNK_PAGES..12 * CHUNK_PAGES).collect::<Vec<_>>());
        assert_eq!(tape.page_count(), 12 * CHUNK_PAGES);
    }
}
