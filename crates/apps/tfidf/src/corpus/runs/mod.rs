//! Runs: the terms of a batch of documents in the order of their hash, with the changes of their counts by the batch.
//!
//! ```text
//!   batch --sorted--> run 7:  block 0 [cat 1 1 | red 2 5 | ..]   block 1 [..]   ..   first places of the blocks
//!                                \
//!   run 5, run 6, run 7 --merged, a block of each in RAM--> each term once, with the sum
//! ```
//!
//! They are the change segment of the index, and the counting tables its data segment. A block is a value of a table of
//! large values, named by the run and its number. A run takes part only once the state of the index names it, so a
//! batch takes effect as a whole or not at all.
//!
//! Invariants
//! 1. The terms of a run ascend by place and then key, and each occurs once. Its reader checks that.
//! 2. Terms of one place are in one block.
//! 3. A run never changes. Its number is not reused once the state has named it.

mod blocks;
mod format;
mod merge;
mod reader;
mod writer;

use serde::{Deserialize, Serialize};

pub(super) use blocks::{Blocks, Kind};
pub(super) use format::Delta;
pub(super) use merge::Merged;
pub(super) use reader::{RunReader, add_found};
pub(super) use writer::RunWriter;

/// The number of bytes after which a block ends.
pub(super) const BLOCK_BYTES: usize = 64 << 10;

/// A run that the state names.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub(super) struct RunInfo {
    pub(super) id: u64,
    pub(super) blocks: u32,
    pub(super) terms: u64,
}

impl RunInfo {
    /// Returns the most blocks of these runs merged into one. A block may be a term longer than a block, four times as
    /// long.
    pub(super) fn blocks_max(runs: impl Iterator<Item = Self>) -> u32 {
        runs.fold(1, |sum: u32, run| sum.saturating_add(run.blocks.saturating_mul(4)))
    }
}

/// Returns the most blocks of `terms` terms, whose texts have `text_bytes` bytes in total.
pub(super) fn blocks_max(terms: usize, text_bytes: u64) -> u32 {
    let bytes = text_bytes + (terms * format::OVERHEAD_BYTES) as u64;
    u32::try_from(bytes / BLOCK_BYTES as u64 + 1).unwrap_or(u32::MAX)
}
