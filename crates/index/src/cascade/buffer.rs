//! The buffer in RAM: a quotient filter, the deck's Q0, and what has to be known of it when it leaves.
//!
//! It begins with half of its size and takes the other half when that is full, so that parts whose buffers have
//! just been merged leave their RAM to the others. Growing is one pass over what is there; more and smaller
//! steps save more RAM, and make all inserts go into filters that are nearly full, which are slower.

use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;

use nandex_store::run::{Entry, Source};

use crate::quotient::{QuotientFilter, Shape, StoredCount};
use crate::{Error, Result};

/// Updates whose slots are fetched while earlier ones are applied.
const AHEAD: usize = 8;

/// Updates that go into the buffer and the log together.
#[derive(Clone, Copy, Debug)]
pub(super) enum Updates<'a> {
    /// Each fingerprint is there once more.
    Insert(&'a [u64]),
    /// Each fingerprint is there once less.
    Delete(&'a [u64]),
    /// Each fingerprint is there so many times more or less.
    Add(&'a [Entry]),
}

impl<'a> Updates<'a> {
    pub(super) fn len(self) -> usize {
        match self {
            Self::Insert(fingerprints) | Self::Delete(fingerprints) => fingerprints.len(),
            Self::Add(entries) => entries.len(),
        }
    }

    /// How many of them take something away.
    pub(super) fn deletes(self) -> u64 {
        match self {
            Self::Insert(_) => 0,
            Self::Delete(fingerprints) => fingerprints.len() as u64,
            Self::Add(entries) => entries.iter().filter(|entry| entry.count < 0).count() as u64,
        }
    }

    /// All but the first so many.
    pub(super) fn after(self, count: usize) -> Self {
        match self {
            Self::Insert(fingerprints) => Self::Insert(&fingerprints[count..]),
            Self::Delete(fingerprints) => Self::Delete(&fingerprints[count..]),
            Self::Add(entries) => Self::Add(&entries[count..]),
        }
    }

    /// The first so many.
    pub(super) fn first(self, count: usize) -> Self {
        match self {
            Self::Insert(fingerprints) => Self::Insert(&fingerprints[..count]),
            Self::Delete(fingerprints) => Self::Delete(&fingerprints[..count]),
            Self::Add(entries) => Self::Add(&entries[..count]),
        }
    }
}

/// The sizes that a buffer grows through, and the RAM that all buffers of a filter take.
#[derive(Debug)]
pub(super) struct Sizes {
    /// The smallest first, and the RAM of each in bytes.
    shapes: Vec<Shape>,
    bytes: Vec<u64>,
    taken_bytes: AtomicU64,
    bytes_max: u64,
}

impl Sizes {
    /// For buffers of these shapes, which may take so many bytes together.
    pub(super) fn new(shapes: Vec<Shape>, bytes_max: u64) -> Self {
        assert!(!shapes.is_empty(), "a buffer has a size");
        let bytes = bytes_of(&shapes);
        Self { shapes, bytes, taken_bytes: AtomicU64::new(0), bytes_max }
    }

    /// Takes so many bytes; not past the limit.
    fn take(&self, bytes: u64) -> bool {
        let more = |taken: u64| (taken + bytes <= self.bytes_max).then_some(taken + bytes);
        self.taken_bytes.fetch_update(Relaxed, Relaxed, more).is_ok()
    }

    fn take_in_any_case(&self, bytes: u64) -> bool {
        self.taken_bytes.fetch_add(bytes, Relaxed);
        true
    }

    fn give_back(&self, bytes: u64) {
        self.taken_bytes.fetch_sub(bytes, Relaxed);
    }
}

/// RAM that buffers of these shapes take, but for a few bytes; of very small ones, whose slots are wide, never
/// less than of those before.
pub(super) fn bytes_of(shapes: &[Shape]) -> Vec<u64> {
    let mut most = 0;
    let grown = |shape| {
        most = most.max(QuotientFilter::bytes_of(shape) as u64);
        most
    };
    shapes.iter().map(grown).collect()
}

/// Fingerprints in RAM.
#[derive(Debug)]
pub(super) struct Buffer {
    sizes: Arc<Sizes>,
    /// Which of the sizes it has.
    size: usize,
    filter: QuotientFilter,
    /// Updates since it was empty or just as an image on flash.
    pub updates: u64,
    /// May there be tombstones in it?
    pub has_deletes: bool,
}

impl Buffer {
    pub(super) fn new(sizes: &Arc<Sizes>) -> Self {
        let (sizes, filter) = (Arc::clone(sizes), QuotientFilter::new(sizes.shapes[0]));
        // What no buffer can do without is its own, whatever the limit.
        sizes.take_in_any_case(sizes.bytes[0]);
        Self { sizes, size: 0, filter, updates: 0, has_deletes: false }
    }

    /// Applies updates up to the first that finds no room; gives how many there were.
    ///
    /// # Errors
    /// A count past 63 bits. Those before it are applied.
    pub(super) fn apply(&mut self, updates: Updates<'_>) -> Result<usize> {
        self.apply_growing(updates, Sizes::take)
    }

    fn apply_growing(
        &mut self,
        updates: Updates<'_>,
        take: impl Fn(&Sizes, u64) -> bool,
    ) -> Result<usize> {
        let mut done = 0;
        loop {
            done += self.apply_some(updates.after(done))?;
            if done == updates.len() || !self.grow(&take)? {
                return Ok(done);
            }
        }
    }

    /// Takes the next size, unless it has the last, or there is no RAM for it.
    fn grow(&mut self, take: impl Fn(&Sizes, u64) -> bool) -> Result<bool> {
        let Some(next) = self.sizes.shapes.get(self.size + 1) else { return Ok(false) };
        let more = self.sizes.bytes[self.size + 1] - self.sizes.bytes[self.size];
        if !take(&self.sizes, more) {
            return Ok(false);
        }
        self.filter = QuotientFilter::from_source(*next, &mut self.filter.source())?;
        self.size += 1;
        Ok(true)
    }

    fn apply_some(&mut self, updates: Updates<'_>) -> Result<usize> {
        let count = match updates {
            Updates::Insert(fingerprints) => self.filter.add_many(fingerprints)?,
            Updates::Delete(fingerprints) => {
                self.has_deletes = true;
                self.add_each(fingerprints.iter().map(|fingerprint| (*fingerprint, -1)))?
            }
            Updates::Add(entries) => {
                self.has_deletes |= entries.iter().any(|entry| entry.count < 0);
                self.add_each(entries.iter().map(|entry| (entry.fingerprint, entry.count)))?
            }
        };
        self.updates += count as u64;
        Ok(count)
    }

    fn add_each(&mut self, updates: impl Iterator<Item = (u64, i64)> + Clone) -> Result<usize> {
        let mut done = 0;
        let mut ahead = updates.clone().skip(AHEAD);
        for (fingerprint, count) in updates {
            ahead.next().into_iter().for_each(|(next, _)| self.filter.prefetch(next));
            match self.filter.add(fingerprint, count) {
                Err(Error::FilterFull { .. }) => break,
                added => added?,
            }
            done += 1;
        }
        Ok(done)
    }

    /// Is there room for all of an image? Its fingerprints are as many as fitted once, but those that were
    /// saved again and again take more slots together than they did each time.
    ///
    /// # Errors
    /// A failed read, or damage.
    pub(super) fn has_room_for(&self, image: &mut dyn Source) -> Result<bool> {
        let (mut slots, mut outliers) =
            (self.filter.entries(), self.filter.outliers().len() as u64);
        let shape = self.sizes.shapes.last().expect("a buffer has a size");
        let counts = shape.counts();
        let mut batch = Vec::new();
        while image.next_batch(&mut batch)? {
            for entry in &batch {
                let before = self.filter.count(entry.fingerprint);
                let Some(after) = before.checked_add(entry.count) else { return Ok(false) };
                let (before, after) =
                    (StoredCount::of(counts, before), StoredCount::of(counts, after));
                slots += after.slots.saturating_sub(before.slots) as u64;
                outliers += u64::from(after.outlier != 0 && before.outlier == 0);
            }
            batch.clear();
        }
        Ok(slots <= shape.entries_max() && outliers <= shape.outliers_max())
    }

    /// Takes in an image that it [has room for](Self::has_room_for), which is on flash and so no update. It
    /// was in RAM before, so RAM is taken for it in any case.
    ///
    /// # Errors
    /// A failed read, or damage.
    pub(super) fn load(&mut self, image: &mut dyn Source) -> Result<()> {
        let updates = self.updates;
        let mut batch = Vec::new();
        while image.next_batch(&mut batch)? {
            let taken = self.apply_growing(Updates::Add(&batch), Sizes::take_in_any_case)?;
            assert_eq!(taken, batch.len(), "an image that is loaded fits");
            batch.clear();
        }
        self.updates = updates;
        Ok(())
    }

    pub(super) fn count(&self, fingerprint: u64) -> i64 {
        self.filter.count(fingerprint)
    }

    pub(super) fn prefetch(&self, fingerprint: u64) {
        self.filter.prefetch(fingerprint);
    }

    pub(super) fn source(&self) -> Box<dyn Source + '_> {
        Box::new(self.filter.source())
    }

    pub(super) fn entries(&self) -> u64 {
        self.filter.entries()
    }

    pub(super) fn ram_bytes(&self) -> u64 {
        self.filter.ram_bytes() as u64
    }

    pub(super) fn clear(&mut self) {
        if self.size == 0 {
            self.filter.clear();
        } else {
            self.filter = QuotientFilter::new(self.sizes.shapes[0]);
            self.sizes.give_back(self.sizes.bytes[self.size] - self.sizes.bytes[0]);
            self.size = 0;
        }
        (self.updates, self.has_deletes) = (0, false);
    }
}
