//! The live records of some segments, determined by one pass over the table instead of a lookup for each record.
//!
//! A pass reads the table once in long runs, and so costs less than the lookups of more than a few records for each of
//! its pages. It returns the places of the live records of the segments to clean, and counts those of all others.
//! Fingerprints that updates change while a segment is cleaned are noted in [`Changes`]; their records are looked up.

use std::collections::HashSet;
use std::hash::{BuildHasherDefault, Hasher};

use nandex_store::bytes::get_u64;
use nandex_store::entries::SlotState;
use nandex_store::values::format::{LiveSegment, PAYLOAD_BYTES};
use nandex_store::values::{LiveCounts, ValueRef};

use super::changes::Changes;
use super::format::{FINGERPRINT_BYTES, Fingerprint};
use super::{Inner, lock};
use crate::api::Table;
use crate::write::absorb::Share;
use crate::{Error, Result};

/// The keys in the set of those that a round of a pass has seen; more if the pages that are read together have more.
/// The other keys are read in other rounds.
const KEYS_AT_A_TIME: u64 = 1 << 16;

/// The smallest set of seen keys, and of changed fingerprints, where RAM is short.
const PRINTS_MIN: u64 = 1 << 12;

/// The number of records for each page of the table from which on a pass over it costs less than their lookups: in long
/// runs, eight pages or more are read in the time of one.
const PAGES_A_RECORD: u64 = 8;

/// The largest part of the keys whose changes are noted, as a divisor.
const CHANGED_PART: u64 = 8;

/// The approximate bytes of RAM for each fingerprint of a set: it doubles when it is full.
const PRINT_BYTES: u64 = 2 * (size_of::<Fingerprint>() as u64 + 1);

/// The bytes of a segment in which at most one record begins: a record has at least its header and a fingerprint.
const BYTES_A_RECORD: usize = FINGERPRINT_BYTES;

/// Fingerprints in a set that uses one of their words as the hash.
pub(super) type Prints = HashSet<Fingerprint, BuildHasherDefault<PrintHasher>>;

/// A fingerprint is a hash; its last word is one even if it begins with the bytes of a group.
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

/// Empties a set for at most `most` fingerprints. It keeps its memory, unless that is much more.
pub(super) fn clear(prints: &mut Prints, most: usize) {
    prints.clear();
    prints.shrink_to(2 * most);
}

/// The results of a pass for the segments of a value log.
#[derive(Debug)]
pub(super) struct Marks(Vec<Option<Marked>>);

/// A segment, by its slot.
#[derive(Debug)]
struct Marked {
    segment: LiveSegment,
    live: LiveCounts,
    /// The starts of its live records, if it will be cleaned.
    begins: Option<Begins>,
}

/// The starts of records in a segment: a bit for each position where one may begin.
#[derive(Debug)]
struct Begins(Box<[u64]>);

impl Begins {
    /// Creates an empty set of starts in `pages` pages.
    fn new(pages: u32) -> Self {
        let places = pages as usize * PAYLOAD_BYTES / BYTES_A_RECORD + 1;
        Self(vec![0; places.div_ceil(u64::BITS as usize)].into())
    }

    fn place(offset: u32) -> (usize, u64) {
        let place = offset as usize / BYTES_A_RECORD;
        (place / u64::BITS as usize, 1 << (place % u64::BITS as usize))
    }

    fn note(&mut self, offset: u32) {
        let (word, bit) = Self::place(offset);
        self.0.get_mut(word).into_iter().for_each(|word| *word |= bit);
    }

    /// Returns whether a record begins there; `None` for an offset beyond its pages.
    fn has(&self, offset: u32) -> Option<bool> {
        let (word, bit) = Self::place(offset);
        self.0.get(word).map(|word| word & bit != 0)
    }

    fn ram_bytes(&self) -> usize {
        size_of_val(&self.0[..])
    }
}

/// The number of fingerprints that a pass keeps at a time, and of those that change meanwhile.
#[derive(Clone, Copy, Debug)]
struct Kept {
    seen: u64,
    changes: u64,
}

impl Kept {
    /// Returns the fastest sizes for a table of `entries` keys, `together` of which are on the pages that one round
    /// reads.
    fn wanted(entries: u64, together: u64) -> Self {
        let changes = (entries / CHANGED_PART).max(PRINTS_MIN);
        Self { seen: together.max(KEYS_AT_A_TIME), changes }
    }

