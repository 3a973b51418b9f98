//! The fast quotient filter, for large buffers: rank and select in place of clusters that are walked.
//!
//! The same runs in the same slots as in the readable filter, but what says whose a slot is are two bits of it
//! and not three, and these lie together, 64 to a word, so that one instruction looks at 64 slots (RSQF, the
//! filter below the CQF of SIGMOD 2017):
//!
//! ```text
//!   slot          0     1     2     3     4     5     6     7
//!   occupieds     .     1     1     .     1     .     .     .     quotients 1, 2 and 4 have runs,
//!   runends       .     .     .     1     1     1     .     .     which end in slots 3, 4 and 5
//!   remainder           1     4     7     5     3
//!                       |--- of 1 ---->|of 2 |of 4 |
//! ```
//!
//! Runs stand in the order of their quotients, so the n-th set bit of *occupieds* and the n-th of *runends* are
//! of one run. Where is the run of quotient 4? Two bits are set before it (**rank**), so its run begins behind
//! the second runend (**select**), which is slot 4: in slot 5. Is slot 6 unused? No quotient 6 has a run, none
//! ends there, and all three runs that begin before it end before it.
//!
//! Slots come in blocks of 64, each with its words, and with an **offset**: how many slots from the block's first
//! are of runs of earlier quotients. So nothing before the block is ever read. An offset of 16 bits makes
//! 2.25 bits per slot in all; the CQF's 8 bits would make 2.125, and refuse what chance or malice can bring.
//! One of 65,535 slots or more is found from the last block before whose offset fits.
//!
//! # What makes it fast
//!
//! - A run that lies in its own block is compared at once: its slots are lanes of a word.
//! - The next unused slot is looked for among the slots with neither bit set, which but for one in six are.
//! - Slots and runends are moved by words; slots of 8, 9, 10 and 16 bits have code of their own.
//! - A batch asks memory for what it will need sixteen keys ahead. A single call waits for one cache line or
//!   two, which is most of its time in a filter greater than the cache; so batches are several times faster.
//!
//! # Invariants
//!
//! 1. As many runends as occupieds; a run begins in its quotient's slot, or right behind the run before.
//! 2. A slot that is not in use is 0, its runend too.
//! 3. A block's offset is what the runs before say, or the greatest of 16 bits where that does not fit.
//! 4. Remainders ascend in a run; each count is held in the one way there is for it, as in the readable filter.
//!    So filters with the same entries and sizes are the same bit for bit.
//!
//! # Costs
//!
//! | what | cost |
//! |---|---|
//! | RAM | remainder + count + 2.25 bits per slot |
//! | lookup | 1 to 2 cache misses |
//! | insert, delete | as a lookup, and the slots up to the next unused one move: 1 / (2 (1 - a)^2), 140 at a = .94 |
//! | iteration, building in order | one pass over the slots; nothing is moved |

mod blocks;
mod build;
mod check;
mod filter;
mod find;
mod iter;
mod join;
mod slots;
mod width;

#[cfg(test)]
mod tests;

pub use filter::RankFilter;
pub use iter::{RankIter, RankSource};
