//! The filter itself, which builds columns from hashes, and queries all columns at once for one hash.

use std::ops::Range;

use super::bloom::{self, Progression};
use super::cells::{Cell, Cells, Matrix as _, Rows, with_rows};
use super::fuse::{BuildScratch, SlotLayout};
use super::hash::mix;
use super::quads::{QuadLayout, Quads};
use super::{Columns, FilterKind, FilterShape, Slices, WORDS_MAX, wide};

/// The rows of a fuse slot that are ANDed before checking whether any column remains: a check at every row would cost
/// more in mispredicted branches than the rows it saves.
const ROWS_PER_LOOK: usize = 4;

/// Builds and queries filters of one shape. It holds no bits: those are in [`Slices`], one per super table.
///
/// ```
/// use nandex::raw::bufferhash::filter::{FilterShape, IncarnationFilter, Slices};
/// # fn main() -> nandex::Result<()> {
/// let filter = IncarnationFilter::new(FilterShape::fuse(1000, 12, 1)?);
/// let slices = Slices::new(filter.shape());
/// let built = filter.build(&[0x9AB4_55C1_20F3_7D61, 0x1B2E_90D4_C8A7_3F05]);
/// slices.write_column(7, &built.bits);
/// let found = filter.candidates(&slices, 0x1B2E_90D4_C8A7_3F05, &[1 << 7, 0, 0, 0]);
/// assert_eq!(found, [1 << 7, 0, 0, 0]);
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Copy, Debug)]
pub struct IncarnationFilter {
    shape: FilterShape,
}

/// A column to write, and the keys that are not in it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Built {
    /// The packed bits, [`FilterShape::column_words`] words.
    pub bits: Vec<u64>,
    /// The indices of the hashes that could not be placed, ascending; always empty for Bloom.
    pub bumped: Vec<usize>,
}

/// The positions of a hash; computed once, and used for prefetching and for queries.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Positions(Places);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Places {
    Bloom(Progression),
    Fuse { slots: [u32; 4], fingerprint: u32 },
}

impl IncarnationFilter {
    /// Creates a filter of this shape.
    #[must_use]
    pub fn new(shape: FilterShape) -> Self {
        Self { shape }
    }

    /// Its shape.
    #[must_use]
    pub fn shape(&self) -> &FilterShape {
        &self.shape
    }

    /// Builds the column of these hashes; they should be uniform, but may share some bits (those that select the super
    /// table). See [`IncarnationFilter::build_into`] to reuse memory.
    #[must_use]
    pub fn build(&self, hashes: &[u64]) -> Built {
        let mut built = Built::default();
        self.build_into(&mut BuildScratch::new(), hashes, &mut built.bits, &mut built.bumped);
        built
    }

    /// Replaces `bits` by the packed column of these hashes and `bumped` by the indices, ascending, of those that are
    /// not in it. Of equal hashes a fuse filter places one. Never fails: with more hashes than `entries_max`, a fuse
    /// filter bumps the surplus and a Bloom filter's rate rises. Linear time.
    ///
    /// # Panics
    /// With 2^32 hashes or more.
    pub fn build_into(
        &self,
        scratch: &mut BuildScratch,
        hashes: &[u64],
        bits: &mut Vec<u64>,
        bumped: &mut Vec<usize>,
    ) {
        assert!(u32::try_from(hashes.len()).is_ok(), "{} hashes in one column", hashes.len());
        match self.shape.kind() {
            FilterKind::Bloom => {
                bumped.clear();
                bloom::build(&self.shape, hashes, bits);
            }
            FilterKind::Fuse => scratch.build(&self.shape, hashes, bits, bumped),
        }
    }

    /// Returns the positions of this hash.
    #[inline]
    #[must_use]
    pub fn positions(&self, hash: u64) -> Positions {
        Positions(match self.shape.kind() {
            FilterKind::Bloom => Places::Bloom(Progression::new(hash)),
            FilterKind::Fuse => {
                let (layout, mixed) = (SlotLayout::new(&self.shape), mix(hash));
                Places::Fuse { slots: layout.slots(mixed), fingerprint: layout.fingerprint(mixed) }
            }
        })
    }

