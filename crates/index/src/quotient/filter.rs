//! The readable quotient filter: a fingerprint is found, and its count replaced.

use std::ops::Range;

use super::counts::{Held, added};
use super::full::{is_full, no_slot_behind, room};
use super::iter::{Batches, Iter};
use super::slots::{SlotArray, Stored};
use super::{Counts, Outliers, Shape};
use crate::Result;

/// A multiset of fingerprints, or counts of them, in RAM. See the [module](super) for how it works.
///
/// ```
/// use nandex::quotient::{Counts, QuotientFilter, Shape};
/// use nandex::store::fingerprint::Universe;
///
/// let universe = Universe::for_rate(1000, 0.01)?;
/// let shape = Shape::for_entries(universe, 1000, 0.75, Counts::One)?;
/// let mut filter = QuotientFilter::new(shape);
/// let fingerprint = universe.of(0x0123_4567_89ab_cdef);
/// filter.add(fingerprint, 1)?;
/// filter.add(fingerprint, 1)?;
/// filter.add(fingerprint, -1)?;
/// assert_eq!(filter.count(fingerprint), 1);
/// # Ok::<(), nandex::Error>(())
/// ```
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct QuotientFilter {
    pub(super) shape: Shape,
    pub(super) slots: SlotArray,
    pub(super) outliers: Outliers,
    /// Slots in use.
    pub(super) entries: u64,
}

/// Where a fingerprint is, or would be.
struct Found {
    quotient: usize,
    remainder: u64,
    /// The run of its quotient.
    run: Range<usize>,
    /// The slots in that run that have its remainder.
    same: Range<usize>,
    held: Held,
}

impl QuotientFilter {
    /// An empty filter.
    #[must_use]
    pub fn new(shape: Shape) -> Self {
        let slots = usize::try_from(shape.slots()).expect("slots in RAM can be counted");
        let slots = SlotArray::new(slots, shape.slot_bits());
        Self { shape, slots, outliers: Outliers::default(), entries: 0 }
    }

    /// Its sizes.
    #[must_use]
    pub const fn shape(&self) -> Shape {
        self.shape
    }

    /// Adds to the count of a fingerprint; of 0, nothing.
    ///
    /// Cost: a walk over one cluster for each slot that it comes to take or to leave.
    ///
    /// # Errors
    /// [`Error::FilterFull`](crate::Error::FilterFull) where that takes more slots than there may be in use,
    /// more than are left behind its quotient, or one outlier too many; what makes a filter smaller is never
    /// refused so. [`NotThere`](crate::Error::NotThere) where the count would be less than 0 and slots say no
    /// counts, [`CountRange`](crate::Error::CountRange) where it would be past 63 bits. Nothing is changed
    /// then.
    ///
    /// # Panics
    /// If the fingerprint is not of the shape's universe.
    pub fn add(&mut self, fingerprint: u64, count: i64) -> Result<()> {
        let found = self.find(fingerprint);
        let counts = self.shape.counts();
        let sum = added(counts, found.held.count(counts), count)?;
        let held = Held::of(counts, sum);
        self.check_room(&found, held)?;
        self.replace(&found, held);
        self.outliers.set(fingerprint, held.beside);
        Ok(())
    }

    /// The count of a fingerprint; 0 where it is not there.
    ///
    /// # Panics
    /// If the fingerprint is not of the shape's universe.
    #[must_use]
    pub fn count(&self, fingerprint: u64) -> i64 {
        self.find(fingerprint).held.count(self.shape.counts())
    }

    /// Is its count above 0?
    ///
    /// # Panics
    /// If the fingerprint is not of the shape's universe.
    #[must_use]
    pub fn contains_fingerprint(&self, fingerprint: u64) -> bool {
        self.count(fingerprint) > 0
    }

    /// Slots in use.
    #[must_use]
    pub const fn entries(&self) -> u64 {
        self.entries
    }

    /// Outliers beside the slots.
    #[must_use]
    pub fn outliers(&self) -> &Outliers {
        &self.outliers
    }

