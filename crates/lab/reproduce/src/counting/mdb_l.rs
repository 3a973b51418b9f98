//! MDB-L: the change segment is one log. Ranges of its pages are kept for each slot.

use std::ops::Range;

use nandex_sim::RequestKind::{Read, Write};

use super::design::{Design, merge_keys};
use super::ram::Staged;
use super::record::{Places, Record};
use super::segment::DataSegment;
use super::shape::{Change, Shape};

/// A table whose change segment is a log.
pub struct MdbL {
    shape: Shape,
    places: Places,
    entries_max: u64,
    entries: u64,
    /// The ranges of pages that each slot was staged to.
    ranges: Vec<Vec<Range<u64>>>,
    /// The keys of the entries, if they are kept.
    keys: Vec<u64>,
    record: Record,
    data: Option<DataSegment>,
}

impl MdbL {
    /// Creates an empty one.
    #[must_use]
    pub fn new(shape: Shape, change: Change, data: Option<DataSegment>) -> Self {
        Self {
            shape,
            places: Places::new(&shape, Some(change)),
            entries_max: change.blocks(&shape) * shape.block_entries(),
            entries: 0,
            ranges: vec![Vec::new(); shape.blocks as usize],
            keys: Vec::new(),
            record: Record::default(),
            data,
        }
    }

    /// Returns the pages of the log that have entries from `start` to `end`.
    fn pages(&self, start: u64, end: u64) -> Range<u64> {
        let first = self.places.change_page(0);
        let page_entries = self.shape.page_entries;
        first + start / page_entries..first + end.div_ceil(page_entries)
    }

    /// Appends the keys from `start` to `end` of those staged.
    fn append(&mut self, staged: &Staged, start: usize, end: usize) {
        let log_end = self.entries + (end - start) as u64;
        self.pages(self.entries, log_end).for_each(|page| self.record.page(Write, page));
        let mut slot_start = 0;
        for (slot, slot_end) in staged.ends.iter().copied().enumerate() {
            let (from, to) = (slot_start.max(start), slot_end.min(end));
            if from < to {
                let in_log = |index: usize| self.entries + (index - start) as u64;
                let pages = self.pages(in_log(from), in_log(to));
                self.ranges[slot].push(pages);
            }
            slot_start = slot_end;
        }
        self.entries = log_end;
        if self.data.is_some() {
            self.keys.extend_from_slice(&staged.keys[start..end]);
        }
        if self.entries == self.entries_max {
            self.merge();
        }
    }

    /// Merges the log with all data blocks that have entries in it. Each of them reads its pages, even if
    /// another has read them before.
    fn merge(&mut self) {
        for (slot, ranges) in self.ranges.iter_mut().enumerate() {
            if !ranges.is_empty() {
                ranges.drain(..).flatten().for_each(|page| self.record.page(Read, page));
                self.record.rewrite(slot as u64);
            }
        }
        self.record.counts.merges += 1;
        self.record.counts.cleans += self.entries.div_ceil(self.shape.block_entries());
        self.entries = 0;
        merge_keys(&mut self.data, self.keys.drain(..));
    }
}

impl Design for MdbL {
    fn stage(&mut self, staged: &Staged) {
        self.record.counts.stages += 1;
        let mut start = 0;
        while start < staged.keys.len() {
            let free = (self.entries_max - self.entries) as usize;
            let end = staged.keys.len().min(start + free);
            self.append(staged, start, end);
            start = end;
        }
    }

    fn finish(&mut self) {
        if self.entries > 0 {
            self.merge();
        }
    }

    fn record(&self) -> &Record {
        &self.record
    }

    fn read_change(&self, data_block: u64, reads: &mut Record) {
        let ranges = &self.ranges[data_block as usize];
        ranges.iter().cloned().flatten().for_each(|page| reads.page(Read, page));
    }

    fn data(&self) -> &DataSegment {
        self.data.as_ref().expect("keys are kept")
    }
}
