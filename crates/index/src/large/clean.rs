//! Freeing space in the value log: a checkpoint, or copying the live records of a segment.

use nandex_store::mutants::{Barrier, is_on};
use nandex_store::values::format::LiveSegment;
use nandex_store::values::{LiveCounts, Purpose, ValueRef};

use super::cache::Now;
use super::format::{FINGERPRINT_BYTES, Fingerprint};
use super::{Inner, lock};
use crate::api::Table;
use crate::model::text;
use crate::{Error, Result};

/// Segments that are cleaned for a put before a log that grows does so instead. Two or three that are worth it gain
/// one, unless records are long.
const CLEANED_MAX: u32 = 4;

/// Receives each record of a segment, with its place and fingerprint.
type Visit<'a> = dyn FnMut(ValueRef, Fingerprint, &[u8]) -> Result<()> + 'a;

/// How far a segment was cleaned.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Cleaned {
    /// It was freed.
    Whole,
    /// There was no space for copies of all its live records.
    InPart,
}

impl<T: Table> Inner<T> {
    /// Frees space for a record of this many bytes. The caller holds no stripe.
    pub(super) fn make_space(&self, bytes: u64) -> Result<()> {
        let _lock = lock(&self.cleaner);
        // Two rounds are more than enough. Copies can fill what they free only if records are nearly as long
        // as segments.
        for cleaned in 0..2 * self.values.segments() {
            if self.values.has_space(bytes) {
                return Ok(());
            }
            let has_made = match cleaned {
                0..CLEANED_MAX => self.values.make_space(bytes)?,
                _ => self.values.make_space_at_once(bytes)?,
            };
            if has_made || self.values.has_space(bytes) {
                continue;
            }
            if !self.clean_one(bytes)? && !self.values.make_space_at_once(bytes)? {
                return Err(self.full());
            }
        }
        if self.values.has_space(bytes) { Ok(()) } else { Err(self.full()) }
    }

    /// Cleans the segment with the best ratio of garbage to copies; returns whether that may have gained anything.
    /// Crashes during cleaning may have used up the reserve for copies; those are then found to be garbage first.
    fn clean_one(&self, bytes: u64) -> Result<bool> {
        let Some(segment) = self.choose(bytes)? else { return Ok(false) };
        if self.clean(segment)? == Cleaned::Whole {
            return Ok(true);
        }
        let has_uncounted = self.values.uncounted().is_some();
        while let Some(uncounted) = self.values.uncounted() {
            self.count_live(uncounted)?;
        }
        Ok(has_uncounted)
    }

    fn full(&self) -> Error {
        let stats = self.values.stats();
        let (live_bytes, flash_bytes) = (stats.live_bytes, stats.flash_bytes);
        let Some(reason) = self.values.growth_stopped() else {
            return Error::ValuesFull { live_bytes, flash_bytes };
        };
        let (live, flash) = (text::bytes(live_bytes), text::bytes(flash_bytes));
        let reason = format!(
            "its values take {live} of a log of {flash} that cannot grow: {reason}; make space for the volume, or remove some"
        );
        Error::GrowthStopped { entries: self.table.stats().entries, reason }
    }

    /// The next segment to clean. Before it reports that there is none, it recounts the live bytes of
    /// segments whose count a crash may have made too high.
    fn choose(&self, bytes: u64) -> Result<Option<LiveSegment>> {
        loop {
            if let Some(segment) = self.values.worth_cleaning(bytes) {
                return Ok(Some(segment));
            }
            let Some(uncounted) = self.values.uncounted() else { return Ok(None) };
            self.count_live(uncounted)?;
        }
    }

    fn count_live(&self, segment: LiveSegment) -> Result<()> {
        let mut live = LiveCounts::default();
        self.visit(segment, &mut |reference, fingerprint, _| {
            if self.locate(&fingerprint)? == Some(reference) {
                live.note(reference);
            }
            Ok(())
        })?;
        self.values.note_counted(segment, live);
        Ok(())
    }

    /// Copies a segment's live records, and frees it once nothing durable refers to it.
    fn clean(&self, segment: LiveSegment) -> Result<Cleaned> {
        let mut cleaned = Cleaned::Whole;
        self.visit(segment, &mut |reference, fingerprint, record| {
            if cleaned == Cleaned::InPart {
                return Ok(());
            }
            self.publish_before(reference.whole_bytes())?;
            let _stripe = self.stripe(&fingerprint);
            if self.locate(&fingerprint)? != Some(reference) {
                return Ok(());
            }
            match self.values.append(Purpose::Copy, &[record])? {
                Some(copy) => self.note(fingerprint, Now::Moved(copy), Some(reference)),
                None => cleaned = Cleaned::InPart,
            }
            Ok(())
        })?;
        if cleaned == Cleaned::InPart {
            return Ok(cleaned);
        }
        self.publish_all()?;
        // The table that a crash would restore must not refer to the segment any more.
        if is_on(Barrier::CleaningSyncsReferences) {
            self.table.sync()?;
        }
        self.values.give_back(segment);
        Ok(cleaned)
    }

    /// Visits the records of a segment, with their fingerprints.
    fn visit(&self, segment: LiveSegment, visit: &mut Visit<'_>) -> Result<()> {
        let mut stop = None;
        let visited = self.values.visit(segment, &mut |reference, record| {
            let mut fingerprint = [0; FINGERPRINT_BYTES];
            let start = record.get(..FINGERPRINT_BYTES);
            let start = start.ok_or_else(|| nandex_store::Error::config("record", "too short"))?;
            fingerprint.copy_from_slice(start);
            visit(reference, fingerprint, record).map_err(|error| match error {
                Error::Store(error) => error,
                other => {
                    let text = other.to_string();
                    stop = Some(other);
                    nandex_store::Error::config("record", text)
                }
            })
        });
        match (stop, visited) {
            (Some(error), _) => Err(error),
            (None, visited) => Ok(visited?),
        }
    }
}