    /// Are as many slots in use, or as many outliers there, as may be? Then the next `add` may be refused.
    #[must_use]
    pub fn is_full(&self) -> bool {
        is_full(&self.shape, self.entries, self.outliers.len())
    }

    /// Forgets everything.
    pub fn clear(&mut self) {
        self.slots.clear();
        self.outliers.clear();
        self.entries = 0;
    }

    /// RAM it takes, in bytes.
    #[must_use]
    pub fn ram_bytes(&self) -> usize {
        size_of_val(self.slots.words()) + self.outliers.ram_bytes() + size_of::<Self>()
    }

    /// All fingerprints in ascending order, each once, with its count.
    #[must_use]
    pub fn iter(&self) -> Iter<'_> {
        Iter::new(self)
    }

    /// The same as a source for merges.
    #[must_use]
    pub fn source(&self) -> Batches<Iter<'_>> {
        Batches(self.iter())
    }

    /// Where a fingerprint is: in the run of its quotient, all slots that have its remainder.
    fn find(&self, fingerprint: u64) -> Found {
        let universe = self.shape.split().universe();
        assert!(fingerprint < universe.size(), "fingerprint {fingerprint} of {}", universe.size());
        let (quotient, remainder) = self.shape.split().split(fingerprint);
        let quotient = usize::try_from(quotient).expect("quotients are less than slots");
        let run = self.slots.run(quotient);
        let remainders = run.clone().map(|at| self.remainder(at));
        let start = run.start + remainders.clone().take_while(|it| *it < remainder).count();
        let end = run.start + remainders.take_while(|it| *it <= remainder).count();
        let held = self.held(fingerprint, &(start..end));
        Found { quotient, remainder, run, same: start..end, held }
    }

    /// How the count of a fingerprint is held that has these slots.
    pub(super) fn held(&self, fingerprint: u64, same: &Range<usize>) -> Held {
        if same.is_empty() {
            return Held::default();
        }
        let counts = self.shape.counts();
        let (slots, code) = (same.len(), self.code(same.start));
        let has_beside = Held::has_beside(counts, slots, code);
        let beside = if has_beside { self.outliers.get(fingerprint) } else { 0 };
        Held { slots, code, beside }
    }

    /// The remainder in a slot.
    pub(super) fn remainder(&self, at: usize) -> u64 {
        self.slots.body(at) >> self.shape.counts().bits()
    }

    /// The count code in a slot.
    pub(super) fn code(&self, at: usize) -> u64 {
        self.slots.body(at) & self.shape.counts().mask()
    }

    /// Is there room for what a fingerprint comes to take?
    fn check_room(&self, found: &Found, held: Held) -> Result<()> {
        let more = held.slots.saturating_sub(found.held.slots);
        let outliers = self.outliers.len() as u64;
        let is_outlier_more = held.beside != 0 && found.held.beside == 0;
        room(&self.shape, self.entries, more, is_outlier_more.then_some(outliers))?;
        // Whatever moves goes to the next gaps on the right.
        if more > 0 && self.slots.empties(found.quotient).nth(more - 1).is_none() {
            return Err(no_slot_behind(&self.shape, self.entries));
        }
        Ok(())
    }

    /// Makes the slots of a fingerprint say what they must.
    fn replace(&mut self, found: &Found, held: Held) {
        let Found { quotient, remainder, ref same, .. } = *found;
        let mut run = found.run.clone();
        let body = remainder << self.shape.counts().bits() | held.code;
        for at in same.clone().take(held.slots) {
            let stored = self.slots.stored(at);
            self.slots.store(at, Stored { body, ..stored });
        }
        for _ in held.slots..same.len() {
            self.slots.remove(quotient, &run, same.start + held.slots);
            run.end -= 1;
        }
        for _ in same.len()..held.slots {
            self.slots.insert(quotient, &run, same.end, body);
            run.end += 1;
        }
        self.entries = self.entries + held.slots as u64 - same.len() as u64;
    }
}

impl Counts {
    /// The bits of a body that are the code.
    const fn mask(self) -> u64 {
        (1 << self.bits()) - 1
    }
}
