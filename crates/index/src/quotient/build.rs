//! Building from entries that come sorted: each goes behind the last one, and nothing ever moves.

use nandex_store::run::{Entry, Source};

use super::counts::{Held, added};
use super::full::{in_order, no_slot_behind, room};
use super::slots::Stored;
use super::{QuotientFilter, Shape};
use crate::Result;

/// A filter that takes entries in ascending order.
#[derive(Debug)]
pub(super) struct Builder {
    filter: QuotientFilter,
    /// The slot behind the last one in use.
    next: usize,
    last: Option<u64>,
}

impl Builder {
    pub fn new(shape: Shape) -> Self {
        Self { filter: QuotientFilter::new(shape), next: 0, last: None }
    }

    /// Appends a fingerprint above all before it.
    pub fn append(&mut self, entry: Entry) -> Result<()> {
        let Entry { fingerprint, count } = entry;
        let shape = self.filter.shape;
        in_order(&shape, self.last, fingerprint)?;
        let held = Held::of(shape.counts(), added(shape.counts(), 0, count)?);
        let outliers = (held.beside != 0).then_some(self.filter.outliers.len() as u64);
        room(&shape, self.filter.entries, held.slots, outliers)?;
        let (quotient, remainder) = shape.split().split(fingerprint);
        let body = remainder << shape.counts().bits() | held.code;
        self.put(quotient as usize, held.slots, body)?;
        self.filter.outliers.set(fingerprint, held.beside);
        self.filter.entries += held.slots as u64;
        self.last = Some(fingerprint);
        Ok(())
    }

    /// Stores a body so many times, behind everything and not left of its quotient.
    fn put(&mut self, quotient: usize, times: usize, body: u64) -> Result<()> {
        let slots = &mut self.filter.slots;
        let start = self.next.max(quotient);
        if start + times > slots.len() {
            return Err(no_slot_behind(&self.filter.shape, self.filter.entries));
        }
        for at in start..start + times {
            let is_continuation = slots.is_occupied(quotient);
            slots.store(at, Stored { is_continuation, is_shifted: at != quotient, body });
            slots.set_occupied(quotient, true);
        }
        self.next = start + times;
        Ok(())
    }

    pub fn finish(self) -> QuotientFilter {
        self.filter
    }
}

impl QuotientFilter {
    /// A filter of all that a source gives.
    ///
    /// Cost: one pass over the slots; nothing is moved.
    ///
    /// # Errors
    /// As [`add`](Self::add); a failed read of the source; entries that are not in ascending order or not of
    /// the shape's universe.
    pub fn from_source(shape: Shape, source: &mut dyn Source) -> Result<Self> {
        let mut builder = Builder::new(shape);
        let mut batch = Vec::new();
        while source.next_batch(&mut batch)? {
            batch.drain(..).try_for_each(|entry| builder.append(entry))?;
        }
        Ok(builder.finish())
    }
}
