//! The storage of a fingerprint's count: the number of slots, their bits, and the outlier.

use crate::{Error, Result};

/// The maximum number of slots of one fingerprint.
pub const REPEATS_MAX: usize = 8;

/// The part of a fingerprint's count that a slot stores.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Counts {
    /// Nothing: each slot counts one. A fingerprint that was added twice has two slots, as in the HotStorage'11 deck.
    #[default]
    One,
    /// One bit: plus one or minus one. Minus one is the tombstone of an insert into another filter.
    Signed,
    /// A count in 2 to 16 bits, which may be negative. A fingerprint has one slot.
    Small(u32),
}

impl Counts {
    /// Returns the bits of a slot that store it.
    #[must_use]
    pub const fn bits(self) -> u32 {
        match self {
            Self::One => 0,
            Self::Signed => 1,
            Self::Small(bits) => bits,
        }
    }

    /// Returns the mask of these bits in a slot's body.
    #[inline(always)]
    pub(super) const fn mask(self) -> u64 {
        (1 << self.bits()) - 1
    }

    /// Returns the bits for `count` in one slot; `None` if it takes several slots or an outlier.
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

    /// Returns the count that these bits express; `None` if they mark an outlier.
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

    /// Returns the bits that mark an outlier.
    #[must_use]
    pub const fn outlier(self) -> u64 {
        (1 << self.bits()) - 1
    }

    /// Returns the sum of a count and an amount.
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

/// The stored form of a fingerprint's count. Each count has exactly one form, so filters with the same entries are
/// identical bit for bit, in whatever order the entries came.
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
    /// Returns the stored form of `count`. [`Counts::Small`] takes one slot, which has the count or marks an outlier.
    /// The others take one slot for each occurrence, up to [`REPEATS_MAX`]; the rest is an outlier.
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

    /// Returns whether a fingerprint in this number of slots, with these bits, may have an outlier.
    #[must_use]
    pub fn has_outlier(counts: Counts, slots: usize, code: u64) -> bool {
        match counts {
            Counts::Small(_) => slots > 0 && code == counts.outlier(),
            Counts::One | Counts::Signed => slots >= REPEATS_MAX,
        }
    }

    /// Returns the count in this stored form.
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
