//! The sliding window over the columns of a super table: the live columns, their order of age, and the next column
//! (paper, section 5.1.3).
//!
//! Columns are used in a circle, as many as the matrix currently has. Evicting the oldest incarnation only moves the
//! window on; its bits stay and are masked out. Fuse columns are overwritten as a whole when their turn comes again.
//! Bloom columns are written by setting ones, so all columns that are not live are cleared in one pass when the next is
//! not clear. In the paper these are the `w` columns of a word; here they are as many as the matrix has to spare.
//!
//! When every column is live, the matrix is widened, and its columns begin with the oldest again. A circle of all
//! columns that a shape allows would not need this step. But the window of a table that evicts moves through the whole
//! circle, so its matrix would have all of them, however few are live.

use super::slices::mask_of;
use super::{Columns, WORDS_MAX, wide};
use crate::{Error, Result};

/// A window of at most `k` consecutive columns on a circle.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Window {
    k: usize,
    columns: usize,
    oldest: usize,
    len: usize,
    /// The number of columns from the next one on that are clear.
    clear: usize,
    /// The live columns, and those of them from column 0 to the newest. Every lookup uses both.
    live: Columns,
    young: Columns,
}

impl Window {
    /// Creates an empty window of at most `k` columns, on a circle of `columns` that are all clear.
    ///
    /// # Errors
    /// [`Error::Config`] unless `columns` is 1 to 256, and `k` 1 to 255: one column must be free for writing while all
    /// others are live.
    pub fn new(k: usize, columns: usize) -> Result<Self> {
        let most = 64 * WORDS_MAX;
        if columns == 0 || columns > most {
            let reason = format!("{columns} columns; expected 1 to {most}");
            return Err(Error::Config { field: "columns", reason });
        }
        if k == 0 || k >= most {
            let reason = format!("{k} incarnations per super table; expected 1 to {}", most - 1);
            return Err(Error::Config { field: "k", reason });
        }
        let none = [0; WORDS_MAX];
        Ok(Self { k, columns, oldest: 0, len: 0, clear: columns, live: none, young: none })
    }

    /// Notes which columns are live after the window has moved.
    fn note_live(&mut self) {
        let end = self.oldest + self.len;
        let straight = mask_of(self.oldest..end.min(self.columns));
        let wrapped = mask_of(0..end.saturating_sub(self.columns));
        self.live = std::array::from_fn(|word| straight[word] | wrapped[word]);
        // On the circle, ages fall from the newest column down to 0, and continue at the last column.
        let young = self.newest().map_or([0; WORDS_MAX], |newest| mask_of(0..newest + 1));
        self.young = std::array::from_fn(|word| self.live[word] & young[word]);
    }

    /// Extends the circle to a matrix that was widened to `columns` columns, from [`Window::first_column`] on.
    ///
    /// # Panics
    /// If not all columns of the circle are live, or the new one is no wider.
    pub fn widen(&mut self, columns: usize) {
        assert!(self.is_circle_full(), "{} of {} columns are live", self.len, self.columns);
        assert!(columns > self.columns, "{columns} columns in place of {}", self.columns);
        *self = Self { columns, oldest: 0, clear: columns - self.len, ..*self };
        self.note_live();
    }

    /// The number of columns of the circle.
    #[must_use]
    pub fn columns(&self) -> usize {
        self.columns
    }

    /// Returns whether every column of the circle is live. Then it must be widened before the next push.
    #[must_use]
    pub fn is_circle_full(&self) -> bool {
        self.len == self.columns
    }

    /// Returns the column with which the window begins, whether or not it is live.
    #[must_use]
    pub fn first_column(&self) -> usize {
        self.oldest
    }

    /// Returns the columns to clear before the next one is written by setting ones: all that are not live, unless the
    /// next one is clear. The caller must clear them.
    pub fn take_unclear(&mut self) -> Option<Columns> {
        if self.clear > 0 {
            return None;
        }
        self.clear = self.columns - self.len;
        let all = mask_of(0..self.columns);
        Some(std::array::from_fn(|word| all[word] & !self.live[word]))
    }

    /// The number of live columns.
    #[must_use]
    pub fn len(&self) -> usize {
        self.len
    }

    /// Returns whether no column is live.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Returns whether `k` columns are live. Then the oldest must be removed before the next push.
    #[must_use]
    pub fn is_full(&self) -> bool {
        self.len == self.k
    }

    /// Returns the column that the next [`Window::push`] makes live. It is not live now, so it may be written, unless
    /// the circle is full.
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
    /// If the window or its circle is full.
    pub fn push(&mut self) -> usize {
        assert!(!self.is_full(), "all {} incarnations are live: evict the oldest first", self.k);
        assert!(!self.is_circle_full(), "all {} columns are live: widen first", self.columns);
        let column = self.next_column();
        self.len += 1;
        self.clear = self.clear.saturating_sub(1);
        self.note_live();
        column
    }

