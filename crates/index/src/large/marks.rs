//! Which records of some segments are live, by one pass over the table in place of a lookup for each record.
//!
//! A pass reads the table once in long runs, and so costs less than the lookups of more than a few records for each of
//! its pages. It gives the places of the live records of the segments that are to be cleaned, and counts those of all
//! others. What updates change while a segment is cleaned is noted by [`Updates`](super::publish::Updates), and such a
//! record is dead too.

use std::collections::HashSet;
use std::hash::{BuildHasherDefault, Hasher};

use nandex_store::bytes::get_u64;
use nandex_store::entries::SlotState;
use nandex_store::values::format::LiveSegment;
use nandex_store::values::{LiveCounts, ValueRef};

use super::format::{FINGERPRINT_BYTES, Fingerprint};
use super::{Inner, lock};
use crate::api::Table;
use crate::write::absorb::Share;
use crate::{Error, Result};

/// Keys of which a pass knows at a time whether it has seen a newer version: these, which take 2.2 MiB or less, or more
/// of a large table: half a byte or less for each of its keys. What is not known is read again.
const KEYS_AT_A_TIME: u64 = 1 << 16;
const PARTS_MAX: u64 = 64;

/// Records for each page of the table from which on a pass over it costs less than their lookups: in long runs, eight
/// pages or more are read in the time of one.
const PAGES_A_RECORD: u64 = 8;

/// The part of the keys whose changes are noted, at most: two to four bytes for each key.
const CHANGED_PART: u64 = 8;

/// Fingerprints in a set that takes one of their words as their hash.
pub(super) type Prints = HashSet<Fingerprint, BuildHasherDefault<PrintHasher>>;

/// A fingerprint is a hash; its last word is one even if it begins with the name of a group.
#[derive(Default)]
pub(super) struct PrintHasher(u64);

impl Hasher for PrintHasher {
    fn write(&mut self, bytes: &[u8]) {
        if let Some(last) = bytes.len().checked_sub(8) {
            self.0 = nandex_store::hash::mix(self.0 ^ get_u64(bytes, last));
        }
    }

    // The length of the array, which is the same for all.
    fn write_usize(&mut self, _: usize) {}

    fn finish(&self) -> u64 {
        self.0
    }
}

/// What a pass has found of the segments of a value log.
#[derive(Debug)]
pub(super) struct Marks(Vec<Option<Marked>>);

/// A segment, by its slot.
#[derive(Debug)]
struct Marked {
    segment: LiveSegment,
    live: LiveCounts,
    /// Where its live records begin, of one that is to be cleaned.
    offsets: Option<Vec<u32>>,
}

impl Marks {
    /// None are live of these segments, of which the wanted ones are to be cleaned.
    fn new(segments: &[LiveSegment], wanted: &[LiveSegment]) -> Self {
        let slots = segments.iter().map(|it| it.slot as usize + 1).max().unwrap_or(0);
        let mut marks = Self((0..slots).map(|_| None).collect());
        for segment in segments {
            let offsets = wanted.iter().any(|it| it.slot == segment.slot).then(Vec::new);
            let marked = Marked { segment: *segment, live: LiveCounts::default(), offsets };
            marks.0[segment.slot as usize] = Some(marked);
        }
        marks
    }

    fn of(&self, reference: ValueRef) -> Option<&Marked> {
        let marked = self.0.get(reference.slot as usize)?.as_ref()?;
        (marked.segment.sequence as u32 == reference.sequence).then_some(marked)
    }

    fn note(&mut self, reference: ValueRef) {
        let Some(Some(marked)) = self.0.get_mut(reference.slot as usize) else { return };
        if marked.segment.sequence as u32 == reference.sequence {
            marked.live.note(reference);
            marked.offsets.iter_mut().for_each(|offsets| offsets.push(reference.offset));
        }
    }

    /// RAM that it takes, in bytes.
    pub(super) fn ram_bytes(&self) -> u64 {
        let of_offsets = |it: &Marked| it.offsets.as_ref().map_or(0, Vec::capacity);
        let offsets: usize = self.0.iter().flatten().map(of_offsets).sum();
        (offsets * size_of::<u32>() + self.0.capacity() * size_of::<Option<Marked>>()) as u64
    }

    fn sort(&mut self) {
        let offsets = self.0.iter_mut().flatten().filter_map(|it| it.offsets.as_mut());
        offsets.for_each(|offsets| offsets.sort_unstable());
    }

    /// Whether a record was live when the pass came by; `None` of a segment that was not to be cleaned.
    pub(super) fn was_live(&self, reference: ValueRef) -> Option<bool> {
        let offsets = self.of(reference)?.offsets.as_ref()?;
        Some(offsets.binary_search(&reference.offset).is_ok())
    }
}

