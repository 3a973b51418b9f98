//! The filter of fingerprints, which finds a fingerprint by rank and select, and replaces its count.

use std::ops::Range;

use nandex_store::run::Entry;

use super::blocks::{Blocks, SLOTS};
use super::width::{Lanes, Width, WidthKind, with_width};
use super::{Counts, Outliers, Shape, StoredCount};
use crate::{Error, Result};

/// The number of fingerprints ahead that a batch prefetches.
const AHEAD: usize = 16;

/// A multiset of fingerprints, or counts of them, in RAM. See the [module](super) for how it works.
///
/// ```
/// use nandex::raw::quotient::{Counts, QuotientFilter, Shape};
/// use nandex::raw::store::fingerprint::Universe;
///
/// let universe = Universe::for_rate(1000, 0.01)?;
/// let shape = Shape::for_entries(universe, 1000, 0.94, Counts::Signed)?;
/// let mut filter = QuotientFilter::new(shape);
/// filter.add_many(&[17, 4, 17])?;
/// filter.add(4, -2)?;
/// assert_eq!((filter.count(17), filter.count(4), filter.count(5)), (2, -1, 0));
/// # Ok::<(), nandex::Error>(())
/// ```
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct QuotientFilter {
    pub(super) shape: Shape,
    pub(super) blocks: Blocks,
    pub(super) outliers: Outliers,
    /// Slots in use.
    pub(super) entries: u64,
    /// The slots that may be used: fewer than the blocks have.
    pub(super) slots: usize,
    pub(super) kind: WidthKind,
}

/// The position of a fingerprint, or the position where it would be.
pub(super) struct RunPosition {
    pub quotient: usize,
    pub remainder: u64,
    /// The run of its quotient.
    pub run: Range<usize>,
    /// The slots in that run that have its remainder; if it is absent, an empty range at its position.
    pub same: Range<usize>,
}

impl QuotientFilter {
    /// Creates an empty filter.
    ///
    /// Cost: RAM for all its slots, which the kernel provides as they come into use.
    #[must_use]
    pub fn new(shape: Shape) -> Self {
        let slots = usize::try_from(shape.slots()).expect("slots in RAM can be counted");
        let blocks = Blocks::new(slots, shape.slot_bits());
        let kind = WidthKind::new(shape.slot_bits());
        Self { shape, blocks, outliers: Outliers::default(), entries: 0, slots, kind }
    }

    /// RAM of an empty filter of this shape, in bytes.
    #[must_use]
    pub fn bytes_of(shape: &Shape) -> usize {
        let slots = usize::try_from(shape.slots()).expect("slots in RAM can be counted");
        Blocks::bytes_of(slots, shape.slot_bits())
    }

    /// Its sizes.
    #[must_use]
    pub const fn shape(&self) -> Shape {
        self.shape
    }

    /// Adds to the count of a fingerprint; does nothing for 0.
    ///
    /// Cost: about two cache misses, and the slots up to the next gap are moved.
    ///
    /// # Errors
    /// - [`Error::FilterFull`] if that takes too many slots or outliers, or no slot after the fingerprint's own is
    ///   free. An update that makes the filter smaller never fails for this reason.
    /// - [`Error::NotThere`] if the count would be less than 0 and slots hold no counts.
    /// - [`Error::CountRange`] if it would be past 63 bits.
    ///
    /// An error changes nothing.
    ///
    /// # Panics
    /// If the fingerprint is not of the shape's universe.
    #[inline]
    pub fn add(&mut self, fingerprint: u64, count: i64) -> Result<()> {
        with_width!(self.kind, width => self.add_at(width, fingerprint, count))
    }

    /// Adds 1 to the count of each fingerprint, in order, and stops at the first that does not fit. Returns
    /// how many it added.
    ///
    /// Cost: as [`add`](Self::add), but cache misses overlap.
    ///
    /// # Errors
    /// As `add`, except [`Error::FilterFull`]. Those before the error are added.
    ///
    /// # Panics
    /// If a fingerprint is not of the shape's universe.
    pub fn add_many(&mut self, fingerprints: &[u64]) -> Result<usize> {
        self.add_each(fingerprints, |&fingerprint| Entry { fingerprint, count: 1 })
    }

