//! Freeing space in the value log: a checkpoint, or copying the live records of a segment.

use nandex_store::mutants::{Barrier, is_on};
use nandex_store::values::format::LiveSegment;
use nandex_store::values::{Purpose, ValueRef};

use super::format::{FINGERPRINT_BYTES, Fingerprint};
use super::{Inner, lock};
use crate::api::Table;
use crate::{Error, Result};

/// Receives each record of a segment, with its place and fingerprint.
type Visit<'a> = dyn FnMut(ValueRef, Fingerprint, &[u8]) -> Result<()> + 'a;

impl<T: Table> Inner<T> {
    /// Frees space for a record of this many bytes. The caller holds no stripe.
    pub(super) fn make_space(&self, bytes: u64) -> Result<()> {
        let _lock = lock(&self.cleaner);
        // Two rounds are more than enough. Copies can fill what they free only if records are nearly as long
        // as segments.
        for _ in 0..2 * self.values.config().segments {
            if self.values.has_space(bytes) {
                return Ok(());
            }
            if !self.values.make_space()? && !self.values.has_space(bytes) {
                self.clean_one()?;
            }
        }
        if self.values.has_space(bytes) { Ok(()) } else { Err(self.full()) }
    }

    /// Cleans the segment with the best ratio of garbage to copies. Crashes during cleaning may have used up
    /// the reserve for copies; those copies are then found to be garbage first.
    fn clean_one(&self) -> Result<()> {
        let segment = self.choose()?;
        match self.clean(segment) {
            Err(Error::ValuesFull { .. }) if self.values.uncounted().is_some() => {
                while let Some(uncounted) = self.values.uncounted() {
                    self.count_live(uncounted)?;
                }
                Ok(())
            }
            cleaned => cleaned,
        }
    }

    fn full(&self) -> Error {
        let stats = self.values.stats();
        let (live_bytes, flash_bytes) = (stats.live_bytes, stats.flash_bytes);
        Error::ValuesFull { live_bytes, flash_bytes }
    }

    /// The next segment to clean. Before it reports that there is none, it recounts the live bytes of
    /// segments whose count a crash may have made too high.
    fn choose(&self) -> Result<LiveSegment> {
        loop {
            if let Some(segment) = self.values.worth_cleaning() {
                return Ok(segment);
            }
            let Some(uncounted) = self.values.uncounted() else {
                return Err(self.full());
            };
            self.count_live(uncounted)?;
        }
    }

    fn count_live(&self, segment: LiveSegment) -> Result<()> {
        let mut live_bytes = 0;
        self.visit(segment, &mut |reference, fingerprint, _| {
            if self.locate(&fingerprint)? == Some(reference) {
                live_bytes += reference.whole_bytes();
            }
            Ok(())
        })?;
        self.values.note_counted(segment, live_bytes);
        Ok(())
    }

    /// Copies a segment's live records, and frees it once nothing durable refers to it.
    fn clean(&self, segment: LiveSegment) -> Result<()> {
        self.visit(segment, &mut |reference, fingerprint, record| {
            self.publish_before(reference.whole_bytes())?;
            let _stripe = self.stripe(&fingerprint);
            if self.locate(&fingerprint)? != Some(reference) {
                return Ok(());
            }
            let copy = self.values.append(Purpose::Copy, &[record])?;
            let copy = copy.ok_or_else(|| self.full())?;
            self.note(fingerprint, Some(copy), Some(reference));
            Ok(())
        })?;
        self.publish_all()?;
        // The table that a crash would restore must not refer to the segment any more.
        if is_on(Barrier::CleaningSyncsReferences) {
            self.table.sync()?;
        }
        self.values.give_back(segment);
        Ok(())
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
