//! Proves a value log offline: its configuration and state, and every written page of its segments.

use crate::bytes::Reader;
use crate::check::{Checker, Contents, Subject};
use crate::checkpoint::CatalogEntry;
use crate::page::{PageKind, PageLabel};
use crate::{Result, Structure};

use super::ValuesConfig;
use super::extents::Extents;
use super::format::{LiveSegment, SEQUENCE_BITS, ValuesState};
use super::recover::{mark_of, restore};
use super::visit::Records;

/// Checks one value log and notes in the checker what is wrong with it. Counts its records, including those
/// without a reference. Reads what the last checkpoint knows as written, once.
pub fn check(checker: &mut Checker, contents: &Contents, entry: &CatalogEntry) {
    let subject = Subject { structure: Some(&entry.name), what: "configuration and state" };
    let place = contents.superblock.checkpoint.start;
    match decode(entry, contents) {
        Ok((state, extents)) => {
            let mark = mark_of(&contents.hasher());
            for segment in &state.live {
                check_segment(checker, (entry, &extents, mark), *segment);
            }
        }
        Err(error) => checker.note_error(subject, place, &error),
    }
}

fn decode(entry: &CatalogEntry, contents: &Contents) -> Result<(ValuesState, Extents)> {
    let place = contents.superblock.checkpoint.start;
    let mut reader = Reader::new(&entry.config, "configuration of a value log", place);
    let config = ValuesConfig::decode(&mut reader)?;
    let structure = Structure::from(entry);
    restore(&structure, &config)
}

fn check_segment(
    checker: &mut Checker,
    (entry, extents, mark): (&CatalogEntry, &Extents, u64),
    segment: LiveSegment,
) {
    let subject = Subject { structure: Some(&entry.name), what: "value segment" };
    let first = extents.first_page(segment.slot);
    let label = |index: u64| PageLabel {
        kind: PageKind::Value,
        structure: entry.id,
        generation: mark << SEQUENCE_BITS | segment.sequence,
        page: first.plus(index),
    };
    let mut records = Records::new(segment);
    let mut count = 0;
    let pages = u64::from(segment.pages);
    checker.pages(subject, (first, pages), &label, &mut |checker, index, page| {
        let number = u32::try_from(index).expect("a segment has at most 2^20 pages");
        let mut visit = |_, _: &[u8]| {
            count += 1;
            Ok(())
        };
        let taken = records.page(number, page.bytes(), label(index), &mut visit);
        if let Err(error) = taken {
            checker.note_error(subject, first.plus(index), &error);
        }
    });
    checker.count_entries(&entry.name, count);
}
