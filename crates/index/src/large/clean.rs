//! Freeing space in the value log: a checkpoint, or copying the live records of a segment.

use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::{Condvar, Mutex, MutexGuard, OnceLock, TryLockError};
use std::time::Duration;

use nandex_store::mutants::{Barrier, is_on};
use nandex_store::values::format::LiveSegment;
use nandex_store::values::{LiveCounts, Purpose, ValueRef};
use nandex_store::{Asker, WhenFull};

use super::cache::Now;
use super::format::{FINGERPRINT_BYTES, Fingerprint};
use super::marks::{Marks, Prints};
use super::pace::Pace;
use super::{Inner, lock};
use crate::api::Table;
use crate::model::text;
use crate::{Error, Result};

/// The number of segments that are cleaned for a put before a growing log grows instead. Cleaning two or three that are
/// worth it usually gains one, unless records are long.
const CLEANED_MAX: u32 = 4;

/// The maximum number of bytes of the segments that are freed together, unless one has more: the syncs before that take
/// some milliseconds, in which a log of short segments would be full again.
const GROUP_BYTES: u64 = 4 << 20;

/// The records that are looked up together, and their bytes.
const DOUBTFUL_MAX: usize = 1024;
const DOUBTFUL_BYTES_MAX: usize = 128 << 10;

/// The longest wait of a put for another thread's cleaning before it checks again.
const FREED_WAIT: Duration = Duration::from_millis(20);

/// Receives each record of a segment, with its place and fingerprint.
type Visit<'a> = dyn FnMut(ValueRef, Fingerprint, &[u8]) -> Result<()> + 'a;

/// The extent to which a segment was cleaned.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Cleaned {
    /// The segment was freed.
    Whole,
    /// There was no space for copies of all its live records.
    InPart,
    /// Too much has changed meanwhile to determine which of its records are live.
    UpToChanges,
}

/// Segments whose live records were copied, and that are not free yet: they all wait for the same conditions.
#[derive(Default)]
struct Group {
    segments: Vec<LiveSegment>,
    bytes: u64,
}

impl Group {
    fn add(&mut self, segment: LiveSegment) {
        self.segments.push(segment);
        self.bytes += segment.written_bytes();
    }
}

/// Records whose liveness only a lookup determines: their segment was not marked, or their fingerprints may have
/// changed since.
#[derive(Default)]
struct Doubtful {
    places: Vec<(ValueRef, Fingerprint)>,
    /// Their bytes, one after the other.
    records: Vec<u8>,
}

impl Doubtful {
    fn push(&mut self, place: (ValueRef, Fingerprint), record: &[u8]) {
        self.places.push(place);
        self.records.extend_from_slice(record);
    }

    /// Returns whether more records would take much RAM.
    fn are_enough(&self) -> bool {
        self.places.len() >= DOUBTFUL_MAX || self.records.len() >= DOUBTFUL_BYTES_MAX
    }
}

/// The state of freeing space in the value log, for threads that free it and threads that wait.
#[derive(Debug, Default)]
pub(super) struct Cleaning {
    /// Held while freeing space.
    cleaner: Mutex<()>,
    /// The number of segments that were cleaned, and may be used.
    freed: Mutex<u64>,
    has_freed: Condvar,
    /// Requests a background thread; not set if there are none.
    pub(super) asker: OnceLock<Asker>,
    /// The bytes of the marks of live records in segments that are being cleaned.
    marks_bytes: AtomicU64,
    /// The keys that a pass over the table has seen. It keeps its memory for the next one.
    seen: Mutex<Prints>,
    /// The pace of puts during a pass.
    pub(super) pace: Pace,
}

