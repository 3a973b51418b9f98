//! The memory of a bit matrix whose rows are three quarters of a cell: four rows in three cells.
//!
//! ```text
//!   cell 0                 cell 1                 cell 2
//!   | row 0        | row 1 ->     | row 2 ->              | row 3        |
//! ```
//!
//! So 24 columns take cells of 32 bits, and 48 take cells of 64. The rows of a slot begin with a cell, so that a lookup
//! XORs whole cells of its four slots and splits the rows once. The rest of a slot's last cell is zero: 15 rows take 12
//! cells rather than 11.25.

use nandex_device::prefetch;

use super::cells::{Cell, LINE_BITS, Matrix};
use super::transpose::transpose;
use super::{Columns, FilterKind, FilterShape, wide};

/// The number of rows, and their alignment.
#[derive(Clone, Copy)]
pub(super) struct QuadLayout {
    rows: usize,
    /// Consecutive rows that begin with a cell: those of a slot. A Bloom filter's are one run.
    run_rows: usize,
}

/// All rows.
pub(super) struct Quads<'s, C> {
    cells: &'s [C],
    layout: QuadLayout,
}

/// The position at which a row begins.
#[derive(Clone, Copy)]
struct Place {
    cell: usize,
    shift: usize,
}

impl QuadLayout {
    pub(super) fn of(shape: &FilterShape) -> Self {
        let rows = shape.column_bits();
        let run_rows = match shape.kind() {
            FilterKind::Bloom => rows,
            FilterKind::Fuse => wide(shape.bits_per_slot()),
        };
        Self { rows, run_rows }
    }

    /// Cells of a run.
    #[inline]
    fn run_cells(self) -> usize {
        (3 * self.run_rows).div_ceil(4)
    }

    /// Cells of all rows.
    pub(super) fn cells(self) -> usize {
        self.rows / self.run_rows * self.run_cells()
    }
}

impl<'s, C: Cell> Quads<'s, C> {
    /// The columns of a row.
    pub(super) const COLUMNS: usize = C::BITS / 4 * 3;
    /// The mask of all columns.
    pub(super) const ALL: u64 = (1 << Self::COLUMNS) - 1;

    #[inline]
    pub(super) fn new(cells: &'s [C], layout: QuadLayout) -> Self {
        Self { cells, layout }
    }

    /// The cells of a slot.
    #[inline]
    pub(super) fn slot(&self, slot: usize) -> &'s [C] {
        let count = self.layout.run_cells();
        &self.cells[slot * count..][..count]
    }

    /// Returns a row of a Bloom filter; the bits above its columns are meaningless.
    #[inline]
    pub(super) fn bloom_row(&self, row: usize) -> u64 {
        self.load(Self::place_in(0, row))
    }

    /// Returns the rows of three cells; the bits above their columns are meaningless.
    #[inline]
    pub(super) fn rows_of([first, second, third]: [u64; 3]) -> [u64; 4] {
        let quarter = C::BITS / 4;
        [
            first,
            first >> (3 * quarter) | second << quarter,
            second >> (2 * quarter) | third << (2 * quarter),
            third >> quarter,
        ]
    }

    /// Returns the place of a row of the run that begins with a cell.
    #[inline]
    fn place_in(cell: usize, row: usize) -> Place {
        let bit = row * Self::COLUMNS;
        Place { cell: cell + bit / C::BITS, shift: bit % C::BITS }
    }

    fn place(&self, row: usize) -> Place {
        let run = row / self.layout.run_rows;
        Self::place_in(run * self.layout.run_cells(), row % self.layout.run_rows)
    }

    /// Returns a row; the bits above its columns are meaningless.
    #[inline]
    fn load(&self, Place { cell, shift }: Place) -> u64 {
        let Some(next) = self.cells.get(cell + 1) else { return self.cells[cell].load() >> shift };
        let (low, high) = (self.cells[cell].load(), next.load());
        if C::BITS == 64 {
            low >> shift | high << (63 - shift) << 1
        } else {
            (low | high << C::BITS) >> shift
        }
    }

    fn store(&self, Place { cell, shift }: Place, row: u64) {
        let low = &self.cells[cell];
        low.store(low.load() & !(Self::ALL << shift) | row << shift);
        let kept = C::BITS - shift;
        if kept < Self::COLUMNS {
            let high = &self.cells[cell + 1];
            high.store(high.load() & !(Self::ALL >> kept) | row >> kept);
        }
    }

    /// The inverse of [`Quads::rows_of`]: returns the cells of rows that are zero above their columns.
    #[inline]
    fn cells_of([first, second, third, fourth]: [u64; 4]) -> [u64; 3] {
        let quarter = C::BITS / 4;
        [
            first | second << (3 * quarter),
            second >> quarter | third << (2 * quarter),
            third >> (2 * quarter) | fourth << quarter,
        ]
    }

    /// Calls `act` with each quad, the number of its first row and the number of its rows; a slot's last one may have
    /// fewer rows and cells.
    #[inline]
    fn for_each_quad(&self, mut act: impl FnMut(&'s [C], usize, usize)) {
        let QuadLayout { run_rows, .. } = self.layout;
        let runs = self.cells.chunks(self.layout.run_cells());
        for (run, first) in runs.zip((0..).step_by(run_rows)) {
            for (quad, row) in run.chunks(3).zip((0..run_rows).step_by(4)) {
                act(quad, first + row, (run_rows - row).min(4));
            }
        }
    }

    /// Sets the ones of `bits` in a column, after clearing the columns `cleared`.
    #[inline]
    fn set_column(&self, column: usize, bits: &[u64], cleared: u64) {
        let cleared = Self::cells_of([cleared; 4]);
        self.for_each_quad(|quad, row, rows| {
            let four = four_of(bits, row) & ((1 << rows) - 1);
            let fresh = Self::cells_of([0, 1, 2, 3].map(|row| (four >> row & 1) << column));
            for (cell, (cleared, fresh)) in quad.iter().zip(cleared.iter().zip(fresh)) {
                cell.store(cell.load() & !cleared | fresh);
            }
        });
    }
}