    /// Reduces the sizes to the given RAM, but not below the fewest with which it works. While there is enough for the
    /// keys of some pages, no page is read twice.
    fn within(self, bytes: u64, together: u64) -> Self {
        if self.ram_bytes() <= bytes {
            return self;
        }
        let all = bytes / PRINT_BYTES;
        let seen = together.max(all / 4).min(self.seen).min(all / 4 * 3).max(PRINTS_MIN);
        let left = bytes.saturating_sub(seen * PRINT_BYTES) / Changes::ram_bytes_of(1);
        Self { seen, changes: left.clamp(PRINTS_MIN, self.changes) }
    }

    fn ram_bytes(self) -> u64 {
        self.seen * PRINT_BYTES + Changes::ram_bytes_of(self.changes)
    }
}

impl Marks {
    /// Creates marks in which no record of these segments is live yet. The wanted ones will be cleaned.
    fn new(segments: &[LiveSegment], wanted: &[LiveSegment]) -> Self {
        let slots = segments.iter().map(|it| it.slot as usize + 1).max().unwrap_or(0);
        let mut marks = Self((0..slots).map(|_| None).collect());
        for segment in segments {
            let is_wanted = wanted.iter().any(|it| it.slot == segment.slot);
            let begins = is_wanted.then(|| Begins::new(segment.pages));
            let marked = Marked { segment: *segment, live: LiveCounts::default(), begins };
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
            marked.begins.iter_mut().for_each(|begins| begins.note(reference.offset));
        }
    }

    /// RAM that it takes, in bytes.
    pub(super) fn ram_bytes(&self) -> u64 {
        let begins = self.0.iter().flatten().filter_map(|it| it.begins.as_ref());
        let begins: usize = begins.map(Begins::ram_bytes).sum();
        (begins + self.0.capacity() * size_of::<Option<Marked>>()) as u64
    }

    /// Returns whether a record was live when the pass reached it; `None` for a segment that was not to be cleaned.
    pub(super) fn was_live(&self, reference: ValueRef) -> Option<bool> {
        self.of(reference)?.begins.as_ref()?.has(reference.offset)
    }
}