impl Cleaning {
    /// Returns the keys that a pass has seen; the next one clears them.
    pub(super) fn seen(&self) -> MutexGuard<'_, Prints> {
        lock(&self.seen)
    }

    /// RAM that it takes, in bytes.
    pub(super) fn ram_bytes(&self) -> u64 {
        // A running pass holds it.
        let seen = self.seen.try_lock().map_or(0, |seen| seen.capacity());
        self.marks_bytes.load(Relaxed) + (seen * (size_of::<Fingerprint>() + 1)) as u64
    }

    /// Releases the memory of the last pass.
    pub(super) fn rest(&self) {
        if let Ok(mut seen) = self.seen.try_lock() {
            *seen = Prints::default();
        }
    }

    /// Wakes threads that wait for space.
    fn tell_freed(&self) {
        *lock(&self.freed) += 1;
        self.has_freed.notify_all();
    }

    /// Waits a short time until another thread has freed space.
    fn wait_for_freed(&self) {
        let freed = lock(&self.freed);
        let before = *freed;
        let is_same = |freed: &mut u64| *freed == before;
        let waited = self.has_freed.wait_timeout_while(freed, FREED_WAIT, is_same);
        drop(waited.expect("no holder of the count of freed segments panics"));
    }
}

impl<T: Table> Inner<T> {
    /// Frees space for a record of this many bytes, unless another thread does. The caller holds no stripe.
    pub(super) fn make_space(&self, bytes: u64) -> Result<()> {
        let mut asks = self.cleaning.asker.get();
        loop {
            match self.cleaning.cleaner.try_lock() {
                Ok(lock) => match asks.take().filter(|_| self.values.cleans_ahead()) {
                    // Another thread frees more meanwhile; if it does not, this one does.
                    Some(asker) => {
                        drop(lock);
                        asker.ask();
                        self.cleaning.wait_for_freed();
                    }
                    None => return self.make_space_locked(bytes),
                },
                Err(TryLockError::WouldBlock) if self.values.has_space(bytes) => return Ok(()),
                Err(TryLockError::WouldBlock) => self.cleaning.wait_for_freed(),
                Err(TryLockError::Poisoned(_)) => panic!("no holder of the cleaner's lock panics"),
            }
        }
    }

    /// Cleans in advance for later puts, if free segments run short and some are worth cleaning.
    ///
    /// # Errors
    /// A failed read or write.
    pub(super) fn clean_ahead(&self) -> Result<()> {
        let Ok(_lock) = self.cleaning.cleaner.try_lock() else { return Ok(()) };
        self.clean_groups()?;
        self.cleaning.tell_freed();
        Ok(())
    }

    /// Cleans while free segments run short and have fewer bytes than a group, so that puts do not wait for each one:
    /// the more are free, the more are cleaned together. Stops when copies take what is freed. A log that does not grow
    /// may be nearly full of live records; cleaning more than is needed would then only copy more.
    fn clean_groups(&self) -> Result<()> {
        let mut free_bytes = self.values.free_bytes_for_copies();
        while self.values.cleans_ahead() && !self.is_closing.load(Relaxed) {
            self.clean_some(0)?;
            self.volume.checkpoint()?;
            let before = std::mem::replace(&mut free_bytes, self.values.free_bytes_for_copies());
            let has_gained = free_bytes > before;
            if !self.grows() || !has_gained || free_bytes >= GROUP_BYTES {
                break;
            }
        }
        Ok(())
    }

    /// Releases the memory of the last pass, if none is running.
    pub(super) fn rest_from_cleaning(&self) {
        let Ok(_lock) = self.cleaning.cleaner.try_lock() else { return };
        self.cleaning.rest();
        lock(&self.updates).changes().rest();
        self.cache.get().into_iter().for_each(|cache| cache.lend_to_cleaning(0));
    }

    fn grows(&self) -> bool {
        self.values.config().when_full == WhenFull::Grow
    }

    /// Requests cleaning from the background, if free segments run short.
    pub(super) fn ask_for_cleaning(&self) {
        if let Some(asker) = self.cleaning.asker.get()
            && self.values.cleans_ahead()
        {
            asker.ask();
        }
    }

