//! The memory of a bit matrix: rows of a cell of 8, 16 or 32 columns, of whole words of 64, or of three quarters of a
//! cell.

use std::ops::Range;
use std::sync::atomic::{AtomicU8, AtomicU16, AtomicU32, AtomicU64, Ordering::Relaxed};

use nandex_device::{prefer_huge_pages, prefetch};

use super::quads::QuadLayout;
use super::transpose::transpose;
use super::{Columns, FilterShape, WORDS_MAX, wide};

/// Bits of a cache line.
pub(super) const LINE_BITS: usize = 512;

/// A piece of a row that is loaded at once.
pub(super) trait Cell: Default + Sync {
    /// The number of its columns.
    const BITS: usize;
    /// The mask of all its columns.
    const ALL: u64;
    /// Returns its bits, in the lowest positions.
    fn load(&self) -> u64;
    /// Replaces its bits by the lowest ones of `bits`.
    fn store(&self, bits: u64);
}

macro_rules! impl_cell {
    ($($cell:ty, $number:ty;)*) => {$(
        impl Cell for $cell {
            const BITS: usize = <$number>::BITS as usize;
            const ALL: u64 = <$number>::MAX as u64;

            #[inline]
            fn load(&self) -> u64 {
                self.load(Relaxed).into()
            }

            #[inline]
            fn store(&self, bits: u64) {
                self.store(bits as $number, Relaxed);
            }
        }
    )*};
}

impl_cell! { AtomicU8, u8; AtomicU16, u16; AtomicU32, u32; AtomicU64, u64; }

/// All rows, in their current width.
pub(super) enum Cells {
    Eight(Box<[AtomicU8]>),
    Sixteen(Box<[AtomicU16]>),
    TwentyFour(Box<[AtomicU32]>, QuadLayout),
    ThirtyTwo(Box<[AtomicU32]>),
    FortyEight(Box<[AtomicU64]>, QuadLayout),
    /// Rows of this many words.
    Words(Box<[AtomicU64]>, usize),
}

/// The operations on rows of every width.
pub(super) trait Matrix {
    /// Prefetches the rows of a slot, `rows` of them, line by line. They may begin anywhere in a line, so the last cell
    /// counts too.
    fn prefetch_slot(&self, slot: usize, rows: usize);
    /// Prefetches a row of a Bloom filter.
    fn prefetch_row(&self, row: usize);
    /// The number of rows.
    fn row_count(&self) -> usize;
    /// Returns one row.
    fn row(&self, row: usize) -> Columns;
    /// Replaces a row.
    fn put_row(&self, row: usize, columns: &Columns);
    /// Replaces a column by packed bits.
    fn write_column(&self, column: usize, bits: &[u64]);
    /// Sets the ones of `bits` in a column that is all zero.
    fn or_column(&self, column: usize, bits: &[u64]);
    /// Clears these columns.
    fn clear(&self, columns: &Columns);
    /// Replaces the listed columns.
    fn load_columns(&self, columns: &[(usize, &[u64])]);
    /// Returns the packed bits of a column.
    fn extract_column(&self, column: usize) -> Vec<u64>;
}

/// All rows, of `words` cells each.
pub(super) struct Rows<'s, C> {
    cells: &'s [C],
    words: usize,
}

/// Evaluates an expression with rows of the actual width.
macro_rules! with_rows {
    ($cells:expr, $rows:ident => $act:expr) => {{
        use $crate::bufferhash::filter::cells::{Cells, Rows};
        use $crate::bufferhash::filter::quads::Quads;
        match $cells {
            Cells::Eight(cells) => {
                let $rows = Rows::new(cells, 1);
                $act
            }
            Cells::Sixteen(cells) => {
                let $rows = Rows::new(cells, 1);
                $act
            }
            Cells::TwentyFour(cells, layout) => {
                let $rows = Quads::new(cells, *layout);
                $act
            }
            Cells::ThirtyTwo(cells) => {
                let $rows = Rows::new(cells, 1);
                $act
            }
            Cells::FortyEight(cells, layout) => {
                let $rows = Quads::new(cells, *layout);
                $act
            }
            Cells::Words(cells, words) => {
                let $rows = Rows::new(cells, *words);
                $act
            }
        }
    }};
}
pub(super) use with_rows;

