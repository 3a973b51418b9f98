//! All fingerprints in ascending order, a few blocks at a time.

use nandex_store::run::{Entry, Source};

use super::blocks::SLOTS;
use super::join::Join;
use super::width::{Width, with_width};
use super::{Counts, QuotientFilter, REPEATS_MAX};

/// The approximate number of entries in a batch.
const BATCH: usize = 512;

/// The entries of a filter in batches, for merging or writing.
#[derive(Clone, Debug)]
pub struct QuotientSource<'a> {
    filter: &'a QuotientFilter,
    join: Join,
    /// The next block to read.
    block: usize,
    /// The slot after the runs of all quotients before that block.
    end: usize,
}

impl QuotientFilter {
    /// Returns all fingerprints in ascending order, each once, with its count.
    pub fn iter(&self) -> impl Iterator<Item = Entry> + Send + '_ {
        let mut source = self.source();
        let next_batch = move || {
            let mut batch = Vec::new();
            source.read(&mut batch).then_some(batch)
        };
        std::iter::from_fn(next_batch).flatten()
    }

    /// Returns the same in batches, for merging or writing.
    #[must_use]
    pub fn source(&self) -> QuotientSource<'_> {
        QuotientSource { filter: self, join: Join::new(self.shape.split()), block: 0, end: 0 }
    }

    /// Returns the count according to the first slot of a fingerprint.
    #[inline(always)]
    fn count_in(&self, fingerprint: u64, body: u64) -> i64 {
        let counts = self.shape.counts();
        if counts == Counts::One {
            return 1;
        }
        let count = counts.decode(body & counts.mask());
        count.unwrap_or_else(|| self.outliers.get(fingerprint))
    }

    /// Adds another slot to the count of the last entry.
    #[cold]
    fn count_again(&self, out: &mut [Entry]) {
        let last = out.last_mut().expect("the slot before was of the same fingerprint");
        last.count += last.count.signum();
        if last.count.unsigned_abs() == REPEATS_MAX as u64 {
            last.count += self.outliers.get(last.fingerprint);
        }
    }
}

impl QuotientSource<'_> {
    /// Appends a batch. Returns false at the end.
    fn read(&mut self, out: &mut Vec<Entry>) -> bool {
        let before = out.len();
        with_width!(self.filter.kind, width => {
            while out.len() < before + BATCH && self.read_block(width, out) {}
        });
        out.len() > before
    }

    /// Appends the entries of the next block. Returns false at the end.
    #[inline(always)]
    fn read_block(&mut self, width: impl Width, out: &mut Vec<Entry>) -> bool {
        let (filter, blocks) = (self.filter, &self.filter.blocks);
        if self.block == blocks.len() {
            return false;
        }
        let head = blocks.head(width, self.block);
        let join = self.join.block(self.block);
        let base = self.block * SLOTS;
        let mut occupieds = head.occupieds;
        while occupieds != 0 {
            let place = occupieds.trailing_zeros() as usize;
            occupieds &= occupieds - 1;
            let start = self.end.max(base + place);
            self.end = blocks.runend_from(width, start) + 1;
            let mut before = None;
            for slot in start..self.end {
                let body = blocks.slot(width, slot);
                let remainder = body >> filter.shape.counts().bits();
                if before == Some(remainder) {
                    filter.count_again(out);
                    continue;
                }
                before = Some(remainder);
                let fingerprint = join.join(place, remainder);
                let count = filter.count_in(fingerprint, body);
                out.push(Entry { fingerprint, count });
            }
        }
        self.block += 1;
        true
    }
}

impl Source for QuotientSource<'_> {
    fn next_batch(&mut self, out: &mut Vec<Entry>) -> nandex_store::Result<bool> {
        Ok(self.read(out))
    }
}
