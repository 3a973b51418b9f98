//! The bit matrix of one super table's filters: rows are filter bits, columns are incarnations.

use nandex_device::prefer_huge_pages;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use super::transpose::transpose;
use super::{Columns, FilterShape, wide};

/// The filters of one super table, bit-sliced. Slot `s`, bit `j`, word `w` is at `(s * bits_per_slot + j)
/// * words + w`; bit `c % 64` of word `c / 64` belongs to column `c`.
///
/// Readers load words while one writer stores columns that are not live; both are relaxed, because a reader
/// gets its live mask under a lock that the writer took after it wrote. A reader whose mask is older than an
/// eviction may see the evicted column change under it. It may then miss that incarnation's keys, which are
/// gone anyway, or make a false-positive read, but nothing worse.
pub struct Slices {
    slots: usize,
    bits_per_slot: usize,
    words: usize,
    data: Box<[AtomicU64]>,
}

impl Slices {
    /// All columns zero. Takes [`FilterShape::ram_bytes`].
    #[must_use]
    pub fn new(shape: &FilterShape) -> Self {
        let (slots, bits_per_slot) = (wide(shape.slots()), wide(shape.bits_per_slot()));
        let words = wide(shape.words());
        let mut data = Vec::with_capacity(slots * bits_per_slot * words);
        prefer_huge_pages(data.spare_capacity_mut());
        data.resize_with(slots * bits_per_slot * words, AtomicU64::default);
        Self { slots, bits_per_slot, words, data: data.into_boxed_slice() }
    }

    /// Slots per column.
    #[must_use]
    pub fn slots(&self) -> usize {
        self.slots
    }

    /// Bits per slot.
    #[must_use]
    pub fn bits_per_slot(&self) -> usize {
        self.bits_per_slot
    }

    /// The number of columns: 64 per word.
    #[must_use]
    pub fn columns(&self) -> usize {
        64 * self.words
    }

    /// Bits of one column: the number of rows.
    #[must_use]
    pub fn column_bits(&self) -> usize {
        self.slots * self.bits_per_slot
    }

    /// RAM of the matrix, in bytes.
    #[must_use]
    pub fn ram_bytes(&self) -> usize {
        self.data.len() * size_of::<AtomicU64>()
    }

    /// Replaces a column by `bits`, packed: bit `i` is row `i`. It overwrites the column's old content, so no
    /// reset is needed. Touches every row once.
    ///
    /// # Panics
    /// If there is no such column, or `bits` is not exactly one column long.
    pub fn write_column(&self, column: usize, bits: &[u64]) {
        self.check_column(column, bits);
        let (shift, keep) = (column % 64, !(1 << (column % 64)));
        self.for_each_row(column, bits, |row, bit| {
            row.store((row.load(Relaxed) & keep) | (bit << shift), Relaxed);
        });
    }

    /// Sets the ones of `bits` in a column that is all zero, and touches no other row: the paper's way
    /// to add a Bloom filter. The column must have been reset ([`Slices::reset_columns`]).
    ///
    /// # Panics
    /// As [`Slices::write_column`].
    pub fn or_column(&self, column: usize, bits: &[u64]) {
        self.check_column(column, bits);
        let (word, one) = (column / 64, 1_u64 << (column % 64));
        for (&packed, rows) in bits.iter().zip(self.data.chunks(64 * self.words)) {
            for_each_one(packed, |row| {
                if let Some(cell) = rows.get(row * self.words + word) {
                    cell.store(cell.load(Relaxed) | one, Relaxed);
                }
            });
        }
    }

    /// Clears all columns of `range` in one pass: the paper resets a word of columns at once, after the
    /// sliding window has left it. Touches every row once.
    ///
    /// # Panics
    /// If the range reaches past the last column.
    pub fn reset_columns(&self, range: std::ops::Range<usize>) {
        assert!(range.end <= self.columns(), "columns {range:?} of {}", self.columns());
        let cleared = mask_of(range);
        for (word, &ones) in cleared.iter().enumerate().filter(|(_, ones)| **ones != 0) {
            for row in self.data.iter().skip(word).step_by(self.words) {
                row.store(row.load(Relaxed) & !ones, Relaxed);
            }
        }
    }

