//! Verifies a value log offline: its configuration and state, and every written page of its segments. The pages written
//! since the last checkpoint are known only from the references in the log.

use std::collections::BTreeSet;

use nandex_device::PageId;

use crate::bytes::Reader;
use crate::check::{Checker, Contents, Subject};
use crate::checkpoint::CatalogEntry;
use crate::page::{PageKind, PageLabel};
use crate::{Result, Structure};

use super::ValuesConfig;
use super::extents::Extents;
use super::format::{LiveSegment, PAYLOAD_BYTES, SEQUENCE_BITS, ValueRef, ValuesState};
use super::recover::{mark_of, restore};
use super::visit::Records;

/// Checks one value log and notes its damage in the checker. Counts its records, including those without a reference.
/// Reads the pages that the last checkpoint knows as written, once.
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

/// The pages that were written since the last checkpoint, as far as references lead to them.
#[derive(Debug)]
pub struct NewerPages<'e> {
    entry: &'e CatalogEntry,
    state: ValuesState,
    extents: Extents,
    mark: u64,
    /// The pages, each with the number of its segment.
    pages: BTreeSet<(u64, PageId)>,
}

impl<'e> NewerPages<'e> {
    /// Creates an empty set. Returns `None` for a value log whose state is damaged, which [`check`] notes.
    #[must_use]
    pub fn of(contents: &Contents, entry: &'e CatalogEntry) -> Option<Self> {
        let (state, extents) = decode(entry, contents).ok()?;
        let mark = mark_of(&contents.hasher());
        Some(Self { entry, state, extents, mark, pages: BTreeSet::new() })
    }

    /// Notes the pages of a record. A record in a segment that is gone has none.
    pub fn note(&mut self, reference: ValueRef) {
        self.pages.extend(newer_pages(&self.state, &self.extents, reference));
    }

    /// Verifies all of these pages.
    pub fn check(&self, checker: &mut Checker) {
        let subject = Subject { structure: Some(&self.entry.name), what: "value page" };
        for &(sequence, page) in &self.pages {
            let (kind, structure) = (PageKind::Value, self.entry.id);
            let generation = self.mark << SEQUENCE_BITS | sequence;
            let label = PageLabel { kind, structure, generation, page };
            checker.pages(subject, (page, 1), &|_| label, &mut |_, _, _| {});
        }
    }
}

/// Returns the pages of a record that the checkpoint does not know, each with the number of its segment.
fn newer_pages(
    state: &ValuesState,
    extents: &Extents,
    reference: ValueRef,
) -> impl Iterator<Item = (u64, PageId)> + use<> {
    let low = |sequence: u64| (sequence & u64::from(u32::MAX)) as u32;
    let known = state.live.iter().find(|it| it.slot == reference.slot);
    let known = known.filter(|it| low(it.sequence) == reference.sequence);
    // Segments that were begun since have the next numbers.
    let since = reference.sequence.wrapping_sub(low(state.last_sequence));
    let (sequence, written) = match known {
        Some(segment) => (segment.sequence, segment.pages),
        None if (1..=extents.slots()).contains(&since) => {
            (state.last_sequence + u64::from(since), 0)
        }
        None => (0, u32::MAX),
    };
    let payload = PAYLOAD_BYTES as u64;
    let end = reference.end().div_ceil(payload).min(extents.segment_pages(reference.slot).into());
    let first = extents.first_page(reference.slot);
    let from = (u64::from(reference.offset) / payload).max(written.into());
    (from..end).map(move |page| (sequence, first.plus(page)))
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