/// The widths of rows.
const WIDTHS: [usize; 9] = [8, 16, 24, 32, 48, 64, 128, 192, 256];

/// Returns the narrowest width with at least this number of columns.
pub(super) fn width_of(columns: usize) -> usize {
    *WIDTHS.iter().find(|width| **width >= columns).expect("a shape has at most 256 columns")
}

impl Cells {
    /// Creates the rows of a shape, all zero, with at least `columns` columns.
    pub(super) fn zeroed(shape: &FilterShape, columns: usize) -> Self {
        let (rows, layout) = (shape.column_bits(), QuadLayout::of(shape));
        match width_of(columns) {
            8 => Self::Eight(zeroed(rows)),
            16 => Self::Sixteen(zeroed(rows)),
            24 => Self::TwentyFour(zeroed(layout.cells()), layout),
            32 => Self::ThirtyTwo(zeroed(rows)),
            48 => Self::FortyEight(zeroed(layout.cells()), layout),
            width => Self::Words(zeroed(rows * (width / 64)), width / 64),
        }
    }

    /// Columns of a row.
    pub(super) fn columns(&self) -> usize {
        match self {
            Self::Eight(_) => 8,
            Self::Sixteen(_) => 16,
            Self::TwentyFour(..) => 24,
            Self::ThirtyTwo(_) => 32,
            Self::FortyEight(..) => 48,
            Self::Words(_, words) => 64 * words,
        }
    }

    /// Their memory, in bytes.
    pub(super) fn bytes(&self) -> usize {
        match self {
            Self::Eight(cells) => size_of_val(&**cells),
            Self::Sixteen(cells) => size_of_val(&**cells),
            Self::TwentyFour(cells, _) | Self::ThirtyTwo(cells) => size_of_val(&**cells),
            Self::FortyEight(cells, _) | Self::Words(cells, _) => size_of_val(&**cells),
        }
    }

    /// Copies narrower rows, each after `change` has moved its columns.
    pub(super) fn copy_from(&self, narrower: &Self, change: impl Fn(Columns) -> Columns) {
        with_rows!(narrower, from => with_rows!(self, to => copy(&from, &to, &change)));
    }
}

fn copy(from: &impl Matrix, to: &impl Matrix, change: impl Fn(Columns) -> Columns) {
    (0..from.row_count()).for_each(|row| to.put_row(row, &change(from.row(row))));
}

fn zeroed<C: Cell>(cells: usize) -> Box<[C]> {
    let mut memory = Vec::with_capacity(cells);
    prefer_huge_pages(memory.spare_capacity_mut());
    memory.resize_with(cells, C::default);
    memory.into_boxed_slice()
}

impl<'s, C: Cell> Rows<'s, C> {
    #[inline]
    pub(super) fn new(cells: &'s [C], words: usize) -> Self {
        Self { cells, words }
    }

