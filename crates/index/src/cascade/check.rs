//! Checks a cascade filter offline: its configuration, its list of runs, every page of every run, and its entries in
//! the log.
//!
//! A run is read as a merge reads it. If that stops at a page that is not the run's, the remaining pages are verified
//! one by one, so that all damage is reported.

use std::sync::Arc;

use nandex_device::PageId;
use nandex_store::IoChunks;
use nandex_store::Structure;
use nandex_store::bytes::Reader;
use nandex_store::check::{Checker, Contents, Subject};
use nandex_store::checkpoint::CatalogEntry;
use nandex_store::generation;
use nandex_store::run::{Run, RunReader, Source};

use super::format::FingerprintCodec;
use super::snapshot::{SavedRun, decode_saved};
use super::{Config, recover};
use crate::Result;
use crate::check::OnProgress;
use crate::write::BoundaryRecord;
use crate::write::check::{check_each, check_log, check_number, note, prove_rest};
use crate::write::format::{AddsUp, WriteState};

/// A filter as its catalog entry describes it.
struct Described {
    codec: FingerprintCodec,
    /// The number of the next run.
    next_run: u64,
    parts: usize,
    /// The runs of all levels, and the snapshots.
    runs: Vec<Arc<Run>>,
}

/// Checks one filter and notes flaws in the checker. Counts its fingerprints, each once per part that has it. Reads
/// each page of its runs once.
pub(crate) fn check(
    checker: &mut Checker,
    contents: &Contents,
    entry: &CatalogEntry,
    progress: &mut OnProgress<'_>,
) {
    let place = contents.superblock.checkpoint.start;
    match decode(entry, place) {
        Ok(filter) => {
            let pages_of = |run: &Arc<Run>| run.used_pages();
            check_each(&entry.name, &filter.runs, pages_of, progress, |run| {
                check_run(checker, &entry.name, filter.next_run, run);
            });
            check_updates(checker, contents, entry, &filter);
        }
        Err(error) => {
            let subject = Subject { structure: Some(&entry.name), what: "configuration and runs" };
            note(checker, subject, place, &error);
        }
    }
}

fn decode(entry: &CatalogEntry, place: PageId) -> Result<Described> {
    let mut reader = Reader::new(&entry.config, "cascade configuration", place);
    let config = Config::decode(&mut reader)?;
    if reader.left() > 0 {
        return Err(reader.refuse("the end of the configuration", reader.left()).into());
    }
    let structure = Structure::from(entry);
    let mut reader = Reader::new(&entry.state, "cascade state", place);
    let (_, levels) = recover::restore(&structure, &config, &mut reader)?;
    let parts = levels.len();
    let mut runs: Vec<_> = levels.iter().flat_map(|it| it.readable().cloned()).collect();
    let universe = config.part_universe()?;
    let state: WriteState<SavedRun> = if entry.state.is_empty() {
        WriteState::new(parts, entry.tail)
    } else {
        let decode = |reader: &mut Reader<'_>| decode_saved(entry.id, universe, reader);
        WriteState::decode_with(AddsUp::Yes, &mut reader, decode)?
    };
    if state.partitions.len() != parts || reader.left() > 0 {
        let expected = format!("the buffers of {parts} parts and the end of the state");
        let found = format!("{} parts, {} bytes left", state.partitions.len(), reader.left());
        return Err(reader.refuse(expected, found).into());
    }
    runs.extend(state.partitions.into_iter().filter_map(|record| record.snapshot?));
    let codec = FingerprintCodec::new(config.universe()?, config.split()?);
    Ok(Described { codec, next_run: state.next_generation, parts, runs })
}

/// The contents of a run, as read.
#[derive(Default)]
struct RunContent {
    entries: u64,
    tombstones: u64,
    sum: i128,
}

fn check_run(checker: &mut Checker, name: &str, next_run: u64, run: &Run) {
    let subject = Subject { structure: Some(name), what: "page of a run" };
    let start = run.place().extent.start;
    let number = generation::sequence(run.place().generation);
    check_number(checker, subject, start, ("run number", number, next_run));
    let mut held = RunContent::default();
    match read_run(checker, run, &mut held) {
        Ok(()) => {
            let (found, expected) = (
                (held.entries, held.tombstones, held.sum),
                (run.entries(), run.tombstones(), run.sum()),
            );
            if found != expected {
                let message = format!(
                    "expected entries, tombstones and the sum of counts to be {expected:?}, found {found:?}"
                );
                checker.note(subject, start, message);
            }
        }
        Err(error) => {
            note(checker, subject, start, &error);
            let label = |index| run.place().label(index);
            prove_rest(checker, subject, (&label, run.used_pages()), &error);
        }
    }
    checker.count_entries(name, held.entries);
}

/// Reads the run from front to back, up to the first flaw.
fn read_run(checker: &Checker, run: &Run, held: &mut RunContent) -> Result<()> {
    let mut reader = RunReader::new(&*checker.device(), run, IoChunks::default())?;
    let mut batch = Vec::new();
    while reader.next_batch(&mut batch)? {
        held.entries += batch.len() as u64;
        held.tombstones += batch.iter().filter(|entry| entry.count < 0).count() as u64;
        held.sum += batch.iter().map(|entry| i128::from(entry.count)).sum::<i128>();
        batch.clear();
    }
    Ok(())
}

fn check_updates(
    checker: &mut Checker,
    contents: &Contents,
    entry: &CatalogEntry,
    filter: &Described,
) {
    let is_boundary = |bytes: &[u8]| {
        BoundaryRecord::decode(bytes).is_some_and(|it| (it.partition as usize) < filter.parts)
    };
    let expected = "expected an update or a boundary of the filter";
    check_log(checker, contents, entry, expected, &mut |bytes| {
        filter.codec.decode_record(bytes).is_some() || is_boundary(bytes)
    });
}
