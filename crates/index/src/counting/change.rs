//! Changes of a key's count: an amount is added, optionally after the count is removed.

/// A change of one key's count. Changes of a key are applied in order; two of them combine into one.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Change {
    /// Whether the count is set to 0 before the amount is added.
    pub removes: bool,
    /// The amount that is added, -(2^63 - 1) to 2^63 - 1.
    pub amount: i64,
}

impl Change {
    /// Returns a change that adds an amount.
    #[must_use]
    pub const fn add(amount: i64) -> Self {
        Self { removes: false, amount }
    }

    /// The change that removes the key, whatever its count.
    pub const REMOVE: Self = Self { removes: true, amount: 0 };

    /// Returns whether it changes nothing.
    #[inline]
    #[must_use]
    pub const fn is_nothing(self) -> bool {
        !self.removes && self.amount == 0
    }

    /// Returns this change followed by a later one; `None` if the amount would exceed 63 bits.
    #[inline]
    #[must_use]
    pub fn then(self, later: Self) -> Option<Self> {
        if later.removes {
            return Some(later);
        }
        let amount = self.amount.checked_add(later.amount).filter(|amount| *amount > i64::MIN)?;
        Some(Self { removes: self.removes, amount })
    }

    /// Like [`then`](Self::then), but an amount beyond 63 bits stays at the limit.
    #[inline]
    #[must_use]
    pub fn then_at_most(self, later: Self) -> Self {
        if later.removes {
            return later;
        }
        let amount = self.amount.saturating_add(later.amount).max(-i64::MAX);
        Self { removes: self.removes, amount }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_changes_are_one_and_a_removal_ends_what_was_before() {
        let [one, less] = [1, -3].map(Change::add);
        assert_eq!(one.then(less), Some(Change::add(-2)));
        assert_eq!(one.then(Change::REMOVE), Some(Change::REMOVE));
        assert_eq!(Change::REMOVE.then(one), Some(Change { removes: true, amount: 1 }));
        assert!(one.then(Change::add(-1)).is_some_and(Change::is_nothing));
        assert!(!Change::REMOVE.is_nothing());
    }

    #[test]
    fn an_amount_past_63_bits_is_refused_or_stays_at_their_limit() {
        for (first, second) in [(i64::MAX, 1), (-i64::MAX, -1)] {
            let (first, second) = (Change::add(first), Change::add(second));
            assert_eq!(first.then(second), None);
            assert_eq!(first.then_at_most(second), first);
        }
    }

    #[test]
    fn the_order_of_pairing_does_not_matter() {
        let changes =
            [Change::add(5), Change::REMOVE, Change::add(-2), Change { removes: true, amount: 9 }];
        for a in changes {
            for b in changes {
                for c in changes {
                    let left = a.then(b).unwrap().then(c);
                    let right = a.then(b.then(c).unwrap());
                    assert_eq!(left, right);
                }
            }
        }
    }
}
