//! Iteration: slots from left to right are fingerprints in ascending order.

use nandex_store::run::{Entry, Source};

use super::QuotientFilter;
use super::slots::SlotArray;

/// Goes over all slots in use, and says of each whose quotient it is.
#[derive(Clone, Debug)]
pub(super) struct Walk<'f> {
    slots: &'f SlotArray,
    next: usize,
    quotient: usize,
}

impl<'f> Walk<'f> {
    pub fn new(slots: &'f SlotArray) -> Self {
        Self { slots, next: 0, quotient: 0 }
    }
}

impl Iterator for Walk<'_> {
    /// Quotient and slot.
    type Item = (usize, usize);

    fn next(&mut self) -> Option<Self::Item> {
        let used = |at: &usize| !self.slots.is_empty(*at);
        let at = (self.next..self.slots.len()).find(used)?;
        self.next = at + 1;
        if !self.slots.is_shifted(at) {
            self.quotient = at;
        } else if !self.slots.is_continuation(at) {
            self.quotient = self.slots.next_occupied(self.quotient + 1)?;
        }
        Some((self.quotient, at))
    }
}

/// The fingerprints of a filter in ascending order, each once, with its count; see [`QuotientFilter::iter`].
#[derive(Clone, Debug)]
pub struct Iter<'f> {
    filter: &'f QuotientFilter,
    walk: std::iter::Peekable<Walk<'f>>,
}

impl<'f> Iter<'f> {
    pub(super) fn new(filter: &'f QuotientFilter) -> Self {
        Self { filter, walk: Walk::new(&filter.slots).peekable() }
    }
}

impl Iterator for Iter<'_> {
    type Item = Entry;

    fn next(&mut self) -> Option<Entry> {
        let filter = self.filter;
        let (quotient, start) = self.walk.next()?;
        let remainder = filter.remainder(start);
        let mut same = start..start + 1;
        let is_same = |&(of, at): &_| of == quotient && filter.remainder(at) == remainder;
        while self.walk.next_if(is_same).is_some() {
            same.end += 1;
        }
        let fingerprint = filter.shape.split().join(quotient as u64, remainder);
        let count = filter.held(fingerprint, &same).count(filter.shape.counts());
        Some(Entry { fingerprint, count })
    }
}

/// Entries of an iterator, a page's worth at a time.
#[derive(Clone, Debug)]
pub struct Batches<I>(pub I);

/// Entries in a batch.
const BATCH: usize = 1024;

impl<I: Iterator<Item = Entry> + Send> Source for Batches<I> {
    fn next_batch(&mut self, out: &mut Vec<Entry>) -> nandex_store::Result<bool> {
        let before = out.len();
        out.extend(self.0.by_ref().take(BATCH));
        Ok(out.len() > before)
    }
}
