//! MB: the RAM buffer is merged with the data segment when it is full.

use super::design::{Design, merge_keys};
use super::ram::Staged;
use super::record::Record;
use super::segment::DataSegment;

/// A table without a change segment.
pub struct Mb {
    record: Record,
    data: Option<DataSegment>,
}

impl Mb {
    /// Creates an empty one.
    #[must_use]
    pub fn new(data: Option<DataSegment>) -> Self {
        Self { record: Record::default(), data }
    }
}

impl Design for Mb {
    fn stage(&mut self, staged: &Staged) {
        for slot in 0..staged.ends.len() {
            if !staged.of_slot(slot).is_empty() {
                self.record.rewrite(slot as u64);
            }
        }
        self.record.counts.merges += 1;
        merge_keys(&mut self.data, staged.keys.iter().copied());
    }

    fn finish(&mut self) {}

    fn record(&self) -> &Record {
        &self.record
    }

    fn read_change(&self, _data_block: u64, _reads: &mut Record) {}

    fn data(&self) -> &DataSegment {
        self.data.as_ref().expect("keys are kept")
    }
}
