//! The bit matrix of one super table's filters: rows are filter bits, columns are incarnations.

use super::cells::{Cells, Matrix as _, width_of, with_rows};
use super::{Columns, FilterShape, wide};

/// The filters of one super table, bit-sliced. Row `slot * bits_per_slot + bit` has that bit of all columns: column `c`
/// is bit `c % 64` of word `c / 64`.
///
/// A matrix is as wide as its columns need: [`Slices::widened`] creates a wider one, and a row is one piece of memory
/// in each.
///
/// Readers load rows while one writer stores columns that are not live; both are relaxed, because a reader gets its
/// live mask under a lock that the writer took after it wrote. A reader whose mask is older than an eviction may see
/// the evicted column change. It may then miss that incarnation's keys, which are gone anyway, or make a false-positive
/// read, but nothing worse.
pub struct Slices {
    shape: FilterShape,
    pub(super) cells: Cells,
}

impl Slices {
    /// Creates all columns of the shape, zero. Takes [`FilterShape::ram_bytes`].
    #[must_use]
    pub fn new(shape: &FilterShape) -> Self {
        Self::with_columns(shape, shape.columns())
    }

    /// Creates at least `columns` columns, zero: 8, 16, 24, 32, 48, 64, 128, 192 or 256.
    ///
    /// # Panics
    /// If the shape has fewer columns.
    #[must_use]
    pub fn with_columns(shape: &FilterShape, columns: usize) -> Self {
        assert!(columns <= shape.columns(), "{columns} columns of {}", shape.columns());
        Self { shape: *shape, cells: Cells::zeroed(shape, columns) }
    }

    /// Returns the number of columns that [`Slices::with_columns`] creates for a requested number.
    #[must_use]
    pub fn width_of(columns: usize) -> usize {
        width_of(columns)
    }

    /// Returns a copy with at least `columns` columns that begins with column `first`; the columns before it follow
    /// after the last one, and additional ones are zero. The caller ensures that no column is written meanwhile.
    ///
    /// # Panics
    /// If the shape has fewer columns, or this matrix has more, or has no column `first`.
    #[must_use]
    pub fn widened(&self, columns: usize, first: usize) -> Self {
        let (wider, now) = (Self::with_columns(&self.shape, columns), self.columns());
        assert!(wider.columns() >= now && first < now, "{columns} columns for {now}, from {first}");
        match first {
            0 => wider.cells.copy_from(&self.cells, |row| row),
            _ => wider.cells.copy_from(&self.cells, |row| rotated(row, first, now)),
        }
        wider
    }

    /// Slots per column.
    #[must_use]
    pub fn slots(&self) -> usize {
        wide(self.shape.slots())
    }

    /// Bits per slot.
    #[must_use]
    pub fn bits_per_slot(&self) -> usize {
        wide(self.shape.bits_per_slot())
    }

    /// The current number of columns.
    #[must_use]
    pub fn columns(&self) -> usize {
        self.cells.columns()
    }

    /// Bits of one column: the number of rows.
    #[must_use]
    pub fn column_bits(&self) -> usize {
        self.shape.column_bits()
    }

    /// RAM of the matrix, in bytes.
    #[must_use]
    pub fn ram_bytes(&self) -> usize {
        self.cells.bytes()
    }

    /// Returns one row: the same bit of every filter.
    ///
    /// # Panics
    /// If there is no such row.
    #[must_use]
    pub fn row(&self, row: usize) -> Columns {
        with_rows!(&self.cells, rows => rows.row(row))
    }

    /// Replaces a column by `bits`, packed: bit `i` is row `i`. It overwrites the column's old contents, so no reset is
    /// needed. Touches every row once.
    ///
    /// # Panics
    /// If there is no such column, or `bits` is not exactly one column long.
    pub fn write_column(&self, column: usize, bits: &[u64]) {
        self.check_column(column, bits);
        with_rows!(&self.cells, rows => rows.write_column(column, bits));
    }

