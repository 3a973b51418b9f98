//! Proves a counting table offline: its configuration, its segments, every page of each, and its entries in the log.
//!
//! A segment is read as a merge reads it. If that stops at a page that is not the segment's, the remaining pages are
//! proven one by one, so that all damage is named.

use std::sync::Arc;

use nandex_device::PageId;
use nandex_store::bytes::Reader;
use nandex_store::check::{Checker, Contents, Subject};
use nandex_store::checkpoint::CatalogEntry;
use nandex_store::generation;
use nandex_store::{IoChunks, Lsn, Structure};

use super::entries::{Entries, Source};
use super::format::ChangeCodec;
use super::keys::KeyPlacing;
use super::segment::{Segment, SegmentContent, SegmentReader};
use super::snapshot::{Saved, decode_saved};
use super::{Config, recover};
use crate::check::{CheckProgress, OnProgress};
use crate::write::check::{note, visit_entries};
use crate::write::format::{AddsUp, WriteState};
use crate::write::{BoundaryRecord, OnFlash};
use crate::{Error, Result};

/// A table as its catalog entry describes it.
struct Described {
    config: Config,
    /// The number that the next segment gets.
    next_number: u64,
    /// All segments, and the snapshots.
    segments: Vec<Arc<Segment>>,
}

/// Checks one table and notes in the checker what is wrong with it. Counts its entries, each once per segment that has
/// it. Reads each page of its segments once.
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
    let pages = table.segments.iter().map(|segment| segment.pages()).sum();
    let mut pages_done = 0;
    for segment in &table.segments {
        progress(CheckProgress { structure: &entry.name, pages_done, pages });
        check_segment(checker, &entry.name, table.next_number, segment, placing);
        pages_done += segment.pages();
    }
    progress(CheckProgress { structure: &entry.name, pages_done, pages });
    check_log(checker, contents, entry, placing);
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
    if number >= next_number {
        let found = format!("segment number {number}, where {next_number} comes next");
        checker.note(subject, start, found);
    }
    let mut held = SegmentContent::default();
    match read_segment(checker, segment, placing, &mut held) {
        Ok(()) if held == segment.content => {}
        Ok(()) => {
            checker.note(subject, start, format!("expected {:?}, found {held:?}", segment.content));
        }
        Err(error) => {
            note(checker, subject, start, &error);
            prove_rest(checker, subject, segment, &error);
        }
    }
    checker.count_entries(name, held.entries);
}

/// Reads it from front to back, up to the first thing that is wrong.
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

/// Proves that the pages after the damaged one are the segment's; all pages but the first if it is not known.
fn prove_rest(checker: &mut Checker, subject: Subject<'_>, segment: &Segment, error: &Error) {
    let start = segment.extent().start;
    let damaged = match error {
        Error::Store(nandex_store::Error::Corrupt { page, .. }) => page.0.checked_sub(start.0),
        _ => None,
    };
    let first = damaged.map_or(0, |damaged| damaged + 1);
    let pages = segment.pages().saturating_sub(first);
    let label = |index| segment.place.label(first + index);
    checker.pages(subject, (start.plus(first), pages), &label, &mut |_, _, _| {});
}

fn check_log(
    checker: &mut Checker,
    contents: &Contents,
    entry: &CatalogEntry,
    placing: KeyPlacing,
) {
    let subject = Subject { structure: Some(&entry.name), what: "log entry" };
    let codec = ChangeCodec::new(placing);
    let mut wrong = Vec::new();
    let is_boundary = |bytes: &[u8]| {
        BoundaryRecord::decode(bytes).is_some_and(|it| u64::from(it.partition) < placing.partitions)
    };
    let read = visit_entries(contents, entry, &mut |lsn: Lsn, bytes| {
        if codec.decode_record(bytes).is_none() && !is_boundary(bytes) {
            wrong.push(lsn);
        }
    });
    wrong.dedup();
    for lsn in wrong {
        let page = contents.log_page(lsn);
        checker.note(subject, page, "expected a change or a boundary of the table");
    }
    if let Err(error) = read {
        checker.note_error(subject, contents.log_page(entry.tail), &error);
    }
}