    fn make_space_locked(&self, bytes: u64) -> Result<()> {
        self.tell_live_now();
        // Two rounds are more than enough. Copies can fill what they free only if records are nearly as long
        // as segments.
        let mut has_cleaned_on = false;
        for cleaned in 0..2 * self.values.segments() {
            if self.values.has_space(bytes) {
                if cleaned == 0 || has_cleaned_on || !self.grows() {
                    return Ok(());
                }
                // Copies may use the space that was available.
                has_cleaned_on = true;
                self.clean_groups()?;
                continue;
            }
            // The table's own count of keys is an estimate.
            if cleaned == CLEANED_MAX {
                self.recount()?;
            }
            let has_made = match cleaned {
                0..CLEANED_MAX => self.values.make_space(bytes)?,
                _ => self.values.make_space_at_once(bytes)?,
            };
            if has_made || self.values.has_space(bytes) {
                continue;
            }
            let has_cleaned = self.clean_some(bytes)? || self.recount()?;
            if !has_cleaned && !self.values.make_space_at_once(bytes)? {
                return Err(self.full());
            }
        }
        if self.values.has_space(bytes) { Ok(()) } else { Err(self.full()) }
    }

    /// Cleans the segments with the best ratio of garbage to copies, together. Returns whether that may have gained
    /// anything. Crashes during cleaning may have used up the reserve for copies; those are then found to be garbage
    /// first.
    fn clean_some(&self, bytes: u64) -> Result<bool> {
        let Some(segment) = self.choose(bytes)? else { return Ok(false) };
        let cleaned = self.clean_together(segment, bytes);
        self.forget_changes();
        self.cleaning.marks_bytes.store(0, Relaxed);
        if cleaned? != Cleaned::InPart {
            return Ok(true);
        }
        let has_uncounted = self.values.uncounted().is_some();
        while let Some(uncounted) = self.values.uncounted() {
            self.count_live(uncounted)?;
        }
        Ok(has_uncounted)
    }

    /// Cleans the best segment, and with it others, so that they share the operations that make it durable; up to
    /// [`GROUP_BYTES`] of them, or as many as are worth it if the whole table is read for that. In a log that evicts,
    /// others may be gone by then.
    fn clean_together(&self, best: LiveSegment, bytes: u64) -> Result<Cleaned> {
        let mut together = self.values.all_worth_cleaning(bytes);
        if self.values.config().when_full.evicts() || together.first() != Some(&best) {
            together = vec![best];
        }
        let marks = self.mark(&together)?;
        if let Some(marks) = &marks {
            self.cleaning.marks_bytes.store(marks.ram_bytes(), Relaxed);
            // Now all counts are exact. Other segments that turn out to be better than expected are next.
            let best = self.values.all_worth_cleaning(bytes);
            together.retain(|segment| best.iter().any(|it| it.slot == segment.slot));
        }
        let mut group = Group::default();
        for (number, segment) in together.into_iter().enumerate() {
            if number > 0 && !self.may_join(&group, segment) {
                self.give_back(&mut group)?;
                if marks.is_none() || self.is_closing.load(Relaxed) {
                    break;
                }
                // The freed space takes the copies of the next segments, and the puts of other threads.
                if !self.values.has_space(bytes) {
                    self.volume.checkpoint()?;
                    self.cleaning.tell_freed();
                }
            }
            match self.copy_live(segment, marks.as_ref())? {
                Cleaned::Whole => group.add(segment),
                Cleaned::InPart if number == 0 => return Ok(Cleaned::InPart),
                Cleaned::InPart | Cleaned::UpToChanges => break,
            }
        }
        self.give_back(&mut group)?;
        Ok(Cleaned::Whole)
    }

    /// Returns whether a segment may share the operations that make the copies of others durable.
    fn may_join(&self, group: &Group, segment: LiveSegment) -> bool {
        group.bytes + segment.written_bytes() <= GROUP_BYTES
            && segment.live_bytes <= self.values.free_bytes_for_copies()
    }

    /// Frees segments whose live records were copied, once nothing durable refers to them.
    fn give_back(&self, group: &mut Group) -> Result<()> {
        let Group { segments, .. } = std::mem::take(group);
        if segments.is_empty() {
            return Ok(());
        }
        self.publish_all()?;
        // The table that a crash would restore must not refer to the segments any more.
        if is_on(Barrier::CleaningSyncsReferences) {
            self.table.sync()?;
        }
        segments.into_iter().for_each(|segment| self.values.give_back(segment));
        Ok(())
    }