/// Returns four bits from bit `first` on; beyond the last word they are zero.
#[inline]
fn four_of(bits: &[u64], first: usize) -> u64 {
    let (word, shift) = (first / 64, first % 64);
    let next = bits.get(word + 1).copied().unwrap_or(0);
    (bits[word] >> shift | next << (63 - shift) << 1) & 15
}

impl<C: Cell> Matrix for Quads<'_, C> {
    #[inline]
    fn prefetch_slot(&self, slot: usize, _rows: usize) {
        let run = self.slot(slot);
        run.iter().step_by(LINE_BITS / C::BITS).chain(run.last()).for_each(prefetch);
    }

    #[inline]
    fn prefetch_row(&self, row: usize) {
        let Place { cell, .. } = Self::place_in(0, row);
        self.cells[cell..].iter().take(2).for_each(prefetch);
    }

    fn row_count(&self) -> usize {
        self.layout.rows
    }

    fn row(&self, row: usize) -> Columns {
        [self.load(self.place(row)) & Self::ALL, 0, 0, 0]
    }

    fn put_row(&self, row: usize, columns: &Columns) {
        self.store(self.place(row), columns[0]);
    }

    fn write_column(&self, column: usize, bits: &[u64]) {
        self.set_column(column, bits, 1 << column);
    }

    fn or_column(&self, column: usize, bits: &[u64]) {
        self.set_column(column, bits, 0);
    }

    fn clear(&self, columns: &Columns) {
        let cleared = Self::cells_of([columns[0]; 4]);
        self.for_each_quad(|quad, _, _| {
            let cells = quad.iter().zip(cleared);
            cells.for_each(|(cell, cleared)| cell.store(cell.load() & !cleared));
        });
    }

    fn load_columns(&self, columns: &[(usize, &[u64])]) {
        let mut group: [Option<&[u64]>; 64] = [None; 64];
        columns.iter().for_each(|(column, bits)| group[*column] = Some(bits));
        let listed = columns.iter().fold(0, |mask, (column, _)| mask | 1_u64 << column);
        for first in (0..self.layout.rows).step_by(64) {
            let mut matrix = group.map(|bits| bits.map_or(0, |bits| bits[first / 64]));
            transpose(&mut matrix);
            for (row, fresh) in (first..self.layout.rows).zip(matrix) {
                let place = self.place(row);
                self.store(place, self.load(place) & Self::ALL & !listed | fresh);
            }
        }
    }

    fn extract_column(&self, column: usize) -> Vec<u64> {
        let mut bits = vec![0; self.layout.rows.div_ceil(64)];
        self.for_each_quad(|quad, first, rows| {
            let cells = std::array::from_fn(|cell| quad.get(cell).map_or(0, C::load));
            for (row, content) in Self::rows_of(cells).iter().enumerate().take(rows) {
                bits[(first + row) / 64] |= (content >> column & 1) << ((first + row) % 64);
            }
        });
        bits
    }
}
