//! The quotient filter: a multiset of fingerprints in RAM, as a compact sorted list (HotStorage'11).
//!
//! The filter keeps a [fingerprint](nandex_store::fingerprint) of each key, a number below the size U of a
//! universe. With n fingerprints it answers "present" for an absent key at the rate n / U. It splits a
//! fingerprint in two: the **quotient** names a slot, and the **remainder** is stored in that slot or, when
//! others are in the way, a little further right. The remainders of one quotient are a **run**, in ascending
//! order. Runs are in the order of their quotients. So the slots from left to right are the fingerprints in
//! ascending order, in a filter of any size: filters merge, grow and shrink by reading one and writing another
//! from front to back.
//!
//! The paper finds a run by walking over slots with three bits each. That layout is in `three_bits.rs`, with a worked
//! example, and is the best place to begin reading; tests compare this filter with it. Here each slot has two bits, and
//! those of 64 slots are together in a word, so that one instruction examines 64 slots (RSQF, the filter below the CQF
//! of SIGMOD 2017):
//!
//! ```text
//!   slot          0     1     2     3     4     5     6     7
//!   occupieds     .     1     1     .     1     .     .     .     quotients 1, 2 and 4 have runs,
//!   runends       .     .     .     1     1     1     .     .     which end in slots 3, 4 and 5
//!   remainder           1     4     7     5     3
//!                       |--- of 1 ---->|of 2 |of 4 |
//! ```
//!
//! The n-th set bit of *occupieds* and the n-th of *runends* belong to the same run. To find the run of quotient 4,
//! note that two bits are set before it (**rank**), so its run begins after the second runend (**select**), which is
//! slot 4: in slot 5. Slot 6 is unused: quotient 6 has no run, no run ends there, and all three runs that begin before
//! it end before it.
//!
//! Slots are in blocks of 64, each with its words and with an **offset**: the number of slots from the block's first
//! one that belong to runs of earlier quotients. So nothing before the block is read. An offset has 16 bits, which
//! makes 2.25 bits per slot in all. The CQF's 8 bits would make 2.125, and would reject clusters that chance or malice
//! can make. An offset of 65,535 or more is computed from the last block before it whose offset fits.
//!
//! # Optimizations
//!
//! - A run inside its own block is compared at once: its slots are lanes of a word.
//! - The search for an unused slot looks only at slots with neither bit set. Five in six of those are unused.
//! - Slots and runends move by whole words. Slots of 8, 9, 10 and 16 bits have specialized code.
//! - A batch prefetches the memory of the key sixteen ahead. A single call waits for one or two cache lines, which is
//!   most of its time in a filter larger than the cache; so batches are several times faster.
//!
//! # Counts
//!
//! [`Counts`] chooses what a slot stores in addition to the remainder: nothing, so that a fingerprint that was added n
//! times has n slots; a sign, so that a count may be below zero until the filter is merged with another; or a count of
//! a few bits. [`Outliers`] hold counts that do not fit the slots, so one hot key neither fills the filter nor makes an
//! endless cluster. Each count is stored in exactly one form ([`StoredCount`]), so filters with the same entries and
//! sizes are identical bit for bit, in whatever order the entries came.
//!
//! # Invariants
//!
//! 1. There are as many runends as occupieds. A run begins in its quotient's slot, or right after the run before.
//! 2. An unused slot is 0, and so is its runend.
//! 3. A block's offset is the number of its slots that the runs of earlier quotients reach, or 65,535 if that is more.
//! 4. In a run remainders ascend. Equal ones are next to each other and have the same count bits.
//! 5. A count is stored in the form of [`StoredCount::of`]. So no fingerprint has more than [`REPEATS_MAX`] slots, and
//!    each outlier belongs to a slot.
//! 6. At most [`entries_max`](Shape::entries_max) slots are in use and there are at most
//!    [`outliers_max`](Shape::outliers_max) outliers.
//!
//! [`QuotientFilter::decode`] verifies all of them for untrusted bytes.
//!
//! # Costs
//!
//! With r for the bits of a remainder, c for the bits of a count, and a for the share of slots in use. Nothing
//! reads or writes flash.
//!
//! | operation | cost |
//! |---|---|
//! | RAM of an entry | (r + c + 2.25) / a bits |
//! | lookup | 1 to 2 cache misses |
//! | insert, delete | as a lookup; moves the slots up to the next unused one: 1 / (2 (1 - a)^2), 140 at a = .94 |
//! | iteration, merge, resize, build, save | one pass over the slots; nothing moves |
//! | false positives | n / U of lookups, the same in every size; no false negatives |

mod blocks;
mod build;
mod check;
mod config;
mod counts;
mod filter;
mod find;
mod iter;
mod join;
mod outliers;
mod range;
mod serial;
mod shape;
mod shared;
mod update;
mod width;

#[cfg(test)]
mod tests;
#[cfg(test)]
mod three_bits;

pub use config::{Config, Growth};
pub use counts::{Counts, REPEATS_MAX, StoredCount};
pub use filter::QuotientFilter;
pub use iter::QuotientSource;
pub use outliers::Outliers;
pub use shape::Shape;
pub use shared::SharedFilter;