    /// Counts the live records of each segment, if it is unknown which of the records are dead; returns whether it did.
    fn recount(&self) -> Result<bool> {
        if !self.has_unread.swap(false, Relaxed) {
            return Ok(false);
        }
        let counted = self.count_all();
        if counted.is_err() {
            self.has_unread.store(true, Relaxed);
        }
        counted.map(|()| true)
    }

    fn count_all(&self) -> Result<()> {
        let marked = self.mark_all();
        self.forget_changes();
        if marked? {
            return Ok(());
        }
        let segments = self.values.closed_segments();
        segments.into_iter().try_for_each(|segment| self.count_live(segment))
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

    /// Returns the next segment to clean. Before it reports that there is none, it recounts the live bytes of segments
    /// whose count a crash may have made too high.
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

    /// Copies a segment's live records.
    fn copy_live(&self, segment: LiveSegment, marks: Option<&Marks>) -> Result<Cleaned> {
        let mut cleaned = Cleaned::Whole;
        let mut doubtful = Doubtful::default();
        self.visit(segment, &mut |reference, fingerprint, record| {
            if cleaned != Cleaned::Whole {
                return Ok(());
            }
            let was_live = marks.and_then(|marks| marks.was_live(reference));
            match was_live {
                Some(false) => return Ok(()),
                Some(true) if !self.may_have_changed(&fingerprint) => {
                    cleaned = self.copy_record(marks, (reference, &fingerprint), record)?;
                    return Ok(());
                }
                Some(true) | None => {}
            }
            doubtful.push((reference, fingerprint), record);
            if doubtful.are_enough() {
                cleaned = self.copy_doubtful(marks, &mut doubtful)?;
            }
            Ok(())
        })?;
        if cleaned == Cleaned::Whole {
            cleaned = self.copy_doubtful(marks, &mut doubtful)?;
        }
        Ok(cleaned)
    }

    /// Copies a record, if it is live.
    fn copy_record(
        &self,
        marks: Option<&Marks>,
        (reference, fingerprint): (ValueRef, &Fingerprint),
        record: &[u8],
    ) -> Result<Cleaned> {
        self.publish_before(reference.whole_bytes())?;
        let _stripe = self.stripe(fingerprint);
        match self.is_live(marks, fingerprint, reference)? {
            Some(true) => {}
            Some(false) => return Ok(Cleaned::Whole),
            None => return Ok(Cleaned::UpToChanges),
        }
        let Some(copy) = self.values.append(Purpose::Copy, &[record])? else {
            return Ok(Cleaned::InPart);
        };
        self.note(*fingerprint, Now::Moved(copy), Some(reference));
        Ok(Cleaned::Whole)
    }

    /// Copies the live records among some, whose places are looked up together. A record that has been replaced stays
    /// dead, and no update has to wait for that; the others are looked up once more.
    fn copy_doubtful(&self, marks: Option<&Marks>, doubtful: &mut Doubtful) -> Result<Cleaned> {
        let Doubtful { places, records, .. } = std::mem::take(doubtful);
        let prints: Vec<_> = places.iter().map(|(_, print)| *print).collect();
        let known = self.places_in_ram(&prints);
        let unknown = places.iter().zip(&known).filter(|(_, known)| !known.is_known());
        let unknown: Vec<_> = unknown.map(|((_, print), _)| &print[..]).collect();
        let mut found = self.table.get_many(&unknown)?.into_iter();
        let mut at = 0;
        for ((reference, print), known) in places.iter().zip(known) {
            let record = &records[at..][..reference.bytes as usize];
            at += record.len();
            let now = match known.is_known() {
                true => known.value(),
                false => found.next().flatten().map(|value| self.decode(&value)).transpose()?,
            };
            if now == Some(*reference) {
                match self.copy_record(marks, (*reference, print), record)? {
                    Cleaned::Whole => {}
                    cleaned => return Ok(cleaned),
                }
            }
        }
        Ok(Cleaned::Whole)
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
