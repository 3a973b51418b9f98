//! The filters that determine which incarnations of a super table may hold a key (paper, section 5.1.3).
//!
//! A super table has one filter per incarnation. They are stored together, bit-sliced: filter `c` is column `c` of a
//! bit matrix, so one word holds the same bit of 64 filters, and a lookup queries all of them at once with a few ANDs:
//!
//! ```text
//!                 columns (incarnations)          a Bloom row is one bit of every filter;
//!              63 ........ 3  2  1  0             a fuse slot is `bits_per_slot` rows in a run.
//!   row 0       0          1  0  1  1
//!   row 1       1          0  0  1  0   <- rows picked by the key's hash are
//!   ...                                    ANDed, then masked with the live columns
//! ```
//!
//! A matrix begins with 8 columns and is copied into a wider one when all are live: of 16, 24, 32, 48, 64, 128, 192 or
//! 256 columns, up to the words of its shape. So a super table takes RAM only for its current incarnations. Four rows
//! of 24 or 48 columns are in three cells of 32 or 64 bits (`quads`), rows of other widths are whole cells.
//!
//! There are two kinds: [`FilterKind::Bloom`] is the paper's, [`FilterKind::Fuse`] is ours, 1.06 `r` bits per entry for
//! a rate of 2^-`r`; a Bloom filter takes 1.44 `r`. A fuse filter may refuse a few of its keys ("bumped"); their
//! entries go back into the buffer. That is 1 to 3 % of a full filter. Small filters need more bits, up to 1.33 `r` for
//! 200 keys. At 12 bits a slot and 15,000 keys it is 12.7 bits a key for a rate of 1 in 4096; a Bloom filter takes
//! 17.3.
//!
//! Sources: Graf and Lemire, *Binary Fuse Filters*, Journal of Experimental Algorithmics 2022; bumping
//! instead of starting over after Dillinger, Hübschle-Schneider, Sanders and Walzer, *Fast Succinct
//! Retrieval and Approximate Membership Using Ribbon*, SEA 2022; Kirsch and Mitzenmacher, *Less Hashing,
//! Same Performance*, 2008, for the Bloom filters' positions.
//!
//! Invariants
//!  1. A key that was built into a live column and not bumped is always among its candidates.
//!  2. A bit outside the live mask is never among the candidates, whatever the column holds.
//!  3. One writer at a time per [`Slices`]; it writes only columns that are not live. Readers never wait.
//!  4. Column bits mean the same for ever: they are stored on flash and loaded again at open.
//!
//! | act | RAM touched | cost |
//! |---|---|---|
//! | [`IncarnationFilter::candidates`], fuse | 4 runs of `bits_per_slot` rows | stops when all bits are 0 |
//! | [`IncarnationFilter::candidates`], Bloom | `hashes` rows | stops when all bits are 0 |
//! | [`IncarnationFilter::build`] | scratch of 40 bytes per key | linear in the keys |
//! | [`Slices::write_column`] | every row once | linear in the rows |
//! | [`Slices::widened`] | every row once | linear in the rows; old and new are in RAM meanwhile |
//! | [`Slices::load_columns`] | every row once for up to 64 columns | 64 x 64 transposes |

mod bloom;
mod cells;
mod fuse;
mod hash;
mod probe;
mod quads;
mod shape;
mod slices;
mod transpose;
mod window;

#[cfg(test)]
mod tests;

pub use fuse::{BuildScratch, bumped_share as fuse_bumped_share};
pub use probe::{Built, IncarnationFilter, Positions};
pub use shape::{
    BITS_PER_SLOT_MAX, ENTRIES_MAX, FilterKind, FilterShape, HASHES_MAX, ShapeParts, WORDS_MAX,
};
pub use slices::Slices;
pub use window::{NewestFirst, Window};

/// One bit per column of a super table: column `c` is bit `c % 64` of word `c / 64`.
pub type Columns = [u64; WORDS_MAX];

/// A `u32` as an index; every machine this runs on has at least 32-bit addresses.
fn wide(value: u32) -> usize {
    usize::try_from(value).expect("addresses have 32 bits or more")
}