    /// Adds to the count of each entry's fingerprint, in order, and stops at the first entry that does not
    /// fit. Returns how many it added. A fingerprint may occur more than once.
    ///
    /// Cost: as [`add`](Self::add), but cache misses overlap.
    ///
    /// # Errors
    /// As `add`, except [`Error::FilterFull`]. Entries before the error are added.
    ///
    /// # Panics
    /// If a fingerprint is not of the shape's universe.
    pub fn add_entries(&mut self, entries: &[Entry]) -> Result<usize> {
        self.add_each(entries, |entry| *entry)
    }

    /// Adds the entry that `entry_of` returns for each item, up to the first that does not fit.
    #[inline(always)]
    fn add_each<T>(&mut self, items: &[T], entry_of: impl Fn(&T) -> Entry) -> Result<usize> {
        with_width!(self.kind, width => {
            for (done, item) in items.iter().enumerate() {
                if let Some(ahead) = items.get(done + AHEAD) {
                    self.prefetch_at(width, entry_of(ahead).fingerprint);
                }
                let Entry { fingerprint, count } = entry_of(item);
                match self.add_at(width, fingerprint, count) {
                    Err(Error::FilterFull { .. }) => return Ok(done),
                    added => added?,
                }
            }
        });
        Ok(items.len())
    }

    /// Returns the count of a fingerprint; 0 if it is absent.
    ///
    /// # Panics
    /// If the fingerprint is not of the shape's universe.
    #[inline]
    #[must_use]
    pub fn count(&self, fingerprint: u64) -> i64 {
        with_width!(self.kind, width => self.count_at(width, fingerprint))
    }

    /// Appends the counts of all these fingerprints.
    ///
    /// Cost: as [`count`](Self::count), but cache misses overlap.
    ///
    /// # Panics
    /// If a fingerprint is not of the shape's universe.
    pub fn count_many(&self, fingerprints: &[u64], counts: &mut Vec<i64>) {
        counts.reserve(fingerprints.len());
        with_width!(self.kind, width => {
            for (done, fingerprint) in fingerprints.iter().enumerate() {
                if let Some(ahead) = fingerprints.get(done + AHEAD) {
                    self.prefetch_at(width, *ahead);
                }
                counts.push(self.count_at(width, *fingerprint));
            }
        });
    }

    /// Prefetches the memory that a call with this fingerprint will read.
    ///
    /// # Panics
    /// If the fingerprint is not of the shape's universe.
    #[inline]
    pub fn prefetch(&self, fingerprint: u64) {
        with_width!(self.kind, width => self.prefetch_at(width, fingerprint));
    }

    /// Slots in use.
    #[must_use]
    pub const fn entries(&self) -> u64 {
        self.entries
    }

    /// The counts that do not fit its slots.
    #[must_use]
    pub fn outliers(&self) -> &Outliers {
        &self.outliers
    }

    /// Returns whether it has as many slots in use, or as many outliers, as allowed. Then the next `add` may fail.
    #[must_use]
    pub fn is_full(&self) -> bool {
        self.shape.is_full(self.entries, self.outliers.len())
    }

    /// Removes everything.
    pub fn clear(&mut self) {
        self.blocks.clear();
        self.outliers.clear();
        self.entries = 0;
    }

    /// The RAM that it takes, in bytes.
    #[must_use]
    pub fn ram_bytes(&self) -> usize {
        self.blocks.ram_bytes() + self.outliers.ram_bytes() + size_of::<Self>()
    }

    /// Splits a fingerprint into its quotient and remainder.
    #[inline(always)]
    pub(super) fn split(&self, fingerprint: u64) -> (usize, u64) {
        let split = self.shape.split();
        let size = split.universe().size();
        assert!(fingerprint < size, "fingerprint {fingerprint} of {size}");
        let (quotient, remainder) = split.split(fingerprint);
        (quotient as usize, remainder)
    }

    #[inline(always)]
    fn prefetch_at(&self, width: impl Width, fingerprint: u64) {
        self.blocks.prefetch(width, self.split(fingerprint).0);
    }