impl<T: Table> Inner<T> {
    /// Determines what is live in these segments, if that costs less than a lookup for each of their records, and no
    /// page of the table is damaged. Until [`forget_changes`](Self::forget_changes), updates note the fingerprints that
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
            // For the other keys it is still known which records are live.
            Err(Error::Store(nandex_store::Error::Corrupt { .. })) => Ok(None),
            marks => marks,
        }
    }

    /// Counts what is live in all segments; returns false if the table cannot be read as a whole for that.
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
        let hasher = source.hasher();
        let bits = source.partitions().trailing_zeros();
        let of_share = (entries >> bits).max(1);
        let together = of_share.div_ceil(source.page_parts() as u64);
        let kept = self.keep_prints((entries, together), &marks);
        lock(&self.updates).changes().begin(kept.changes as usize);
        self.publish_all()?;
        let _paused = source.pause();
        // By pages first: then none is read twice.
        let rounds = of_share.div_ceil(kept.seen);
        let page_parts = rounds.clamp(1, source.page_parts() as u64);
        let parts = rounds.div_ceil(page_parts).next_power_of_two();
        let bits = bits + parts.trailing_zeros();
        let mut seen = self.cleaning.seen();
        let mut limited =
            self.cleaning.pace.limit(self.values.free_bytes_for_puts(), page_parts << bits);
        let shares = (0..1 << bits).map_while(|number| Share::nth(number, bits));
        let portions = shares.flat_map(|share| (0..page_parts).map(move |part| (share, part)));
        for (share, part) in portions {
            clear(&mut seen, kept.seen as usize);
            source.each_version_in(share, (part as usize, page_parts as usize), &mut |entry| {
                let Some(print) = entry.key.first_chunk::<FINGERPRINT_BYTES>() else {
                    return Ok(());
                };
                // For a key of another share a newer version may be missing.
                let is_in = parts == 1 || share.holds(hasher.hash(print).place);
                if is_in && seen.insert(*print) && entry.state == SlotState::Live {
                    marks.note(self.decode(entry.value)?);
                }
                Ok(())
            })?;
            limited.advance();
        }
        for marked in marks.0.iter().flatten() {
            self.values.note_counted(marked.segment, marked.live);
        }
        Ok(Some(marks))
    }

    /// Chooses the number of fingerprints to keep. If the map has a cache, it lends up to half of its RAM for them,
    /// until the map has been idle for a period.
    fn keep_prints(&self, (entries, together): (u64, u64), marks: &Marks) -> Kept {
        let wanted = Kept::wanted(entries, together);
        let Some(cache) = self.cache.get() else { return wanted };
        let bytes = (cache.lent() / 2).saturating_sub(marks.ram_bytes());
        let kept = wanted.within(bytes, together);
        cache.lend_to_cleaning(kept.ram_bytes() + marks.ram_bytes());
        kept
    }

    /// Returns whether a pass over the table costs less than a lookup for each record of these segments that the cache
    /// does not know; or of all segments, if it is unknown which records are dead, and so which segments are the best.
    fn pays_to_mark(&self, wanted: &[LiveSegment], segments: &[LiveSegment]) -> bool {
        let table = self.table.stats();
        let known = self.cache.get().map_or(0, |cache| cache.len());
        let unknown = 1.0 - (known as f64 / table.entries.max(1) as f64).min(1.0);
        let counted = if self.values.has_unknown_dead() { segments } else { wanted };
        let records: u64 = counted.iter().map(|it| u64::from(it.live_records)).sum();
        let pages = table.flash_bytes / nandex_device::PAGE_BYTES as u64;
        records as f64 * unknown > (pages / PAGES_A_RECORD) as f64
    }

    /// Stops noting the changes of updates.
    pub(super) fn forget_changes(&self) {
        lock(&self.updates).changes().end();
    }

    /// Returns whether updates may have changed a fingerprint since it was marked, while changes are still noted.
    pub(super) fn may_have_changed(&self, print: &Fingerprint) -> bool {
        lock(&self.updates).changes().may_have(print) == Some(true)
    }

    /// Returns whether a record is the newest of its fingerprint, whose stripe the caller holds; `None` if too much has
    /// changed since it was marked.
    ///
    /// # Errors
    /// Those of a lookup, for a record of a segment that was not marked.
    pub(super) fn is_live(
        &self,
        marks: Option<&Marks>,
        print: &Fingerprint,
        reference: ValueRef,
    ) -> Result<Option<bool>> {
        let is_newest = || Ok::<_, Error>(self.locate(print)? == Some(reference));
        match marks.and_then(|marks| marks.was_live(reference)) {
            // A record that has been replaced is never used again.
            Some(false) => Ok(Some(false)),
            Some(true) => {
                let may_have_changed = lock(&self.updates).changes().may_have(print);
                match may_have_changed {
                    Some(true) => is_newest().map(Some),
                    unchanged => Ok(unchanged.map(|changed| !changed)),
                }
            }
            None => is_newest().map(Some),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn little_ram_keeps_few_fingerprints_and_much_those_that_speed_asks_for() {
        let wanted = Kept::wanted(8 << 20, 40_000);
        let of = |kept: Kept| (kept.seen, kept.changes);
        assert_eq!(of(wanted), (64 << 10, 1 << 20));
        assert_eq!(of(wanted.within(u64::MAX, 40_000)), of(wanted));
        // The keys of some pages come first, with three quarters at most.
        assert_eq!(of(wanted.within(45_000 * PRINT_BYTES, 40_000)), (33_750, 191_250));
        assert_eq!(of(wanted.within(60_000 * PRINT_BYTES, 40_000)), (40_000, 340_000));
        assert_eq!(of(wanted.within(0, 40_000)), (PRINTS_MIN, PRINTS_MIN));
    }

    #[test]
    fn records_of_the_least_length_begin_at_places_of_their_own() {
        let mut begins = Begins::new(2);
        let all = 2 * PAYLOAD_BYTES as u32;
        let step = nandex_store::values::format::RECORD_HEADER_BYTES + FINGERPRINT_BYTES;
        let offsets = || (0..all).step_by(step);
        offsets().step_by(2).for_each(|offset| begins.note(offset));
        for (number, offset) in offsets().enumerate() {
            assert_eq!(begins.has(offset), Some(number % 2 == 0), "{offset}");
        }
        // A lookup determines whether it is live.
        begins.note(2 * all);
        assert_eq!(begins.has(2 * all), None);
    }

    #[test]
    fn a_set_keeps_its_memory_unless_it_is_for_much_less() {
        let mut prints: Prints = (0..4096_u32).map(|it| [it as u8; 16]).collect();
        prints.reserve(4096);
        let before = prints.capacity();
        clear(&mut prints, 2048);
        assert!(prints.is_empty() && prints.capacity() == before);
        clear(&mut prints, 100);
        assert!(prints.capacity() <= before / 8, "{}", prints.capacity());
    }
}
