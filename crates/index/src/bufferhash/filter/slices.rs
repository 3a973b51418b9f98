//! The bit matrix of one super table's filters: rows are filter bits, columns are incarnations.

use super::cells::{Cells, with_rows};
use super::{Columns, FilterShape, wide};

/// Columns of the narrowest matrix.
const COLUMNS_MIN: usize = 8;

/// The filters of one super table, bit-sliced. Row `slot * bits_per_slot + bit` has the bit of all columns, in 8, 16
/// or 32 bits, or in words: column `c` is bit `c % 64` of word `c / 64`.
///
/// A matrix is as wide as its columns need: [`Slices::widened`] makes one with twice the columns, and a row is one
/// piece of memory in each.
///
/// Readers load rows while one writer stores columns that are not live; both are relaxed, because a reader
/// gets its live mask under a lock that the writer took after it wrote. A reader whose mask is older than an
/// eviction may see the evicted column change under it. It may then miss that incarnation's keys, which are
/// gone anyway, or make a false-positive read, but nothing worse.
pub struct Slices {
    shape: FilterShape,
    pub(super) cells: Cells,
}

impl Slices {
    /// All columns that the shape has, zero. Takes [`FilterShape::ram_bytes`].
    #[must_use]
    pub fn new(shape: &FilterShape) -> Self {
        Self::with_columns(shape, shape.columns())
    }

    /// At least `columns` columns, zero: 8, 16, 32, 64, 128 or all of the shape.
    ///
    /// # Panics
    /// If the shape has fewer.
    #[must_use]
    pub fn with_columns(shape: &FilterShape, columns: usize) -> Self {
        assert!(columns <= shape.columns(), "{columns} columns of {}", shape.columns());
        let width = columns.next_power_of_two().clamp(COLUMNS_MIN, shape.columns());
        Self { shape: *shape, cells: Cells::zeroed(shape.column_bits(), width) }
    }

    /// A copy with at least `columns` columns; the additional ones are zero. The caller lets no column be written
    /// meanwhile.
    ///
    /// # Panics
    /// If the shape has fewer columns, or this has more.
    #[must_use]
    pub fn widened(&self, columns: usize) -> Self {
        let wider = Self::with_columns(&self.shape, columns);
        assert!(wider.columns() >= self.columns(), "{columns} columns for {}", self.columns());
        wider.cells.copy_from(&self.cells);
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

    /// The number of columns that there are now.
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

    /// One row: the same bit of every filter.
    ///
    /// # Panics
    /// If there is no such row.
    #[must_use]
    pub fn row(&self, row: usize) -> Columns {
        with_rows!(&self.cells, rows => rows.row(row))
    }

    /// Replaces a column by `bits`, packed: bit `i` is row `i`. It overwrites the column's old content, so no
    /// reset is needed. Touches every row once.
    ///
    /// # Panics
    /// If there is no such column, or `bits` is not exactly one column long.
    pub fn write_column(&self, column: usize, bits: &[u64]) {
        self.check_column(column, bits);
        with_rows!(&self.cells, rows => rows.write_column(column, bits));
    }

    /// Sets the ones of `bits` in a column that is all zero, and touches no other row: the paper's way
    /// to add a Bloom filter. The column must have been reset ([`Slices::reset_columns`]).
    ///
    /// # Panics
    /// As [`Slices::write_column`].
    pub fn or_column(&self, column: usize, bits: &[u64]) {
        self.check_column(column, bits);
        with_rows!(&self.cells, rows => rows.or_column(column, bits));
    }

    /// Clears all columns of `range` in one pass: the paper resets a word of columns at once, after the
    /// sliding window has left it. Touches every row once.
    ///
    /// # Panics
    /// If the range reaches past the last column.
    pub fn reset_columns(&self, range: std::ops::Range<usize>) {
        assert!(range.end <= self.columns(), "columns {range:?} of {}", self.columns());
        let cleared = mask_of(range);
        with_rows!(&self.cells, rows => rows.clear(&cleared));
    }

    /// Replaces many columns, as at open: each row is touched once for up to 64 of them. Columns that
    /// are not listed keep their bits; of a column listed twice the last counts.
    ///
    /// # Panics
    /// As [`Slices::write_column`].
    pub fn load_columns(&self, columns: &[(usize, &[u64])]) {
        columns.iter().for_each(|(column, bits)| self.check_column(*column, bits));
        with_rows!(&self.cells, rows => rows.load_columns(columns));
    }

    /// The packed bits of a column, as [`Slices::write_column`] takes them.
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
