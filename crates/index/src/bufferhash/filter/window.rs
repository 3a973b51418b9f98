//! The sliding window over the columns of a super table: which are live, their order of age, and which comes
//! next (paper, section 5.1.3).
//!
//! Columns are used in a circle. Evicting the oldest incarnation only moves the window on; its bits stay and
//! are masked out. Fuse columns are overwritten whole when they come round again. Bloom columns are written
//! by setting ones, so a group of `group` columns (the paper's `w`) is cleared in one pass once the window
//! has left it: one pass over the rows per `group` evictions.

use std::ops::Range;

use super::slices::mask_of;
use super::{Columns, WORDS_MAX, wide};
use crate::{Error, Result};

/// A window of at most `k` consecutive columns on a circle; always at least one column is outside it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Window {
    k: usize,
    columns: usize,
    group: usize,
    oldest: usize,
    len: usize,
}

impl Window {
    /// An empty window for columns that are overwritten whole (fuse): `k` live of `columns`.
    ///
    /// # Errors
    /// [`Error::Config`] unless `columns` is 64 to 256 in steps of 64 and `k` is 1 to `columns - 1`: one
    /// column must be free to be written while all others are live.
    pub fn new(k: usize, columns: usize) -> Result<Self> {
        Self::sliding(k, columns, 1)
    }

    /// An empty window for columns written by [`super::Slices::or_column`] (Bloom): `k` live, and groups of
    /// `group` columns that are reset together, the paper's `k + w` bits.
    ///
    /// # Errors
    /// [`Error::Config`] unless `columns` is 64 to 256 in steps of 64, `group` a power of two up to 64, and
    /// `k` 1 to `columns - group`.
    pub fn sliding(k: usize, columns: usize, group: usize) -> Result<Self> {
        if columns == 0 || !columns.is_multiple_of(64) || columns > 64 * WORDS_MAX {
            let reason = format!("{columns} columns; expected 64, 128, 192 or 256");
            return Err(Error::Config { field: "columns", reason });
        }
        if !group.is_power_of_two() || group > 64 {
            let reason = format!("{group} columns reset at once; expected a power of two up to 64");
            return Err(Error::Config { field: "group", reason });
        }
        if k == 0 || k > columns - group {
            let most = columns - group;
            let reason =
                format!("{k} incarnations per super table; {columns} columns allow 1 to {most}");
            return Err(Error::Config { field: "k", reason });
        }
        Ok(Self { k, columns, group, oldest: 0, len: 0 })
    }

    /// The window as it was when `oldest` was the oldest of `len` live columns, for recovery.
    ///
    /// # Errors
    /// [`Error::Config`] if there is no such column or more are live than the window takes.
    pub fn resumed(self, oldest: usize, len: usize) -> Result<Self> {
        if oldest >= self.columns || len > self.k {
            let reason = format!(
                "{len} live columns from column {oldest}; a window has at most {} of {} columns",
                self.k, self.columns
            );
            return Err(Error::Config { field: "window", reason });
        }
        Ok(Self { oldest, len, ..self })
    }

    /// Live columns.
    #[must_use]
    pub fn len(&self) -> usize {
        self.len
    }

    /// Is no column live?
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Are `k` columns live? Then the oldest must go before the next push.
    #[must_use]
    pub fn is_full(&self) -> bool {
        self.len == self.k
    }

    /// The column the next [`Window::push`] makes live. It is not live now, so it may be written.
    #[must_use]
    pub fn next_column(&self) -> usize {
        (self.oldest + self.len) % self.columns
    }

    /// The oldest live column.
    #[must_use]
    pub fn oldest(&self) -> Option<usize> {
        (self.len > 0).then_some(self.oldest)
    }

    /// The newest live column.
    #[must_use]
    pub fn newest(&self) -> Option<usize> {
        (self.len > 0).then(|| (self.oldest + self.len - 1) % self.columns)
    }

    /// Makes the next column live and returns it.
    ///
    /// # Panics
    /// If the window is full.
    pub fn push(&mut self) -> usize {
        assert!(!self.is_full(), "all {} incarnations are live: evict the oldest first", self.k);
        let column = self.next_column();
        self.len += 1;
        column
    }

    /// Takes the oldest column out of the window; its bits stay until the column is used again.
    pub fn pop_oldest(&mut self) -> Option<usize> {
        let column = self.oldest()?;
        self.oldest = (column + 1) % self.columns;
        self.len -= 1;
        Some(column)
    }

    /// The group of columns to reset now that `popped` has left the window: `Some` for the last column of
    /// each group, when no live column remains in it. Not needed if columns are overwritten whole.
    #[must_use]
    pub fn group_left_by(&self, popped: usize) -> Option<Range<usize>> {
        let end = popped + 1;
        end.is_multiple_of(self.group).then(|| end - self.group..end)
    }