    /// Removes the oldest column from the window; its bits stay until the column is used again.
    pub fn pop_oldest(&mut self) -> Option<usize> {
        let column = self.oldest()?;
        self.oldest = (column + 1) % self.columns;
        self.len -= 1;
        self.note_live();
        Some(column)
    }

    /// The live columns.
    #[inline]
    #[must_use]
    pub fn live_mask(&self) -> Columns {
        self.live
    }

    /// Iterates over the live columns of `mask` from the newest to the oldest.
    #[inline]
    #[must_use]
    pub fn newest_first(&self, mask: Columns) -> NewestFirst {
        let Self { live, young, .. } = self;
        NewestFirst {
            young: std::array::from_fn(|word| mask[word] & young[word]),
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

    /// Widths a circle is widened to.
    const WIDTHS: [usize; 5] = [8, 24, 64, 192, 256];

    /// Widens the circle of a matrix, and moves the contents of the columns.
    fn widen(window: &mut Window, content: &mut Vec<Option<u32>>) {
        let wider = WIDTHS.into_iter().find(|width| *width > window.columns()).unwrap();
        content.rotate_left(window.first_column());
        content.resize(wider, None);
        window.widen(wider);
    }

    proptest! {
        #[test]
        fn a_window_is_a_queue_on_a_circle_that_grows(
            k in 1_usize..=250, acts in prop::collection::vec(any::<(bool, u8)>(), 0..900),
            filter: Columns,
        ) {
            let mut window = Window::new(k, WIDTHS[0]).unwrap();
            // The contents of each column, and of the queue.
            let (mut content, mut queue) = (vec![None; WIDTHS[0]], VecDeque::new());
            let mut pushes = 0;
            for (push, times) in acts {
                for _ in 0..times % 8 {
                    if push && !window.is_full() {
                        if window.is_circle_full() {
                            widen(&mut window, &mut content);
                        }
                        if let Some(unclear) = window.take_unclear() {
                            (0..content.len()).filter(|it| unclear[it / 64] >> (it % 64) & 1 == 1)
                                .for_each(|column| content[column] = None);
                        }
                        prop_assert_eq!(content[window.next_column()], None);
                        let column = window.push();
                        content[column] = Some(pushes);
                        queue.push_back(pushes);
                        pushes += 1;
                    } else if !push {
                        let popped = window.pop_oldest().and_then(|it| content[it]);
                        prop_assert_eq!(popped, queue.pop_front());
                    }
                }
                prop_assert_eq!(window.len(), queue.len());
                prop_assert_eq!(window.is_full(), queue.len() == k);
                let first = window.first_column();
                let live = (first..first + queue.len()).map(|it| it % window.columns());
                let live: Vec<_> = live.collect();
                let found: Vec<_> = live.iter().filter_map(|column| content[*column]).collect();
                prop_assert_eq!(&found, &queue.iter().copied().collect::<Vec<_>>());
                prop_assert!(window.is_circle_full() || !live.contains(&window.next_column()));
                prop_assert_eq!(window.live_mask(), mask(&live));
                let expected = live.iter().rev().copied()
                    .filter(|column| filter[column / 64] >> (column % 64) & 1 == 1);
                prop_assert!(window.newest_first(filter).eq(expected));
            }
        }
    }

    #[test]
    fn a_circle_has_the_columns_that_are_live_and_one_more_however_long_it_evicts() {
        let (mut window, mut content) =
            (Window::new(50, WIDTHS[0]).unwrap(), vec![None; WIDTHS[0]]);
        for push in 0..1000 {
            if window.is_circle_full() {
                widen(&mut window, &mut content);
            }
            window.push();
            if push >= 17 {
                window.pop_oldest();
            }
        }
        assert_eq!(window.columns(), 24);
    }

    #[test]
    fn columns_are_cleared_as_many_at_once_as_are_not_live() {
        let mut window = Window::new(60, 64).unwrap();
        let mut cleared = Vec::new();
        for push in 0..200 {
            if window.len() == 56 {
                window.pop_oldest();
            }
            if let Some(unclear) = window.take_unclear() {
                assert!(unclear.iter().zip(window.live_mask()).all(|(a, b)| a & b == 0));
                cleared.push((push, unclear.iter().map(|word| word.count_ones()).sum()));
            }
            window.push();
        }
        assert_eq!(cleared[..3], [(64, 9), (73, 9), (82, 9)]);
    }

    #[test]
    fn windows_refuse_what_leaves_no_column_to_write() {
        assert!(Window::new(255, 8).is_ok());
        let text = Window::new(256, 256).unwrap_err().to_string();
        assert_eq!(text, "k: 256 incarnations per super table; expected 1 to 255");
        assert!(Window::new(0, 64).is_err());
        assert!(Window::new(8, 0).is_err());
        assert!(Window::new(8, 257).is_err());
    }
}
