//! Building from entries in ascending order: each entry goes after the last one, and nothing moves. So filters merge,
//! grow and shrink in one pass. Fingerprints stay the same, and no key is hashed again.

use nandex_store::run::{Entry, Merge, MergeOptions, Source};

use super::blocks::{Blocks, SLOTS};
use super::width::{Width, with_width};
use super::{QuotientFilter, Shape, StoredCount};
use crate::{Error, Result};

/// The position up to which a filter is built.
#[derive(Debug, Default)]
struct End {
    /// The slot after the last one in use.
    next: usize,
    last: Option<u64>,
}

impl QuotientFilter {
    /// Builds a filter from all entries of a source.
    ///
    /// Cost: one pass over the slots; nothing moves.
    ///
    /// # Errors
    /// As [`add`](Self::add); a failed read of the source; entries that are not in ascending order, or not in the
    /// shape's universe.
    pub fn from_source(shape: Shape, source: &mut dyn Source) -> Result<Self> {
        let mut filter = Self::new(shape);
        let mut end = End::default();
        let mut batch = Vec::new();
        while source.next_batch(&mut batch)? {
            with_width!(filter.kind, width => {
                batch.drain(..).try_for_each(|entry| filter.append(width, &mut end, entry))?;
            });
        }
        Ok(filter)
    }

    /// Builds a filter with the same entries and another number of quotients, full at the same share of them. With more
    /// quotients remainders are shorter; the rate of false positives stays the same.
    ///
    /// Cost: one pass over both; both are in RAM meanwhile.
    ///
    /// # Errors
    /// [`Error::FilterFull`] if they do not fit, and those of [`Shape::new`].
    pub fn resized(&self, quotients: u64) -> Result<Self> {
        Self::from_source(self.shape.resized(quotients)?, &mut self.source())
    }

    /// Merges several filters, which may have different sizes, into one. It adds up the counts of a fingerprint. All
    /// must have the shape's universe.
    ///
    /// Cost: one pass over all of them; nothing moves.
    ///
    /// # Errors
    /// [`Error::Config`] for filters of another universe, and those of [`from_source`](Self::from_source).
    pub fn merged(shape: Shape, filters: &[&Self]) -> Result<Self> {
        let size = shape.split().universe().size();
        let mut sizes = filters.iter().map(|filter| filter.shape.split().universe().size());
        if let Some(other) = sizes.find(|other| *other != size) {
            let reason = format!(
                "a filter of {other} fingerprints among filters of {size}; only those of one universe merge"
            );
            return Err(Error::Config { field: "universe", reason });
        }
        let sources = filters.iter().map(|filter| Box::new(filter.source()) as Box<dyn Source>);
        Self::from_source(shape, &mut Merge::new(sources.collect(), MergeOptions::default()))
    }

    /// Appends a fingerprint above all earlier ones.
    #[inline(always)]
    fn append(&mut self, width: impl Width, end: &mut End, entry: Entry) -> Result<()> {
        let Entry { fingerprint, count } = entry;
        check_order(&self.shape, end.last, fingerprint)?;
        let counts = self.shape.counts();
        let stored = StoredCount::of(counts, counts.sum(0, count)?);
        let outliers = (stored.outlier != 0).then_some(self.outliers.len());
        self.shape.check_limits(self.entries, stored.slots, outliers)?;
        let (quotient, remainder) = self.split(fingerprint);
        let body = remainder << counts.bits() | stored.code;
        let start = end.next.max(quotient);
        if start + stored.slots > self.slots {
            return Err(self.shape.no_slot_after(self.entries));
        }
        for slot in start..start + stored.slots {
            self.blocks.append(width, quotient, slot, body);
        }
        if stored.outlier != 0 {
            self.outliers.set(fingerprint, stored.outlier);
        }
        self.entries += stored.slots as u64;
        *end = End { next: start + stored.slots, last: Some(fingerprint) };
        Ok(())
    }
}

impl Blocks {
    /// Stores a body in a slot after all that are in use, for the last quotient that has a run or a later one.
    #[inline(always)]
    fn append(&mut self, width: impl Width, quotient: usize, slot: usize, body: u64) {
        let (block, place) = (quotient / SLOTS, quotient % SLOTS);
        let head = self.head(width, block);
        self.set_slot(width, slot, body);
        if head.occupieds >> place & 1 == 1 {
            // The last slot in use was the end of this run until now.
            self.flip_runend(width, slot - 1);
        } else {
            self.set_occupieds(width, block, head.occupieds | 1 << place);
        }
        self.flip_runend(width, slot);
        for block in block + 1..=slot / SLOTS {
            self.set_offset(width, block, slot + 1 - block * SLOTS);
        }
    }

    #[inline(always)]
    fn flip_runend(&mut self, width: impl Width, slot: usize) {
        let runends = self.runends(width, slot / SLOTS);
        self.set_runends(width, slot / SLOTS, runends ^ 1 << (slot % SLOTS));
    }
}

/// Checks that a fingerprint of a source comes after the last one, and is in the shape's universe.
#[inline(always)]
fn check_order(shape: &Shape, last: Option<u64>, fingerprint: u64) -> Result<()> {
    let size = shape.split().universe().size();
    if last < Some(fingerprint) && fingerprint < size {
        return Ok(());
    }
    Err(disorder(last, fingerprint, size))
}

#[cold]
fn disorder(last: Option<u64>, fingerprint: u64, size: u64) -> Error {
    let reason = match last {
        Some(last) if fingerprint <= last => {
            format!("fingerprint {fingerprint} after {last}; they must come in ascending order")
        }
        _ => format!(
            "fingerprint {fingerprint} of a universe of {size}; only filters of one universe merge"
        ),
    };
    Error::Config { field: "source", reason }
}
