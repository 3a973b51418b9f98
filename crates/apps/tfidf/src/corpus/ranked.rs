//! The blocks of a rank index: they are stored with those of runs, under the number of a run that has no terms. So the
//! rank index exists as a whole or not at all, and is removed when documents are added or removed.

use std::ops::Range;

use serde::{Deserialize, Serialize};

use super::Corpus;
use super::commit::BlocksMax;
use super::runs::{Blocks, Kind};
use super::state::{State, Unused};
use crate::Result;

/// A section of a rank index, whose blocks are numbered from 0.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Section {
    /// The documents that have each term.
    Postings,
    /// A tree from the texts of terms to their postings.
    Nodes,
    /// The lengths of documents.
    Documents,
    /// The ids of documents.
    Ids,
}

impl Section {
    pub(crate) const ALL: [Self; 4] = [Self::Postings, Self::Nodes, Self::Documents, Self::Ids];
}

/// A rank index, as the state names it.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub(crate) struct RankedInfo {
    /// The run number of its blocks.
    pub(crate) run: u64,
    /// The most blocks of each section.
    pub(crate) blocks: u32,
    /// The selection and the weighting of its rows, as JSON.
    pub(crate) options: String,
    /// The caller's name for its documents.
    pub(crate) source: String,
    pub(crate) documents: u64,
    pub(crate) terms: u64,
    pub(crate) postings: u64,
    /// The bytes of all sections.
    pub(crate) bytes: u64,
    /// The root of the tree, and the number of levels under it.
    pub(crate) root: u32,
    pub(crate) height: u32,
}

impl State {
    /// Drops a rank index, because documents are added or removed.
    pub(super) fn outdate_ranked(&mut self) {
        if let Some(RankedInfo { run, blocks, .. }) = self.ranked.take() {
            self.ranked_is_stale = true;
            self.unused.push(Unused { run, terms: 0, documents: 0, ranked: blocks });
        }
    }
}

impl Corpus {
    /// Returns the rank index, and whether there was one for other documents.
    pub(crate) fn ranked(&self) -> (Option<&RankedInfo>, bool) {
        (self.state.ranked.as_ref(), self.state.ranked_is_stale)
    }

    /// Returns the blocks under the number of a run.
    pub(crate) fn ranked_blocks(&self, run: u64) -> RankedBlocks<'_> {
        RankedBlocks { blocks: &self.blocks, run }
    }

    /// Fails if changes are not possible.
    pub(crate) fn check_changeable(&self) -> Result<()> {
        self.check_sure()
    }

    /// Lets `write` write a rank index with at most `blocks_max` blocks in each section, and replaces the existing one
    /// by it. After a crash or an error the old one remains.
    pub(crate) fn put_ranked(
        &mut self,
        blocks_max: u32,
        write: impl FnOnce(RankedBlocks<'_>) -> Result<RankedInfo>,
    ) -> Result<()> {
        self.check_sure()?;
        let run = self.begin_run(BlocksMax { ranked: blocks_max, ..BlocksMax::default() })?;
        let written = write(self.ranked_blocks(run));
        let info = written.or_else(|error| self.abandon(error))?;
        self.commit(|state| {
            state.outdate_ranked();
            (state.ranked, state.ranked_is_stale) = (Some(info), false);
            Ok(())
        })?;
        self.settle()
    }
}

/// The blocks of a rank index.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RankedBlocks<'c> {
    blocks: &'c Blocks,
    run: u64,
}

impl RankedBlocks<'_> {
    pub(crate) fn run(&self) -> u64 {
        self.run
    }

    pub(crate) fn put(&self, section: Section, number: u32, block: &[u8]) -> Result<()> {
        self.blocks.put(Kind::Ranked(section), (self.run, number), block)
    }

    /// Returns consecutive blocks. Their reads overlap.
    pub(crate) fn get_many(&self, section: Section, numbers: Range<u32>) -> Result<Vec<Vec<u8>>> {
        self.blocks.get_many(Kind::Ranked(section), self.run, numbers)
    }

    /// Returns the bytes of a block in this range of it. Costs a read of its pages up to the end of the range.
    pub(crate) fn part(&self, section: Section, number: u32, range: Range<u64>) -> Result<Vec<u8>> {
        self.blocks.part(Kind::Ranked(section), (self.run, number), range)
    }

    /// Returns the number of read operations since the index was opened, and of the pages that these read.
    pub(crate) fn reads(&self) -> (u64, u64) {
        self.blocks.reads()
    }
}
