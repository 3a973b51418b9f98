//! Sizes of a quotient filter: how many slots, what a slot holds, and when it counts as full.

use nandex_store::fingerprint::{Split, Universe};

use crate::{Error, Result};

/// What a slot says of how often its fingerprint is there.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Counts {
    /// Nothing: once. A fingerprint that is there twice has two slots, as in the HotStorage'11 deck.
    #[default]
    One,
    /// One bit: once more, or once less, which is the tombstone of an insert that lies elsewhere.
    Signed,
    /// A count in so many bits, 2 to 16, below zero too; a fingerprint has one slot.
    Small(u32),
}

impl Counts {
    /// Bits of a slot that hold it.
    #[must_use]
    pub const fn bits(self) -> u32 {
        match self {
            Self::One => 0,
            Self::Signed => 1,
            Self::Small(bits) => bits,
        }
    }

    /// The bits that say `count` in one slot; nothing where it takes several slots or an outlier's.
    #[must_use]
    pub const fn encode(self, count: i64) -> Option<u64> {
        match (self, count) {
            (_, 0) => None,
            (Self::One | Self::Signed, 1) => Some(0),
            (Self::Signed, -1) => Some(1),
            (Self::One | Self::Signed, _) => None,
            (Self::Small(_), _) => {
                let code = (count.unsigned_abs() - 1) << 1 | (count < 0) as u64;
                if code < self.outlier() { Some(code) } else { None }
            }
        }
    }

    /// The count that these bits say; nothing where they say that it stands among the outliers.
    #[must_use]
    pub const fn decode(self, code: u64) -> Option<i64> {
        match self {
            Self::Small(_) if code >= self.outlier() => None,
            _ => {
                let count = (code >> 1) as i64 + 1;
                Some(if code & 1 == 1 { -count } else { count })
            }
        }
    }

    /// The bits that say that a count stands among the outliers.
    #[must_use]
    pub const fn outlier(self) -> u64 {
        (1 << self.bits()) - 1
    }
}

/// Sizes of a quotient filter.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Shape {
    split: Split,
    counts: Counts,
    entries_max: u64,
}

impl Shape {
    /// Bits of a slot at most: remainder and count.
    pub const SLOT_BITS_MAX: u32 = 56;

    /// A filter of `quotients` slots and some more behind the last for what overflows, which is full at
    /// `entries_max` slots in use. That is brought below 95 % of the slots: beyond, runs of slots in use
    /// get so long that each insert moves hundreds of others.
    ///
    /// # Errors
    /// [`Error::Config`] when remainder and count take more than 56 bits, or counts are not of 2 to 16.
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
        Ok(Self { split, counts, entries_max: entries_max.min(limit).max(1) })
    }

    /// A filter that is full at `entries` entries and then has `fill` of its slots in use.
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

    /// How fingerprints are cut.
    #[must_use]
    pub const fn split(&self) -> Split {
        self.split
    }

    /// What a slot says of counts.
    #[must_use]
    pub const fn counts(&self) -> Counts {
        self.counts
    }

    /// Slots in use at which it is full.
    #[must_use]
    pub const fn entries_max(&self) -> u64 {
        self.entries_max
    }

    /// Outliers at which it is full.
    #[must_use]
    pub const fn outliers_max(&self) -> u64 {
        self.entries_max / 256 + 64
    }

    /// The same filter over another number of quotients, full at the same share of them; fingerprints, and
    /// so the rate of false positives, stay.
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

    /// Slots in all: one per quotient, and as many behind the last as a filter at its limit overflows by,
    /// but for a chance of less than one in 2^40.
    #[must_use]
    pub const fn slots(&self) -> u64 {
        self.split.quotients() + 10 * self.split.quotients().isqrt() + 64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_count_is_read_back_or_is_an_outlier() {
        for counts in [Counts::One, Counts::Signed, Counts::Small(2), Counts::Small(8)] {
            for count in -200..200 {
                match counts.encode(count) {
                    Some(code) => assert_eq!(counts.decode(code), Some(count), "{counts:?}"),
                    None => assert!(count != 1, "{counts:?}"),
                }
            }
        }
        let small = Counts::Small(2);
        assert_eq!(
            [1, -1, 2, -2, 3].map(|n| small.encode(n)),
            [Some(0), Some(1), Some(2), None, None]
        );
        assert_eq!(small.decode(small.outlier()), None);
    }

    #[test]
    fn a_shape_has_slots_for_what_it_is_full_at() {
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
