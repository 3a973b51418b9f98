//! Writes a run: terms that come in order fill one block after another.

use super::blocks::{Blocks, Kind};
use super::format::{self, CountsIn, Delta};
use super::{BLOCK_BYTES, RunInfo};
use crate::Result;

/// A run being written. It is invisible until the state names it.
pub(in crate::corpus) struct RunWriter<'b> {
    blocks: &'b Blocks,
    counts: CountsIn,
    info: RunInfo,
    block: Vec<u8>,
    /// The places of the blocks' first terms, in 8 bytes each.
    firsts: Vec<u8>,
    /// The place of the last term.
    last: u64,
}

impl<'b> RunWriter<'b> {
    /// Creates a run with the counts of its terms.
    pub(in crate::corpus) fn new(blocks: &'b Blocks, id: u64) -> Self {
        Self::with(blocks, id, CountsIn::Run)
    }

    /// Creates a run of texts, whose counts are in tables.
    pub(in crate::corpus) fn of_texts(blocks: &'b Blocks, id: u64) -> Self {
        Self::with(blocks, id, CountsIn::Tables)
    }

    fn with(blocks: &'b Blocks, id: u64, counts: CountsIn) -> Self {
        let info = RunInfo { id, blocks: 0, terms: 0 };
        let block = Vec::with_capacity(BLOCK_BYTES * 2);
        Self { blocks, counts, info, block, firsts: Vec::new(), last: 0 }
    }

    /// Adds a term, which comes after the last one.
    #[inline]
    pub(in crate::corpus) fn push(&mut self, place: u64, text: &[u8], delta: Delta) -> Result<()> {
        // Terms of one place are in one block, so that a lookup reads one.
        if self.block.len() >= BLOCK_BYTES && place != self.last {
            self.end_block()?;
        }
        if self.block.is_empty() && self.counts == CountsIn::Run {
            self.firsts.extend_from_slice(&place.to_le_bytes());
        }
        format::encode(&mut self.block, text, delta, self.counts);
        self.last = place;
        self.info.terms += 1;
        Ok(())
    }

    fn end_block(&mut self) -> Result<()> {
        self.blocks.put(Kind::Terms, (self.info.id, self.info.blocks), &self.block)?;
        self.info.blocks += 1;
        self.block.clear();
        Ok(())
    }

    /// Writes the rest. The blocks are durable when a state that names them is.
    pub(in crate::corpus) fn finish(mut self) -> Result<RunInfo> {
        if !self.block.is_empty() {
            self.end_block()?;
        }
        if !self.firsts.is_empty() {
            self.blocks.put(Kind::Firsts, (self.info.id, 0), &self.firsts)?;
        }
        Ok(self.info)
    }
}