impl<T: Table> Inner<T> {
    /// Finds out what is live of these segments, if that costs less than a lookup for each of their records, and no
    /// page of the table is damaged. Until [`forget_changes`](Self::forget_changes), updates note which fingerprints
    /// they change. The caller holds no stripe.
    ///
    /// # Errors
    /// A failed read; a failed publication.
    pub(super) fn mark(&self, wanted: &[LiveSegment]) -> Result<Option<Marks>> {
        let segments = self.values.closed_segments();
        if !self.pays_to_mark(wanted, &segments) {
            return Ok(None);
        }
        match self.pass(wanted, &segments) {
            // Of other keys it is known all the same which records are live.
            Err(Error::Store(nandex_store::Error::Corrupt { .. })) => Ok(None),
            marks => marks,
        }
    }

    /// Counts what is live of all segments; returns false if the table cannot be read for that as a whole.
    ///
    /// # Errors
    /// As [`mark`](Self::mark).
    pub(super) fn mark_all(&self) -> Result<bool> {
        Ok(self.pass(&[], &self.values.closed_segments())?.is_some())
    }

    fn pass(&self, wanted: &[LiveSegment], segments: &[LiveSegment]) -> Result<Option<Marks>> {
        let Some(versions) = self.table.all_versions() else { return Ok(None) };
        let mut marks = Marks::new(segments, wanted);
        // The table has what was noted before, and the changes what is noted from now on.
        let (source, entries) = (versions.0, self.table.stats().entries);
        lock(&self.updates).note_changes((entries / CHANGED_PART) as usize);
        self.publish_all()?;
        let hasher = source.hasher();
        let bits = source.partitions().trailing_zeros();
        let of_share = (entries >> bits).max(1);
        let at_a_time = KEYS_AT_A_TIME.max(entries / PARTS_MAX);
        let parts = of_share.div_ceil(at_a_time).next_power_of_two();
        let mut seen = self.cleaning.seen();
        for number in 0..source.partitions() << parts.trailing_zeros() {
            let share = Share::nth(number, bits + parts.trailing_zeros());
            let share = share.expect("there are that many shares");
            seen.clear();
            source.each_version(share, &mut |entry| {
                let Some(print) = entry.key.first_chunk::<FINGERPRINT_BYTES>() else {
                    return Ok(());
                };
                // Of a key of another share a newer version may not come.
                let is_in = share.holds(hasher.hash(print).place);
                if is_in && seen.insert(*print) && entry.state == SlotState::Live {
                    marks.note(self.decode(entry.value)?);
                }
                Ok(())
            })?;
        }
        marks.sort();
        for marked in marks.0.iter().flatten() {
            self.values.note_counted(marked.segment, marked.live);
        }
        Ok(Some(marks))
    }

    /// Returns whether a pass over the table costs less than a lookup for each record of these segments that the cache
    /// does not know; or of all, where it is unknown which of them are dead, and so which segments are the best.
    fn pays_to_mark(&self, wanted: &[LiveSegment], segments: &[LiveSegment]) -> bool {
        let table = self.table.stats();
        let known = self.cache.get().map_or(0, |cache| cache.len());
        let unknown = 1.0 - (known as f64 / table.entries.max(1) as f64).min(1.0);
        let counted = if self.values.has_unknown_dead() { segments } else { wanted };
        let records: u64 = counted.iter().map(|it| u64::from(it.live_records)).sum();
        let pages = table.flash_bytes / nandex_device::PAGE_BYTES as u64;
        records as f64 * unknown > (pages / PAGES_A_RECORD) as f64
    }

    /// Ends the noting of what updates change.
    pub(super) fn forget_changes(&self) {
        lock(&self.updates).forget_changes();
    }

    /// Returns whether a record is the newest of its fingerprint, whose stripe the caller holds; `None` if too much has
    /// changed since it was marked.
    ///
    /// # Errors
    /// Those of a lookup, of a record of a segment that was not marked.
    pub(super) fn is_live(
        &self,
        marks: Option<&Marks>,
        print: &Fingerprint,
        reference: ValueRef,
    ) -> Result<Option<bool>> {
        match marks.and_then(|marks| marks.was_live(reference)) {
            // A record that has been replaced is never used again.
            Some(false) => Ok(Some(false)),
            Some(true) => Ok(lock(&self.updates).has_changed(print).map(|changed| !changed)),
            None => Ok(Some(self.locate(print)? == Some(reference))),
        }
    }
}
