//! MDB: each block of the change segment takes the staged entries of its `k` data blocks.

use nandex_sim::RequestKind::{Read, Write};

use super::design::{Design, merge_keys};
use super::ram::Staged;
use super::record::{Places, Record};
use super::segment::DataSegment;
use super::shape::{Change, Shape};

/// A table whose change segment is divided.
pub struct Mdb {
    shape: Shape,
    change: Change,
    places: Places,
    record: Record,
    data: Option<DataSegment>,
    blocks: Vec<ChangeBlock>,
    /// Whether a data block has entries in the change segment.
    changed: Vec<bool>,
}

/// A block of the change segment.
#[derive(Clone, Debug, Default)]
struct ChangeBlock {
    entries: u64,
    /// The keys of the entries, if they are kept.
    keys: Vec<u64>,
}

impl Mdb {
    /// Creates an empty one.
    #[must_use]
    pub fn new(shape: Shape, change: Change, data: Option<DataSegment>) -> Self {
        Self {
            shape,
            change,
            places: Places::new(&shape, Some(change)),
            record: Record::default(),
            data,
            blocks: vec![ChangeBlock::default(); change.blocks(&shape) as usize],
            changed: vec![false; shape.blocks as usize],
        }
    }

    /// Returns the data blocks of a block of the change segment.
    fn data_blocks(&self, block: u64) -> std::ops::Range<u64> {
        let first = block * self.change.data_blocks;
        first..(first + self.change.data_blocks).min(self.shape.blocks)
    }

    /// Appends to a block of the change segment. A partly filled page is filled up, so it is written again.
    fn append(&mut self, block: u64, keys: &[u64]) {
        let start = self.blocks[block as usize].entries;
        let end = start + keys.len() as u64;
        let page_entries = self.shape.page_entries;
        for page in start / page_entries..end.div_ceil(page_entries) {
            self.record.page(Write, self.places.change_page(block) + page);
        }
        let change = &mut self.blocks[block as usize];
        change.entries = end;
        if self.data.is_some() {
            change.keys.extend_from_slice(keys);
        }
        for key in keys {
            self.changed[self.shape.block(*key) as usize] = true;
        }
        if end == self.shape.block_entries() {
            self.merge(block);
        }
    }

    /// Merges a block of the change segment with its data blocks.
    fn merge(&mut self, block: u64) {
        self.record.block(Read, self.places.change_page(block));
        for data_block in self.data_blocks(block) {
            if std::mem::take(&mut self.changed[data_block as usize]) {
                self.record.rewrite(data_block);
            }
        }
        self.record.counts.merges += 1;
        self.record.counts.cleans += 1;
        let merged = std::mem::take(&mut self.blocks[block as usize]);
        merge_keys(&mut self.data, merged.keys.into_iter());
    }
}

impl Design for Mdb {
    fn stage(&mut self, staged: &Staged) {
        self.record.counts.stages += 1;
        for block in 0..self.blocks.len() as u64 {
            let slots = self.data_blocks(block);
            let start = slots.start.checked_sub(1).map_or(0, |slot| staged.ends[slot as usize]);
            let mut rest = &staged.keys[start..staged.ends[slots.end as usize - 1]];
            while !rest.is_empty() {
                let free = self.shape.block_entries() - self.blocks[block as usize].entries;
                let (keys, others) = rest.split_at(rest.len().min(free as usize));
                self.append(block, keys);
                rest = others;
            }
        }
    }

    fn finish(&mut self) {
        for block in 0..self.blocks.len() {
            if self.blocks[block].entries > 0 {
                self.merge(block as u64);
            }
        }
    }

    fn record(&self) -> &Record {
        &self.record
    }

    fn read_change(&self, data_block: u64, reads: &mut Record) {
        let block = data_block / self.change.data_blocks;
        if self.blocks[block as usize].entries > 0 {
            reads.block(Read, self.places.change_page(block));
        }
    }

    fn data(&self) -> &DataSegment {
        self.data.as_ref().expect("keys are kept")
    }
}
