//! How the count of a fingerprint is stored: in how many slots, with which bits, and how much as an outlier.

use crate::{Error, Result};

/// Slots of one fingerprint at most.
pub const REPEATS_MAX: usize = 8;

/// What a slot stores of the count of its fingerprint.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Counts {
    /// Nothing: one. A fingerprint that was added twice has two slots, as in the HotStorage'11 deck.
    #[default]
    One,
    /// One bit: plus one or minus one. Minus one is the tombstone of an insert into another filter.
    Signed,
    /// A count in 2 to 16 bits, which may be negative. A fingerprint has one slot.
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

    /// The bits of a slot's body that hold it.
    #[inline(always)]
    pub(super) const fn mask(self) -> u64 {
        (1 << self.bits()) - 1
    }

    /// The bits that say `count` in one slot; nothing if it takes several slots or an outlier.
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

    /// The count that these bits say; nothing if they say that it is an outlier.
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

    /// The bits that say that a count is an outlier.
    #[must_use]
    pub const fn outlier(self) -> u64 {
        (1 << self.bits()) - 1
    }

    /// What a count becomes by adding to it.
    ///
    /// # Errors
    /// [`Error::CountRange`] past 63 bits. [`Error::NotThere`] below zero for [`One`](Self::One), which has no
    /// tombstones.
    pub(crate) fn sum(self, count: i64, amount: i64) -> Result<i64> {
        let sum = count.checked_add(amount).filter(|sum| *sum != i64::MIN);
        let sum = sum.ok_or(Error::CountRange { count, amount })?;
        if self == Self::One && sum < 0 {
            return Err(Error::NotThere { count, amount });
        }
        Ok(sum)
    }
}

/// How a filter stores the count of one fingerprint. There is one way for each count, so filters with the same
/// entries are the same bit for bit, in whatever order the entries came.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct StoredCount {
    /// Slots it takes.
    pub slots: usize,
    /// The count's bits in each of them.
    pub code: u64,
    /// The outlier; 0 for none.
    pub outlier: i64,
}

impl StoredCount {
    /// How `count` is stored. [`Counts::Small`] takes one slot, which has the count or says that it is an
    /// outlier. The others take one slot for each, up to [`REPEATS_MAX`]; the rest is an outlier.
    #[must_use]
    pub fn of(counts: Counts, count: i64) -> Self {
        if count == 0 {
            return Self::default();
        }
        if let Counts::Small(_) = counts {
            return match counts.encode(count) {
                Some(code) => Self { slots: 1, code, outlier: 0 },
                None => Self { slots: 1, code: counts.outlier(), outlier: count },
            };
        }
        let slots = count.unsigned_abs().min(REPEATS_MAX as u64);
        let outlier = count - count.signum() * slots as i64;
        Self { slots: slots as usize, code: u64::from(count < 0), outlier }
    }

    /// May a fingerprint in this many slots, with these bits, have an outlier?
    #[must_use]
    pub fn has_outlier(counts: Counts, slots: usize, code: u64) -> bool {
        match counts {
            Counts::Small(_) => slots > 0 && code == counts.outlier(),
            Counts::One | Counts::Signed => slots >= REPEATS_MAX,
        }
    }

    /// The count that is stored this way.
    #[must_use]
    pub fn count(self, counts: Counts) -> i64 {
        let each = counts.decode(self.code).unwrap_or_default();
        (each * self.slots as i64).saturating_add(self.outlier)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_code_says_the_count_or_that_it_is_an_outlier() {
        for counts in [Counts::One, Counts::Signed, Counts::Small(2), Counts::Small(8)] {
            for count in -200..200 {
                match counts.encode(count) {
                    Some(code) => assert_eq!(counts.decode(code), Some(count), "{counts:?}"),
                    None => assert!(count != 1, "{counts:?}"),
                }
            }
        }
        let small = Counts::Small(2);
        let codes = [1, -1, 2, -2, 3].map(|count| small.encode(count));
        assert_eq!(codes, [Some(0), Some(1), Some(2), None, None]);
        assert_eq!(small.decode(small.outlier()), None);
    }

    #[test]
    fn a_count_is_stored_in_one_way_and_read_back() {
        for counts in [Counts::One, Counts::Signed, Counts::Small(2), Counts::Small(5)] {
            let least = if counts == Counts::One { 0 } else { -100 };
            for count in (least..100).chain([i64::MAX, i64::MAX - 9]) {
                let stored = StoredCount::of(counts, count);
                assert_eq!(stored.count(counts), count, "{counts:?} {stored:?}");
                assert_eq!(stored.slots == 0, count == 0);
                let may_have = StoredCount::has_outlier(counts, stored.slots, stored.code);
                assert!(may_have || stored.outlier == 0, "{counts:?} {stored:?}");
            }
        }
        let stored = |counts, count| {
            let stored = StoredCount::of(counts, count);
            (stored.slots, stored.code, stored.outlier)
        };
        assert_eq!(stored(Counts::One, 3), (3, 0, 0));
        assert_eq!(stored(Counts::Signed, -11), (8, 1, -3));
        assert_eq!(stored(Counts::Small(2), 2), (1, 2, 0));
        assert_eq!(stored(Counts::Small(2), -2), (1, 3, -2));
    }

    #[test]
    fn sums_that_no_filter_can_store_are_refused() {
        assert!(matches!(Counts::One.sum(2, -3), Err(Error::NotThere { .. })));
        assert_eq!(Counts::Signed.sum(2, -3).unwrap(), -1);
        assert!(matches!(Counts::One.sum(i64::MAX, 1), Err(Error::CountRange { .. })));
        let least = Counts::Small(4).sum(-i64::MAX, -1);
        assert!(matches!(least, Err(Error::CountRange { .. })), "its sign could not be changed");
    }
}
