//! The operations of a table on flash, one after another, and their counts.

use nandex_sim::RequestKind;

use super::shape::{BLOCK_PAGES, Change, Shape};
use crate::tape::{Act, Step, Tape};

/// The counts of Table 2, and cleans.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct OpCounts {
    /// Blocks read or written.
    pub blocks: u64,
    /// Pages read or written alone.
    pub pages: u64,
    /// Merges into the data segment.
    pub merges: u64,
    /// Times that the RAM buffer was staged.
    pub stages: u64,
    /// Blocks that were written again, so that their old content is erased.
    pub cleans: u64,
}

/// The places of the segments of a table: data, change and one block of overflow, in this order.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Places {
    data_blocks: u64,
    change_blocks: u64,
}

impl Places {
    /// Returns the places of a table with this change segment, if it has one.
    #[must_use]
    pub fn new(shape: &Shape, change: Option<Change>) -> Self {
        let change_blocks = change.map_or(0, |change| change.blocks(shape));
        Self { data_blocks: shape.blocks, change_blocks }
    }

    /// Returns the pages of all segments.
    #[must_use]
    pub const fn pages(&self) -> u64 {
        (self.data_blocks + self.change_blocks + 1) * BLOCK_PAGES
    }

    /// Returns the first page of a block of the change segment.
    #[must_use]
    pub const fn change_page(&self, block: u64) -> u64 {
        (self.data_blocks + block) * BLOCK_PAGES
    }

    /// Returns the page of the overflow region.
    #[must_use]
    pub const fn overflow_page(&self) -> u64 {
        (self.data_blocks + self.change_blocks) * BLOCK_PAGES
    }
}

/// A sequence of operations, each of which waits for the one before, as in the paper's simulator in slave
/// mode.
#[derive(Clone, Debug, Default)]
pub struct Record {
    /// Their counts.
    pub counts: OpCounts,
    steps: Vec<Step>,
}

impl Record {
    /// Records a block, from `page` on.
    pub fn block(&mut self, kind: RequestKind, page: u64) {
        self.counts.blocks += 1;
        self.push(kind, page, BLOCK_PAGES as u32);
    }

    /// Records one page.
    pub fn page(&mut self, kind: RequestKind, page: u64) {
        self.counts.pages += 1;
        self.push(kind, page, 1);
    }

    /// Records that a block of the data segment is read, changed and written again.
    pub fn rewrite(&mut self, data_block: u64) {
        let page = data_block * BLOCK_PAGES;
        self.block(RequestKind::Read, page);
        self.block(RequestKind::Write, page);
        self.counts.cleans += 1;
    }

    /// Returns the pages up to the last that it uses.
    #[must_use]
    pub fn pages(&self) -> u64 {
        let ends = self.steps.iter().map(|step| step.page + u64::from(step.pages));
        ends.max().unwrap_or(0)
    }

    /// Appends it to a tape, as one operation.
    pub fn put_on(&self, tape: &mut Tape, act: Act) {
        tape.push(act, &self.steps);
    }

    fn push(&mut self, kind: RequestKind, page: u64, pages: u32) {
        let wave = self.steps.len() as u32;
        self.steps.push(Step { kind, page, pages, wave });
    }
}