    /// The live columns.
    #[must_use]
    pub fn live_mask(&self) -> Columns {
        let end = self.oldest + self.len;
        let straight = mask_of(self.oldest..end.min(self.columns));
        let wrapped = mask_of(0..end.saturating_sub(self.columns));
        std::array::from_fn(|word| straight[word] | wrapped[word])
    }

    /// The live columns of `mask` from the newest to the oldest.
    #[must_use]
    pub fn newest_first(&self, mask: Columns) -> NewestFirst {
        let live = self.live_mask();
        // On the circle, ages fall from the newest column down to 0, and continue at the last column.
        let young = self.newest().map_or([0; WORDS_MAX], |newest| mask_of(0..newest + 1));
        NewestFirst {
            young: std::array::from_fn(|word| mask[word] & live[word] & young[word]),
            old: std::array::from_fn(|word| mask[word] & live[word] & !young[word]),
        }
    }
}

/// Columns from the newest to the oldest; see [`Window::newest_first`].
#[derive(Clone, Debug)]
pub struct NewestFirst {
    young: Columns,
    old: Columns,
}

impl Iterator for NewestFirst {
    type Item = usize;

    fn next(&mut self) -> Option<usize> {
        take_highest(&mut self.young).or_else(|| take_highest(&mut self.old))
    }
}

/// Removes the highest one bit from a mask.
fn take_highest(mask: &mut Columns) -> Option<usize> {
    let word = mask.iter().rposition(|bits| *bits != 0)?;
    let bit = mask[word].ilog2();
    mask[word] ^= 1 << bit;
    Some(64 * word + wide(bit))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::VecDeque;

    fn mask(columns: &[usize]) -> Columns {
        let mut mask = [0; WORDS_MAX];
        columns.iter().for_each(|column| mask[column / 64] |= 1 << (column % 64));
        mask
    }

    proptest! {
        #[test]
        fn a_window_is_a_queue_of_columns_on_a_circle(
            k in 1_usize..=250, words in 1_usize..=4, group in 0_u32..=3,
            acts in prop::collection::vec(any::<(bool, u8)>(), 0..900), filter: Columns,
        ) {
            let group = 1 << group;
            let k = k.min(64 * words - group);
            let mut window = Window::sliding(k, 64 * words, group).unwrap();
            let mut queue = VecDeque::new();
            let mut next = 0;
            for (push, times) in acts {
                for _ in 0..times % 8 {
                    if push && !window.is_full() {
                        prop_assert_eq!(window.push(), next % (64 * words));
                        queue.push_back(next % (64 * words));
                        next += 1;
                    } else if !push {
                        prop_assert_eq!(window.pop_oldest(), queue.pop_front());
                    }
                }
                prop_assert_eq!(window.len(), queue.len());
                prop_assert_eq!(window.is_full(), queue.len() == k);
                prop_assert!(!queue.contains(&window.next_column()));
                let live: Vec<_> = queue.iter().copied().collect();
                prop_assert_eq!(window.live_mask(), mask(&live));
                let expected = live.iter().rev().copied()
                    .filter(|column| filter[column / 64] >> (column % 64) & 1 == 1);
                prop_assert!(window.newest_first(filter).eq(expected));
                let oldest = window.oldest().unwrap_or(next % (64 * words));
                let again = Window::sliding(k, 64 * words, group).unwrap();
                prop_assert_eq!(again.resumed(oldest, live.len()).unwrap(), window.clone());
            }
        }
    }

    #[test]
    fn a_group_is_left_when_its_last_column_goes_and_none_of_it_is_live() {
        let mut window = Window::sliding(56, 64, 8).unwrap();
        let mut left = Vec::new();
        for _ in 0..200 {
            if window.is_full() {
                let popped = window.pop_oldest().unwrap();
                if let Some(group) = window.group_left_by(popped) {
                    assert!(
                        mask_of(group.clone())
                            .iter()
                            .zip(window.live_mask())
                            .all(|(a, b)| a & b == 0)
                    );
                    left.push(group.start);
                }
            }
            window.push();
        }
        assert_eq!(left, [0, 8, 16, 24, 32, 40, 48, 56, 0, 8, 16, 24, 32, 40, 48, 56, 0, 8]);
    }

    #[test]
    fn windows_refuse_what_leaves_no_column_to_write() {
        assert!(Window::new(63, 64).is_ok());
        let text = Window::new(64, 64).unwrap_err().to_string();
        assert_eq!(text, "k: 64 incarnations per super table; 64 columns allow 1 to 63");
        assert!(Window::sliding(57, 64, 8).is_err());
        assert!(Window::sliding(8, 64, 12).is_err());
        assert!(Window::new(8, 100).is_err());
        assert!(Window::new(8, 320).is_err());
        assert!(Window::new(0, 64).is_err());
        assert!(Window::new(8, 64).unwrap().resumed(64, 0).is_err());
        assert!(Window::new(8, 64).unwrap().resumed(0, 9).is_err());
    }
}