    /// Replaces many columns, as at open: each row is touched once for up to 64 of them. Columns that
    /// are not listed keep their bits; of a column listed twice the last counts.
    ///
    /// # Panics
    /// As [`Slices::write_column`].
    pub fn load_columns(&self, columns: &[(usize, &[u64])]) {
        for &(column, bits) in columns {
            self.check_column(column, bits);
        }
        for word in 0..self.words {
            let mut group: [Option<&[u64]>; 64] = [None; 64];
            for &(column, bits) in columns.iter().filter(|(column, _)| column / 64 == word) {
                group[column % 64] = Some(bits);
            }
            if group.iter().any(Option::is_some) {
                self.load_word(word, &group);
            }
        }
    }

    fn load_word(&self, word: usize, group: &[Option<&[u64]>; 64]) {
        let keep = (0..64).filter(|&bit| group[bit].is_none()).fold(0, |mask, bit| mask | 1 << bit);
        for (block, rows) in self.data.chunks(64 * self.words).enumerate() {
            let mut matrix = group.map(|bits| bits.map_or(0, |bits| bits[block]));
            transpose(&mut matrix);
            for (row, fresh) in rows.iter().skip(word).step_by(self.words).zip(matrix) {
                row.store((row.load(Relaxed) & keep) | fresh, Relaxed);
            }
        }
    }

    /// The packed bits of a column, as [`Slices::write_column`] takes them.
    ///
    /// # Panics
    /// If there is no such column.
    #[must_use]
    pub fn extract_column(&self, column: usize) -> Vec<u64> {
        assert!(column < self.columns(), "column {column} of {}", self.columns());
        let mut bits = vec![0; self.column_bits().div_ceil(64)];
        for (packed, rows) in bits.iter_mut().zip(self.data.chunks(64 * self.words)) {
            let cells = rows.iter().skip(column / 64).step_by(self.words);
            *packed = cells.enumerate().fold(0, |packed, (row, cell)| {
                packed | ((cell.load(Relaxed) >> (column % 64)) & 1) << row
            });
        }
        bits
    }

    /// The words of `rows` rows from row `first` on.
    pub(super) fn rows(&self, first: usize, rows: usize) -> &[AtomicU64] {
        &self.data[first * self.words..][..rows * self.words]
    }

    /// Words per row.
    pub(super) fn words(&self) -> usize {
        self.words
    }

    fn check_column(&self, column: usize, bits: &[u64]) {
        assert!(column < self.columns(), "column {column} of {}", self.columns());
        let words = self.column_bits().div_ceil(64);
        assert_eq!(bits.len(), words, "a column has {} bits", self.column_bits());
    }

    /// Calls `act` for each row's word of `column` with the row's bit, 64 rows per word of input.
    #[inline]
    fn for_each_row(&self, column: usize, bits: &[u64], act: impl Fn(&AtomicU64, u64)) {
        let word = column / 64;
        for (&packed, rows) in bits.iter().zip(self.data.chunks(64 * self.words)) {
            let mut left = packed;
            // A constant step lets the compiler unroll the common case.
            let mut each = |row: &AtomicU64| {
                act(row, left & 1);
                left >>= 1;
            };
            match self.words {
                1 => rows.iter().for_each(&mut each),
                words => rows.iter().skip(word).step_by(words).for_each(&mut each),
            }
        }
    }
}

impl std::fmt::Debug for Slices {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Slices")
            .field("slots", &self.slots)
            .field("bits_per_slot", &self.bits_per_slot)
            .field("words", &self.words)
            .finish_non_exhaustive()
    }
}

/// Calls `act` with the number of each one bit, lowest first.
fn for_each_one(mut packed: u64, mut act: impl FnMut(usize)) {
    while packed != 0 {
        act(wide(packed.trailing_zeros()));
        packed &= packed - 1;
    }
}

/// The columns of a range as a mask.
pub(super) fn mask_of(range: std::ops::Range<usize>) -> Columns {
    std::array::from_fn(|word| {
        let low = range.start.clamp(64 * word, 64 * word + 64) - 64 * word;
        let high = range.end.clamp(64 * word, 64 * word + 64) - 64 * word;
        below(high) & !below(low)
    })
}

/// The low `bits` bits set, for `bits` of 0 to 64.
fn below(bits: usize) -> u64 {
    if bits == 64 { u64::MAX } else { (1 << bits) - 1 }
}
