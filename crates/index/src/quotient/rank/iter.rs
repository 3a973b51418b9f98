//! All fingerprints in ascending order, a few blocks at a time.

use std::ops::Deref;

use nandex_store::run::{Entry, Source};

use super::blocks::SLOTS;
use super::filter::{RankFilter, mask};
use super::join::Join;
use super::width::{Any, Fixed, Width, with_width};
use crate::quotient::{Counts, REPEATS_MAX};

/// Entries of a batch, about.
const BATCH: usize = 512;

/// The entries of a filter, as [`Source`]s give them; `F` is a reference to the filter, or owns it.
#[derive(Clone, Debug)]
pub struct RankSource<F> {
    filter: F,
    cursor: Cursor,
}

/// The entries of a filter, one after the other.
#[derive(Clone, Debug)]
pub struct RankIter<'a> {
    source: RankSource<&'a RankFilter>,
    batch: Vec<Entry>,
    next: usize,
}

/// How far a filter was read.
#[derive(Clone, Copy, Debug)]
struct Cursor {
    join: Join,
    /// The next block whose quotients come.
    block: usize,
    /// The slot behind the runs of all quotients before.
    end: usize,
}

impl RankFilter {
    /// All fingerprints in ascending order, each once, with its count.
    #[must_use]
    pub fn iter(&self) -> RankIter<'_> {
        RankIter { source: self.source(), batch: Vec::new(), next: 0 }
    }

    /// The same in batches, to be merged or written.
    #[must_use]
    pub fn source(&self) -> RankSource<&Self> {
        RankSource::new(self)
    }

    /// The entries of the next block; false behind the last.
    #[inline(always)]
    fn read_block(&self, width: impl Width, cursor: &mut Cursor, out: &mut Vec<Entry>) -> bool {
        if cursor.block == self.blocks.len() {
            return false;
        }
        let head = self.blocks.head(width, cursor.block);
        let join = cursor.join.block(cursor.block);
        let base = cursor.block * SLOTS;
        let mut occupieds = head.occupieds;
        while occupieds != 0 {
            let place = occupieds.trailing_zeros() as usize;
            occupieds &= occupieds - 1;
            let start = cursor.end.max(base + place);
            cursor.end = self.blocks.runend_from(width, start) + 1;
            let mut before = None;
            for slot in start..cursor.end {
                let body = self.blocks.slot(width, slot);
                let remainder = body >> self.shape.counts().bits();
                if before == Some(remainder) {
                    self.once_more(out);
                    continue;
                }
                before = Some(remainder);
                let fingerprint = join.join(place, remainder);
                let count = self.count_in(fingerprint, body);
                out.push(Entry { fingerprint, count });
            }
        }
        cursor.block += 1;
        true
    }

    /// What a fingerprint's first slot says of its count.
    #[inline(always)]
    fn count_in(&self, fingerprint: u64, body: u64) -> i64 {
        let counts = self.shape.counts();
        if counts == Counts::One {
            return 1;
        }
        let count = counts.decode(body & mask(counts));
        count.unwrap_or_else(|| self.outliers.get(fingerprint))
    }

    /// Another slot of the last entry.
    #[cold]
    fn once_more(&self, out: &mut [Entry]) {
        let last = out.last_mut().expect("the slot before was of the same fingerprint");
        last.count += last.count.signum();
        if last.count.unsigned_abs() == REPEATS_MAX as u64 {
            last.count += self.outliers.get(last.fingerprint);
        }
    }
}

impl<F: Deref<Target = RankFilter>> RankSource<F> {
    /// All entries of a filter from the least on.
    #[must_use]
    pub fn new(filter: F) -> Self {
        let cursor = Cursor { join: Join::new(filter.shape.split()), block: 0, end: 0 };
        Self { filter, cursor }
    }

    /// Appends a batch; false where none is left.
    fn read(&mut self, out: &mut Vec<Entry>) -> bool {
        let before = out.len();
        let cursor = &mut self.cursor;
        with_width!(self.filter.shape.slot_bits(), width => {
            while out.len() < before + BATCH && self.filter.read_block(width, cursor, out) {}
        });
        out.len() > before
    }
}

impl<F: Deref<Target = RankFilter> + Send> Source for RankSource<F> {
    fn next_batch(&mut self, out: &mut Vec<Entry>) -> nandex_store::Result<bool> {
        Ok(self.read(out))
    }
}

impl Iterator for RankIter<'_> {
    type Item = Entry;

    #[inline]
    fn next(&mut self) -> Option<Entry> {
        if self.next == self.batch.len() {
            self.batch.clear();
            self.next = 0;
            self.source.read(&mut self.batch);
        }
        let entry = self.batch.get(self.next).copied();
        self.next += usize::from(entry.is_some());
        entry
    }
}

impl<'a> IntoIterator for &'a RankFilter {
    type Item = Entry;
    type IntoIter = RankIter<'a>;

    fn into_iter(self) -> RankIter<'a> {
        self.iter()
    }
}
