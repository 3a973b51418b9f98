//! How a count is held: in how many slots, with which code, and how much of it stands beside them.

use super::{Counts, REPEATS_MAX};
use crate::{Error, Result};

/// How the count of one fingerprint is held. There is one way for each count, so filters with the same
/// entries are the same bit for bit, in whatever order those came.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Held {
    /// Slots it takes.
    pub slots: usize,
    /// The code in each of them.
    pub code: u64,
    /// What stands among the outliers; 0 where nothing does.
    pub beside: i64,
}

impl Held {
    /// How `count` is held. Where slots say no more than a sign, that many slots, up to [`REPEATS_MAX`], and
    /// the rest beside them; else one slot, which says the count or that all of it stands beside.
    #[must_use]
    pub fn of(counts: Counts, count: i64) -> Self {
        if count == 0 {
            return Self::default();
        }
        if let Counts::Small(_) = counts {
            return match counts.encode(count) {
                Some(code) => Self { slots: 1, code, beside: 0 },
                None => Self { slots: 1, code: counts.outlier(), beside: count },
            };
        }
        let slots = count.unsigned_abs().min(REPEATS_MAX as u64);
        let beside = count - count.signum() * slots as i64;
        Self { slots: slots as usize, code: u64::from(count < 0), beside }
    }

    /// May something of a fingerprint in so many slots, with this code, stand among the outliers?
    #[must_use]
    pub fn has_beside(counts: Counts, slots: usize, code: u64) -> bool {
        match counts {
            Counts::Small(_) => slots > 0 && code == counts.outlier(),
            Counts::One | Counts::Signed => slots >= REPEATS_MAX,
        }
    }

    /// The count that is held so.
    #[must_use]
    pub fn count(self, counts: Counts) -> i64 {
        let each = counts.decode(self.code).unwrap_or_default();
        (each * self.slots as i64).saturating_add(self.beside)
    }
}

/// What a count becomes by adding to it.
///
/// # Errors
/// [`Error::CountRange`] past 63 bits. [`Error::NotThere`] below zero where slots say no counts: such a
/// filter has no tombstones.
pub fn added(counts: Counts, count: i64, amount: i64) -> Result<i64> {
    let sum = count.checked_add(amount).filter(|sum| *sum != i64::MIN);
    let sum = sum.ok_or(Error::CountRange { count, amount })?;
    if counts == Counts::One && sum < 0 {
        return Err(Error::NotThere { count, amount });
    }
    Ok(sum)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_count_is_held_in_one_way_and_read_back() {
        for counts in [Counts::One, Counts::Signed, Counts::Small(2), Counts::Small(5)] {
            let least = if counts == Counts::One { 0 } else { -100 };
            for count in (least..100).chain([i64::MAX, i64::MAX - 9]) {
                let held = Held::of(counts, count);
                assert_eq!(held.count(counts), count, "{counts:?} {held:?}");
                assert_eq!(held.slots == 0, count == 0);
                let beside = Held::has_beside(counts, held.slots, held.code);
                assert!(beside || held.beside == 0, "{counts:?} {held:?}");
            }
        }
        let held = |counts, count| {
            let held = Held::of(counts, count);
            (held.slots, held.code, held.beside)
        };
        assert_eq!(held(Counts::One, 3), (3, 0, 0));
        assert_eq!(held(Counts::Signed, -11), (8, 1, -3));
        assert_eq!(held(Counts::Small(2), 2), (1, 2, 0));
        assert_eq!(held(Counts::Small(2), -2), (1, 3, -2));
    }

    #[test]
    fn sums_that_no_filter_can_hold_are_refused() {
        assert!(matches!(added(Counts::One, 2, -3), Err(Error::NotThere { .. })));
        assert_eq!(added(Counts::Signed, 2, -3).unwrap(), -1);
        assert!(matches!(added(Counts::One, i64::MAX, 1), Err(Error::CountRange { .. })));
        let least = added(Counts::Small(4), -i64::MAX, -1);
        assert!(matches!(least, Err(Error::CountRange { .. })), "its sign could not be changed");
    }
}