    /// Calls `touch` with every run of rows that [`IncarnationFilter::candidates_at`] may read: four for a fuse filter,
    /// a row for each hash function of a Bloom filter.
    #[inline]
    pub fn for_each_run(&self, positions: &Positions, mut touch: impl FnMut(Range<usize>)) {
        match positions.0 {
            Places::Bloom(rows) => rows.rows(&self.shape).for_each(|row| touch(row..row + 1)),
            Places::Fuse { slots, .. } => {
                let rows = wide(self.shape.bits_per_slot());
                slots.iter().for_each(|slot| touch(wide(*slot) * rows..(wide(*slot) + 1) * rows));
            }
        }
    }

    /// Prefetches those runs.
    ///
    /// # Panics
    /// If `slices` were made for another shape.
    #[inline]
    pub fn prefetch(&self, slices: &Slices, positions: &Positions) {
        with_rows!(&slices.cells, rows => match positions.0 {
            Places::Bloom(numbers) => {
                numbers.rows(&self.shape).for_each(|row| rows.prefetch_row(row));
            }
            Places::Fuse { slots, .. } => {
                let bits = wide(self.shape.bits_per_slot());
                slots.iter().for_each(|slot| rows.prefetch_slot(wide(*slot), bits));
            }
        });
    }

    /// Returns the live columns that may have this hash: every column that has it, and others at the filter's rate.
    ///
    /// # Panics
    /// If `slices` were made for another shape.
    #[inline]
    #[must_use]
    pub fn candidates(&self, slices: &Slices, hash: u64, live: &Columns) -> Columns {
        self.candidates_at(slices, &self.positions(hash), live)
    }

    /// Returns the same columns as [`IncarnationFilter::candidates`], from precomputed positions.
    ///
    /// # Panics
    /// If `slices` or `positions` were made for another shape.
    #[inline]
    #[must_use]
    pub fn candidates_at(&self, slices: &Slices, positions: &Positions, live: &Columns) -> Columns {
        match &slices.cells {
            Cells::Eight(cells) => self.candidates_in::<_, 1>(cells, positions, live),
            Cells::Sixteen(cells) => self.candidates_in::<_, 1>(cells, positions, live),
            Cells::TwentyFour(cells, layout) => {
                self.candidates_in_quads(cells, *layout, positions, live)
            }
            Cells::ThirtyTwo(cells) => self.candidates_in::<_, 1>(cells, positions, live),
            Cells::FortyEight(cells, layout) => {
                self.candidates_in_quads(cells, *layout, positions, live)
            }
            Cells::Words(cells, 1) => self.candidates_in::<_, 1>(cells, positions, live),
            Cells::Words(cells, 2) => self.candidates_in::<_, 2>(cells, positions, live),
            Cells::Words(cells, 3) => self.candidates_in::<_, 3>(cells, positions, live),
            Cells::Words(cells, _) => self.candidates_in::<_, 4>(cells, positions, live),
        }
    }

    fn candidates_in<C: Cell, const W: usize>(
        &self,
        cells: &[C],
        positions: &Positions,
        live: &Columns,
    ) -> Columns {
        let rows = Rows::new(cells, W);
        // A column that the matrix does not have yet holds no key.
        let mut left: [u64; W] = std::array::from_fn(|word| live[word] & C::ALL);
        match positions.0 {
            Places::Bloom(numbers) => test_bloom(rows, numbers.rows(&self.shape), &mut left),
            Places::Fuse { slots, fingerprint } => {
                let bits = wide(self.shape.bits_per_slot());
                let runs = slots.map(|slot| rows.run(wide(slot) * bits, bits));
                test_fuse(runs, fingerprint, &mut left);
            }
        }
        let mut found = [0; WORDS_MAX];
        found[..W].copy_from_slice(&left);
        found
    }

