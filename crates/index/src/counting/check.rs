//! Checks a counting table offline: its configuration, its segments, every page of each, and its entries in the log.
//!
//! A segment is read as a merge reads it. If that stops at a page that is not the segment's, the remaining pages are
//! verified one by one, so that all damage is reported.

use std::sync::Arc;

use nandex_device::PageId;
use nandex_store::bytes::Reader;
use nandex_store::check::{Checker, Contents, Subject};
use nandex_store::checkpoint::CatalogEntry;
use nandex_store::generation;
use nandex_store::{IoChunks, Structure};

use super::entries::{Entries, Source};
use super::format::ChangeCodec;
use super::keys::KeyPlacing;
use super::segment::{Segment, SegmentContent, SegmentReader};
use super::snapshot::{Saved, decode_saved};
use super::{Config, recover};
use crate::Result;
use crate::check::OnProgress;
use crate::write::check::{check_each, check_log, check_number, note, prove_rest};
use crate::write::format::{AddsUp, WriteState};
use crate::write::{BoundaryRecord, OnFlash};

/// A table as its catalog entry describes it.
struct Described {
    config: Config,
    /// The number of the next segment.
    next_number: u64,
    /// All segments, and the snapshots.
    segments: Vec<Arc<Segment>>,
}

/// Checks one table and notes flaws in the checker. Counts its entries, each once per segment that has it. Reads each
/// page of its segments once.
pub(crate) fn check(
    checker: &mut Checker,
    contents: &Contents,
    entry: &CatalogEntry,
    progress: &mut OnProgress<'_>,
) {
    let place = contents.superblock.checkpoint.start;
    let table = match decode(entry, place) {
        Ok(table) => table,
        Err(error) => {
            let subject =
                Subject { structure: Some(&entry.name), what: "configuration and segments" };
            return note(checker, subject, place, &error);
        }
    };
    let placing = KeyPlacing {
        keys: table.config.keys,
        hasher: contents.hasher(),
        partitions: table.config.partitions(),
    };
    let pages_of = |segment: &Arc<Segment>| segment.pages();
    check_each(&entry.name, &table.segments, pages_of, progress, |segment| {
        check_segment(checker, &entry.name, table.next_number, segment, placing);
    });
    check_changes(checker, contents, entry, placing);
}

fn decode(entry: &CatalogEntry, place: PageId) -> Result<Described> {
    let mut reader = Reader::new(&entry.config, "counting configuration", place);
    let config = Config::decode(&mut reader)?;
    if reader.left() > 0 {
        return Err(reader.refuse("the end of the configuration", reader.left()).into());
    }
    let structure = Structure::from(entry);
    let mut reader = Reader::new(&entry.state, "counting state", place);
    let levels = recover::restore(&structure, &config, &mut reader)?;
    let mut segments: Vec<_> = levels.iter().flat_map(|it| it.newest_first().cloned()).collect();
    let state: WriteState<Saved> = if entry.state.is_empty() {
        WriteState::new(levels.len(), entry.tail)
    } else {
        WriteState::decode_with(AddsUp::Yes, &mut reader, |reader| decode_saved(entry.id, reader))?
    };
    if state.partitions.len() != levels.len() || reader.left() > 0 {
        let expected =
            format!("the buffers of {} partitions and the end of the state", levels.len());
        let found = format!("{} partitions, {} bytes left", state.partitions.len(), reader.left());
        return Err(reader.refuse(expected, found).into());
    }
    segments.extend(state.partitions.into_iter().filter_map(|record| record.snapshot?));
    Ok(Described { config, next_number: state.next_generation, segments })
}

fn check_segment(
    checker: &mut Checker,
    name: &str,
    next_number: u64,
    segment: &Arc<Segment>,
    placing: KeyPlacing,
) {
    let subject = Subject { structure: Some(name), what: "page of a counting table" };
    let start = segment.extent().start;
    let number = generation::sequence(segment.place.generation);
    check_number(checker, subject, start, ("segment number", number, next_number));
    let mut held = SegmentContent::default();
    match read_segment(checker, segment, placing, &mut held) {
        Ok(()) if held == segment.content => {}
        Ok(()) => {
            checker.note(subject, start, format!("expected {:?}, found {held:?}", segment.content));
        }
        Err(error) => {
            note(checker, subject, start, &error);
            let label = |index| segment.place.label(index);
            prove_rest(checker, subject, (&label, segment.pages()), &error);
        }
    }
    checker.count_entries(name, held.entries);
}

/// Reads the segment from front to back, up to the first flaw.
fn read_segment(
    checker: &Checker,
    segment: &Arc<Segment>,
    placing: KeyPlacing,
    held: &mut SegmentContent,
) -> Result<()> {
    let mut reader = SegmentReader::new(&*checker.device(), segment, placing, IoChunks::default())?;
    let mut batch = Entries::new(placing.width());
    while reader.next_batch(&mut batch)? {
        batch.changes.iter().for_each(|change| held.add(*change));
        batch.clear();
    }
    Ok(())
}

fn check_changes(
    checker: &mut Checker,
    contents: &Contents,
    entry: &CatalogEntry,
    placing: KeyPlacing,
) {
    let codec = ChangeCodec::new(placing);
    let is_boundary = |bytes: &[u8]| {
        BoundaryRecord::decode(bytes).is_some_and(|it| u64::from(it.partition) < placing.partitions)
    };
    let expected = "expected a change or a boundary of the table";
    check_log(checker, contents, entry, expected, &mut |bytes| {
        codec.decode_record(bytes).is_some() || is_boundary(bytes)
    });
}