    /// Sets the ones of `bits` in a column that is all zero, and touches no other row: the paper's way to add a Bloom
    /// filter. The column must have been reset ([`Slices::reset_columns`]).
    ///
    /// # Panics
    /// As [`Slices::write_column`].
    pub fn or_column(&self, column: usize, bits: &[u64]) {
        self.check_column(column, bits);
        with_rows!(&self.cells, rows => rows.or_column(column, bits));
    }

    /// Clears these columns in one pass: the paper resets a word of columns at once, after the sliding window has left
    /// it. Touches every row once.
    ///
    /// # Panics
    /// If there is no such column.
    pub fn reset_columns(&self, columns: &Columns) {
        let all = mask_of(0..self.columns());
        let is_there = |(columns, all): (&u64, &u64)| columns & !all == 0;
        assert!(
            columns.iter().zip(&all).all(is_there),
            "{columns:?} of {} columns",
            self.columns()
        );
        with_rows!(&self.cells, rows => rows.clear(columns));
    }

    /// Replaces several columns, as at open: each row is touched once for up to 64 of them. Columns that are not listed
    /// keep their bits; if a column is listed twice, the last entry wins.
    ///
    /// # Panics
    /// As [`Slices::write_column`].
    pub fn load_columns(&self, columns: &[(usize, &[u64])]) {
        columns.iter().for_each(|(column, bits)| self.check_column(*column, bits));
        with_rows!(&self.cells, rows => rows.load_columns(columns));
    }

    /// Returns the packed bits of a column, as [`Slices::write_column`] takes them.
    ///
    /// # Panics
    /// If there is no such column.
    #[must_use]
    pub fn extract_column(&self, column: usize) -> Vec<u64> {
        assert!(column < self.columns(), "column {column} of {}", self.columns());
        with_rows!(&self.cells, rows => rows.extract_column(column))
    }

    fn check_column(&self, column: usize, bits: &[u64]) {
        assert!(column < self.columns(), "column {column} of {}", self.columns());
        let words = self.shape.column_words();
        assert_eq!(bits.len(), words, "a column has {} bits", self.column_bits());
    }
}

impl std::fmt::Debug for Slices {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Slices")
            .field("shape", &self.shape)
            .field("columns", &self.columns())
            .finish_non_exhaustive()
    }
}

/// Returns the columns of a range as a mask.
pub(super) fn mask_of(range: std::ops::Range<usize>) -> Columns {
    std::array::from_fn(|word| {
        let low = range.start.clamp(64 * word, 64 * word + 64) - 64 * word;
        let high = range.end.clamp(64 * word, 64 * word + 64) - 64 * word;
        below(high) & !below(low)
    })
}

/// Returns the columns of a row of `count`, from column `first` on, followed by those before it.
fn rotated(row: Columns, first: usize, count: usize) -> Columns {
    let (down, up) = (shifted_down(row, first), shifted_up(row, count - first));
    let all = mask_of(0..count);
    std::array::from_fn(|word| (down[word] | up[word]) & all[word])
}

/// Moves column `by` and those after it to columns 0 and so on.
fn shifted_down(row: Columns, by: usize) -> Columns {
    let (words, bits) = (by / 64, by % 64);
    let word = |index: usize| row.get(index + words).copied().unwrap_or(0);
    std::array::from_fn(|index| word(index) >> bits | word(index + 1) << (63 - bits) << 1)
}

/// Moves column 0 and those after it to columns `by` and so on.
fn shifted_up(row: Columns, by: usize) -> Columns {
    let (words, bits) = (by / 64, by % 64);
    let word = |index: usize| index.checked_sub(words).map_or(0, |index| row[index]);
    let before = |index: usize| index.checked_sub(words + 1).map_or(0, |index| row[index]);
    std::array::from_fn(|index| word(index) << bits | before(index) >> (63 - bits) >> 1)
}

/// Returns a mask of the low `bits` bits, for `bits` of 0 to 64.
fn below(bits: usize) -> u64 {
    if bits == 64 { u64::MAX } else { (1 << bits) - 1 }
}