    /// Returns the cells of `rows` rows from row `first` on, of `W` cells each.
    #[inline]
    pub(super) fn run<const W: usize>(&self, first: usize, rows: usize) -> &'s [[C; W]] {
        self.cells[first * W..][..rows * W].as_chunks().0
    }

    /// Returns the cells of `rows` rows from row `first` on.
    #[inline]
    pub(super) fn cells(&self, first: usize, rows: usize) -> &'s [C] {
        &self.cells[first * self.words..][..rows * self.words]
    }

    /// Prefetches these rows.
    #[inline]
    fn prefetch(&self, rows: Range<usize>) {
        let run = self.cells(rows.start, rows.len());
        run.iter().step_by(LINE_BITS / C::BITS).chain(run.last()).for_each(prefetch);
    }

    fn load_word(&self, word: usize, group: &[Option<&[u64]>; 64]) {
        let keep = (0..64).filter(|&bit| group[bit].is_none()).fold(0, |mask, bit| mask | 1 << bit);
        for (block, rows) in self.cells.chunks(64 * self.words).enumerate() {
            let mut matrix = group.map(|bits| bits.map_or(0, |bits| bits[block]));
            transpose(&mut matrix);
            for (row, fresh) in rows.iter().skip(word).step_by(self.words).zip(matrix) {
                row.store((row.load() & keep) | fresh);
            }
        }
    }

    /// Calls `act` for each row's cell of `column` with the row's bit, 64 rows per word of input.
    #[inline]
    fn for_each_row(&self, column: usize, bits: &[u64], act: impl Fn(&C, u64)) {
        let word = column / C::BITS;
        for (&packed, rows) in bits.iter().zip(self.cells.chunks(64 * self.words)) {
            let mut left = packed;
            // A constant step lets the compiler unroll the common case.
            let mut each = |row: &C| {
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

impl<C: Cell> Matrix for Rows<'_, C> {
    #[inline]
    fn prefetch_slot(&self, slot: usize, rows: usize) {
        self.prefetch(slot * rows..(slot + 1) * rows);
    }

    #[inline]
    fn prefetch_row(&self, row: usize) {
        self.prefetch(row..row + 1);
    }

    fn row_count(&self) -> usize {
        self.cells.len() / self.words
    }

    fn put_row(&self, row: usize, columns: &Columns) {
        columns.iter().zip(self.cells(row, 1)).for_each(|(word, cell)| cell.store(*word));
    }

    fn row(&self, row: usize) -> Columns {
        let mut columns = [0; WORDS_MAX];
        columns.iter_mut().zip(self.cells(row, 1)).for_each(|(word, cell)| *word = cell.load());
        columns
    }

    fn write_column(&self, column: usize, bits: &[u64]) {
        let (shift, keep) = (column % C::BITS, !(1 << (column % C::BITS)));
        self.for_each_row(column, bits, |row, bit| row.store((row.load() & keep) | (bit << shift)));
    }

    fn or_column(&self, column: usize, bits: &[u64]) {
        let (word, one) = (column / C::BITS, 1_u64 << (column % C::BITS));
        for (&packed, rows) in bits.iter().zip(self.cells.chunks(64 * self.words)) {
            for_each_one(packed, |row| {
                if let Some(cell) = rows.get(row * self.words + word) {
                    cell.store(cell.load() | one);
                }
            });
        }
    }

    fn clear(&self, columns: &Columns) {
        for (word, &ones) in columns.iter().enumerate().filter(|(_, ones)| **ones != 0) {
            for cell in self.cells.iter().skip(word).step_by(self.words) {
                cell.store(cell.load() & !ones);
            }
        }
    }

    fn load_columns(&self, columns: &[(usize, &[u64])]) {
        for word in 0..self.words {
            let mut group: [Option<&[u64]>; 64] = [None; 64];
            for &(column, bits) in columns.iter().filter(|(column, _)| column / C::BITS == word) {
                group[column % C::BITS] = Some(bits);
            }
            if group.iter().any(Option::is_some) {
                self.load_word(word, &group);
            }
        }
    }

    fn extract_column(&self, column: usize) -> Vec<u64> {
        let pack = |rows: &[C]| {
            let cells = rows.iter().skip(column / C::BITS).step_by(self.words);
            cells.enumerate().fold(0, |packed, (row, cell)| {
                packed | ((cell.load() >> (column % C::BITS)) & 1) << row
            })
        };
        self.cells.chunks(64 * self.words).map(pack).collect()
    }
}

/// Calls `act` with the number of each one bit, lowest first.
fn for_each_one(mut packed: u64, mut act: impl FnMut(usize)) {
    while packed != 0 {
        act(wide(packed.trailing_zeros()));
        packed &= packed - 1;
    }
}
