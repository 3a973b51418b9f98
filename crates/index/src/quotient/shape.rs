//! The sizes of a quotient filter: the number of its slots, their width, and when it is full.

use nandex_store::fingerprint::{Split, Universe};

use super::Counts;
use crate::{Error, Result};

/// Sizes of a quotient filter.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Shape {
    split: Split,
    counts: Counts,
    entries_max: u64,
    slots: u64,
}

impl Shape {
    /// The maximum number of bits of a slot: remainder and count.
    pub const SLOT_BITS_MAX: u32 = 56;

    /// Creates the shape of a filter with `quotients` slots, and some more after the last for overflow. It is full at
    /// `entries_max` slots in use, or at 95 % of them if that is less: beyond that, each insert would move hundreds of
    /// others.
    ///
    /// # Errors
    /// [`Error::Config`] if remainder and count take more than 56 bits, or [`Counts::Small`] is not of 2 to 16.
    pub fn new(
        universe: Universe,
        quotients: u64,
        counts: Counts,
        entries_max: u64,
    ) -> Result<Self> {
        let split = Split::new(universe, quotients);
        if let Counts::Small(bits) = counts
            && !(2..=16).contains(&bits)
        {
            let reason = format!("{bits} bits for a count; there must be 2 to 16");
            return Err(Error::Config { field: "counts", reason });
        }
        let bits = split.remainder_bits() + counts.bits();
        if bits > Self::SLOT_BITS_MAX {
            let reason = format!(
                "{} slots over fingerprints of {} bits leave {bits} bits to each slot, and {} are the \
                 most; take more slots, or allow a higher rate of false positives",
                split.quotients(),
                universe.bits(),
                Self::SLOT_BITS_MAX
            );
            return Err(Error::Config { field: "quotients", reason });
        }
        let limit = split.quotients() - split.quotients().div_ceil(20);
        let slots = split.quotients() + 10 * split.quotients().isqrt() + 64;
        Ok(Self { split, counts, entries_max: entries_max.min(limit).max(1), slots })
    }

    /// Creates the shape of a filter that is full at `entries` slots in use, which are then the share `fill` of its
    /// slots.
    ///
    /// # Errors
    /// As [`new`](Self::new).
    pub fn for_entries(
        universe: Universe,
        entries: u64,
        fill: f64,
        counts: Counts,
    ) -> Result<Self> {
        let quotients = (entries as f64 / fill.clamp(0.01, 0.95)).ceil() as u64 + 1;
        Self::new(universe, quotients, counts, entries)
    }

    /// The way in which fingerprints are split.
    #[must_use]
    pub const fn split(&self) -> Split {
        self.split
    }

    /// The part of counts that a slot stores.
    #[must_use]
    pub const fn counts(&self) -> Counts {
        self.counts
    }

    /// The number of slots in use at which it is full.
    #[must_use]
    pub const fn entries_max(&self) -> u64 {
        self.entries_max
    }

    /// The number of outliers at which it is full.
    #[must_use]
    pub const fn outliers_max(&self) -> u64 {
        self.entries_max / 256 + 64
    }

    /// Returns the shape with another number of quotients, full at the same share of them. Fingerprints, and so the
    /// rate of false positives, stay the same.
    ///
    /// # Errors
    /// As [`new`](Self::new).
    pub fn resized(&self, quotients: u64) -> Result<Self> {
        let universe = self.split.universe();
        let split = Split::new(universe, quotients);
        let share = u128::from(self.entries_max) * u128::from(split.quotients());
        let entries_max = share.div_ceil(u128::from(self.split.quotients()));
        let entries_max = u64::try_from(entries_max).expect("no more entries than quotients");
        Self::new(universe, quotients, self.counts, entries_max)
    }

    /// Bits of a slot: remainder above, count below.
    #[must_use]
    pub const fn slot_bits(&self) -> u32 {
        self.split.remainder_bits() + self.counts.bits()
    }

    /// The slots in all: one per quotient, plus those after the last that a filter at its limit overflows into, except
    /// with a chance of less than one in 2^40.
    #[must_use]
    pub const fn slots(&self) -> u64 {
        self.slots
    }

    /// Returns whether a filter is full with this number of slots in use and of outliers.
    pub(super) const fn is_full(&self, entries: u64, outliers: usize) -> bool {
        entries >= self.entries_max || outliers as u64 >= self.outliers_max()
    }

    /// Checks that `slots` more are allowed when `entries` are in use, and, if `outliers` is given, that one more
    /// outlier is allowed.
    ///
    /// # Errors
    /// [`Error::FilterFull`].
    pub(super) fn check_limits(
        &self,
        entries: u64,
        slots: usize,
        outliers: Option<usize>,
    ) -> Result<()> {
        if slots > 0 && entries + slots as u64 > self.entries_max {
            let reason = format!(
                "and {} are the most; take a filter of more quotients, or grow this one",
                self.entries_max
            );
            return Err(self.full(entries, reason));
        }
        if outliers.is_some_and(|outliers| outliers as u64 >= self.outliers_max()) {
            let reason = format!(
                "and there are {} counts too large for slots, which are the most; take more bits for counts",
                self.outliers_max()
            );
            return Err(self.full(entries, reason));
        }
        Ok(())
    }

    /// Returns the error of a filter that has no slot after the last cluster.
    pub(super) fn no_slot_after(&self, entries: u64) -> Error {
        let reason = "and none is free after the fingerprint's own; chance does not give that many fingerprints \
                      the same quotients: hash keys with a secret, or grow the filter";
        self.full(entries, reason.into())
    }

    fn full(&self, entries: u64, reason: String) -> Error {
        Error::FilterFull { entries, slots: self.slots, reason }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_shape_has_slots_for_the_entries_at_which_it_is_full() {
        let universe = Universe::new(1 << 30).unwrap();
        let shape = Shape::for_entries(universe, 1000, 0.9, Counts::Signed).unwrap();
        assert_eq!((shape.split().quotients(), shape.entries_max()), (1113, 1000));
        assert_eq!(shape.slot_bits(), 21);
        let tight = Shape::new(universe, 100, Counts::One, 100).unwrap();
        assert_eq!(tight.entries_max(), 95);
        assert!(Shape::new(Universe::new(1 << 62).unwrap(), 2, Counts::One, 1).is_err());
        assert!(Shape::new(universe, 100, Counts::Small(17), 100).is_err());
    }
}