    fn candidates_in_quads<C: Cell>(
        &self,
        cells: &[C],
        layout: QuadLayout,
        positions: &Positions,
        live: &Columns,
    ) -> Columns {
        let rows = Quads::new(cells, layout);
        let left = live[0] & Quads::<C>::ALL;
        let found = match positions.0 {
            Places::Bloom(numbers) => test_bloom_quads(rows, numbers.rows(&self.shape), left),
            Places::Fuse { slots, fingerprint } => {
                test_fuse_quads(slots.map(|slot| rows.slot(wide(slot))), fingerprint, left)
            }
        };
        [found, 0, 0, 0]
    }
}

/// ANDs the rows into `left` until no column is left.
#[inline]
fn test_bloom<C: Cell, const W: usize>(
    rows: Rows<'_, C>,
    numbers: impl Iterator<Item = usize>,
    left: &mut [u64; W],
) {
    for row in numbers {
        for (word, cell) in left.iter_mut().zip(rows.cells(row, 1)) {
            *word &= cell.load();
        }
        if *left == [0; W] {
            return;
        }
    }
}

/// Keeps the columns in which the XOR of the four runs is the fingerprint, bit by bit.
#[inline]
fn test_fuse<C: Cell, const W: usize>(runs: [&[[C; W]]; 4], fingerprint: u32, left: &mut [u64; W]) {
    let [first, second, third, fourth] = runs;
    let rows = first.iter().zip(second).zip(third.iter().zip(fourth));
    let mut fingerprint = fingerprint;
    for (number, ((a, b), (c, d))) in rows.enumerate() {
        // All ones if the fingerprint has a zero: the XOR must differ from it to match.
        let flip = u64::from(fingerprint & 1).wrapping_sub(1);
        fingerprint >>= 1;
        for word in 0..W {
            let cells = [&a[word], &b[word], &c[word], &d[word]];
            left[word] &= cells.iter().fold(flip, |xor, cell| xor ^ cell.load());
        }
        if number % ROWS_PER_LOOK == ROWS_PER_LOOK - 1 && *left == [0; W] {
            return;
        }
    }
}

/// ANDs rows in quads into `left` until no column is left, and returns `left`.
#[inline]
fn test_bloom_quads<C: Cell>(
    rows: Quads<'_, C>,
    numbers: impl Iterator<Item = usize>,
    mut left: u64,
) -> u64 {
    for row in numbers {
        left &= rows.bloom_row(row);
        if left == 0 {
            break;
        }
    }
    left
}

/// Returns the columns of `left` in which the XOR of the four slots of quads is the fingerprint, bit by bit. The last
/// quad may have fewer than four rows, and cells: the others are zero, as are the fingerprint's bits, and match.
#[inline]
fn test_fuse_quads<C: Cell>(slots: [&[C]; 4], mut fingerprint: u32, mut left: u64) -> u64 {
    let [(first, a), (second, b), (third, c), (fourth, d)] =
        slots.map(|slot| slot.as_chunks::<3>());
    for ((a, b), (c, d)) in first.iter().zip(second).zip(third.iter().zip(fourth)) {
        let cells = std::array::from_fn(|cell| {
            a[cell].load() ^ b[cell].load() ^ c[cell].load() ^ d[cell].load()
        });
        left &= matching(Quads::<C>::rows_of(cells), fingerprint);
        if left == 0 {
            return 0;
        }
        fingerprint >>= 4;
    }
    if a.is_empty() {
        return left;
    }
    let of = |slot: &[C], cell: usize| slot.get(cell).map_or(0, C::load);
    let cells =
        std::array::from_fn(|cell| [a, b, c, d].iter().fold(0, |xor, it| xor ^ of(it, cell)));
    left & matching(Quads::<C>::rows_of(cells), fingerprint)
}

/// Returns the columns in which four rows are the lowest bits of the fingerprint.
#[inline]
fn matching(rows: [u64; 4], fingerprint: u32) -> u64 {
    let flip = |bit: usize| u64::from(fingerprint >> bit & 1).wrapping_sub(1);
    rows.iter().enumerate().fold(u64::MAX, |all, (bit, row)| all & (row ^ flip(bit)))
}
