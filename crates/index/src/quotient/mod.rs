//! The quotient filter: a multiset of fingerprints in RAM, as a compact sorted list (HotStorage'11).
//!
//! A key is kept as its [fingerprint](nandex_store::fingerprint), a number below the universe's size U, so a
//! filter of n fingerprints says "there" of a key that is not at the rate n / U. A fingerprint is cut in two:
//! the **quotient** names a slot, and the **remainder** is what is stored, there or as close behind as there is
//! room. Three bits for each slot are enough to tell of every remainder whose it is:
//!
//! ```text
//!   slot        0       1       2       3       4       5       6
//!           +-------+-------+-------+-------+-------+-------+-------+
//!           |       | 1 0 0 | 1 1 1 | 0 1 1 | 1 0 1 | 0 0 1 |       |   is_occupied, _continuation, _shifted
//!           |       |   1   |   4   |   7   |   5   |   3   |       |   remainder
//!           +-------+-------+-------+-------+-------+-------+-------+
//!                   |<---- run of 1 ------->| of 2  | of 4  |
//!                   |<-------------- one cluster ---------->|
//! ```
//!
//! Remainders of one quotient are a **run**, ascending; runs stand in the order of their quotients; runs that
//! push one another to the right are a **cluster**, which begins with a remainder in its own slot. *is_occupied*
//! belongs to the slot: its quotient has a run, wherever that lies. The other two belong to what is stored, and
//! move with it. In this cluster the slots 1, 2 and 4 are occupied and the slots 1, 4 and 5 begin runs, so the
//! second of these runs is of quotient 2.
//!
//! Since the quotient is the high part, slots from left to right are fingerprints in ascending order, in a
//! filter of any size: filters are merged, grown and shrunk by reading one and writing another front to back.
//!
//! # An example
//!
//! Of 8 quotients, for fingerprints of two octal digits: the first is the quotient, the second the remainder.
//!
//! ```text
//!            0       1       2       3       4       5       6       7
//!   + 14 |       | 100 4 |       |       |       |       |       |       |
//!   + 43 |       | 100 4 |       |       | 100 3 |       |       |       |
//!   + 11 |       | 100 1 | 011 4 |       | 100 3 |       |       |       |
//!   + 25 |       | 100 1 | 111 4 | 001 5 | 100 3 |       |       |       |
//!   + 17 |       | 100 1 | 111 4 | 011 7 | 101 5 | 001 3 |       |       |
//!   + 25 |       | 100 1 | 111 4 | 011 7 | 101 5 | 011 5 | 001 3 |       |
//!   - 14 |       | 100 1 | 111 7 | 001 5 | 111 5 | 001 3 |       |       |
//!   - 25 |       | 100 1 | 111 7 | 001 5 | 100 3 |       |       |       |
//! ```
//!
//! `+ 11` is less than 14 and becomes the head of its run; 14 moves, and is a continuation now. `+ 25` finds its
//! slot taken by 14, marks it occupied and lies behind: a run's head, shifted. `+ 17` moves 25 and 43: two
//! clusters have become one. The second `+ 25` stands beside the first, for each insert must be there to be
//! deleted. After the last step 43 is home again, and a cluster of its own.
//!
//! [`QuotientFilter`] is this filter, written to be read. [`RankFilter`] has the same entries, answers and errors
//! and is made for large buffers; both are [`Slots`].
//!
//! # Counts
//!
//! What a slot says besides the remainder is chosen by [`Counts`]: nothing, so that a fingerprint that is there
//! n times has n slots; a sign, so that one may be there less than never, until it meets its insert in another
//! filter; or a count in a few bits. [`Outliers`] stand beside the slots for what does not fit, so one hot key
//! neither fills the filter nor makes a cluster without end. Each count is held in one way ([`Held`]), so
//! filters with the same entries and sizes are the same bit for bit, however they came to be.
//!
//! # Invariants
//!
//! 1. A slot is in use when one of its three bits is set. *Continuation* without *shifted* does not occur. The
//!    body of a slot that is not in use is 0.
//! 2. Each occupied quotient has one run, a head and its continuations without a gap, and runs stand in the order
//!    of their quotients; none begins left of its quotient's slot.
//! 3. *Shifted* is set where the quotient names another slot than the one it lies in.
//! 4. Between a run that begins shifted and its quotient's slot all slots are in use.
//! 5. In a run remainders ascend. Equal ones stand side by side, with one code.
//! 6. A count is held as [`Held::of`] says: so no fingerprint has more than [`REPEATS_MAX`] slots, and there are
//!    no outliers that no slot tells of.
//! 7. At most [`entries_max`](Shape::entries_max) slots are in use and at most
//!    [`outliers_max`](Shape::outliers_max) outliers stand beside them.
//!
//! [`QuotientFilter::decode`] proves all of them for bytes that may be anything.
//!
//! # Costs
//!
//! With r for the bits of a remainder, c for those of a count, and a for the share of slots in use. Nothing of it
//! reads or writes flash.
//!
//! | operation | cost |
//! |---|---|
//! | RAM of an entry | (r + 3 + c) / a bits |
//! | lookup, insert, delete | a walk over a cluster of about 1 / (1 - a)^2 slots: 4, 16, 100 for a of .5, .75, .9 |
//! | the longest cluster | below 1.2 ln Q / (a - 1 - ln a) slots, for Q quotients |
//! | iteration, merge, resize, build, save | one pass over the slots; nothing is moved |
//! | false positives | n / U of lookups, the same in every size, and no false negatives |

mod build;
mod check;
mod config;
mod counts;
mod delete;
mod filter;
mod full;
mod insert;
mod iter;
mod merge;
mod outliers;
mod rank;
mod resize;
mod runs;
mod serial;
mod shape;
mod shared;
mod slots;
mod traits;

#[cfg(test)]
mod tests;

pub use config::{Config, Growth};
pub use counts::Held;
pub use filter::QuotientFilter;
pub use iter::{Batches, Iter};
pub use outliers::{Outliers, REPEATS_MAX};
pub use rank::{RankFilter, RankIter, RankSource};
pub use shape::{Counts, Shape};
pub use shared::SharedFilter;
pub use traits::Slots;

use build::Builder;