    #[inline(always)]
    fn count_at(&self, width: impl Width, fingerprint: u64) -> i64 {
        let (quotient, remainder) = self.split(fingerprint);
        // The slot's cache line is fetched together with the head's, not after it.
        self.blocks.prefetch_slot(width, quotient);
        let (block, place) = (quotient / SLOTS, quotient % SLOTS);
        let head = self.blocks.head(width, block);
        if head.occupieds >> place & 1 == 0 {
            return 0;
        }
        let Some((start, slots)) = Blocks::near_run(width, &head, place) else {
            return self.count_far(width, fingerprint);
        };
        let word = self.blocks.slots_from(width, block * SLOTS + start);
        let lanes = Lanes::new(width, word, slots);
        let counts = self.shape.counts();
        let same = lanes.equal(remainder, counts.bits());
        if counts == Counts::One || same == 0 {
            return i64::from(width.rank(same));
        }
        let code = lanes.first(same) & counts.mask();
        match counts.decode(code) {
            Some(each) => each * i64::from(width.rank(same)),
            None => self.outliers.get(fingerprint),
        }
    }

    /// Returns the count of a fingerprint, wherever its run is.
    #[inline(never)]
    fn count_far(&self, width: impl Width, fingerprint: u64) -> i64 {
        let found = self.find(width, fingerprint);
        self.stored(width, fingerprint, &found.same).count(self.shape.counts())
    }

    /// Returns the first of these ascending slots that have this remainder.
    #[inline(always)]
    pub(super) fn same(
        &self,
        width: impl Width,
        remainder: u64,
        slots: Range<usize>,
    ) -> Range<usize> {
        let end = slots.clone().find(|slot| self.remainder(width, *slot) != remainder);
        slots.start..end.unwrap_or(slots.end)
    }

    /// Returns the position of a fingerprint.
    #[inline(always)]
    pub(super) fn find(&self, width: impl Width, fingerprint: u64) -> RunPosition {
        let (quotient, remainder) = self.split(fingerprint);
        let run = self.blocks.run(width, quotient);
        let start = run.clone().find(|slot| self.remainder(width, *slot) >= remainder);
        let same = self.same(width, remainder, start.unwrap_or(run.end)..run.end);
        RunPosition { quotient, remainder, run, same }
    }

    /// Returns the stored form of the count of a fingerprint with these slots.
    #[inline(always)]
    pub(super) fn stored(
        &self,
        width: impl Width,
        fingerprint: u64,
        same: &Range<usize>,
    ) -> StoredCount {
        if same.is_empty() {
            return StoredCount::default();
        }
        let counts = self.shape.counts();
        let code = self.blocks.slot(width, same.start) & counts.mask();
        let slots = same.len();
        let has_outlier = StoredCount::has_outlier(counts, slots, code);
        let outlier = if has_outlier { self.outliers.get(fingerprint) } else { 0 };
        StoredCount { slots, code, outlier }
    }

    /// The remainder in a slot.
    #[inline(always)]
    pub(super) fn remainder(&self, width: impl Width, slot: usize) -> u64 {
        self.blocks.slot(width, slot) >> self.shape.counts().bits()
    }

    /// Adds in the general way: finds the fingerprint's count, and replaces it.
    #[cold]
    pub(super) fn add_found(
        &mut self,
        width: impl Width,
        fingerprint: u64,
        count: i64,
    ) -> Result<()> {
        let found = self.find(width, fingerprint);
        let before = self.stored(width, fingerprint, &found.same);
        let counts = self.shape.counts();
        let after = StoredCount::of(counts, counts.sum(before.count(counts), count)?);
        let more = after.slots.saturating_sub(before.slots);
        let is_outlier_more = after.outlier != 0 && before.outlier == 0;
        let outliers = is_outlier_more.then_some(self.outliers.len());
        self.shape.check_limits(self.entries, more, outliers)?;
        self.replace(width, &found, after)?;
        self.outliers.set(fingerprint, after.outlier);
        Ok(())
    }

    /// Makes the slots of a fingerprint store this count. Changes nothing if there are too few slots.
    fn replace(
        &mut self,
        width: impl Width,
        found: &RunPosition,
        stored: StoredCount,
    ) -> Result<()> {
        let RunPosition { quotient, remainder, run, same } = found;
        let body = remainder << self.shape.counts().bits() | stored.code;
        let mut run = run.clone();
        for new in same.len()..stored.slots {
            if !self.insert(width, *quotient, &run, same.end, body) {
                (same.len()..new).for_each(|_| self.remove(width, *quotient, same.end));
                return Err(self.shape.no_slot_after(self.entries));
            }
            run = self.blocks.run(width, *quotient);
        }
        for _ in stored.slots..same.len() {
            self.remove(width, *quotient, same.start);
        }
        for slot in same.start..same.start + stored.slots {
            self.blocks.set_slot(width, slot, body);
        }
        Ok(())
    }
}
